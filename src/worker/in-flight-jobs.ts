import { isCrashSuspect, type JobDocument } from '../domain/job/job.js';
import type { AbortKind, Outcome } from '../domain/job/outcome.js';
import type { AbortReason } from './job-context.js';
import type { Execution } from './job-executor.js';
import type { ClaimedJob } from './job-picker.js';
import type { HeldLease, LockLossReason } from './locks/lock-manager.js';

/** A claimed job. It stays in flight until its outcome is stored and its handler has ended. */
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
  /** Resolves when its outcome is stored or dropped. */
  settled: Promise<void> | undefined = undefined;
  /** This attempt has no outcome left to store. */
  isSettled = false;
  /** The stored outcome. */
  outcome: Outcome | undefined = undefined;
  /** Its outcome is settled, but its handler ignores the signal and still occupies the slot. */
  isStuck = false;
  #execution: Execution | undefined;
  #abortedEarly: AbortReason | undefined;

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

  /** Aborts the handler's signal, even if the slot is taken and the handler has not been called yet. */
  abort(kind: AbortKind, error: Error): void {
    if (this.#execution !== undefined) this.#execution.abort(kind, error);
    else if (this.state === 'running') this.#abortedEarly ??= { kind, error };
  }

  /** Stops waiting for the handler to end and clears its timers. */
  abandon(): void {
    this.#execution?.abandon();
  }
}

/** A queue whose slots are limited in this process, and how many of them jobs occupy. */
export interface QueueSlots {
  readonly queue: string;
  readonly slots: number;
  readonly taken: number;
}

/** The handlers of a task type that are running in this process. */
export interface RunningType {
  readonly running: number;
  /** Monotonic time. */
  readonly oldestStart: number;
}

/** The jobs in flight in this process, by id. */
export class InFlightJobs {
  readonly #queues: ReadonlyMap<string, { readonly slots: number; taken: number }>;
  readonly #byId = new Map<string, InFlightJob>();
  readonly #excluded = new Set<InFlightJob>();
  #crashSuspects = 0;
  #started = 0;
  #lastStart = -Infinity;

  constructor(settings: Readonly<Record<string, { readonly slots?: number }>> = {}) {
    const limited = Object.entries(settings).filter(([, { slots }]) => slots !== undefined);
    this.#queues = new Map(limited.map(([queue, { slots = 0 }]) => [queue, { slots, taken: 0 }]));
  }

  get size(): number {
    return this.#byId.size;
  }

  get all(): InFlightJob[] {
    return [...this.#byId.values()];
  }

  /** Handlers started since the engine was created. */
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

  get queueSlots(): QueueSlots[] {
    return [...this.#queues].map(([queue, { slots, taken }]) => ({ queue, slots, taken }));
  }

  /** By task type: the handlers that are running, and the monotonic time at which the oldest of them started. */
  get runningTypes(): ReadonlyMap<string, RunningType> {
    const types = new Map<string, RunningType>();
    for (const { job, state, since } of this.#byId.values()) {
      if (state !== 'running') continue;
      const { running = 0, oldestStart = since } = types.get(job.taskType) ?? {};
      types.set(job.taskType, { running: running + 1, oldestStart: Math.min(oldestStart, since) });
    }
    return types;
  }

  /** The free slots of queues with limited slots; undefined if there is no such queue. */
  get queueRoom(): ReadonlyMap<string, number> | undefined {
    if (this.#queues.size === 0) return undefined;
    return new Map([...this.#queues].map(([queue, { slots, taken }]) => [queue, Math.max(0, slots - taken)]));
  }

  /** Ids that claims must exclude: jobs that may be due again before this process has finished with them. */
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
    if (this.#queues.size > 0) this.#takeSlot(entry.job.queue);
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

  /** The handler has ended, or will never start. True if its queue had no free slot and now has one. */
  markEnded(entry: InFlightJob): boolean {
    if (entry.state === 'ended') return false;
    entry.state = 'ended';
    if (isCrashSuspect(entry.job)) this.#crashSuspects--;
    return this.#queues.size > 0 && this.#freeSlot(entry.job.queue);
  }

  /** Like `markEnded`. */
  remove(entry: InFlightJob): boolean {
    const queueFreed = this.markEnded(entry);
    this.#excluded.delete(entry);
    this.#byId.delete(entry.job._id);
    return queueFreed;
  }

  #takeSlot(name: string): void {
    const queue = this.#queues.get(name);
    if (queue !== undefined) queue.taken++;
  }

  #freeSlot(name: string): boolean {
    const queue = this.#queues.get(name);
    if (queue === undefined) return false;
    queue.taken--;
    return queue.taken === queue.slots - 1;
  }
}
