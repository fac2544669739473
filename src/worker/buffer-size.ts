/** A handler longer than this is not worth buffering for: the jobs are better off with an idle worker. */
const SHORT_HANDLER = 20;
/** What a stall counts as: some dozen short handlers later there is a buffer again. */
const STALLED = 1000;
const LARGEST_BUFFER = 1000;
const WEIGHT = 0.1;

/**
 * How many jobs to lock ahead of the free slots: as many as are used up during one claim, and none while handlers
 * take their time. Observed, so that nobody has to set it.
 */
export class BufferSize {
  #handlerTime: number | undefined;
  #claimTime = 1;

  observeHandler(milliseconds: number): void {
    this.#handlerTime = mix(this.#handlerTime ?? milliseconds, milliseconds);
  }

  observeClaim(milliseconds: number): void {
    this.#claimTime = mix(this.#claimTime, milliseconds);
  }

  /** Jobs had to be given back because no slot came free: handlers have become long, before any of them ended. */
  observeStall(): void {
    this.#handlerTime = Math.max(this.#handlerTime ?? 0, STALLED);
  }

  /** `sinceLastStart`: how long no handler has started, in milliseconds; slots that do not turn over need no buffer. */
  target(concurrency: number, sinceLastStart: number): number {
    if (this.#handlerTime === undefined || this.#handlerTime > SHORT_HANDLER) return 0;
    if (sinceLastStart > SHORT_HANDLER) return 0;
    const usedUp = concurrency * (this.#claimTime / Math.max(this.#handlerTime, 0.05));
    return Math.min(Math.ceil(usedUp), concurrency * 10, LARGEST_BUFFER);
  }
}

function mix(mean: number, sample: number): number {
  return mean + WEIGHT * (sample - mean);
}
