import {
  parseReschedule,
  parseWaitOptions,
  type RescheduleOptions,
  type WaitOptions,
} from '../config/method-options.js';
import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { assertJobId, assertReason } from '../domain/identifiers.js';
import type { FinishedStatus, JobDocument } from '../domain/job/job.js';
import { resultOf } from '../domain/job/result.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { CancelResult, JobChange } from '../store/jobs/change.js';
import type { Store } from '../store/store.js';
import type { WorkerEngine } from '../worker/engine.js';
import { type ExecutionView, type JobView, toExecutionView, toJobView } from './job-views.js';
import type { JobWaiter } from './job-waiter.js';

interface JobActionsDeps {
  store: Pick<
    Store,
    | ('cancel' | 'cancelUnclaimed' | 'deleteJob' | 'findExecutions' | 'findJob' | 'hold' | 'reschedule')
    | ('retry' | 'unhold')
  >;
  clock: Clock;
  events: EventBus;
  engine: Pick<WorkerEngine, 'cancelLocal' | 'wake'>;
  waiter: Pick<JobWaiter, 'wait'>;
  options: Pick<ResolvedOptions, 'timezone'>;
}

/** Reads and changes one job by its id. Every change is a guarded write, so concurrent changes cannot make it illegal. */
export class JobActions {
  readonly #deps: JobActionsDeps;

  constructor(deps: JobActionsDeps) {
    this.#deps = deps;
  }

  async get(jobId: string): Promise<JobView | null> {
    assertJobId(jobId);
    const job = await this.#deps.store.findJob(jobId);
    return job === null ? null : toJobView(job, this.#deps.clock.now());
  }

  async executions(jobId: string): Promise<ExecutionView[]> {
    assertJobId(jobId);
    return (await this.#deps.store.findExecutions(jobId)).map(toExecutionView);
  }

  /** Cancels a waiting job. For a running job it stores a request; a handler in this process is aborted immediately. */
  async cancel(jobId: string, reason?: string): Promise<JobChange> {
    assertJobId(jobId);
    assertReason(reason);
    const why = reason ?? null;
    const change = await this.#deps.store.cancel(jobId, why, this.#deps.clock.now());
    const { result } = change;
    if (result === 'changed' || result === 'requested') this.#deps.engine.cancelLocal(jobId, why);
    return this.#announceCancel(jobId, change, why);
  }

  /** Cancels a job that no worker has claimed since it was read; a job that runs is not affected. */
  async cancelUnclaimed(job: Pick<JobDocument, '_id' | 'fence'>, reason: string): Promise<JobChange> {
    const change = await this.#deps.store.cancelUnclaimed(job, reason, this.#deps.clock.now());
    return this.#announceCancel(job._id, change, reason);
  }

  /** Deletes a finished job. */
  async delete(jobId: string): Promise<JobChange> {
    assertJobId(jobId);
    return this.#deps.store.deleteJob(jobId, this.#deps.clock.now());
  }

  /** `from`: only if the job has one of these statuses. */
  async retry(jobId: string, from?: readonly FinishedStatus[]): Promise<JobChange> {
    assertJobId(jobId);
    const result = await this.#deps.store.retry(jobId, this.#deps.clock.now(), from);
    this.#deps.engine.wake();
    return result;
  }

  async hold(jobId: string, reason?: string): Promise<JobChange> {
    assertJobId(jobId);
    assertReason(reason);
    return this.#deps.store.hold(jobId, reason ?? null, this.#deps.clock.now());
  }

  async unhold(jobId: string): Promise<JobChange> {
    assertJobId(jobId);
    const result = await this.#deps.store.unhold(jobId, this.#deps.clock.now());
    this.#deps.engine.wake();
    return result;
  }

  async reschedule(jobId: string, when: RescheduleOptions): Promise<JobChange> {
    assertJobId(jobId);
    const { store, clock, engine, options } = this.#deps;
    const now = clock.now();
    const result = await store.reschedule(jobId, parseReschedule(when, options.timezone, now), now);
    engine.wake();
    return result;
  }

  /** Resolves to the finished job, whatever its outcome. */
  async wait(jobId: string, options: WaitOptions): Promise<JobView> {
    assertJobId(jobId);
    const { timeout } = parseWaitOptions(options, 'wait() options');
    const { waiter, clock } = this.#deps;
    return toJobView(await waiter.wait(jobId, timeout), clock.now());
  }

  /** Resolves to what its handler returned, or throws its error. */
  async result(jobId: string, options: WaitOptions): Promise<unknown> {
    assertJobId(jobId);
    const { timeout } = parseWaitOptions(options, 'result() options');
    return resultOf(await this.#deps.waiter.wait(jobId, timeout));
  }

  #announceCancel(
    jobId: string,
    { result, state, taskType }: CancelResult,
    reason: string | null,
  ): JobChange {
    if (taskType !== undefined) this.#deps.events.emit('job:cancelled', { jobId, taskType, reason });
    return { result, state };
  }
}
