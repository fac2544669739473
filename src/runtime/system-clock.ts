import type { Clock } from '../domain/clock.js';

/** Node fires timers longer than this at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Start of this thread on the system's monotonic clock, which all threads share; `performance.now()` counts from there. */
const ZERO = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** The same in all threads. Cheaper than `process.hrtime()`, which allocates an array and is called several times per job. */
export function monotonic(): number {
  return ZERO + performance.now();
}

export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  const end = monotonic() + ms;
  for (let left = ms; left > 0 && signal?.aborted !== true; left = end - monotonic()) {
    await sleepOnce(Math.min(left, MAX_TIMER_MS), signal);
  }
}

function sleepOnce(ms: number, signal: AbortSignal | undefined): Promise<void> {
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

/** This machine's time. Jobs use the database's time, which is measured against this clock. */
export const systemClock: Clock = { now: () => new Date(), monotonic, sleep };

/** Injected wherever randomness is used, so that tests can control it. */
export const random = (): number => Math.random();
