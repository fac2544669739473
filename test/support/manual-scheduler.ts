import { setTimeout as pause } from 'node:timers/promises';
import type { AnyPayloads, Scheduler, SchedulerOptions } from '../../src/index.js';
import { systemClock } from '../../src/runtime/system-clock.js';
import type { TestDatabase } from './database.js';
import { ManualClock } from './manual-clock.js';

/**
 * A scheduler on a clock moved by hand; it renews in process, and works in passes with `run()`. Its locks are long:
 * whoever moves the clock by minutes at once gives nobody the time to renew them.
 */
export function manualScheduler<P extends object = AnyPayloads>(
  database: TestDatabase,
  options: Partial<SchedulerOptions> = {},
): { clock: ManualClock; scheduler: Scheduler<P> } {
  const clock = new ManualClock();
  return { clock, scheduler: database.scheduler<P>({ clock, lockTimeout: '1d', ...options }) };
}

/** This machine's time: passes by itself, and spares the half second that the renewal thread takes to start. */
export const withoutRenewalThread = { clock: systemClock } as const;

/** Moves the clock on in steps, slowly enough for the database to follow, until the promise is settled. */
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
