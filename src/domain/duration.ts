import { ChronosError, describeValue } from './errors.js';

/** Milliseconds as a number, or text with its unit: `'250ms'`, `'10s'`, `'5m'`, `'1h'`, `'3d'`, `'2w'`. */
export type Duration = number | string;

export const DAY_MS = 86_400_000;

const UNITS = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', DAY_MS],
  ['w', 7 * DAY_MS],
]);

/** A hundred years. Longer durations are mistakes and would lead to invalid dates. */
export const MAX_DURATION_MS = 100 * 366 * DAY_MS;

/** Milliseconds, or an error message that follows the name of the field. */
export function readDuration(value: unknown): { ms: number } | { error: string } {
  const ms = typeof value === 'number' ? value : typeof value === 'string' ? readText(value) : NaN;
  if (ms >= 0 && ms <= MAX_DURATION_MS) return { ms };
  const expected = Number.isNaN(ms)
    ? "milliseconds or a text like '250ms', '10s', '5m', '1h', '3d'"
    : 'between 0 and a hundred years';
  return { error: `must be ${expected}, got ${describeValue(value)}` };
}

export function parseDuration(value: unknown, name: string): number {
  const read = readDuration(value);
  if ('error' in read) throw new ChronosError('INVALID_ARGUMENT', `${name} ${read.error}`);
  return read.ms;
}

function readText(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]+)$/.exec(text.trim());
  const unit = UNITS.get(match?.[2] ?? '');
  return unit === undefined ? NaN : Number(match?.[1]) * unit;
}
