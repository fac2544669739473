import { cancelJob } from './dispatch/cancel-job.js';
import { viewOf, type JobView } from './dispatch/job-view.js';
import type { ExecutionDocument } from './domain/execution.js';
import { checkJobId, checkReason } from './domain/names.js';
import type { Parts } from './parts.js';
import type { EventBus } from './runtime/event-bus.js';
import { ScheduleApi } from './schedule-api.js';
import type { CancelAnswer } from './store/cancel.js';
import type { HoldAnswer } from './store/hold.js';
import type { RetryAnswer } from './store/retry.js';

export interface JobApiParts extends Pick<Parts, 'store' | 'clock' | 'engine'> {
  events: EventBus;
}

/** The part of the Scheduler that is about one job, by its id. */
export abstract class JobApi extends ScheduleApi {
  protected abstract connected(): Promise<JobApiParts>;

  async getJob(jobId: string): Promise<JobView | null> {
    checkJobId(jobId);
    const job = await (await this.connected()).store.findJob(jobId);
    return job === null ? null : viewOf(job);
  }

  /** The last thousand attempts of a job, oldest first, as long as the execution log keeps them. */
  async getExecutions(jobId: string): Promise<ExecutionDocument[]> {
    checkJobId(jobId);
    return (await this.connected()).store.findExecutions(jobId);
  }

  /** Cancels a job that waits; asks the worker of one that runs. The answer says which. */
  async cancel(jobId: string, reason?: string): Promise<CancelAnswer> {
    checkJobId(jobId);
    checkReason(reason);
    return cancelJob(await this.connected(), jobId, reason ?? null);
  }

  /** Runs a finished job again, as if it were new. */
  async retry(jobId: string): Promise<RetryAnswer> {
    checkJobId(jobId);
    const { store, clock, engine } = await this.connected();
    const answer = await store.retry(jobId, clock.now());
    engine.nudge();
    return answer;
  }

  /** Takes a waiting job out of play until `unhold`. */
  async hold(jobId: string, reason?: string): Promise<HoldAnswer> {
    checkJobId(jobId);
    checkReason(reason);
    const { store, clock } = await this.connected();
    return store.hold(jobId, reason ?? null, clock.now());
  }

  async unhold(jobId: string): Promise<HoldAnswer> {
    checkJobId(jobId);
    const { store, engine } = await this.connected();
    const answer = await store.unhold(jobId);
    engine.nudge();
    return answer;
  }
}
