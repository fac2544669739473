/** Shown instead of a missing value. */
export const NONE = '–';

/** `from`: the smallest duration shown in this unit, which is the one that rounds up to 1. */
const UNITS: readonly (readonly [unit: string, ms: number, from: number])[] = [
  ['d', 86_400_000, 84_600_000],
  ['h', 3_600_000, 3_570_000],
  ['m', 60_000, 59_500],
  ['s', 1000, 999.5],
];

/** `250ms`, `12s`, `5m`, `3h`, `2d`: rounded, in the largest unit that fits. */
export function formatDuration(ms: number | null): string {
  if (ms === null) return NONE;
  const [unit, size] = UNITS.find(([, , from]) => ms >= from) ?? ['ms', 1];
  return `${Math.round(ms / size)}${unit}`;
}

/** `in 5m`, `3m ago`, `now`. */
export function formatRelative(at: Date | null, now: Date): string {
  if (at === null) return NONE;
  const ms = at.getTime() - now.getTime();
  if (Math.abs(ms) < 1000) return 'now';
  return ms > 0 ? `in ${formatDuration(ms)}` : `${formatDuration(-ms)} ago`;
}

/** `2026-01-01 00:00:00Z (in 5m)`. */
export function formatMoment(at: Date | null, now: Date): string {
  return at === null ? NONE : `${instant(at)} (${formatRelative(at, now)})`;
}

export function instant(at: Date): string {
  return at
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, 'Z');
}

/** `1,234`, `12.5`. */
export function number(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: value < 100 ? 1 : 0 });
}

/** `1 job`, `1,234 jobs`. */
export function plural(count: number, noun: string): string {
  return `${number(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** `1,234 jobs`, or `more than 10,000 jobs` if counting stopped at a limit. */
export function counted({ count, atLeast }: { count: number; atLeast: boolean }, noun: string): string {
  return `${atLeast ? 'more than ' : ''}${plural(count, noun)}`;
}
