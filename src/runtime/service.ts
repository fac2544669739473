import type { Clock } from '../domain/clock.js';
import { toError, withoutCredentials } from '../domain/errors.js';
import type { EventBus } from './event-bus.js';

const FIRST_RETRY = 250;
const LONGEST_RETRY = 10_000;
/** A reason of its own: without one, each abort makes an exception with a stack that nobody reads. */
const WOKEN = 'woken';

/** One life cycle for everything that works in the background: safe to start, stop and wake in any order. */
export interface Service {
  readonly name: string;
  start(): void;
  stop(): Promise<void>;
}

/**
 * A loop of rounds. A round returns how long to wait for the next one; a round that throws is reported and tried
 * again with backoff, so that trouble with the database is survived without dropping anything.
 */
export abstract class PeriodicService implements Service {
  abstract readonly name: string;
  protected readonly clock: Clock;
  protected readonly events: EventBus;
  #running: { loop: Promise<void>; stopping: AbortController } | undefined;
  #nap: AbortController | undefined;
  /** When the next round starts at the latest, by the monotonic clock: what was asked for since the last one started. */
  #wakeAt = Infinity;
  #failures = 0;
  /** Failures that were told of, and not yet that they are over. */
  #trouble = 0;

  constructor(clock: Clock, events: EventBus) {
    this.clock = clock;
    this.events = events;
  }

  /** One round; returns the milliseconds until the next. */
  abstract runOnce(): Promise<number>;

  start(): void {
    const before = this.#running;
    if (before !== undefined && !before.stopping.signal.aborted) return;
    const stopping = new AbortController();
    // Started again while it still stops: the rounds of the two never overlap.
    this.#running = { stopping, loop: this.#loop(stopping.signal, before?.loop) };
  }

  /** Resolves when the round in progress has ended; no round starts afterwards. */
  async stop(): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    running.stopping.abort();
    this.#nap?.abort();
    await running.loop;
    if (this.#running === running) this.#running = undefined;
  }

  /** Starts the next round now, or right after the one in progress. */
  wake(): void {
    this.wakeWithin(0);
  }

  /** Starts the next round in `ms` milliseconds at the latest. Asked during a round, it counts for the one after. */
  wakeWithin(ms: number): void {
    const at = this.clock.monotonic() + ms;
    if (at >= this.#wakeAt) return;
    this.#wakeAt = at;
    // A wake-up is a hint: it does not shorten the wait after a failure.
    if (this.#failures === 0) this.#nap?.abort(WOKEN);
  }

  /** The backoff after failures grows up to this, in milliseconds. */
  protected get longestRetry(): number {
    return LONGEST_RETRY;
  }

  /** Told to stop: a round that takes long ends early. */
  protected get stopping(): boolean {
    return this.#running?.stopping.signal.aborted ?? false;
  }

  /** Whether the round that ended well shows that trouble is over; one that had nothing to ask for does not. */
  protected isProof(): boolean {
    return true;
  }

  async #loop(stopping: AbortSignal, before: Promise<void> | undefined): Promise<void> {
    // The first round starts after start() has returned, so that `stopping` is in place.
    await before;
    while (!stopping.aborted) {
      this.#wakeAt = Infinity;
      const delay = await this.#guardedRound();
      await this.#rest(this.clock.monotonic() + delay, stopping);
    }
  }

  /** Until the instant, or until it is woken; one timer at a time. */
  async #rest(until: number, stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      const end = this.#failures === 0 ? Math.min(until, this.#wakeAt) : until;
      const left = end - this.clock.monotonic();
      if (left <= 0) return;
      this.#nap = new AbortController();
      await this.clock.sleep(left, this.#nap.signal);
      this.#nap = undefined;
    }
  }

  async #guardedRound(): Promise<number> {
    const began = this.clock.monotonic();
    try {
      const delay = await this.runOnce();
      this.events.emit('worker:cycle', {
        operation: this.name,
        duration: this.clock.monotonic() - began,
      });
      this.#failures = 0;
      if (this.#trouble > 0 && this.isProof()) {
        this.events.emit('worker:recovered', { operation: this.name, failures: this.#trouble });
        this.#trouble = 0;
      }
      return delay;
    } catch (thrown) {
      this.#failures++;
      this.#trouble++;
      const retryIn = Math.min(this.longestRetry, FIRST_RETRY * 2 ** (this.#failures - 1));
      const error = withoutCredentials(toError(thrown));
      this.events.emit('worker:trouble', { operation: this.name, error, failures: this.#failures, retryIn });
      return retryIn;
    }
  }
}
