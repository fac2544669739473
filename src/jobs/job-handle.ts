import type { Clock } from '../domain/clock.js';
import { type Duration, parseDuration } from '../domain/duration.js';
import { ChronosError } from '../domain/errors.js';
import { type Instant, parseInstant } from '../domain/instant.js';
import { isFinished } from '../domain/job/job.js';
import { duration, object, parse } from '../domain/validation.js';
import { pollUntil } from '../runtime/retry.js';
import type { CancelAnswer, MoveAnswer } from '../store/jobs/change.js';
import { isResultUnknown } from '../store/mongo-errors.js';
import type { JobActions } from './job-actions.js';
import type { JobView } from './job-views.js';

const POLL_BACKOFF = { first: 20, max: 1000 };

const waitShape = object<{ timeout: number }>({ timeout: duration() });

export interface JobHandleDeps {
  clock: Clock;
  options: { timezone: string };
}

/** A dispatched job. Deliberately not a thenable: awaiting it twice is harmless. */
export class JobHandle {
  readonly id: string;
  /** True when the key was taken: the handle is of the job that has it. */
  readonly duplicate: boolean;
  readonly #jobs: JobActions;
  readonly #clock: Clock;
  readonly #timezone: string;

  constructor(id: string, duplicate: boolean, jobs: JobActions, { clock, options }: JobHandleDeps) {
    this.id = id;
    this.duplicate = duplicate;
    this.#jobs = jobs;
    this.#clock = clock;
    this.#timezone = options.timezone;
  }

  /** Changes when the job is due, unless it has been claimed. The result has its status then. */
  async at(when: Instant): Promise<MoveAnswer> {
    return this.#jobs.reschedule(this.id, parseInstant(when, this.#timezone, 'at()'));
  }

  /** Makes the job due this long from now, unless it has been claimed. */
  async delay(delay: Duration): Promise<MoveAnswer> {
    const ms = parseDuration(delay, 'delay()');
    return this.#jobs.reschedule(this.id, new Date(this.#clock.now().getTime() + ms));
  }

  /** Cancels the job if it waits; asks its worker if it runs. */
  cancel(reason?: string): Promise<CancelAnswer> {
    return this.#jobs.cancel(this.id, reason);
  }

  /** Resolves to the finished job, whatever its outcome; throws WAIT_TIMEOUT after `timeout`. Default: no limit. */
  async wait(options: { timeout?: Duration } = {}): Promise<JobView> {
    const { timeout = Infinity } = parse(waitShape, options, 'wait() options', 'INVALID_ARGUMENT');
    let status = 'unreachable';
    const findFinished = async (): Promise<JobView | undefined> => {
      const job = await this.#jobs.get(this.id).catch((error: unknown) => {
        // An outage does not affect the job: wait until it is over.
        if (!isResultUnknown(error)) throw error;
      });
      if (job === null) throw new ChronosError('JOB_NOT_FOUND', `job '${this.id}' was pruned`);
      status = job?.status ?? 'unreachable';
      return job !== undefined && isFinished(job.status) ? job : undefined;
    };
    const finished = await pollUntil(findFinished, { clock: this.#clock, timeout, ...POLL_BACKOFF });
    if (finished !== undefined) return finished;
    throw new ChronosError('WAIT_TIMEOUT', `job '${this.id}' is still ${status} after ${timeout} ms`);
  }
}
