import { didYouMean } from '../did-you-mean.js';
import { ChronosError } from '../errors.js';
import { jsonText } from '../text.js';

// A value, '*', a step '*/15', a range '9-17', or a list of these.
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

export interface ParsedField {
  readonly matches: (value: number) => boolean;
  /** Starts with `*`: a frequency, not a fixed time. */
  readonly open: boolean;
}

export type ParsedFields = Readonly<Record<FieldName, ParsedField>>;

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
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw new ChronosError(
      'INVALID_SCHEDULE',
      'a field schedule must be an object like { minutes: 0, hours: 2 }',
    );
  }
  const faults: string[] = [];
  const parsed = new Map<string, ParsedField>();
  for (const [key, pattern] of Object.entries(input)) {
    if (pattern === undefined) continue;
    if (!Object.hasOwn(BOUNDS, key))
      faults.push(`${key} is not a field${didYouMean(key, Object.keys(BOUNDS))}`);
    else parsed.set(key, parseField(key as FieldName, pattern, faults));
  }
  if (parsed.size === 0 && faults.length === 0)
    faults.push(`it needs one of ${Object.keys(BOUNDS).join(', ')}`);
  if (faults.length > 0)
    throw new ChronosError('INVALID_SCHEDULE', `invalid field schedule: ${faults.join('; ')}`);
  const names = Object.keys(BOUNDS) as FieldName[];
  return Object.fromEntries(names.map((name) => [name, parsed.get(name) ?? ANYTHING])) as ParsedFields;
}

function parseField(name: FieldName, pattern: unknown, faults: string[]): ParsedField {
  const items = String(typeof pattern === 'number' || typeof pattern === 'string' ? pattern : '').split(',');
  const tests = items.map((item) => parseItem(name, item.trim()));
  if (tests.some((test) => test === undefined)) {
    const [min, max] = BOUNDS[name];
    faults.push(
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
  const inBounds = (value: number): boolean => value >= min && value <= max;
  // Sunday is 0, and a pattern may write it as 7.
  const orSunday = (test: (value: number) => boolean): ((value: number) => boolean) =>
    name === 'wday' ? (value) => test(value) || (value === 0 && test(7)) : test;
  if (item === '*') return () => true;
  const step = /^\*\/(\d+)$/.exec(item)?.[1];
  if (step !== undefined) {
    return Number(step) >= 1 && Number(step) <= max ? (value) => value % Number(step) === 0 : undefined;
  }
  const [, first, last = first] = /^(\d+)(?:\s*-\s*(\d+))?$/.exec(item) ?? [];
  if (
    first === undefined ||
    !inBounds(Number(first)) ||
    !inBounds(Number(last)) ||
    Number(first) > Number(last)
  ) {
    return undefined;
  }
  return orSunday((value) => value >= Number(first) && value <= Number(last));
}
