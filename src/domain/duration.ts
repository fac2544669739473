import { ChronosError } from './errors.js';

/** Milliseconds as a number, or text with its unit: `'250ms'`, `'10s'`, `'5m'`, `'1h'`, `'3d'`, `'2w'`. */
export type Duration = number | string;

const UNITS = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
  ['w', 604_800_000],
]);

/** A hundred years. Longer durations are mistakes, and would lead to invalid dates. */
export const MAX_DURATION_MS = 100 * 366 * 86_400_000;

/** Milliseconds, or an error text that follows the name of the field. */
export function readDuration(value: unknown): { ms: number } | { fault: string } {
  const ms = typeof value === 'number' ? value : typeof value === 'string' ? readText(value) : NaN;
  if (Number.isNaN(ms)) {
    return {
      fault: `must be milliseconds or a text like '250ms', '10s', '5m', '1h', '3d', got ${show(value)}`,
    };
  }
  if (ms < 0 || ms > MAX_DURATION_MS)
    return { fault: `must be between 0 and a hundred years, got ${show(value)}` };
  return { ms };
}

export function parseDuration(value: unknown, name: string): number {
  const read = readDuration(value);
  if ('fault' in read) throw new ChronosError('INVALID_ARGUMENT', `${name} ${read.fault}`);
  return read.ms;
}

function readText(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]+)$/.exec(text.trim());
  const unit = UNITS.get(match?.[2] ?? '');
  return unit === undefined ? NaN : Number(match?.[1]) * unit;
}

function show(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`;
  if (typeof value === 'function') return 'a function';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}
