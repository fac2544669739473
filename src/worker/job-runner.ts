import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import { isSuspect, type JobDocument } from '../domain/job.js';
import { goesOn, type AbortKind } from '../domain/outcome.js';
import type { EventBus } from '../runtime/event-bus.js';
import { AttemptSpan } from '../runtime/tracing.js';
import { announce, announceStart, attemptOf } from './announce.js';
import type { Attempt, Execution, JobExecutor } from './job-executor.js';
import type { ClaimedJob } from './claimed-job.js';
import type { HeldLease, LockManager, LossKind } from './lock-manager.js';
import type { Settler } from './settler.js';
import type { StartMarks } from './start-marks.js';

/**
 * A job this process has taken: `waiting` for a slot, `running`, or `over`. It stays in flight until its outcome
 * is written and its handler has really ended; the same id never starts a second time meanwhile.
 */
interface InFlight extends ClaimedJob {
  phase: 'waiting' | 'running' | 'over';
  since: number;
  held: HeldLease | undefined;
  execution: Execution | undefined;
  /** The lock was lost. When it is somebody else's, whatever the handler comes to is dropped. */
  lost: LossKind | undefined;
  settled: boolean;
  /** It ignores its signal, and its outcome is written: nobody waits for it any more. */
  isStuck: boolean;
  /** It was scheduled again. */
  again: boolean;
}

export interface RunnerParts {
  executor: JobExecutor;
  locks: LockManager;
  marks: StartMarks;
  settler: Settler;
  clock: Clock;
  events: EventBus;
  concurrency: number;
  timeoutGrace: number;
  /** Whether outcomes of this task type are written alone, before the slot is free again. */
  settlesAlone: (taskType: string) => boolean;
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
  readonly #inFlight = new Map<string, InFlight>();
  /** Those of them whose lock is gone or about to be: they may be due again. */
  readonly #zombies = new Set<InFlight>();
  readonly #running = new Set<InFlight>();
  #suspects = 0;
  #started = 0;
  #lastStart = -Infinity;
  /** Claimed and not started, in order. */
  #queue: InFlight[] = [];
  /** Nobody waits any more for what is left. */
  #abandoned = false;
  #refilling = false;
  #watchers: { holds: () => boolean; resolve: () => void }[] = [];

  constructor(parts: RunnerParts) {
    this.#parts = parts;
  }

  /** Handlers at work, stuck ones included. */
  get running(): number {
    return this.#running.size;
  }

  /** Handlers that were ever started. */
  get started(): number {
    return this.#started;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  get freeSlots(): number {
    return Math.max(0, this.#unused - this.#queue.length);
  }

  /** True when no slot will be free again: handlers that ignore their signal hold all of them. */
  get allStuck(): boolean {
    const { concurrency } = this.#parts;
    return this.#running.size === concurrency && [...this.#running].every(({ isStuck }) => isStuck);
  }

  /** How long the handler that started last has been running, in milliseconds; 0 when none runs. */
  get sinceLastStart(): number {
    return this.#running.size === 0 ? 0 : this.#parts.clock.monotonic() - this.#lastStart;
  }

  get hasSuspect(): boolean {
    return this.#suspects > 0;
  }

  /** Ids that are due, or may soon be, while this process is not through with them: their lock is gone or returned. */
  get zombies(): string[] {
    return [...this.#zombies].map(({ job }) => job._id);
  }

  /** The token of each job in flight, by its id. */
  get tokens(): Map<string, string> {
    return new Map([...this.#inFlight].map(([id, { token }]) => [id, token]));
  }

  has(jobId: string): boolean {
    return this.#inFlight.has(jobId);
  }

  /** Returns those that will run here: not one whose earlier run is still in flight. */
  accept(claimed: readonly ClaimedJob[]): ClaimedJob[] {
    const { locks, clock, executor, timeoutGrace, onUnwanted } = this.#parts;
    const wanted = claimed.filter(({ job }) => !this.#inFlight.has(job._id));
    if (wanted.length < claimed.length) onUnwanted(claimed.filter((one) => !wanted.includes(one)));
    const now = clock.monotonic();
    const entries = wanted.map(({ job, token, lease, sentAt }): InFlight => ({
      job,
      token,
      lease,
      sentAt,
      phase: 'waiting',
      since: now,
      held: undefined,
      execution: undefined,
      lost: undefined,
      settled: false,
      isStuck: false,
      again: false,
    }));
    const held = locks.hold(
      entries.map((entry) => ({
        kind: 'job',
        id: entry.job._id,
        token: entry.token,
        length: entry.lease,
        sentAt: entry.sentAt,
        // One grace for a handler that ignores its signal, one for the hooks that follow it.
        runsFor: executor.timeoutOf(entry.job) + 2 * timeoutGrace,
        buffered: entry.job.status === 'QUEUED',
        onLost: (kind) => {
          this.#lockLost(entry, kind);
        },
      })),
    );
    for (const [index, entry] of entries.entries()) {
      entry.held = held[index];
      this.#inFlight.set(entry.job._id, entry);
      if (isSuspect(entry.job)) this.#suspects++;
    }
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

  /** A person wants the job cancelled. `token`: as it was claimed then, and not a later run of it. */
  cancel(jobId: string, reason: string | null, token?: string): void {
    const entry = this.#inFlight.get(jobId);
    if (entry === undefined) return;
    if (token !== undefined && token !== entry.token) return;
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
    if (this.#watchers.length === 0) return;
    this.#watchers = this.#watchers.filter(({ holds, resolve }) => {
      if (!holds()) return true;
      resolve();
      return false;
    });
  }

  get #unused(): number {
    return this.#parts.concurrency - this.#running.size;
  }

  #fillSlots(): void {
    const entries = this.#queue.splice(0, Math.max(0, this.#unused));
    const buffered = entries.filter(({ job }) => job.status === 'QUEUED');
    if (buffered.length > 0) this.#parts.locks.begin(buffered.flatMap(({ held }) => held ?? []));
    for (const entry of entries) void this.#run(entry);
  }

  #slotFreed(duration: number | undefined): void {
    this.#refill();
    this.#progressed();
    this.#parts.onSlotFree(duration);
  }

  /** All slots that free in one turn of the event loop are filled together: their locks begin together. */
  #refill(): void {
    if (this.#refilling || this.#queue.length === 0) return;
    this.#refilling = true;
    setImmediate(() => {
      this.#refilling = false;
      this.#fillSlots();
    });
  }

  /** One slot, from the start of the handler until it has really ended. */
  async #run(entry: InFlight): Promise<void> {
    const { locks, executor, marks, events, clock, onUnwanted } = this.#parts;
    const { job, token } = entry;
    if (entry.held === undefined || !locks.isValid(entry.held)) {
      this.#forget(entry);
      onUnwanted([entry]);
      this.#slotFreed(undefined);
      return;
    }
    entry.phase = 'running';
    entry.since = clock.monotonic();
    this.#running.add(entry);
    this.#lastStart = entry.since;
    this.#started++;
    const now = clock.now();
    if (job.status === 'QUEUED') marks.add({ jobId: job._id, token, startedAt: now });
    const span = AttemptSpan.begin(job);
    announceStart(events, job, now);
    const execution = executor.run(job, span);
    entry.execution = execution;
    const attempt = await execution.attempt;
    const finished = this.#finish(entry, attempt);
    if (attempt.stuck) await execution.handled;
    if (this.#parts.settlesAlone(job.taskType)) await finished;
    this.#over(entry);
    if (entry.settled) this.#through(entry);
    this.#slotFreed(clock.monotonic() - entry.since);
  }

  /** Decide, persist, then announce. */
  async #finish(entry: InFlight, attempt: Attempt): Promise<void> {
    const { marks, settler, locks, events } = this.#parts;
    const { job, token } = entry;
    marks.drop(job._id);
    if (attempt.stuck) events.emit('worker:stuck', { ...attemptOf(job), runningFor: attempt.duration });
    // One that still runs is not given back: it would run twice at once. Its lock runs out instead.
    const keepLocked = attempt.stuck && attempt.outcome.kind === 'givenBack';
    if (entry.lost !== 'gone' && !keepLocked) {
      if (goesOn(attempt.outcome)) this.#zombies.add(entry);
      const alone = this.#parts.settlesAlone(job.taskType);
      const settlement = await settler.settle(job, token, attempt, alone);
      if (settlement.settled) announce(events, job, settlement.outcome, attempt.duration);
      else this.#announceLoss(entry);
      entry.again = settlement.settled && goesOn(settlement.outcome);
    }
    entry.settled = true;
    entry.isStuck = attempt.stuck;
    // Its handler has not ended, and the job is nobody's or finished.
    if (entry.phase === 'running') this.#zombies.add(entry);
    if (entry.held !== undefined) locks.release(entry.held);
    this.#progressed();
    if (entry.phase === 'over') this.#through(entry);
  }

  /** The outcome is written and the handler has ended. Not before: as long as it is in flight, claims leave it out. */
  #through(entry: InFlight): void {
    this.#forget(entry);
    this.#parts.onSettled(entry.again);
  }

  #lockLost(entry: InFlight, kind: LossKind): void {
    if (entry.phase === 'waiting') {
      this.#forget(entry);
      if (kind === 'overdue') this.#parts.onUnwanted([entry]);
      return;
    }
    if (kind === 'gone') this.#announceLoss(entry);
    else entry.lost ??= kind;
    this.#zombies.add(entry);
    entry.execution?.abort(
      'lockLost',
      new ChronosError('LOCK_LOST', `the lock on job '${entry.job._id}' was lost`),
    );
  }

  #announceLoss(entry: InFlight): void {
    if (entry.lost === 'gone') return;
    entry.lost = 'gone';
    this.#zombies.add(entry);
    this.#parts.events.emit('job:lockLost', attemptOf(entry.job));
  }

  #forget(entry: InFlight): void {
    if (entry.phase === 'waiting') this.#queue = this.#queue.filter((other) => other !== entry);
    this.#over(entry);
    this.#zombies.delete(entry);
    if (entry.held !== undefined && !entry.settled) this.#parts.locks.release(entry.held);
    this.#inFlight.delete(entry.job._id);
    this.#progressed();
  }

  #over(entry: InFlight): void {
    if (entry.phase !== 'over' && isSuspect(entry.job)) this.#suspects--;
    entry.phase = 'over';
    this.#running.delete(entry);
  }
}
