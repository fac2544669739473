import type { RescheduleOptions } from '../config/method-options.js';
import type { Clock } from '../domain/clock.js';
import type { Duration } from '../domain/duration.js';
import { ChronosError } from '../domain/errors.js';
import type { Instant } from '../domain/instant.js';
import { isFinished } from '../domain/job/job.js';
import { duration, object, parse } from '../domain/validation.js';
import { pollUntil } from '../runtime/retry.js';
import type { JobChange } from '../store/jobs/change.js';
import { isResultUnknown } from '../store/mongo-errors.js';
import type { JobActions } from './job-actions.js';
import type { JobView } from './job-views.js';

const POLL_BACKOFF = { first: 20, max: 1000 };

const waitShape = object<{ timeout: number }>({ timeout: duration() });

interface JobHandleDeps {
  jobs: JobActions;
  clock: Clock;
}

/** A dispatched job. Deliberately not a thenable: awaiting it twice is harmless. */
export class JobHandle {
  readonly id: string;
  /** True if a job with this key already existed; the handle refers to that job. */
  readonly duplicate: boolean;
  readonly #deps: JobHandleDeps;

  constructor(id: string, duplicate: boolean, deps: JobHandleDeps) {
    this.id = id;
    this.duplicate = duplicate;
    this.#deps = deps;
  }

  /** Changes when the job is due, unless a worker has claimed it; see the result. */
  reschedule(options: RescheduleOptions): Promise<JobChange> {
    return this.#deps.jobs.reschedule(this.id, options);
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
  cancel(reason?: string): Promise<JobChange> {
    return this.#deps.jobs.cancel(this.id, reason);
  }

  /** Resolves to the finished job, whatever its outcome; throws WAIT_TIMEOUT after `timeout`. Default: no limit. */
  async wait(options: { timeout?: Duration } = {}): Promise<JobView> {
    const { timeout = Infinity } = parse(waitShape, options, 'wait() options', 'INVALID_ARGUMENT');
    let status = 'unreachable';
    const findFinished = async (): Promise<JobView | undefined> => {
      const job = await this.#deps.jobs.get(this.id).catch((error: unknown) => {
        // An outage does not affect the job: keep polling.
        if (!isResultUnknown(error)) throw error;
      });
      if (job === null)
        throw new ChronosError('JOB_NOT_FOUND', `job '${this.id}' does not exist any more: it was pruned`);
      status = job?.status ?? 'unreachable';
      return job !== undefined && isFinished(job.status) ? job : undefined;
    };
    const finished = await pollUntil(findFinished, { clock: this.#deps.clock, timeout, ...POLL_BACKOFF });
    if (finished !== undefined) return finished;
    throw new ChronosError('WAIT_TIMEOUT', `job '${this.id}' is still ${status} after ${timeout} ms`);
  }
}
