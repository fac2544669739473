import type { Clock } from '../../src/index.js';

interface Sleeper {
  at: number;
  resolve: () => void;
}

/** A clock that only the test advances. */
export class ManualClock implements Clock {
  #now: number;
  #monotonic = 0;
  #sleepers: Sleeper[] = [];

  constructor(start: Date | string = '2026-01-01T00:00:00Z') {
    this.#now = new Date(start).getTime();
  }

  now(): Date {
    return new Date(this.#now);
  }

  monotonic(): number {
    return this.#monotonic;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms <= 0 || signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      const sleeper = { at: this.#monotonic + ms, resolve: wake };
      this.#sleepers.push(sleeper);
      signal?.addEventListener('abort', wake);
    });
  }

  /** How many sleeps are pending. */
  get sleepers(): number {
    return this.#sleepers.length;
  }

  /** Sets the wall clock, like an administrator: the monotonic clock does not move. */
  set(now: Date | string): void {
    this.#now = new Date(now).getTime();
  }

  /** Time passes while the process is frozen: sleeps that are over end only with the next `advance`. */
  freeze(ms: number): void {
    this.#now += ms;
    this.#monotonic += ms;
  }

  /** Advances both clocks and ends the sleeps that are over, in order. */
  advance(ms: number): void {
    this.freeze(ms);
    const due = this.#sleepers.filter(({ at }) => at <= this.#monotonic).sort((a, b) => a.at - b.at);
    this.#sleepers = this.#sleepers.filter(({ at }) => at > this.#monotonic);
    for (const { resolve } of due) resolve();
  }
}
