import type { Clock } from '../domain/clock.js';
import { assertJobId, assertReason } from '../domain/identifiers.js';
import type { ExecutionDocument } from '../domain/job/execution.js';
import type { FinishedStatus } from '../domain/job/job.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { CancelAnswer, HoldAnswer, MoveAnswer, RetryAnswer } from '../store/jobs/change.js';
import type { Store } from '../store/store.js';
import type { WorkerEngine } from '../worker/engine.js';
import { type JobView, toJobView } from './job-views.js';

export interface JobActionsDeps {
  store: Pick<Store, 'cancel' | 'findExecutions' | 'findJob' | 'hold' | 'reschedule' | 'retry' | 'unhold'>;
  clock: Clock;
  events: EventBus;
}

/** Reads and changes one job by its id. Every change is a guarded write, so it is legal whatever the job does meanwhile. */
export class JobActions {
  readonly #store: JobActionsDeps['store'];
  readonly #clock: Clock;
  readonly #events: EventBus;
  readonly #engine: Pick<WorkerEngine, 'cancelLocal' | 'wake'>;

  constructor({ store, clock, events }: JobActionsDeps, engine: Pick<WorkerEngine, 'cancelLocal' | 'wake'>) {
    this.#store = store;
    this.#clock = clock;
    this.#events = events;
    this.#engine = engine;
  }

  async get(jobId: string): Promise<JobView | null> {
    assertJobId(jobId);
    const job = await this.#store.findJob(jobId);
    return job === null ? null : toJobView(job);
  }

  async executions(jobId: string): Promise<ExecutionDocument[]> {
    assertJobId(jobId);
    return this.#store.findExecutions(jobId);
  }

  /** Cancels a waiting job. For a running job it records a request, which reaches the handler at once if it runs here. */
  async cancel(jobId: string, reason?: string): Promise<CancelAnswer> {
    assertJobId(jobId);
    assertReason(reason);
    const why = reason ?? null;
    const result = await this.#store.cancel(jobId, why, this.#clock.now());
    if (result.answer === 'cancelled' || result.answer === 'requested') this.#engine.cancelLocal(jobId, why);
    if (result.answer === 'cancelled') {
      this.#events.emit('job:cancelled', { jobId, taskType: result.taskType, reason: why });
    }
    return result;
  }

  /** `from`: only if the job ended with one of these statuses. */
  async retry(jobId: string, from?: readonly FinishedStatus[]): Promise<RetryAnswer> {
    assertJobId(jobId);
    const result = await this.#store.retry(jobId, this.#clock.now(), from);
    this.#engine.wake();
    return result;
  }

  async hold(jobId: string, reason?: string): Promise<HoldAnswer> {
    assertJobId(jobId);
    assertReason(reason);
    return this.#store.hold(jobId, reason ?? null, this.#clock.now());
  }

  async unhold(jobId: string): Promise<HoldAnswer> {
    assertJobId(jobId);
    const result = await this.#store.unhold(jobId);
    this.#engine.wake();
    return result;
  }

  async reschedule(jobId: string, nextRunAt: Date): Promise<MoveAnswer> {
    assertJobId(jobId);
    const result = await this.#store.reschedule(jobId, nextRunAt);
    this.#engine.wake();
    return result;
  }
}
