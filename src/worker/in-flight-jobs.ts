import { isCrashSuspect, type JobDocument } from '../domain/job/job.js';
import type { AbortKind, Outcome } from '../domain/job/outcome.js';
import type { ClaimedJob } from './job-picker.js';
import type { Execution } from './job-executor.js';
import type { HeldLease, LockLossReason } from './locks/lock-manager.js';

/** A job that this process has claimed. It stays in flight until its outcome is stored and its handler has ended. */
export class InFlightJob implements ClaimedJob {
  readonly job: JobDocument;
  readonly token: string;
  readonly lease: number;
  readonly sentAt: number;
  state: 'prefetched' | 'running' | 'ended' = 'prefetched';
  /** Monotonic time at which it entered its state. */
  since: number;
  heldLease: HeldLease | undefined = undefined;
  lockLoss: LockLossReason | undefined = undefined;
  /** Resolves when its outcome is stored, or can never be. */
  settled: Promise<void> | undefined = undefined;
  /** No outcome of this attempt is left to store. */
  isSettled = false;
  /** The outcome that was stored. */
  outcome: Outcome | undefined = undefined;
  /** Its outcome is stored, but its handler ignores the signal and still occupies the slot. */
  isStuck = false;
  #execution: Execution | undefined;
  #abortedEarly: { kind: AbortKind; error: Error } | undefined;

  constructor({ job, token, lease, sentAt }: ClaimedJob, since: number) {
    this.job = job;
    this.token = token;
    this.lease = lease;
    this.sentAt = sentAt;
    this.since = since;
  }

  set execution(execution: Execution) {
    this.#execution = execution;
    if (this.#abortedEarly !== undefined) execution.abort(this.#abortedEarly.kind, this.#abortedEarly.error);
  }

  /** Aborts the handler's signal; also in the moment between taking the slot and calling the handler. */
  abort(kind: AbortKind, error: Error): void {
    if (this.#execution !== undefined) this.#execution.abort(kind, error);
    else if (this.state === 'running') this.#abortedEarly ??= { kind, error };
  }

  /** No longer waits for the handler to end: clears its timers. */
  abandon(): void {
    this.#execution?.abandon();
  }
}

/** The jobs that this process has claimed and not finished, by id. */
export class InFlightJobs {
  readonly #byId = new Map<string, InFlightJob>();
  readonly #excluded = new Set<InFlightJob>();
  #crashSuspects = 0;
  #started = 0;
  #lastStart = -Infinity;

  get size(): number {
    return this.#byId.size;
  }

  get all(): InFlightJob[] {
    return [...this.#byId.values()];
  }

  /** Handlers started since the process began. */
  get started(): number {
    return this.#started;
  }

  /** Monotonic time of the last start. */
  get lastStart(): number {
    return this.#lastStart;
  }

  get hasCrashSuspect(): boolean {
    return this.#crashSuspects > 0;
  }

  /** Ids that claims must leave out: due again, or soon, while this process has not finished them. */
  get excludedIds(): string[] {
    return [...this.#excluded].map(({ job }) => job._id);
  }

  /** Lock tokens by job id. */
  get tokens(): Map<string, string> {
    return new Map([...this.#byId].map(([id, { token }]) => [id, token]));
  }

  has(jobId: string): boolean {
    return this.#byId.has(jobId);
  }

  get(jobId: string): InFlightJob | undefined {
    return this.#byId.get(jobId);
  }

  add(entry: InFlightJob): void {
    this.#byId.set(entry.job._id, entry);
    if (isCrashSuspect(entry.job)) this.#crashSuspects++;
  }

  markRunning(entry: InFlightJob, now: number): void {
    entry.state = 'running';
    entry.since = now;
    this.#started++;
    this.#lastStart = now;
  }

  excludeFromClaims(entry: InFlightJob): void {
    this.#excluded.add(entry);
  }

  /** The handler has ended, or will never start. */
  markEnded(entry: InFlightJob): void {
    if (entry.state !== 'ended' && isCrashSuspect(entry.job)) this.#crashSuspects--;
    entry.state = 'ended';
  }

  remove(entry: InFlightJob): void {
    this.markEnded(entry);
    this.#excluded.delete(entry);
    this.#byId.delete(entry.job._id);
  }
}
