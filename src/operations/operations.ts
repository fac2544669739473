import {
  readJobFilter,
  type ExecutionFilterOptions,
  type JobFilterOptions,
  type PageOptions,
} from '../config/query-options.js';
import type { Clock } from '../domain/clock.js';
import type { Count } from '../store/list-jobs.js';
import { systemClock } from '../runtime/system-clock.js';
import type { Store } from '../store/store.js';
import { examine, type Finding } from './doctor.js';
import { explainJob, type Explanation } from './explain.js';
import {
  listExecutions,
  listJobs,
  showExecution,
  showJob,
  type ExecutionPage,
  type JobPage,
} from './lists.js';
import { MOST_COUNTED, readStatus, type QueueView, type StatusView } from './status.js';
import type { ExecutionView, JobDetails } from './views.js';
import { listWorkers, type WorkerView } from './workers.js';

/** What a connected Scheduler gives to those who operate it. */
export interface OperationsParts {
  store: Store;
  clock: Clock;
}

/**
 * Everything a person does with a running system, for the command line, the HTTP API and programs of your own. Reads
 * are bounded, whatever there is in the database; what changes something says so in its name.
 */
export class Operations {
  readonly #connect: () => Promise<OperationsParts>;

  constructor(connect: () => Promise<OperationsParts>) {
    this.#connect = connect;
  }

  /** Queues with counts, oldest waiting and drain estimate; throughput; workers. */
  async status(): Promise<StatusView> {
    return readStatus(await this.#connect());
  }

  async listQueues(): Promise<QueueView[]> {
    return (await this.status()).queues;
  }

  /** Worker processes of the last day, those that live first. */
  async listWorkers(): Promise<WorkerView[]> {
    const { store, clock } = await this.#connect();
    return listWorkers(store, clock);
  }

  /**
   * A page of jobs: SCHEDULED ones as they are due, QUEUED and RUNNING ones with the longest first, others with the newest
   * first. Without a status, of a schedule, and by the beginning of their ids: by id, backwards.
   */
  async listJobs(query: JobFilterOptions & PageOptions = {}): Promise<JobPage> {
    return listJobs((await this.#connect()).store, query);
  }

  /** Jobs that FAILED, the newest first. */
  async listDead(query: Omit<JobFilterOptions, 'status'> & PageOptions = {}): Promise<JobPage> {
    return listJobs((await this.#connect()).store, { ...query, status: 'FAILED' }, 'listDead() query');
  }

  /** How many jobs match, up to ten thousand. */
  async countMatching(filter: JobFilterOptions): Promise<Count> {
    const { store } = await this.#connect();
    return store.countJobs(readJobFilter(filter, 'countMatching() filter'), MOST_COUNTED);
  }

  /** The job with its payload, result and attempts; null when there is none. */
  async showJob(jobId: string): Promise<JobDetails | null> {
    return showJob((await this.#connect()).store, jobId);
  }

  /** Why the job does not run, and when it will; also for an occurrence that has no job yet. Null when there is no such thing. */
  async explainJob(jobId: string): Promise<Explanation | null> {
    return explainJob(await this.#connect(), jobId);
  }

  /** Looks for what may be wrong with the installation, and says what to do about it. Changes nothing. */
  async doctor(): Promise<Finding[]> {
    const { store, clock } = await this.#connect();
    return examine({ store, clock, wallClock: systemClock });
  }

  /** A page of the execution log, the newest first. */
  async listExecutions(query: ExecutionFilterOptions & PageOptions = {}): Promise<ExecutionPage> {
    return listExecutions((await this.#connect()).store, query);
  }

  /** One attempt with its log lines, by its id `<job>:<fence>`; null when there is none. */
  async showExecution(id: string): Promise<ExecutionView | null> {
    return showExecution((await this.#connect()).store, id);
  }
}
