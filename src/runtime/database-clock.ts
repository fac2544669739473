import type { Clock } from '../domain/clock.js';
import { monotonic, sleep } from './system-clock.js';

/** Round trips of one measurement; the shortest one counts. */
const SAMPLES = 3;
/** For processes that only dispatch: they have no heartbeat, which measures the clock regularly. */
const STALE_AFTER_MS = 60_000;

/** The database's time at one instant of this process's monotonic clock. */
export interface ClockAnchor {
  epoch: number;
  monotonic: number;
}

/**
 * The time of the anchor, advanced by the monotonic clock, so that a wrong or jumping wall clock of this machine changes
 * nothing. Until an anchor is set, this is the machine's own time.
 */
export class AnchoredClock implements Clock {
  readonly monotonic = monotonic;
  readonly sleep = sleep;
  anchor: ClockAnchor = { epoch: new Date().getTime(), monotonic: monotonic() };

  now(): Date {
    return new Date(this.anchor.epoch + monotonic() - this.anchor.monotonic);
  }
}

/** The database's time, measured with `synchronize()`. */
export class DatabaseClock extends AnchoredClock {
  readonly #readServerTime: () => Promise<Date>;
  #error = Infinity;
  #measuredAt = -Infinity;

  constructor({ readServerTime }: { readServerTime: () => Promise<Date> }) {
    super();
    this.#readServerTime = readServerTime;
  }

  /** How exact the last measurement was, in milliseconds: half of its round trip. */
  get error(): number {
    return this.#error;
  }

  /** Milliseconds since the last measurement, by both clocks of this machine: the monotonic one may stop during a suspend. */
  get age(): number {
    return Math.max(monotonic() - this.anchor.monotonic, Math.abs(new Date().getTime() - this.#measuredAt));
  }

  /** Asks the server a few times and keeps the reply with the shortest round trip. */
  async synchronize(): Promise<void> {
    let shortest = Infinity;
    let { anchor } = this;
    for (let i = 0; i < SAMPLES; i++) {
      const sentAt = monotonic();
      const epoch = (await this.#readServerTime()).getTime();
      const roundTrip = monotonic() - sentAt;
      if (roundTrip >= shortest) continue;
      shortest = roundTrip;
      anchor = { epoch, monotonic: sentAt + roundTrip / 2 };
    }
    // Not set inside the loop: if this process was frozen during the first round trip, that sample is useless.
    this.anchor = anchor;
    this.#error = shortest / 2;
    this.#measuredAt = new Date().getTime();
  }

  get isStale(): boolean {
    return this.age > STALE_AFTER_MS;
  }
}
