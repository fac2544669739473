/** Where a ManualClock begins. */
export const START = new Date('2026-01-01T00:00:00Z');

export function timeAfter(ms: number, from: Date = START): Date {
  return new Date(from.getTime() + ms);
}
