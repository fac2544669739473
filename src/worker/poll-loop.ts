import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { isCrashSuspect } from '../domain/job/job.js';
import type { HandlerRegistry } from '../handlers/handler-registry.js';
import { BurstThrottle } from '../runtime/burst-throttle.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/periodic-service.js';
import type { Store } from '../store/store.js';
import type { ChangeListener } from './change-listener.js';
import type { Claim, Claimer, Room } from './claimer.js';
import type { FreedCapacity, JobRunner } from './job-runner.js';
import { PrefetchSize } from './prefetch-size.js';
import type { Settler } from './settler.js';
import type { UncertainClaims } from './uncertain-claims.js';

const NOW = 0;
/** A prefetched job that waits longer than this for a slot is released, so that another worker can run it. */
const STALE_PREFETCH_MS = 1000;
/** After an outage, work resumes at most this long after MongoDB can be reached again. */
const MAX_RETRY_MS = 4000;
/** With more unwritten outcomes than this, the database is slower than the handlers: claim nothing until it catches up. */
const MAX_UNSETTLED = 2000;
/** A worker whose claims have come back full for this long needs no change stream. */
const SATURATED_AFTER_MS = 1000;

export interface PollLoopDeps {
  clock: Clock;
  events: EventBus;
  store: Pick<Store, 'nextDueAt'>;
  claimer: Claimer;
  runner: JobRunner;
  settler: Pick<Settler, 'pending'>;
  uncertainClaims: Pick<UncertainClaims, 'release'>;
  changes: Pick<ChangeListener, 'subscribe' | 'intervalMultiplier' | 'rest' | 'resume'>;
  registry: Pick<HandlerRegistry, 'taskTypes'>;
  options: Pick<ResolvedOptions, 'queues' | 'pollInterval'>;
}

/**
 * Claims due jobs whenever there is room. Polling guarantees progress; wake-ups (change stream, local dispatch, a freed
 * slot, the next due time) only make a poll happen earlier.
 */
export class PollLoop extends PeriodicService {
  readonly name = 'claim jobs';
  readonly #deps: PollLoopDeps;
  readonly #throttle: BurstThrottle;
  readonly #prefetchSize = new PrefetchSize();
  #pollRequested = false;
  /** Claims have come back full since this monotonic time: more jobs may be due, so a freed slot is refilled at once. */
  #saturatedSince: number | undefined;
  #lastClaim = { at: 0, startedBefore: 0, wasEmpty: false, mayHaveExcludedJobs: false };

  constructor(deps: PollLoopDeps) {
    super(deps.clock, deps.events);
    this.#deps = deps;
    this.#throttle = new BurstThrottle(deps.clock);
    deps.runner.onCapacity((freed) => this.#onCapacity(freed));
    deps.changes.subscribe({
      onChanges: ({ dueAt }) => {
        if (dueAt !== undefined) this.wakeAt(dueAt);
      },
      onMissedChanges: () => this.requestPoll(),
    });
  }

  protected override get maxRetryDelay(): number {
    return MAX_RETRY_MS;
  }

  /** Polls soon. Many requests in a burst cause a few claims. */
  requestPoll(): void {
    this.#pollRequested = true;
    this.wakeWithin(this.#throttle.wait);
  }

  /** Polls at `time`, when a job becomes due. */
  wakeAt(time: Date): void {
    const left = time.getTime() - this.clock.now().getTime();
    if (left > 0) this.wakeWithin(left);
    else this.requestPoll();
  }

  async runOnce(): Promise<number> {
    if (this.#pollRequested) this.#throttle.record();
    this.#pollRequested = false;
    // A draining worker is not saturated: its change stream reports schedules and cancellations.
    if (this.#deps.claimer.isPaused) {
      this.#setSaturated(false);
      return this.#deps.options.pollInterval;
    }
    await this.#releaseStalePrefetched();
    // Read before the claim, so that a job that becomes due during the claim is found by the next-due query.
    const since = this.clock.now();
    const claim = await this.#deps.claimer.claim(() => this.#measureRoom());
    this.#observe(claim);
    // Other crash suspects may have filled the claim; the next one excludes them and finds the jobs behind them.
    if (claim.claimed.some(({ job }) => isCrashSuspect(job))) return NOW;
    if (this.#saturatedSince === undefined) return this.#untilStale(await this.#timeUntilNextDue(since));
    return this.#freeRoom() > 0 ? NOW : this.#untilStale(this.#deps.options.pollInterval);
  }

  async #releaseStalePrefetched(): Promise<void> {
    const stale = this.#deps.runner.takePrefetched(STALE_PREFETCH_MS);
    if (stale.length === 0) return;
    this.#prefetchSize.observeStall();
    await this.#deps.uncertainClaims.release(stale);
  }

  #measureRoom(): Room {
    const { freeSlots } = this.#deps.runner;
    const room = this.#freeRoom();
    if (room === 0) return { slots: 0, prefetch: 0 };
    // After an empty claim one job is the likeliest result, and one job is claimed in one round trip instead of two.
    if (freeSlots > 0 && this.#lastClaim.wasEmpty) return { slots: 1, prefetch: 0 };
    return { slots: freeSlots, prefetch: room - freeSlots };
  }

  /** Free slots, plus the prefetch buffer once half of it is used, so that claims are large. */
  #freeRoom(): number {
    const { runner, settler } = this.#deps;
    if (settler.pending > MAX_UNSETTLED) return 0;
    const target = this.#prefetchSize.target(runner.timeSinceLastStart);
    const prefetch = runner.prefetched > target / 2 ? 0 : target - runner.prefetched;
    return runner.freeSlots + prefetch;
  }

  #observe(claim: Claim): void {
    const { claimed, wanted, startedBefore, freeSlotsBefore, mayHaveExcludedJobs } = claim;
    if (wanted === 0) return this.#setSaturated(true);
    const now = this.clock.monotonic();
    const isFull = claimed.length === wanted;
    // The number of starts between two claims tells how much to prefetch only while claims come back full.
    if (this.#saturatedSince !== undefined) {
      const started = startedBefore - this.#lastClaim.startedBefore;
      this.#prefetchSize.observeClaim(started, now - this.#lastClaim.at, isFull && freeSlotsBefore > 0);
    }
    // A claim that lost jobs to other workers does not show how many due jobs are left.
    this.#setSaturated(isFull || this.#deps.claimer.isContended);
    this.#lastClaim = { at: now, startedBefore, wasEmpty: claimed.length === 0, mayHaveExcludedJobs };
  }

  /** A saturated worker finds enough jobs by polling, so its change stream rests until the backlog has drained. */
  #setSaturated(isSaturated: boolean): void {
    const { changes } = this.#deps;
    if (!isSaturated) {
      this.#saturatedSince = undefined;
      return changes.resume();
    }
    const now = this.clock.monotonic();
    this.#saturatedSince ??= now;
    const left = this.#saturatedSince + SATURATED_AFTER_MS - now;
    if (left <= 0) changes.rest();
    else this.wakeWithin(left);
  }

  #onCapacity({ handlerTime, isRescheduled, queueFreed }: FreedCapacity): void {
    if (handlerTime !== undefined) this.#prefetchSize.observeHandler(handlerTime);
    if (isRescheduled) this.requestPoll();
    else if (queueFreed || this.#saturatedSince !== undefined || this.#lastClaim.mayHaveExcludedJobs)
      this.wake();
  }

  async #timeUntilNextDue(after: Date): Promise<number> {
    const { store, registry, changes, options } = this.#deps;
    const { queues, pollInterval } = options;
    const interval = pollInterval * changes.intervalMultiplier;
    const until = new Date(this.clock.now().getTime() + interval);
    const next = await store.nextDueAt({ queues, taskTypes: registry.taskTypes, after, until });
    return next === null ? interval : Math.max(0, next.getTime() - this.clock.now().getTime());
  }

  /** Polls in time to release prefetched jobs that become stale. */
  #untilStale(delay: number): number {
    return this.#deps.runner.prefetched > 0 ? Math.min(delay, STALE_PREFETCH_MS) : delay;
  }
}
