import type { Clock } from '../domain/clock.js';

const FIRST_GAP_MS = 5;
const MAX_GAP_MS = 20;
/** A pause this long ends a burst. Longer than the longest gap, since timers fire late. */
const QUIET_MS = 2 * MAX_GAP_MS;

/**
 * Spaces out reactions to a burst of requests: the first one is immediate, the next ones follow at gaps that double up to
 * MAX_GAP_MS. A thousand requests in a burst cause a handful of reactions, and none waits long.
 */
export class BurstThrottle {
  readonly #clock: Clock;
  #gap = 0;
  #last = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds until the next reaction is allowed. */
  get wait(): number {
    return Math.max(0, this.#last + this.#gap - this.#clock.monotonic());
  }

  /** Call at each reaction. */
  record(): void {
    const now = this.#clock.monotonic();
    this.#gap = now - this.#last > QUIET_MS ? FIRST_GAP_MS : Math.min(MAX_GAP_MS, 2 * this.#gap);
    this.#last = now;
  }
}
