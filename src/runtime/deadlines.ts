import type { Clock } from '../domain/clock.js';

/** A reason of its own: without one, each abort makes an exception with a stack that nobody reads. */
const TAKEN_BACK = 'taken back';

/** A time that was set, to be taken back. */
export interface Deadline {
  readonly at: number;
  readonly onPassed: () => void;
}

/** Calls back when times have come, with one timer for all of them: nearly every one is taken back long before. */
export class Deadlines {
  readonly #clock: Clock;
  readonly #open = new Set<Deadline>();
  /** When the timer fires, by the monotonic clock. */
  #firesAt = Infinity;
  #nap: AbortController | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `ms` milliseconds from now. */
  set(ms: number, onPassed: () => void): Deadline {
    const deadline = { at: this.#clock.monotonic() + ms, onPassed };
    this.#open.add(deadline);
    if (deadline.at < this.#firesAt) this.#wait(deadline.at);
    return deadline;
  }

  clear(deadline: Deadline): void {
    this.#open.delete(deadline);
    if (this.#open.size > 0) return;
    this.#firesAt = Infinity;
    this.#nap?.abort(TAKEN_BACK);
  }

  #wait(until: number): void {
    this.#firesAt = until;
    this.#nap?.abort(TAKEN_BACK);
    const nap = new AbortController();
    this.#nap = nap;
    void this.#clock.sleep(until - this.#clock.monotonic(), nap.signal).then(() => {
      if (!nap.signal.aborted) this.#passed();
    });
  }

  #passed(): void {
    const now = this.#clock.monotonic();
    this.#firesAt = Infinity;
    let next = Infinity;
    for (const deadline of [...this.#open]) {
      if (deadline.at > now) {
        next = Math.min(next, deadline.at);
        continue;
      }
      this.#open.delete(deadline);
      deadline.onPassed();
    }
    if (next < this.#firesAt) this.#wait(next);
  }
}
