import { setTimeout as pause } from 'node:timers/promises';
import type { AnyPayloads, Scheduler, SchedulerOptions, StopReport } from '../../src/index.js';
import { systemClock } from '../../src/runtime/system-clock.js';
import type { TestDatabase } from './database.js';
import { flushEventLoop } from './flush-event-loop.js';
import { ManualClock } from './manual-clock.js';

/**
 * A scheduler with a manual clock; it renews locks in this thread, and most tests run its jobs with `run()`. Its lease is
 * long, because a test that advances the clock by minutes at once leaves no time for a renewal.
 */
export function manualScheduler<P extends object = AnyPayloads>(
  database: TestDatabase,
  options: Partial<SchedulerOptions> = {},
): { clock: ManualClock; scheduler: Scheduler<P> } {
  const clock = new ManualClock();
  return { clock, scheduler: database.scheduler<P>({ clock, lockTimeout: '1d', ...options }) };
}

/** The real clock without the renewal thread, which takes half a second to start. */
export const withoutRenewalThread = { clock: systemClock } as const;

/** Advances the clock in steps, with pauses for the database, until the promise is settled. */
export async function advanceUntilSettled<T>(
  clock: ManualClock,
  promise: Promise<T>,
  step = 1000,
): Promise<T> {
  let settled = false;
  const watched = promise.finally(() => (settled = true));
  watched.catch(() => undefined);
  while (!settled) {
    clock.advance(step);
    await pause(5);
  }
  return watched;
}

/**
 * Calls stop() with 20 seconds and advances the clock to the moment when it aborts the handlers, which is the default
 * timeoutGrace of 5 seconds before the end. The clock stands still while the outcomes are written.
 */
export async function stopAndAbort(scheduler: Scheduler, clock: ManualClock): Promise<StopReport> {
  const stopping = scheduler.stop('20s');
  await flushEventLoop();
  clock.advance(15_000);
  return stopping;
}
