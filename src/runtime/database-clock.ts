import type { Clock } from '../domain/clock.js';
import { monotonic, sleep } from './system-clock.js';

const SAMPLES = 3;

/** The database's time at one instant of this process's monotonic clock. */
export interface ClockAnchor {
  epoch: number;
  monotonic: number;
}

/**
 * The database's time, carried by the monotonic clock between measurements, so that a wrong or jumping wall clock
 * of this machine changes nothing. Until the first measurement it is this machine's time.
 */
export class DatabaseClock implements Clock {
  readonly monotonic = monotonic;
  readonly sleep = sleep;
  #anchor: ClockAnchor = { epoch: new Date().getTime(), monotonic: monotonic() };
  #error = Infinity;
  #measuredAt = -Infinity;

  /** Half the round trip of the measurement in force: the offset is known this well, in milliseconds. */
  get error(): number {
    return this.#error;
  }

  /** Milliseconds since the last measurement, by either clock of this machine: one of them stands still in a suspend. */
  get age(): number {
    return Math.max(monotonic() - this.#anchor.monotonic, Math.abs(new Date().getTime() - this.#measuredAt));
  }

  get anchor(): ClockAnchor {
    return this.#anchor;
  }

  set anchor(anchor: ClockAnchor) {
    this.#anchor = anchor;
  }

  now(): Date {
    return new Date(this.#anchor.epoch + monotonic() - this.#anchor.monotonic);
  }

  /** Asks the server a few times and keeps the answer with the shortest round trip. */
  async synchronise(readServerTime: () => Promise<Date>): Promise<void> {
    let best = Infinity;
    let anchor = this.#anchor;
    for (let i = 0; i < SAMPLES; i++) {
      const sent = monotonic();
      const epoch = (await readServerTime()).getTime();
      const roundTrip = monotonic() - sent;
      if (roundTrip >= best) continue;
      best = roundTrip;
      anchor = { epoch, monotonic: sent + roundTrip / 2 };
    }
    // Not before: a process that was frozen while it waited for the first answer would go by that one meanwhile.
    this.#anchor = anchor;
    this.#error = best / 2;
    this.#measuredAt = new Date().getTime();
  }
}
