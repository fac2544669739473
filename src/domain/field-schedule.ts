import { ChronosError } from './errors.js';
import { hint } from './nearest.js';
import { jsonText } from './text.js';

// A value, '*', a step '*/15', a range '9-17', or a list of these.
export type FieldPattern = number | string;

/**
 * When a run is due, field by field. All fields that are given must match, a missing one matches anything, and a
 * step matches where it divides the value: every fifth day is the 5th, 10th, 15th … (in cron: 1st, 6th, 11th …).
 */
export interface FieldSchedule {
  minutes?: FieldPattern;
  hours?: FieldPattern;
  /** Day of the month; `day` is the same. */
  mday?: FieldPattern;
  day?: FieldPattern;
  /** 0 is Sunday, and so is 7. */
  wday?: FieldPattern;
  mon?: FieldPattern;
  year?: FieldPattern;
}

type FieldName = keyof FieldSchedule;

/** One field: which values match, and whether it is written with a star: how often rather than when. */
export interface ParsedField {
  readonly matches: (value: number) => boolean;
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

/** Throws INVALID_SCHEDULE that names every fault. */
export function parseFields(input: unknown): ParsedFields {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw new ChronosError(
      'INVALID_SCHEDULE',
      'a schedule by fields is an object like { minutes: 0, hours: 2 }',
    );
  }
  const faults: string[] = [];
  const parsed = new Map<string, ParsedField>();
  for (const [key, pattern] of Object.entries(input)) {
    if (pattern === undefined) continue;
    if (!Object.hasOwn(BOUNDS, key)) faults.push(`${key} is not a field${hint(key, Object.keys(BOUNDS))}`);
    else parsed.set(key, parseField(key as FieldName, pattern, faults));
  }
  if (parsed.size === 0 && faults.length === 0)
    faults.push(`none of ${Object.keys(BOUNDS).join(', ')} is given`);
  if (faults.length > 0)
    throw new ChronosError('INVALID_SCHEDULE', `a schedule by fields: ${faults.join('; ')}`);
  const names = Object.keys(BOUNDS) as FieldName[];
  return Object.fromEntries(names.map((name) => [name, parsed.get(name) ?? ANYTHING])) as ParsedFields;
}

function parseField(name: FieldName, pattern: unknown, faults: string[]): ParsedField {
  const items = String(typeof pattern === 'number' || typeof pattern === 'string' ? pattern : '').split(',');
  const tests = items.map((item) => parseItem(name, item.trim()));
  if (tests.some((test) => test === undefined)) {
    const [least, most] = BOUNDS[name];
    faults.push(
      `${name} must be a number from ${least} to ${most}, '*', a step like '*/5', a range like '${least}-${most}' or a list of these, got ${jsonText(pattern)}`,
    );
  }
  return {
    matches: (value) => tests.some((test) => test?.(value)),
    open: items.some((item) => item.trim().startsWith('*')),
  };
}

function parseItem(name: FieldName, item: string): ((value: number) => boolean) | undefined {
  const [least, most] = BOUNDS[name];
  const inBounds = (value: number): boolean => value >= least && value <= most;
  // Sunday is 0 or 7, whichever the pattern says.
  const orSunday = (test: (value: number) => boolean): ((value: number) => boolean) =>
    name === 'wday' ? (value) => test(value) || (value === 0 && test(7)) : test;
  if (item === '*') return () => true;
  const step = /^\*\/(\d+)$/.exec(item)?.[1];
  if (step !== undefined) {
    return Number(step) >= 1 && Number(step) <= most ? (value) => value % Number(step) === 0 : undefined;
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
