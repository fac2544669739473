/** A handler longer than this is not worth buffering for: the jobs are better off with an idle worker. */
const SHORT_HANDLER = 20;
/** What a stall counts as: some dozen short handlers later there is a buffer again. */
const STALLED = 1000;
const LARGEST_BUFFER = 1000;
/** How much work to lock ahead at the most, in milliseconds: far from stale. */
const LONGEST_AHEAD = 200;
const WEIGHT = 0.1;

/**
 * How many jobs to lock ahead of the free slots: it doubles while the buffer runs dry between claims, up to what is
 * started in a fifth of a second, and is nothing while handlers take their time. Observed, so that nobody has to set it.
 */
export class BufferSize {
  #handlerTime: number | undefined;
  /** Jobs that start in a millisecond. */
  #rate = 0;
  #size = 0;

  observeHandler(milliseconds: number): void {
    this.#handlerTime = mix(this.#handlerTime ?? milliseconds, milliseconds);
  }

  /**
   * What happened since the claim before this one was answered: `started` jobs in so many milliseconds. `dry`: slots
   * were free when this one was, although there was more to claim.
   */
  observeClaim(started: number, milliseconds: number, dry: boolean): void {
    this.#rate = mix(this.#rate, started / Math.max(1, milliseconds), 0.5);
    if (dry) this.#size = Math.max(2 * this.#size, started);
    this.#size = Math.min(this.#size, LARGEST_BUFFER, Math.ceil(this.#rate * LONGEST_AHEAD));
  }

  /** Jobs had to be given back because no slot came free: handlers have become long, before any of them ended. */
  observeStall(): void {
    this.#handlerTime = Math.max(this.#handlerTime ?? 0, STALLED);
  }

  /** `sinceLastStart`: how long no handler has started, in milliseconds; slots that do not turn over need no buffer. */
  target(sinceLastStart: number): number {
    if (this.#handlerTime === undefined || this.#handlerTime > SHORT_HANDLER) return 0;
    return sinceLastStart > SHORT_HANDLER ? 0 : this.#size;
  }
}

function mix(mean: number, sample: number, weight = WEIGHT): number {
  return mean + weight * (sample - mean);
}
