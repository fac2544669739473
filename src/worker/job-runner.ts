import pLimit, { type LimitFunction } from 'p-limit';
import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import { isExpired, type JobDocument } from '../domain/job/job.js';
import { type AbortKind, isRescheduled } from '../domain/job/outcome.js';
import type { HandlerRegistry } from '../handlers/handler-registry.js';
import type { EventBus } from '../runtime/event-bus.js';
import { AttemptSpan } from '../runtime/tracing.js';
import { Condition } from '../runtime/waiting.js';
import { InFlightJob, type InFlightJobs } from './in-flight-jobs.js';
import { emitOutcome, emitStart, toAttemptEvent } from './job-events.js';
import type { Attempt, JobExecutor } from './job-executor.js';
import type { ClaimedJob } from './job-picker.js';
import type { LockLossReason, LockManager } from './locks/lock-manager.js';
import type { Settler } from './settler.js';
import type { StartedMarker } from './started-marker.js';
import type { UncertainClaims } from './uncertain-claims.js';

export interface RunnerDeps {
  inFlight: InFlightJobs;
  executor: JobExecutor;
  settler: Settler;
  startedMarker: StartedMarker;
  locks: LockManager;
  uncertainClaims: UncertainClaims;
  registry: HandlerRegistry;
  clock: Clock;
  events: EventBus;
  options: Pick<ResolvedOptions, 'concurrency' | 'timeoutGrace'>;
}

/** A handler ended or an outcome was stored, so there may be room for another claim. */
export interface FreedCapacity {
  /** Milliseconds for which the handler occupied its slot. */
  handlerTime?: number;
  /** The job is SCHEDULED again and may be due. */
  isRescheduled?: boolean;
  /** All slots of its queue were taken (`queueSettings`), so claims have left out this queue. */
  queueFreed?: boolean;
}

/**
 * Owns the slots. Claimed jobs start in claim order as slots become free; until then they are prefetched. A job that is
 * still in flight is never started again (invariant 4).
 */
export class JobRunner {
  readonly #deps: RunnerDeps;
  readonly #slots: LimitFunction;
  readonly #inFlight: InFlightJobs;
  readonly #condition = new Condition();
  #prefetched: InFlightJob[] = [];
  #isRefilling = false;
  #onCapacity: (freed: FreedCapacity) => void = () => undefined;

  constructor(deps: RunnerDeps) {
    this.#deps = deps;
    this.#inFlight = deps.inFlight;
    this.#slots = pLimit(deps.options.concurrency);
  }

  /** Running handlers, including stuck ones. */
  get running(): number {
    return this.#slots.activeCount;
  }

  get prefetched(): number {
    return this.#prefetched.length;
  }

  get freeSlots(): number {
    return Math.max(0, this.#unusedSlots - this.#prefetched.length);
  }

  /** No slot will become free: handlers that ignore their signal occupy all of them. */
  get allStuck(): boolean {
    if (this.#unusedSlots > 0) return false;
    return this.#inFlight.all.every(({ state, isStuck }) => state !== 'running' || isStuck);
  }

  /** Milliseconds since a handler last started; 0 while none runs. */
  get timeSinceLastStart(): number {
    return this.running === 0 ? 0 : this.#deps.clock.monotonic() - this.#inFlight.lastStart;
  }

  onCapacity(listener: (freed: FreedCapacity) => void): void {
    this.#onCapacity = listener;
  }

  /** Starts or prefetches claimed jobs and returns them. A job whose earlier run is still in flight is released instead. */
  accept(claimed: readonly ClaimedJob[]): InFlightJob[] {
    const { clock, locks, registry, options, uncertainClaims } = this.#deps;
    const rejected = claimed.filter(({ job }) => this.#inFlight.has(job._id));
    if (rejected.length > 0) void uncertainClaims.release(rejected);
    const now = clock.monotonic();
    const accepted = claimed.filter((one) => !rejected.includes(one)).map((one) => new InFlightJob(one, now));
    const leases = locks.hold(
      accepted.map((entry) => ({
        kind: 'job',
        id: entry.job._id,
        token: entry.token,
        length: entry.lease,
        sentAt: entry.sentAt,
        // One grace time for a handler that ignores its signal, one for the hooks after it.
        runsFor:
          (entry.job.timeout ?? registry.settingsFor(entry.job.taskType).timeout) + 2 * options.timeoutGrace,
        prefetched: entry.job.status === 'QUEUED',
        onLost: (reason) => this.#onLockLost(entry, reason),
      })),
    );
    for (const [index, entry] of accepted.entries()) {
      entry.heldLease = leases[index];
      this.#inFlight.add(entry);
    }
    this.#prefetched.push(...accepted);
    this.#fillSlots();
    return accepted;
  }

  /** Removes jobs that have waited at least `ms` milliseconds for a slot; the caller releases them. */
  takePrefetched(ms = 0): ClaimedJob[] {
    const now = this.#deps.clock.monotonic();
    const taken = this.#prefetched.filter(({ since }) => now - since >= ms);
    for (const entry of taken) this.#forget(entry);
    return taken;
  }

  /** Cancels the job on request. With `token`, only the run that has this lock token, not a later one. */
  cancel(jobId: string, reason: string | null, token?: string): void {
    const entry = this.#inFlight.get(jobId);
    if (entry === undefined || (token !== undefined && token !== entry.token)) return;
    // The cancel request for a QUEUED job has already written CANCELLED and cleared its lock.
    if (entry.state === 'prefetched' && entry.job.status === 'QUEUED') this.#forget(entry);
    else entry.abort('cancelled', new ChronosError('JOB_CANCELLED', reason ?? 'cancelled on request'));
  }

  abortAll(kind: AbortKind, error: Error): void {
    for (const entry of this.#inFlight.all) entry.abort(kind, error);
  }

  /** Stops waiting for handlers that have not ended and for outcomes that are not stored, and returns their jobs. */
  abandon(): InFlightJob[] {
    const left = this.#inFlight.all;
    for (const entry of left) entry.abandon();
    this.#condition.close();
    return left;
  }

  whenIdle(): Promise<void> {
    return this.#condition.waitFor(() => this.#inFlight.size === 0);
  }

  whenSettled(jobs: readonly InFlightJob[]): Promise<void> {
    return this.#condition.waitFor(() => jobs.every(({ isSettled }) => isSettled));
  }

  whenOneSettled(jobs: readonly InFlightJob[]): Promise<void> {
    return this.#condition.waitFor(() => jobs.some(({ isSettled }) => isSettled));
  }

  /** Also resolves when no slot will ever become free. */
  whenSlotFree(): Promise<void> {
    return this.#condition.waitFor(() => this.freeSlots > 0 || this.allStuck);
  }

  get #unusedSlots(): number {
    return this.#deps.options.concurrency - this.#slots.activeCount;
  }

  #fillSlots(): void {
    const ready = this.#prefetched.splice(0, this.#unusedSlots);
    const queued = ready.filter(({ job }) => job.status === 'QUEUED');
    if (queued.length > 0) this.#deps.locks.markStarted(queued.flatMap(({ heldLease }) => heldLease ?? []));
    for (const entry of ready) this.#start(entry);
  }

  #start(entry: InFlightJob): void {
    const { locks, clock, uncertainClaims } = this.#deps;
    if (entry.heldLease === undefined || !locks.isValid(entry.heldLease)) {
      this.#forget(entry);
      void uncertainClaims.release([entry]);
      this.#onSlotFreed({});
      return;
    }
    if (this.#isExpired(entry.job)) return this.#drop(entry);
    this.#inFlight.markRunning(entry, clock.monotonic());
    void this.#run(entry);
  }

  #isExpired(job: JobDocument): boolean {
    const { expiresIn } = this.#deps.registry.settingsFor(job.taskType);
    if (job.expiresAt === undefined && expiresIn === undefined) return false;
    return isExpired(job, this.#deps.clock.now(), expiresIn);
  }

  /** Settles a job that expired before it started. Its slot goes to the next one at once. */
  #drop(entry: InFlightJob): void {
    const { job } = entry;
    const now = this.#deps.clock.now();
    const expiresAt = job.expiresAt ?? now;
    const attempt: Attempt = {
      ...{ outcome: { kind: 'expired', expiresAt }, startedAt: now, finishedAt: now, duration: 0 },
      ...{ log: [], isStuck: false, hookErrors: [] },
    };
    const queueFreed = this.#inFlight.markEnded(entry);
    void this.#settleAndAnnounce(entry, attempt).then(() => this.#forget(entry));
    this.#onSlotFreed({ queueFreed });
  }

  /** The slot is free when the handler has ended; the job is forgotten when its outcome is also stored. */
  async #run(entry: InFlightJob): Promise<void> {
    await this.#slots(() => this.#occupySlot(entry));
    const queueFreed = this.#inFlight.markEnded(entry);
    this.#onSlotFreed({ handlerTime: this.#deps.clock.monotonic() - entry.since, queueFreed });

    await entry.settled;
    this.#forget(entry);
    this.#onCapacity({ isRescheduled: entry.outcome !== undefined && isRescheduled(entry.outcome) });
  }

  async #occupySlot(entry: InFlightJob): Promise<void> {
    const { executor, startedMarker, events, clock, registry } = this.#deps;
    const { job, token } = entry;
    const now = clock.now();
    if (job.status === 'QUEUED') startedMarker.add({ jobId: job._id, token, startedAt: now });
    const span = AttemptSpan.start(job);
    emitStart(events, job, now);
    const execution = executor.run(job, span);
    entry.execution = execution;

    const attempt = await execution.attempt;
    entry.settled = this.#settleAndAnnounce(entry, attempt);
    if (attempt.isStuck) await execution.handlerEnded;
    if (registry.settingsFor(job.taskType).settlesImmediately) await entry.settled;
  }

  /** Decide, persist, then announce: an outcome is announced only after its fenced write was confirmed. */
  async #settleAndAnnounce(entry: InFlightJob, attempt: Attempt): Promise<void> {
    const { startedMarker, settler, locks, events, registry } = this.#deps;
    const { job, token } = entry;
    startedMarker.drop(job._id);
    if (entry.heldLease !== undefined) locks.markEnded(entry.heldLease);
    for (const { hook, error } of attempt.hookErrors)
      events.emit('job:hookFailed', { ...toAttemptEvent(job), hook, error });
    if (attempt.isStuck) events.emit('job:stuck', { ...toAttemptEvent(job), runningFor: attempt.duration });
    // If a job whose handler still runs were released, it could run twice at once: let its lock expire instead.
    const keepsLock = attempt.isStuck && attempt.outcome.kind === 'released';
    if (entry.lockLoss !== 'taken' && !keepsLock) {
      if (isRescheduled(attempt.outcome)) this.#inFlight.excludeFromClaims(entry);
      const { settlesImmediately } = registry.settingsFor(job.taskType);
      const result = await settler.settle(job, token, attempt, settlesImmediately);
      if (result.settled) {
        entry.outcome = result.outcome;
        emitOutcome(events, job, result.outcome, attempt.duration);
      } else this.#emitLockLost(entry);
    }
    entry.isSettled = true;
    entry.isStuck = attempt.isStuck;
    if (attempt.isStuck) this.#inFlight.excludeFromClaims(entry);
    if (entry.heldLease !== undefined) locks.release(entry.heldLease);
    this.#condition.notify();
  }

  #onSlotFreed(freed: FreedCapacity): void {
    this.#refill();
    this.#condition.notify();
    this.#onCapacity(freed);
  }

  /** Fills the slots that became free in this turn of the event loop together, so that their leases start together. */
  #refill(): void {
    if (this.#isRefilling || this.#prefetched.length === 0) return;
    this.#isRefilling = true;
    setImmediate(() => {
      this.#isRefilling = false;
      this.#fillSlots();
    });
  }

  #onLockLost(entry: InFlightJob, reason: LockLossReason): void {
    if (entry.state === 'prefetched') {
      this.#forget(entry);
      if (reason === 'expired') void this.#deps.uncertainClaims.release([entry]);
      return;
    }
    if (reason === 'taken') this.#emitLockLost(entry);
    else entry.lockLoss ??= reason;
    this.#inFlight.excludeFromClaims(entry);
    entry.abort('lockLost', new ChronosError('LOCK_LOST', `the lock on job '${entry.job._id}' was lost`));
  }

  #emitLockLost(entry: InFlightJob): void {
    if (entry.lockLoss === 'taken') return;
    entry.lockLoss = 'taken';
    this.#inFlight.excludeFromClaims(entry);
    this.#deps.events.emit('job:lockLost', toAttemptEvent(entry.job));
  }

  #forget(entry: InFlightJob): void {
    if (entry.state === 'prefetched') this.#prefetched = this.#prefetched.filter((other) => other !== entry);
    if (entry.heldLease !== undefined && !entry.isSettled) this.#deps.locks.release(entry.heldLease);
    entry.isSettled = true;
    const queueFreed = this.#inFlight.remove(entry);
    this.#condition.notify();
    if (queueFreed) this.#onCapacity({ queueFreed });
  }
}
