import type { Clock } from '../domain/clock.js';
import type { Operation } from '../domain/events.js';
import type { EventBus } from './event-bus.js';
import { retryDelay } from './retry.js';
import { monotonic } from './system-clock.js';

const FIRST_RETRY_MS = 250;
const MAX_RETRY_MS = 10_000;
/** A round that makes no progress for this long hangs: each operation of the database ends after eleven seconds at most. */
const MAX_ROUND_MS = 120_000;
/** After stop(), a round that makes no progress for this long is not awaited any more. */
const MAX_LAST_ROUND_MS = 15_000;
/** Abort reason: without one, `abort()` would create an exception with a stack, which costs time. */
const WOKEN = 'woken';

/** Background work of a process. Safe to start and stop in any order, also repeatedly. */
export interface Service {
  readonly name: Operation;
  start(): void;
  stop(): Promise<void>;
}

interface Watchdog {
  timer: NodeJS.Timeout;
  readonly onTimeout: () => void;
}

/**
 * Repeats `runOnce`, which returns how long to wait before the next round. A round that throws is reported and retried
 * with backoff, so that a service survives errors of the database. So is a round that hangs: it may continue later, next
 * to a new one, and must then do no harm. In most services its writes are fenced.
 */
export abstract class PeriodicService implements Service {
  abstract readonly name: Operation;
  protected readonly clock: Clock;
  protected readonly events: EventBus;
  #running: { loop: Promise<void>; stopping: AbortController } | undefined;
  #sleeping: AbortController | undefined;
  /** Monotonic time by which the next round must start, as requested since the last round started. */
  #wakeAt = Infinity;
  /** Failed rounds since the last one that succeeded. */
  #failures = 0;
  /** Failures reported since the last `worker:recovered`. */
  #reportedFailures = 0;
  /** Of the round in progress. */
  #watchdog: Watchdog | undefined;

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
    // The new loop waits for one that is still stopping: rounds never overlap.
    this.#running = { stopping, loop: this.#loop(stopping.signal, before?.loop) };
  }

  /** Resolves when the round in progress has ended or hangs; no round starts afterwards. */
  async stop(): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    running.stopping.abort();
    this.#sleeping?.abort();
    this.#limitRound(Math.min(MAX_LAST_ROUND_MS, this.maxRoundTime));
    await running.loop;
    if (this.#running === running) this.#running = undefined;
  }

  /** Starts the next round now, or right after the one in progress. */
  wake(): void {
    this.wakeWithin(0);
  }

  /** Starts the next round within `ms` milliseconds. During a round, this applies to the next one. */
  wakeWithin(ms: number): void {
    const at = this.clock.monotonic() + ms;
    if (at >= this.#wakeAt) return;
    this.#wakeAt = at;
    // A wake-up does not shorten the wait after a failure.
    if (this.#failures === 0) this.#sleeping?.abort(WOKEN);
  }

  /** The longest wait after a failure, in milliseconds. */
  protected get maxRetryDelay(): number {
    return MAX_RETRY_MS;
  }

  /** How long a round may go on without progress, in milliseconds of real time. */
  protected get maxRoundTime(): number {
    return MAX_ROUND_MS;
  }

  /** A long round calls this after each of its steps: the time limit starts again. */
  protected restartTimeLimit(): void {
    this.#watchdog?.timer.refresh();
  }

  /** Called when a round hangs, before the next one starts: drops what both would use. */
  protected onHungRound(): void {
    // Most services share nothing between rounds.
  }

  /** True after stop() was called: a long round should end early. */
  protected get stopping(): boolean {
    return this.#running?.stopping.signal.aborted ?? false;
  }

  /** Whether a successful round proves that the cause of earlier errors is gone. A round without work does not. */
  protected provesRecovery(): boolean {
    return true;
  }

  async #loop(stopping: AbortSignal, before: Promise<void> | undefined): Promise<void> {
    // Even without an earlier loop, this delays the first round until start() has set #running.
    await before;
    while (!stopping.aborted) {
      this.#wakeAt = Infinity;
      const delay = await this.#guardedRound();
      await this.#sleep(this.clock.monotonic() + delay, stopping);
    }
  }

  /** Sleeps until that monotonic time, or until woken. */
  async #sleep(until: number, stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      const end = this.#failures === 0 ? Math.min(until, this.#wakeAt) : until;
      const left = end - this.clock.monotonic();
      if (left <= 0) return;
      this.#sleeping = new AbortController();
      await this.clock.sleep(left, this.#sleeping.signal);
      this.#sleeping = undefined;
    }
  }

  async #guardedRound(): Promise<number> {
    const startedAt = this.clock.monotonic();
    try {
      const delay = await this.#watchedRound();
      const duration = this.clock.monotonic() - startedAt;
      this.events.measure('round', { operation: this.name, duration });
      this.#failures = 0;
      if (this.#reportedFailures > 0 && this.provesRecovery()) {
        this.events.emit('worker:recovered', { operation: this.name, failures: this.#reportedFailures });
        this.#reportedFailures = 0;
      }
      return delay;
    } catch (thrown) {
      this.#failures++;
      this.#reportedFailures++;
      const retryIn = retryDelay({ first: FIRST_RETRY_MS, max: this.maxRetryDelay }, this.#failures);
      this.events.reportError(this.name, thrown, { failures: this.#failures, retryIn });
      return retryIn;
    }
  }

  /** Rejects if the round hangs. */
  async #watchedRound(): Promise<number> {
    const limit = this.maxRoundTime;
    const startedAt = monotonic();
    const hung = new Promise<never>((_, reject) => {
      const onTimeout = (): void => {
        this.onHungRound();
        const seconds = Math.round((monotonic() - startedAt) / 100) / 10;
        reject(new Error(`the round hangs: it started ${seconds} s ago and makes no progress`));
      };
      // It does not keep the process alive.
      this.#watchdog = { timer: setTimeout(onTimeout, limit).unref(), onTimeout };
    });
    try {
      return await Promise.race([this.runOnce(), hung]);
    } finally {
      clearTimeout(this.#watchdog?.timer);
      this.#watchdog = undefined;
    }
  }

  #limitRound(ms: number): void {
    const watchdog = this.#watchdog;
    if (watchdog === undefined) return;
    clearTimeout(watchdog.timer);
    watchdog.timer = setTimeout(watchdog.onTimeout, ms).unref();
  }
}
