import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import type { JobDocument } from '../domain/job/job.js';
import { truncateUtf8 } from '../domain/text.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { Store } from '../store/store.js';

const MAX_REASON_BYTES = 2000;

export interface InvalidJobsDeps {
  store: Pick<Store, 'failInvalid'>;
  clock: Clock;
  events: EventBus;
  workerId: string;
}

/** Ends malformed jobs as FAILED, so that they affect no other job. */
export class InvalidJobs {
  readonly #deps: InvalidJobsDeps;
  #count = 0;

  constructor(deps: InvalidJobsDeps) {
    this.#deps = deps;
  }

  /** The valid jobs of the list. An error for one of the others is reported, and does not affect the list. */
  async removeFrom(jobs: readonly JobDocument[]): Promise<readonly JobDocument[]> {
    const invalid = jobs.filter((job) => job.invalid !== undefined);
    if (invalid.length === 0) return jobs;
    for (const job of invalid) {
      try {
        await this.end(job);
      } catch (error) {
        this.#deps.events.reportError('end invalid job', error, { subject: job._id });
      }
    }
    return jobs.filter((job) => job.invalid === undefined);
  }

  /** Does nothing if the job has changed since it was read. */
  async end(job: JobDocument): Promise<void> {
    if (job.invalid === undefined) return;
    const { store, clock, events, workerId } = this.#deps;
    const reason = truncateUtf8(job.invalid.reason, MAX_REASON_BYTES);
    const message = `the stored job is malformed: ${reason}. Another program or a person wrote it (docs/wire.md has the fields of a job): correct that program, then dispatch the job again`;
    const error = new ChronosError('INVALID_JOB', message);
    if (!(await store.failInvalid(job, error, workerId, clock.now()))) return;
    const { _id: jobId, taskType, queue } = job;
    events.emit('job:invalid', { jobId, taskType, queue, reason, count: ++this.#count });
  }
}
