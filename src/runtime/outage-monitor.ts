import type { Clock } from '../domain/clock.js';

/**
 * Remembers that this process recently failed to reach the database. Owners of locks elsewhere probably failed as well:
 * they get time to settle or release their jobs before a sweep counts crashes against them.
 */
export class OutageMonitor {
  readonly #clock: Clock;
  readonly #lockTimeout: number;
  #hasFailed = false;
  #failures = 0;
  #postponedAt = -Infinity;

  constructor(clock: Clock, lockTimeout: number) {
    this.#clock = clock;
    this.#lockTimeout = lockTimeout;
  }

  /** Call when a renewal, a settle or the read of a sweep failed. */
  recordFailure(): void {
    this.#hasFailed = true;
    this.#failures++;
  }

  /** How many failures were recorded. */
  get failures(): number {
    return this.#failures;
  }

  /** Milliseconds to postpone the sweep by. Not 0 at most once per `lockTimeout`: a long outage must not prevent recovery. */
  takeSweepDelay(): number {
    if (!this.#hasFailed) return 0;
    this.#hasFailed = false;
    const now = this.#clock.monotonic();
    if (now - this.#postponedAt < this.#lockTimeout) return 0;
    this.#postponedAt = now;
    return this.#lockTimeout / 3;
  }
}
