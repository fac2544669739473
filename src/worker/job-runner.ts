import pLimit, { type LimitFunction } from 'p-limit';
import { assertNever } from '../domain/assert-never.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import { isSuspect, type JobDocument } from '../domain/job.js';
import { goesOn, type AbortKind, type Outcome } from '../domain/outcome.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { Attempt, Execution, JobExecutor } from './job-executor.js';
import type { ClaimedJob } from './job-picker.js';
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
  /** The lock is somebody else's: whatever the handler comes to is dropped. */
  gone: boolean;
  settled: boolean;
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
    return this.#count('waiting');
  }

  get freeSlots(): number {
    return Math.max(0, this.#parts.concurrency - this.#limit.activeCount - this.#limit.pendingCount);
  }

  get hasSuspect(): boolean {
    return [...this.#inFlight.values()].some(({ job, phase }) => phase !== 'over' && isSuspect(job));
  }

  /** Ids whose handlers still run here although their lock is gone or their outcome is written. */
  get zombies(): string[] {
    return [...this.#inFlight.values()]
      .filter(({ gone, settled }) => gone || settled)
      .map(({ job }) => job._id);
  }

  get ids(): string[] {
    return [...this.#inFlight.keys()];
  }

  accept(claimed: readonly ClaimedJob[]): void {
    const { locks, clock, onUnwanted, onSlotFree } = this.#parts;
    const wanted = claimed.filter(({ job }) => !this.#inFlight.has(job._id));
    if (wanted.length < claimed.length) onUnwanted(claimed.filter((one) => !wanted.includes(one)));
    const entries = wanted.map((one): InFlight => ({
      ...one,
      phase: 'waiting',
      since: clock.monotonic(),
      execution: undefined,
      gone: false,
      settled: false,
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
    for (const entry of entries) {
      this.#inFlight.set(entry.job._id, entry);
      // Told only once the limit has let go of the slot: who asks for free slots before that sees none.
      void this.#limit(() => this.#run(entry)).then(onSlotFree);
    }
  }

  /** Takes jobs out that have waited longer than `age` for a slot; the caller gives them back. */
  takeWaiting(age = 0): ClaimedJob[] {
    const now = this.#parts.clock.monotonic();
    const stale = [...this.#inFlight.values()].filter(
      ({ phase, since }) => phase === 'waiting' && now - since >= age,
    );
    for (const entry of stale) this.#forget(entry);
    return stale;
  }

  /** A person wants the job cancelled. */
  cancel(jobId: string, reason: string | null): void {
    const entry = this.#inFlight.get(jobId);
    if (entry === undefined) return;
    // A job that was QUEUED is CANCELLED already, and its lock with it.
    if (entry.phase === 'waiting' && entry.job.status === 'QUEUED') this.#forget(entry);
    else entry.execution?.abort('cancelled', new Error(reason ?? 'cancelled on request'));
  }

  abortAll(kind: AbortKind, error: Error): void {
    for (const { execution } of this.#inFlight.values()) execution?.abort(kind, error);
  }

  /** Leaves the handlers that did not end to themselves, and returns their jobs. */
  abandon(): JobDocument[] {
    const left = [...this.#inFlight.values()];
    for (const { execution } of left) execution?.abandon();
    return left.map(({ job }) => job);
  }

  /** Resolves when nothing is in flight. */
  idle(): Promise<void> {
    return this.#until(() => this.#inFlight.size === 0);
  }

  /** Resolves when the outcomes of these jobs are written. */
  settled(ids: ReadonlySet<string>): Promise<void> {
    return this.#until(() => [...ids].every((id) => this.#inFlight.get(id)?.settled ?? true));
  }

  #until(holds: () => boolean): Promise<void> {
    if (holds()) return Promise.resolve();
    return new Promise((resolve) => this.#watchers.push({ holds, resolve }));
  }

  #progressed(): void {
    this.#watchers = this.#watchers.filter(({ holds, resolve }) => {
      if (!holds()) return true;
      resolve();
      return false;
    });
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
    if (!entry.gone && !keepLocked) {
      const settlement = await settler.settle(job, token, attempt);
      if (settlement.settled) this.#announce(job, settlement.outcome, attempt);
      else this.#announceLoss(entry);
      again = settlement.settled && goesOn(settlement.outcome);
    }
    entry.settled = true;
    locks.release([{ id: job._id, token }]);
    this.#progressed();
    return again;
  }

  #announce(job: JobDocument, outcome: Outcome, { duration }: Attempt): void {
    const { events } = this.#parts;
    const event = attemptOf(job);
    switch (outcome.kind) {
      case 'completed':
        events.emit('job:complete', { ...event, result: outcome.result, duration });
        return;
      case 'retry':
        events.emit('job:failed', {
          ...event,
          error: outcome.error,
          willRetry: true,
          nextRunAt: outcome.nextRunAt,
          duration,
        });
        return;
      case 'failed':
        events.emit('job:failed', {
          ...event,
          error: outcome.error,
          willRetry: false,
          nextRunAt: null,
          duration,
        });
        return;
      case 'cancelled':
        events.emit('job:cancelled', { ...event, reason: outcome.reason });
        return;
      case 'snoozed':
        events.emit('job:snoozed', { ...event, until: outcome.until });
        return;
      case 'givenBack':
        events.emit('job:givenBack', event);
        return;
      default:
        assertNever(outcome);
    }
  }

  #lockLost(entry: InFlight, kind: LossKind): void {
    if (entry.phase === 'waiting') {
      this.#forget(entry);
      if (kind === 'overdue') this.#parts.onUnwanted([entry]);
      return;
    }
    if (kind === 'gone') this.#announceLoss(entry);
    entry.execution?.abort(
      'lockLost',
      new ChronosError('LOCK_LOST', `the lock on job '${entry.job._id}' was lost`),
    );
  }

  #announceLoss(entry: InFlight): void {
    if (entry.gone) return;
    entry.gone = true;
    this.#parts.events.emit('job:lockLost', attemptOf(entry.job));
  }

  #forget(entry: InFlight): void {
    entry.phase = 'over';
    this.#parts.locks.release([{ id: entry.job._id, token: entry.token }]);
    this.#inFlight.delete(entry.job._id);
    this.#progressed();
  }

  #renewUntil({ job }: ClaimedJob): number {
    const { clock, executor, timeoutGrace } = this.#parts;
    return clock.monotonic() + executor.timeoutOf(job) + timeoutGrace;
  }

  #count(phase: InFlight['phase']): number {
    let count = 0;
    for (const entry of this.#inFlight.values()) if (entry.phase === phase) count++;
    return count;
  }
}

function attemptOf(job: JobDocument): {
  jobId: string;
  taskType: string;
  queue: string;
  attempt: number;
  fence: number;
} {
  return {
    jobId: job._id,
    taskType: job.taskType,
    queue: job.queue,
    attempt: job.attempts + 1,
    fence: job.fence,
  };
}
