import type { Clock } from '../domain/clock.js';
import { assertJobId, assertReason } from '../domain/identifiers.js';
import type { ExecutionDocument } from '../domain/job/execution.js';
import type { FinishedStatus } from '../domain/job/job.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { CancelAnswer, HoldAnswer, MoveAnswer, RetryAnswer } from '../store/jobs/change.js';
import type { Store } from '../store/store.js';
import type { WorkerEngine } from '../worker/engine.js';
import { type JobView, toJobView } from './job-views.js';

interface JobActionsDeps {
  store: Pick<Store, 'cancel' | 'findExecutions' | 'findJob' | 'hold' | 'reschedule' | 'retry' | 'unhold'>;
  clock: Clock;
  events: EventBus;
  engine: Pick<WorkerEngine, 'cancelLocal' | 'wake'>;
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
    return job === null ? null : toJobView(job);
  }

  async executions(jobId: string): Promise<ExecutionDocument[]> {
    assertJobId(jobId);
    return this.#deps.store.findExecutions(jobId);
  }

  /** Cancels a waiting job. For a running job it stores a request; a handler in this process is aborted immediately. */
  async cancel(jobId: string, reason?: string): Promise<CancelAnswer> {
    assertJobId(jobId);
    assertReason(reason);
    const why = reason ?? null;
    const result = await this.#deps.store.cancel(jobId, why, this.#deps.clock.now());
    if (result.answer === 'cancelled' || result.answer === 'requested')
      this.#deps.engine.cancelLocal(jobId, why);
    if (result.answer === 'cancelled') {
      this.#deps.events.emit('job:cancelled', { jobId, taskType: result.taskType, reason: why });
    }
    return result;
  }

  /** `from`: only if the job has one of these statuses. */
  async retry(jobId: string, from?: readonly FinishedStatus[]): Promise<RetryAnswer> {
    assertJobId(jobId);
    const result = await this.#deps.store.retry(jobId, this.#deps.clock.now(), from);
    this.#deps.engine.wake();
    return result;
  }

  async hold(jobId: string, reason?: string): Promise<HoldAnswer> {
    assertJobId(jobId);
    assertReason(reason);
    return this.#deps.store.hold(jobId, reason ?? null, this.#deps.clock.now());
  }

  async unhold(jobId: string): Promise<HoldAnswer> {
    assertJobId(jobId);
    const result = await this.#deps.store.unhold(jobId);
    this.#deps.engine.wake();
    return result;
  }

  async reschedule(jobId: string, nextRunAt: Date): Promise<MoveAnswer> {
    assertJobId(jobId);
    const result = await this.#deps.store.reschedule(jobId, nextRunAt);
    this.#deps.engine.wake();
    return result;
  }
}
