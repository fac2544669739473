import type { RescheduleOptions, WaitOptions } from '../config/method-options.js';
import type { Duration } from '../domain/duration.js';
import type { Instant } from '../domain/instant.js';
import type { JobChange } from '../store/jobs/change.js';
import type { JobActions } from './job-actions.js';
import type { ExecutionView, JobView } from './job-views.js';
import type { StoredResult } from './task-types.js';

/** Connects if necessary: a handle exists before there is a connection, and after it was closed. */
export type ConnectJobs = () => Promise<JobActions>;

/**
 * A job by its id, whose handler returns `R`: one that was dispatched, or any other with `scheduler.job(id)`. Deliberately not a thenable: awaiting
 * it twice is harmless.
 */
export class JobHandle<R = unknown> {
  readonly id: string;
  /** True if `dispatch` found a job with this key; the handle refers to that job. */
  readonly duplicate: boolean;
  readonly #connect: ConnectJobs;

  constructor(id: string, duplicate: boolean, connect: ConnectJobs) {
    this.id = id;
    this.duplicate = duplicate;
    this.#connect = connect;
  }

  /** The job as it is now; null if it does not exist (any more). */
  async get(): Promise<JobView | null> {
    return (await this.#connect()).get(this.id);
  }

  /** Its last thousand attempts that the execution log still has, oldest first. */
  async executions(): Promise<ExecutionView[]> {
    return (await this.#connect()).executions(this.id);
  }

  /** Changes when the job is due, unless a worker has claimed it; see the result. */
  async reschedule(options: RescheduleOptions): Promise<JobChange> {
    return (await this.#connect()).reschedule(this.id, options);
  }

  /** The same as `reschedule({ at })`. */
  at(at: Instant): Promise<JobChange> {
    return this.reschedule({ at });
  }

  /** The same as `reschedule({ delay })`. */
  delay(delay: Duration): Promise<JobChange> {
    return this.reschedule({ delay });
  }

  /** Cancels a waiting job, or asks the worker of a running job to cancel it; see the result. */
  async cancel(reason?: string): Promise<JobChange> {
    return (await this.#connect()).cancel(this.id, reason);
  }

  /** Runs a finished job again, as if it were new. */
  async retry(): Promise<JobChange> {
    return (await this.#connect()).retry(this.id);
  }

  /** Prevents a waiting job from running until `unhold`. */
  async hold(reason?: string): Promise<JobChange> {
    return (await this.#connect()).hold(this.id, reason);
  }

  /** Lets a held job run when it is due. */
  async unhold(): Promise<JobChange> {
    return (await this.#connect()).unhold(this.id);
  }

  /**
   * Resolves to the finished job, whatever its outcome; throws WAIT_TIMEOUT after `timeout` (default: no limit) and
   * JOB_NOT_FOUND if there is no such job. By then its last attempt can be read with `executions()`, unless the worker
   * died between the two writes: after two seconds without that record, the job is returned anyway.
   */
  async wait(options: WaitOptions = {}): Promise<JobView> {
    return (await this.#connect()).wait(this.id, options);
  }

  /**
   * Like `wait`, but resolves to what the handler returned. Throws a `JobFailedError` with the name, message, code and
   * stack of the handler's error if the job FAILED, a ChronosError with the code JOB_CANCELLED, JOB_SKIPPED or
   * JOB_EXPIRED if it was cancelled, and RESULT_CUT if its result was too large to be stored.
   */
  async result(options: WaitOptions = {}): Promise<StoredResult<R>> {
    return (await (await this.#connect()).result(this.id, options)) as StoredResult<R>;
  }
}
