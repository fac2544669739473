import { didYouMean } from '../did-you-mean.js';
import { ChronosError } from '../errors.js';
import { isRecord } from '../language.js';
import { jsonText } from '../text.js';

/** A value, `*`, a step (a star, a slash and a number), a range such as `9-17`, or a list of these. */
export type FieldPattern = number | string;

/**
 * When a run is due, field by field. All fields must match, and a missing one matches anything. A step matches the
 * values that it divides: every fifth day is the 5th, 10th, 15th … (in cron: 1st, 6th, 11th …).
 */
export interface FieldSchedule {
  minutes?: FieldPattern;
  hours?: FieldPattern;
  /** Day of the month; `day` means the same. */
  mday?: FieldPattern;
  day?: FieldPattern;
  /** 0 is Sunday, and so is 7. */
  wday?: FieldPattern;
  mon?: FieldPattern;
  year?: FieldPattern;
}

type FieldName = keyof FieldSchedule;

interface ParsedField {
  readonly matches: (value: number) => boolean;
  /** Starts with `*`: a frequency, not a fixed time. */
  readonly open: boolean;
}

type ParsedFields = Readonly<Record<FieldName, ParsedField>>;

const BOUNDS: Record<FieldName, readonly [number, number]> = {
  minutes: [0, 59],
  hours: [0, 23],
  mday: [1, 31],
  day: [1, 31],
  wday: [0, 7],
  mon: [1, 12],
  year: [1970, 9999],
};

const ANYTHING: ParsedField = { matches: () => true, open: true };

/** Throws INVALID_SCHEDULE with all problems. */
export function parseFields(input: unknown): ParsedFields {
  if (!isRecord(input)) {
    throw new ChronosError(
      'INVALID_SCHEDULE',
      'a field schedule must be an object like { minutes: 0, hours: 2 }',
    );
  }
  const errors: string[] = [];
  const parsed = new Map<string, ParsedField>();
  const names = Object.keys(BOUNDS) as FieldName[];
  for (const [key, pattern] of Object.entries(input)) {
    if (pattern === undefined) continue;
    const name = names.find((known) => known === key);
    if (name === undefined) errors.push(`${key} is not a field${didYouMean(key, names)}`);
    else parsed.set(name, parseField(name, pattern, errors));
  }
  if (parsed.size === 0 && errors.length === 0) errors.push(`it needs one of ${names.join(', ')}`);
  if (errors.length > 0)
    throw new ChronosError('INVALID_SCHEDULE', `invalid field schedule: ${errors.join('; ')}`);
  return Object.fromEntries(names.map((name) => [name, parsed.get(name) ?? ANYTHING])) as ParsedFields;
}

function parseField(name: FieldName, pattern: unknown, errors: string[]): ParsedField {
  const items = String(typeof pattern === 'number' || typeof pattern === 'string' ? pattern : '').split(',');
  const tests = items.map((item) => parseItem(name, item.trim()));
  if (tests.some((test) => test === undefined)) {
    const [min, max] = BOUNDS[name];
    errors.push(
      `${name} must be a number from ${min} to ${max}, '*', a step like '*/5', a range like '${min}-${max}' or a list of these, got ${jsonText(pattern)}`,
    );
  }
  return {
    matches: (value) => tests.some((test) => test?.(value)),
    open: items.some((item) => item.trim().startsWith('*')),
  };
}

function parseItem(name: FieldName, item: string): ((value: number) => boolean) | undefined {
  const [min, max] = BOUNDS[name];
  if (item === '*') return () => true;
  const step = /^\*\/(\d+)$/.exec(item)?.[1];
  if (step !== undefined) {
    return Number(step) >= 1 && Number(step) <= max ? (value) => value % Number(step) === 0 : undefined;
  }
  const match = /^(\d+)(?:\s*-\s*(\d+))?$/.exec(item);
  const first = Number(match?.[1]);
  const last = Number(match?.[2] ?? first);
  if (!(min <= first && first <= last && last <= max)) return undefined;
  const isInRange = (value: number): boolean => value >= first && value <= last;
  // Sunday is 0, and a pattern may write it as 7.
  return name === 'wday' ? (value) => isInRange(value) || (value === 0 && isInRange(7)) : isInRange;
}
