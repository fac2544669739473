import pLimit, { type LimitFunction } from 'p-limit';
import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import { isSuspect, type JobDocument } from '../domain/job.js';
import { goesOn, type AbortKind } from '../domain/outcome.js';
import type { EventBus } from '../runtime/event-bus.js';
import { announce, attemptOf } from './announce.js';
import type { Attempt, Execution, JobExecutor } from './job-executor.js';
import type { ClaimedJob } from './claimed-job.js';
import type { LockManager, LossKind } from './lock-manager.js';
import type { Settler } from './settler.js';

/**
 * A job this process has taken: `waiting` for a slot, `running`, or `over`. It stays in flight until its outcome
 * is written and its handler has really ended; the same id never starts a second time meanwhile.
 */
interface InFlight extends ClaimedJob {
  phase: 'waiting' | 'running' | 'over';
  since: number;
  execution: Execution | undefined;
  /** The lock was lost. When it is somebody else's, whatever the handler comes to is dropped. */
  lost: LossKind | undefined;
  settled: boolean;
  /** Its outcome, which is being written, lets it run again: here not before it is out of the way. */
  returning: boolean;
}

export interface RunnerParts {
  executor: JobExecutor;
  locks: LockManager;
  settler: Settler;
  clock: Clock;
  events: EventBus;
  concurrency: number;
  timeoutGrace: number;
  /** Told of jobs that are locked here and will not run here. */
  onUnwanted: (claimed: readonly ClaimedJob[]) => void;
  /** A slot is free again; the handler ran for this many milliseconds, unless it never started. */
  onSlotFree: (duration: number | undefined) => void;
  /** A job is through: its outcome is written and its handler has ended. `again` when it was scheduled again. */
  onSettled: (again: boolean) => void;
}

/** Runs claimed jobs in a bounded number of slots, and sees each through to its written outcome. */
export class JobRunner {
  readonly #parts: RunnerParts;
  readonly #limit: LimitFunction;
  readonly #inFlight = new Map<string, InFlight>();
  /** Claimed and not started, in order. Not in the limit's own queue: what is taken out again would stay there. */
  #queue: InFlight[] = [];
  /** Nobody waits any more for what is left. */
  #abandoned = false;
  #watchers: { holds: () => boolean; resolve: () => void }[] = [];

  constructor(parts: RunnerParts) {
    this.#parts = parts;
    this.#limit = pLimit(parts.concurrency);
  }

  /** Handlers at work, stuck ones included. */
  get running(): number {
    return this.#count('running');
  }

  get waiting(): number {
    return this.#queue.length;
  }

  get freeSlots(): number {
    return Math.max(0, this.#unused - this.#queue.length);
  }

  /** True when no slot will be free again: handlers that ignore their signal hold all of them. */
  get allStuck(): boolean {
    const stuck = [...this.#inFlight.values()].filter(({ phase, settled }) => phase === 'running' && settled);
    return stuck.length === this.#parts.concurrency;
  }

  /** How long the handler that started last has been running, in milliseconds; 0 when none runs. */
  get sinceLastStart(): number {
    const now = this.#parts.clock.monotonic();
    const ages = [...this.#inFlight.values()]
      .filter(({ phase }) => phase === 'running')
      .map(({ since }) => now - since);
    return ages.length === 0 ? 0 : Math.min(...ages);
  }

  get hasSuspect(): boolean {
    return [...this.#inFlight.values()].some(({ job, phase }) => phase !== 'over' && isSuspect(job));
  }

  /** Ids that are due, or may soon be, while this process is not through with them: their lock is gone or returned. */
  get zombies(): string[] {
    return [...this.#inFlight.values()]
      .filter(({ lost, settled, returning }) => lost !== undefined || settled || returning)
      .map(({ job }) => job._id);
  }

  get ids(): string[] {
    return [...this.#inFlight.keys()];
  }

  /** Returns those that will run here: not one whose earlier run is still in flight. */
  accept(claimed: readonly ClaimedJob[]): ClaimedJob[] {
    const { locks, clock, onUnwanted } = this.#parts;
    const wanted = claimed.filter(({ job }) => !this.#inFlight.has(job._id));
    if (wanted.length < claimed.length) onUnwanted(claimed.filter((one) => !wanted.includes(one)));
    const entries = wanted.map((one): InFlight => ({
      ...one,
      phase: 'waiting',
      since: clock.monotonic(),
      execution: undefined,
      lost: undefined,
      settled: false,
      returning: false,
    }));
    locks.hold(
      entries.map((entry) => ({
        kind: 'job',
        id: entry.job._id,
        token: entry.token,
        length: entry.lease,
        sentAt: entry.sentAt,
        buffered: entry.job.status === 'QUEUED',
        renewUntil: this.#renewUntil(entry),
        onLost: (kind) => {
          this.#lockLost(entry, kind);
        },
      })),
    );
    for (const entry of entries) this.#inFlight.set(entry.job._id, entry);
    this.#queue.push(...entries);
    this.#fillSlots();
    return wanted;
  }

  /** Takes jobs out that have waited longer than `age` for a slot; the caller gives them back. */
  takeWaiting(age = 0): ClaimedJob[] {
    const now = this.#parts.clock.monotonic();
    const stale = this.#queue.filter(({ since }) => now - since >= age);
    for (const entry of stale) this.#forget(entry);
    return stale;
  }

  /** A person wants the job cancelled. */
  cancel(jobId: string, reason: string | null): void {
    const entry = this.#inFlight.get(jobId);
    if (entry === undefined) return;
    // A job that was QUEUED is CANCELLED already, and its lock with it.
    if (entry.phase === 'waiting' && entry.job.status === 'QUEUED') this.#forget(entry);
    else
      entry.execution?.abort(
        'cancelled',
        new ChronosError('JOB_CANCELLED', reason ?? 'cancelled on request'),
      );
  }

  abortAll(kind: AbortKind, error: Error): void {
    for (const { execution } of this.#inFlight.values()) execution?.abort(kind, error);
  }

  /** Leaves the handlers that did not end to themselves, and returns their jobs. */
  abandon(): JobDocument[] {
    const left = [...this.#inFlight.values()];
    for (const { execution } of left) execution?.abandon();
    this.#abandoned = true;
    for (const { resolve } of this.#watchers.splice(0)) resolve();
    return left.map(({ job }) => job);
  }

  /** Resolves when nothing is in flight. */
  idle(): Promise<void> {
    return this.#until(() => this.#inFlight.size === 0);
  }

  /** Resolves when the outcomes of these jobs are written. */
  settled(ids: ReadonlySet<string>): Promise<void> {
    return this.#until(
      () => ![...this.#inFlight.values()].some(({ job, settled }) => !settled && ids.has(job._id)),
    );
  }

  /** Resolves when a slot is free, or never will be. */
  slotFree(): Promise<void> {
    return this.#until(() => this.freeSlots > 0 || this.allStuck);
  }

  #until(holds: () => boolean): Promise<void> {
    if (this.#abandoned || holds()) return Promise.resolve();
    return new Promise((resolve) => this.#watchers.push({ holds, resolve }));
  }

  #progressed(): void {
    this.#watchers = this.#watchers.filter(({ holds, resolve }) => {
      if (!holds()) return true;
      resolve();
      return false;
    });
  }

  get #unused(): number {
    return this.#parts.concurrency - this.#limit.activeCount - this.#limit.pendingCount;
  }

  #fillSlots(): void {
    for (const entry of this.#queue.splice(0, Math.max(0, this.#unused))) {
      // Told only once the limit has let go of the slot: who asks for free slots before that sees none.
      void this.#limit(() => this.#run(entry)).then((duration) => {
        this.#fillSlots();
        this.#progressed();
        this.#parts.onSlotFree(duration);
      });
    }
  }

  /** One slot, from the start of the handler until it has really ended; resolves to how long that took. */
  async #run(entry: InFlight): Promise<number | undefined> {
    const { locks, executor, settler, events, clock, onUnwanted, onSettled } = this.#parts;
    if (entry.phase !== 'waiting') return undefined;
    const { job, token } = entry;
    if (!locks.isValid(job._id, token)) {
      this.#forget(entry);
      onUnwanted([entry]);
      return undefined;
    }
    entry.phase = 'running';
    entry.since = clock.monotonic();
    if (job.status === 'QUEUED') {
      locks.started(job._id, token, this.#renewUntil(entry));
      settler.begin({ jobId: job._id, token, startedAt: clock.now() });
    }
    events.emit('job:start', attemptOf(job));
    const execution = executor.run(job);
    entry.execution = execution;
    const finished = execution.attempt.then((attempt) => this.#finish(entry, attempt));
    await execution.ended;
    entry.phase = 'over';
    void finished.then((again) => {
      this.#forget(entry);
      // Not before: as long as it is in flight, the same job is left out of claims.
      onSettled(again);
    });
    return clock.monotonic() - entry.since;
  }

  /** Decide, persist, then announce. Resolves to whether the job was scheduled again. */
  async #finish(entry: InFlight, attempt: Attempt): Promise<boolean> {
    const { settler, locks, events } = this.#parts;
    const { job, token } = entry;
    let again = false;
    if (attempt.stuck) events.emit('worker:stuck', { ...attemptOf(job), runningFor: attempt.duration });
    // One that still runs is not given back: it would run twice at once. Its lock runs out instead.
    const keepLocked = attempt.stuck && attempt.outcome.kind === 'givenBack';
    if (entry.lost !== 'gone' && !keepLocked) {
      entry.returning = goesOn(attempt.outcome);
      const settlement = await settler.settle(job, token, attempt);
      if (settlement.settled) announce(events, job, settlement.outcome, attempt.duration);
      else this.#announceLoss(entry);
      again = settlement.settled && goesOn(settlement.outcome);
    }
    entry.settled = true;
    locks.release([{ id: job._id, token }]);
    this.#progressed();
    return again;
  }

  #lockLost(entry: InFlight, kind: LossKind): void {
    if (entry.phase === 'waiting') {
      this.#forget(entry);
      if (kind === 'overdue') this.#parts.onUnwanted([entry]);
      return;
    }
    if (kind === 'gone') this.#announceLoss(entry);
    else entry.lost ??= kind;
    entry.execution?.abort(
      'lockLost',
      new ChronosError('LOCK_LOST', `the lock on job '${entry.job._id}' was lost`),
    );
  }

  #announceLoss(entry: InFlight): void {
    if (entry.lost === 'gone') return;
    entry.lost = 'gone';
    this.#parts.events.emit('job:lockLost', attemptOf(entry.job));
  }

  #forget(entry: InFlight): void {
    if (entry.phase === 'waiting') this.#queue = this.#queue.filter((other) => other !== entry);
    entry.phase = 'over';
    this.#parts.locks.release([{ id: entry.job._id, token: entry.token }]);
    this.#inFlight.delete(entry.job._id);
    this.#progressed();
  }

  #renewUntil({ job }: ClaimedJob): number {
    const { clock, executor, timeoutGrace } = this.#parts;
    // One grace for a handler that ignores its signal, one for the hooks that follow it.
    return clock.monotonic() + executor.timeoutOf(job) + 2 * timeoutGrace;
  }

  #count(phase: InFlight['phase']): number {
    let count = 0;
    for (const entry of this.#inFlight.values()) if (entry.phase === phase) count++;
    return count;
  }
}
