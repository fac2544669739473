import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Clock } from '../domain/clock.js';

/** How often the delay is measured; without any lag this is what is measured. Milliseconds. */
const RESOLUTION = 10;
/** A look begins a new measurement when the last one is older, however many there are who look. Milliseconds. */
const WINDOW = 10_000;

/** How late timers are, in milliseconds. */
export interface LoopLagStats {
  mean: number;
  p99: number;
  max: number;
}

/** Measures for how long this thread is blocked at a time. */
export class LoopLag {
  readonly #clock: Clock;
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION });
  #since: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock.monotonic();
    this.#delay.enable();
  }

  read(): LoopLagStats {
    const { mean, max } = this.#delay;
    // Nothing was measured yet.
    if (Number.isNaN(mean)) return { mean: 0, p99: 0, max: 0 };
    const stats = { mean: lag(mean), p99: lag(this.#delay.percentile(99)), max: lag(max) };
    const now = this.#clock.monotonic();
    if (now - this.#since >= WINDOW) {
      this.#since = now;
      this.#delay.reset();
    }
    return stats;
  }

  stop(): void {
    this.#delay.disable();
  }
}

function lag(nanoseconds: number): number {
  return Math.max(0, nanoseconds / 1e6 - RESOLUTION);
}
