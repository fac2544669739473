/** With handlers longer than this, nothing is prefetched: an idle worker could run the jobs sooner. */
const SHORT_HANDLER_MS = 20;
/** A stall counts as a handler of this length; after some dozens of short handlers, jobs are prefetched again. */
const STALL_MS = 1000;
const MAX_PREFETCH = 1000;
/** Prefetch at most what starts within this time, so that prefetched jobs do not become stale. */
const MAX_AHEAD_MS = 200;
/** Weight of a new sample in the moving averages. */
const SAMPLE_WEIGHT = 0.1;

/**
 * How many jobs to prefetch beyond the free slots. It doubles while slots run empty between claims, up to the number of
 * jobs that start in a fifth of a second, and is 0 while handlers are long.
 */
export class PrefetchSize {
  #handlerTimeMs: number | undefined;
  /** Starts per millisecond. */
  #startRate = 0;
  #size = 0;

  observeHandler(milliseconds: number): void {
    this.#handlerTimeMs = mix(this.#handlerTimeMs ?? milliseconds, milliseconds);
  }

  /** `started` jobs started between the last two claims. `ranEmpty`: slots were free although more jobs were due. */
  observeClaim(started: number, milliseconds: number, ranEmpty: boolean): void {
    this.#startRate = mix(this.#startRate, started / Math.max(1, milliseconds), 0.5);
    if (ranEmpty) this.#size = Math.max(2 * this.#size, started);
    this.#size = Math.min(this.#size, MAX_PREFETCH, Math.ceil(this.#startRate * MAX_AHEAD_MS));
  }

  /** Prefetched jobs were released because no slot became free: handlers are long now, although none has ended yet. */
  observeStall(): void {
    this.#handlerTimeMs = Math.max(this.#handlerTimeMs ?? 0, STALL_MS);
  }

  /** `timeSinceLastStart` in milliseconds: if no handler has started for a while, handlers are long at the moment. */
  target(timeSinceLastStart: number): number {
    if (this.#handlerTimeMs === undefined || this.#handlerTimeMs > SHORT_HANDLER_MS) return 0;
    return timeSinceLastStart > SHORT_HANDLER_MS ? 0 : this.#size;
  }
}

function mix(mean: number, sample: number, weight = SAMPLE_WEIGHT): number {
  return mean + weight * (sample - mean);
}
