const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 5000;

/** A write the server refuses, not for lack of a connection, is not tried more often than this. */
export const MOST_REFUSALS = 3;

/** Milliseconds until the next try, after so many that failed. */
export function pauseAfter(failures: number): number {
  return Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** failures);
}
