import type { Clock } from '../domain/clock.js';

/** Resolves when the work is done or after `ms`, whichever is first; rejects only as the work does. No timer is left. */
export async function within(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  const done = new AbortController();
  try {
    await Promise.race([work, clock.sleep(ms, done.signal)]);
  } finally {
    done.abort();
  }
}
