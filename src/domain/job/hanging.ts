/** Work of a task type hangs if nothing of it has ended for this many times its usual duration … */
const USUAL_DURATIONS = 20;
/** … and for at least this time. */
export const MIN_HANGING_MS = 60_000;

/** A queue hangs if jobs have been due for this time and none of it has ended. */
export const QUEUE_HANGING_MS = 300_000;

/** How long nothing of a task type may end while its handlers run. `timeout`: of the type, in case its usual duration is not known. */
export function hangingAfter(usualDuration: number | undefined, timeout: number): number {
  const limit = usualDuration === undefined ? timeout / 2 : usualDuration * USUAL_DURATIONS;
  return Math.max(MIN_HANGING_MS, limit);
}

/** Weight of a new duration in the moving average. */
const WEIGHT = 0.1;

/** The moving average of durations. */
export function averageWith(average: number | undefined, duration: number): number {
  return average === undefined ? duration : average + WEIGHT * (duration - average);
}
