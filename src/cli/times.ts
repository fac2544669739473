/** What stands where there is nothing to say. */
export const NONE = '–';

/** From which length on each unit is used: what would round up to one of it is one of it. */
const UNITS: readonly (readonly [unit: string, ms: number, from: number])[] = [
  ['d', 86_400_000, 84_600_000],
  ['h', 3_600_000, 3_570_000],
  ['m', 60_000, 59_500],
  ['s', 1000, 999.5],
];

/** `250ms`, `12s`, `5m`, `3h`, `2d`: in its largest unit, rounded. */
export function span(ms: number | null): string {
  if (ms === null) return NONE;
  const [unit, size] = UNITS.find(([, , from]) => ms >= from) ?? ['ms', 1];
  return `${Math.round(ms / size)}${unit}`;
}

/** `in 5m`, `3m ago`, `now`. */
export function relative(at: Date | null, now: Date): string {
  if (at === null) return NONE;
  const ms = at.getTime() - now.getTime();
  if (Math.abs(ms) < 1000) return 'now';
  return ms > 0 ? `in ${span(ms)}` : `${span(-ms)} ago`;
}

/** `2026-01-01 00:00:00Z (in 5m)`. */
export function moment(at: Date | null, now: Date): string {
  return at === null ? NONE : `${instant(at)} (${relative(at, now)})`;
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

/** The same of what was counted only so far. */
export function counted({ count, atLeast }: { count: number; atLeast: boolean }, noun: string): string {
  return `${atLeast ? 'more than ' : ''}${plural(count, noun)}`;
}
