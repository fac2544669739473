import type { Clock } from '../domain/clock.js';

/** Milliseconds between the answers to a burst: they grow from the first to the longest. */
const FIRST_GAP = 5;
const LONGEST_GAP = 20;
/** Longer than the longest gap, which is kept with delays: else a burst would look like quiet. */
const QUIET = 2 * LONGEST_GAP;

/**
 * Spaces out what is asked for again and again: the first time at once, then at gaps that grow, so that a thousand
 * requests in a burst cost a handful of answers and none waits long. After a quiet while the next is at once again.
 */
export class Pace {
  readonly #clock: Clock;
  #gap = 0;
  #last = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds from now until the next answer may be given. */
  get wait(): number {
    return Math.max(0, this.#last + this.#gap - this.#clock.monotonic());
  }

  /** An answer is given now. */
  step(): void {
    const now = this.#clock.monotonic();
    this.#gap = now - this.#last > QUIET ? FIRST_GAP : Math.min(LONGEST_GAP, 2 * this.#gap);
    this.#last = now;
  }
}
