import { ChronosError } from '../domain/errors.js';
import type { JobDocument } from '../domain/job.js';
import type { AbortKind } from '../domain/outcome.js';
import type { ClaimedJob } from './claimed-job.js';
import { InFlightJob, InFlightJobs } from './in-flight-jobs.js';
import { JobCourse, type CourseParts } from './job-course.js';
import type { LossKind } from './lock-manager.js';
import { Waiters } from './waiters.js';

export interface RunnerParts extends CourseParts {
  concurrency: number;
  timeoutGrace: number;
  /** Told of jobs that are locked here and will not run here. */
  onUnwanted: (claimed: readonly ClaimedJob[]) => void;
  /** A slot is free again; the handler ran for this many milliseconds, unless it never started. */
  onSlotFree: (duration: number | undefined) => void;
  /** A job is through: its outcome is written and its handler has ended. `again` when it was scheduled again. */
  onSettled: (again: boolean) => void;
}

/** Runs claimed jobs in a bounded number of slots; what finds none free waits in line. */
export class JobRunner {
  readonly #parts: RunnerParts;
  readonly #inFlight = new InFlightJobs();
  readonly #waiters = new Waiters();
  readonly #course: JobCourse;
  /** Claimed and not started, in order. */
  #queue: InFlightJob[] = [];
  #refilling = false;

  constructor(parts: RunnerParts) {
    this.#parts = parts;
    this.#course = new JobCourse(parts, this.#inFlight, {
      onWritten: () => {
        this.#waiters.look();
      },
      onThrough: (entry) => {
        this.#forget(entry);
        parts.onSettled(entry.again);
      },
      onEnded: (duration) => {
        this.#slotFreed(duration);
      },
    });
  }

  /** Handlers at work, stuck ones included. */
  get running(): number {
    return this.#inFlight.running;
  }

  /** Handlers that were ever started. */
  get started(): number {
    return this.#inFlight.started;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  get freeSlots(): number {
    return Math.max(0, this.#unused - this.#queue.length);
  }

  /** True when no slot will be free again: handlers that ignore their signal hold all of them. */
  get allStuck(): boolean {
    return this.running === this.#parts.concurrency && this.#inFlight.areStuck;
  }

  /** How long the handler that started last has been running, in milliseconds; 0 when none runs. */
  get sinceLastStart(): number {
    return this.running === 0 ? 0 : this.#parts.clock.monotonic() - this.#inFlight.lastStart;
  }

  get hasSuspect(): boolean {
    return this.#inFlight.hasSuspect;
  }

  /** Ids that are due, or may soon be, while this process is not through with them: their lock is gone or returned. */
  get zombies(): string[] {
    return this.#inFlight.zombies;
  }

  /** The token of each job in flight, by its id. */
  get tokens(): Map<string, string> {
    return this.#inFlight.tokens;
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
    const entries = wanted.map((one) => new InFlightJob(one, now));
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
      this.#inFlight.add(entry);
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
    for (const { execution } of this.#inFlight.all) execution?.abort(kind, error);
  }

  /** Leaves the handlers that did not end to themselves, and returns their jobs. */
  abandon(): JobDocument[] {
    const left = this.#inFlight.all;
    for (const { execution } of left) execution?.abandon();
    this.#waiters.release();
    return left.map(({ job }) => job);
  }

  /** Resolves when nothing is in flight. */
  idle(): Promise<void> {
    return this.#waiters.until(() => this.#inFlight.size === 0);
  }

  /** Resolves when the outcomes of these jobs are written. */
  settled(ids: ReadonlySet<string>): Promise<void> {
    return this.#waiters.until(
      () => !this.#inFlight.all.some(({ job, settled }) => !settled && ids.has(job._id)),
    );
  }

  /** Resolves when a slot is free, or never will be. */
  slotFree(): Promise<void> {
    return this.#waiters.until(() => this.freeSlots > 0 || this.allStuck);
  }

  get #unused(): number {
    return this.#parts.concurrency - this.running;
  }

  #fillSlots(): void {
    const entries = this.#queue.splice(0, Math.max(0, this.#unused));
    const buffered = entries.filter(({ job }) => job.status === 'QUEUED');
    if (buffered.length > 0) this.#parts.locks.begin(buffered.flatMap(({ held }) => held ?? []));
    for (const entry of entries) this.#start(entry);
  }

  #start(entry: InFlightJob): void {
    const { locks, onUnwanted } = this.#parts;
    if (entry.held === undefined || !locks.isValid(entry.held)) {
      this.#forget(entry);
      onUnwanted([entry]);
      this.#slotFreed(undefined);
      return;
    }
    void this.#course.run(entry);
  }

  #slotFreed(duration: number | undefined): void {
    this.#refill();
    this.#waiters.look();
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

  #lockLost(entry: InFlightJob, kind: LossKind): void {
    if (entry.phase !== 'waiting') {
      this.#course.loseLock(entry, kind);
      return;
    }
    this.#forget(entry);
    if (kind === 'overdue') this.#parts.onUnwanted([entry]);
  }

  #forget(entry: InFlightJob): void {
    if (entry.phase === 'waiting') this.#queue = this.#queue.filter((other) => other !== entry);
    if (entry.held !== undefined && !entry.settled) this.#parts.locks.release(entry.held);
    this.#inFlight.remove(entry);
    this.#waiters.look();
  }
}
