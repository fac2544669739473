import { cutText } from '../../domain/text.js';

const LONGEST = 200;

const UNITS: readonly (readonly [string, number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
];

/** `2026-01-01T00:00:00.000Z (in 5 min)`. */
export function when(at: Date, now: Date): string {
  const ms = at.getTime() - now.getTime();
  return `${at.toISOString()} (${ms > 0 ? `in ${span(ms)}` : `${span(-ms)} ago`})`;
}

/** In its largest unit, rounded: for people. */
export function span(ms: number): string {
  const [unit, size] = UNITS.find(([, length]) => ms >= length) ?? ['ms', 1];
  return `${Math.round(ms / size)} ${unit}`;
}

/** `: what somebody gave as a reason`, or nothing. */
export function because(reason: string | null | undefined): string {
  return reason == null || reason === '' ? '' : `: ${cutText(reason, LONGEST)}`;
}

export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
