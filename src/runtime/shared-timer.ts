import type { Clock } from '../domain/clock.js';

/** Abort reason: without one, `abort()` would create an exception with a stack, which costs time. */
const CLEARED = 'cleared';

export interface Deadline {
  /** Monotonic time. */
  readonly at: number;
  readonly onPassed: () => void;
}

/** Many deadlines on one timer. Nearly all of them are cleared long before they pass. */
export class SharedTimer {
  readonly #clock: Clock;
  readonly #deadlines = new Set<Deadline>();
  /** Monotonic time. */
  #firesAt = Infinity;
  #sleeping: AbortController | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `onPassed` in `ms` milliseconds, unless cleared. */
  set(ms: number, onPassed: () => void): Deadline {
    const deadline = { at: this.#clock.monotonic() + ms, onPassed };
    this.#deadlines.add(deadline);
    if (deadline.at < this.#firesAt) this.#startTimer(deadline.at);
    return deadline;
  }

  clear(deadline: Deadline): void {
    this.#deadlines.delete(deadline);
    if (this.#deadlines.size > 0) return;
    this.#firesAt = Infinity;
    this.#sleeping?.abort(CLEARED);
  }

  #startTimer(until: number): void {
    this.#firesAt = until;
    this.#sleeping?.abort(CLEARED);
    const sleeping = new AbortController();
    this.#sleeping = sleeping;
    void this.#clock.sleep(until - this.#clock.monotonic(), sleeping.signal).then(() => {
      if (!sleeping.signal.aborted) this.#firePassed();
    });
  }

  #firePassed(): void {
    const now = this.#clock.monotonic();
    this.#firesAt = Infinity;
    let next = Infinity;
    for (const deadline of [...this.#deadlines]) {
      if (deadline.at > now) {
        next = Math.min(next, deadline.at);
        continue;
      }
      this.#deadlines.delete(deadline);
      deadline.onPassed();
    }
    if (next < this.#firesAt) this.#startTimer(next);
  }
}
