import { setMaxListeners } from 'node:events';
import type { Clock } from '../domain/clock.js';
import { monotonic, systemClock } from './system-clock.js';

/** Waits for the work, but no longer than `ms`. Rejects if the work does. Leaves no timer behind. */
export async function waitAtMost(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  const done = new AbortController();
  try {
    await Promise.race([work, clock.sleep(ms, done.signal)]);
  } finally {
    done.abort();
  }
}

/** Settles like the work, unless the signal is aborted first: then it rejects with the reason of the signal. */
export async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  // The work may reject later, when nobody waits for it any more.
  work.catch(() => undefined);
  signal.throwIfAborted();
  let abort = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason as Error);
  });
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/**
 * Returns a function whose signals are aborted with `reason` after `ms` to 1.1 × `ms`. Calls within a tenth of `ms` share
 * one signal and one timer, so that a limit for each of thousands of operations costs next to nothing.
 */
export function sharedDeadlines(ms: number, reason: Error): () => AbortSignal {
  let controller = new AbortController();
  let isSharedUntil = -Infinity;
  return () => {
    const now = monotonic();
    if (now >= isSharedUntil) {
      isSharedUntil = now + ms / 10;
      const next = new AbortController();
      controller = next;
      setMaxListeners(0, next.signal);
      // It does not keep the process alive: an operation that is waited for has a connection that does.
      setTimeout(() => next.abort(reason), ms * 1.1).unref();
    }
    return controller.signal;
  };
}

export function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** Resolves when the work has settled, or after `ms` milliseconds of real time. Never rejects. */
export function whenSettled(ms: number, work: Promise<unknown>): Promise<void> {
  return waitAtMost(
    systemClock,
    ms,
    work.catch(() => undefined),
  );
}

/** Runs async functions one at a time, in the order of the calls. Does not wait for one that takes longer than `limit`. */
export class Mutex {
  readonly #limit: number;
  #last: Promise<unknown> = Promise.resolve();

  constructor(limit: number) {
    this.#limit = limit;
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    const before = this.#last;
    const result = before.then(work);
    this.#last = before.then(() => this.#whenDone(result));
    return result;
  }

  /** The timer does not keep the process alive. */
  #whenDone(result: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.#limit).unref();
      const done = (): void => {
        clearTimeout(timer);
        resolve();
      };
      result.then(done, done);
    });
  }

  /** Resolves when all functions passed so far have ended, or took too long. */
  async whenIdle(): Promise<void> {
    await this.#last;
  }
}

interface Waiter {
  readonly holds: () => boolean;
  readonly resolve: () => void;
}

/** Promises that resolve when a predicate becomes true; call notify() after a change. */
export class Condition {
  #waiting: Waiter[] = [];
  #isClosed = false;

  waitFor(holds: () => boolean): Promise<void> {
    if (this.#isClosed || holds()) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ holds, resolve }));
  }

  notify(): void {
    if (this.#waiting.length === 0) return;
    this.#waiting = this.#waiting.filter(({ holds, resolve }) => {
      if (!holds()) return true;
      resolve();
      return false;
    });
  }

  /** Resolves all promises, including those of later calls. */
  close(): void {
    this.#isClosed = true;
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }
}
