import { isSuspect, type JobDocument } from '../domain/job.js';
import type { ClaimedJob } from './claimed-job.js';
import type { Execution } from './job-executor.js';
import type { HeldLease, LossKind } from './lock-manager.js';

/**
 * A job this process has taken: `waiting` for a slot, `running`, or `over`. It stays in flight until its outcome
 * is written and its handler has really ended; the same id never starts a second time meanwhile.
 */
export class InFlightJob implements ClaimedJob {
  readonly job: JobDocument;
  readonly token: string;
  readonly lease: number;
  readonly sentAt: number;
  phase: 'waiting' | 'running' | 'over' = 'waiting';
  /** Monotonic time since when it waits, or runs. */
  since: number;
  held: HeldLease | undefined = undefined;
  execution: Execution | undefined = undefined;
  /** The lock was lost. When it is somebody else's, whatever the handler comes to is dropped. */
  lost: LossKind | undefined = undefined;
  settled = false;
  /** It ignores its signal, and its outcome is written: nobody waits for it any more. */
  isStuck = false;
  /** It was scheduled again. */
  again = false;

  constructor({ job, token, lease, sentAt }: ClaimedJob, since: number) {
    this.job = job;
    this.token = token;
    this.lease = lease;
    this.sentAt = sentAt;
    this.since = since;
  }
}

/** Every job that this process has taken and is not through with. */
export class InFlightJobs {
  readonly #byId = new Map<string, InFlightJob>();
  /** Those of them whose lock is gone or about to be: they may be due again. */
  readonly #zombies = new Set<InFlightJob>();
  readonly #running = new Set<InFlightJob>();
  #suspects = 0;
  #started = 0;
  #lastStart = -Infinity;

  get size(): number {
    return this.#byId.size;
  }

  get running(): number {
    return this.#running.size;
  }

  /** Handlers that were ever started. */
  get started(): number {
    return this.#started;
  }

  /** When the last of them was, by the monotonic clock. */
  get lastStart(): number {
    return this.#lastStart;
  }

  get hasSuspect(): boolean {
    return this.#suspects > 0;
  }

  /** All that run ignore their signal. */
  get areStuck(): boolean {
    return [...this.#running].every(({ isStuck }) => isStuck);
  }

  get zombies(): string[] {
    return [...this.#zombies].map(({ job }) => job._id);
  }

  /** The token of each, by its id. */
  get tokens(): Map<string, string> {
    return new Map([...this.#byId].map(([id, { token }]) => [id, token]));
  }

  get all(): InFlightJob[] {
    return [...this.#byId.values()];
  }

  has(jobId: string): boolean {
    return this.#byId.has(jobId);
  }

  get(jobId: string): InFlightJob | undefined {
    return this.#byId.get(jobId);
  }

  add(entry: InFlightJob): void {
    this.#byId.set(entry.job._id, entry);
    if (isSuspect(entry.job)) this.#suspects++;
  }

  /** Its handler starts. */
  start(entry: InFlightJob, now: number): void {
    entry.phase = 'running';
    entry.since = now;
    this.#running.add(entry);
    this.#started++;
    this.#lastStart = now;
  }

  /** It is due, or may soon be, although this process is not through with it: claims leave it out. */
  addZombie(entry: InFlightJob): void {
    this.#zombies.add(entry);
  }

  /** Its handler has ended, or never starts. */
  end(entry: InFlightJob): void {
    if (entry.phase !== 'over' && isSuspect(entry.job)) this.#suspects--;
    entry.phase = 'over';
    this.#running.delete(entry);
  }

  remove(entry: InFlightJob): void {
    this.end(entry);
    this.#zombies.delete(entry);
    this.#byId.delete(entry.job._id);
  }
}
