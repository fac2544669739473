import type { Clock } from '../domain/clock.js';

/** Waits for the work, but no longer than `ms`. Rejects if the work does. Leaves no timer behind. */
export async function waitAtMost(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  const done = new AbortController();
  try {
    await Promise.race([work, clock.sleep(ms, done.signal)]);
  } finally {
    done.abort();
  }
}

/** Runs async functions one at a time, in the order of the calls. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }

  /** Resolves when all functions passed so far have ended. */
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
