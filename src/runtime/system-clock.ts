import type { Clock } from '../domain/clock.js';

/** Timers hold at most 2^31-1 ms; a longer one would fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** Each thread has its own zero of `performance.now()`; all of them share the system's. */
const ZERO = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** The same in all threads. Not `process.hrtime()` itself: several times for every job, its arrays count. */
export function monotonic(): number {
  return ZERO + performance.now();
}

export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  const end = monotonic() + ms;
  for (let left = ms; left > 0 && signal?.aborted !== true; left = end - monotonic()) {
    await nap(Math.min(left, LONGEST_TIMER), signal);
  }
}

function nap(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, Math.ceil(ms));
    signal?.addEventListener('abort', done, { once: true });
  });
}

/** This machine's own time. The Scheduler uses it only to measure the database's. */
export const systemClock: Clock = { now: () => new Date(), monotonic, sleep };
