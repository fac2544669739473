import type { ResolvedOptions } from '../config/options.js';
import {
  readJobFilter,
  type AuditEntry,
  type AuditFilterOptions,
  type ExecutionFilterOptions,
  type JobFilterOptions,
  type PageOptions,
} from '../config/query-options.js';
import { parseDuration, type Duration } from '../domain/duration.js';
import type { Instant } from '../domain/instant.js';
import type { JobDocument } from '../domain/job.js';
import type { PruneCounts, Pruner } from '../maintenance/pruner.js';
import { systemClock } from '../runtime/system-clock.js';
import type { Definitions } from '../schedules/definitions.js';
import { MOST_COUNTED } from '../store/bounded.js';
import type { Count } from '../store/list-jobs.js';
import type { Store } from '../store/store.js';
import type { HandlerRegistry } from '../worker/handler-registry.js';
import { addAudit, listAudit, type AuditPage, type AuditView } from './audit.js';
import {
  changeMany,
  countFor,
  type BulkAction,
  type BulkAnswer,
  type BulkOptions,
  type BulkParts,
} from './bulk.js';
import { configurationOf, type ConfigurationView } from './configuration.js';
import {
  diffSchedules,
  listDefinitions,
  type DefinitionParts,
  type DefinitionView,
  type ScheduleDifference,
} from './definitions.js';
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
import { previewBackfill, type BackfillPreview } from './preview-backfill.js';
import { readStatus, type QueueView, type StatusView } from './status.js';
import type { ExecutionView, JobDetails } from './views.js';
import { listWorkers, type WorkerView } from './workers.js';

/** What a Scheduler knows before it is connected. */
export interface OperationsGiven {
  options: ResolvedOptions;
  registry: HandlerRegistry;
  definitions: Definitions;
  workerId: string;
  connect: () => Promise<OperationsParts>;
}

/** What a connected Scheduler gives to those who operate it. */
export interface OperationsParts extends BulkParts {
  store: Store;
  pruner: Pick<Pruner, 'count'>;
  /** Registers the definitions, makes the jobs that all schedules owe, and returns them. */
  collect: () => Promise<JobDocument[]>;
}

/** What `collect()` made. */
export interface Collected {
  created: number;
  jobs: { id: string; schedule: string | null; scheduledFor: Date | null }[];
}

type DeadFilter = Omit<JobFilterOptions, 'status'>;

/**
 * Everything a person does with a running system, for the command line, the HTTP API and programs of your own. Reads
 * are bounded, whatever there is in the database; what changes something says so in its name.
 */
export class Operations {
  readonly #given: OperationsGiven;

  constructor(given: OperationsGiven) {
    this.#given = given;
  }

  /** Queues with counts, oldest waiting and drain estimate; throughput; workers. */
  async status(): Promise<StatusView> {
    return readStatus(await this.#given.connect());
  }

  async listQueues(): Promise<QueueView[]> {
    return (await this.status()).queues;
  }

  /** Worker processes of the last day, those that live first. */
  async listWorkers(): Promise<WorkerView[]> {
    const { store, clock } = await this.#given.connect();
    return listWorkers(store, clock);
  }

  /**
   * A page of jobs: SCHEDULED ones as they are due, QUEUED and RUNNING ones with the longest first, others with the newest
   * first. Without a status, of a schedule, and by the beginning of their ids: by id, backwards.
   */
  async listJobs(query: JobFilterOptions & PageOptions = {}): Promise<JobPage> {
    return listJobs(await this.#store(), query);
  }

  /** Jobs that FAILED, the newest first. */
  async listDead(query: DeadFilter & PageOptions = {}): Promise<JobPage> {
    return listJobs(await this.#store(), { ...query, status: 'FAILED' }, 'listDead() query');
  }

  /** The job with its payload, result and attempts; null when there is none. */
  async showJob(jobId: string): Promise<JobDetails | null> {
    return showJob(await this.#store(), jobId);
  }

  /** Why the job does not run, and when it will; also for an occurrence that has no job yet. Null when there is no such thing. */
  async explainJob(jobId: string): Promise<Explanation | null> {
    return explainJob(await this.#given.connect(), jobId, this.#given.options.timezone);
  }

  /** A page of the execution log, the newest first. */
  async listExecutions(query: ExecutionFilterOptions & PageOptions = {}): Promise<ExecutionPage> {
    return listExecutions(await this.#store(), query);
  }

  /** One attempt with its log lines, by its id `<job>:<fence>`; null when there is none. */
  async showExecution(id: string): Promise<ExecutionView | null> {
    return showExecution(await this.#store(), id);
  }

  /** How many jobs match, up to ten thousand; or how many of them an action is for. */
  async countMatching(filter: JobFilterOptions, action?: BulkAction): Promise<Count> {
    const store = await this.#store();
    return action === undefined
      ? store.countJobs(readJobFilter(filter, 'countMatching() filter'), MOST_COUNTED)
      : countFor(store, action, filter, MOST_COUNTED);
  }

  /** Runs finished jobs again, as if they were new: those that FAILED, unless the filter says another status. */
  async retryJobs(filter: JobFilterOptions, options?: BulkOptions): Promise<BulkAnswer> {
    return changeMany(await this.#given.connect(), 'retry', filter, options);
  }

  /** The same for jobs that FAILED. */
  async retryDead(filter: DeadFilter = {}, options?: BulkOptions): Promise<BulkAnswer> {
    return this.retryJobs({ ...filter, status: 'FAILED' }, options);
  }

  /** Cancels jobs that wait, and asks the workers of those that run. */
  async cancelJobs(filter: JobFilterOptions, options?: BulkOptions): Promise<BulkAnswer> {
    return changeMany(await this.#given.connect(), 'cancel', filter, options);
  }

  /** Takes SCHEDULED jobs out of play. */
  async holdJobs(filter: JobFilterOptions, options?: BulkOptions): Promise<BulkAnswer> {
    return changeMany(await this.#given.connect(), 'hold', filter, options);
  }

  /** Puts held jobs back into play. */
  async releaseJobs(filter: JobFilterOptions, options?: BulkOptions): Promise<BulkAnswer> {
    return changeMany(await this.#given.connect(), 'release', filter, options);
  }

  /** How many jobs `prune(olderThan)` would remove, each up to ten thousand. */
  async countPrunable(olderThan?: Duration): Promise<Record<keyof PruneCounts, Count>> {
    const age = olderThan === undefined ? undefined : parseDuration(olderThan, 'countPrunable() olderThan');
    return (await this.#given.connect()).pruner.count(age, MOST_COUNTED);
  }

  /** How many jobs a backfill from one instant to another, both included, would make, and in which pieces. */
  async previewBackfill(id: string, from: Instant, to: Instant): Promise<BackfillPreview> {
    const { store, clock } = await this.#given.connect();
    return previewBackfill({ store, clock, timezone: this.#given.options.timezone }, id, from, to);
  }

  /** Looks for what may be wrong with the installation, and says what to do about it. Changes nothing. */
  async doctor(): Promise<Finding[]> {
    const { store, clock } = await this.#given.connect();
    return examine({ store, clock, wallClock: systemClock });
  }

  /** The definitions in code that are loaded here, with their rules and next times. */
  async listDefinitions(): Promise<DefinitionView[]> {
    return listDefinitions(await this.#definitionParts());
  }

  /** Compares the definitions in code with what is stored. */
  async diffSchedules(): Promise<ScheduleDifference[]> {
    return diffSchedules(await this.#definitionParts());
  }

  /** What this process would work with. Needs no connection. */
  configuration(): ConfigurationView {
    const { options, registry, workerId, definitions } = this.#given;
    // Defined ones count once they are frozen.
    definitions.all();
    return configurationOf(options, registry, workerId);
  }

  /** One pass that only makes the jobs that schedules owe. */
  async collect(): Promise<Collected> {
    const made = await (await this.#given.connect()).collect();
    const jobs = made.map(({ _id: id, schedule, scheduledFor }) => ({ id, schedule, scheduledFor }));
    return { created: jobs.length, jobs };
  }

  /** Writes down who did what, for 90 days. Nothing here does so by itself; the command and the HTTP API do for every change. */
  async audit(entry: AuditEntry): Promise<AuditView> {
    const { store, clock } = await this.#given.connect();
    return addAudit(store, clock, entry);
  }

  /** A page of what was written down, the newest first. */
  async listAudit(query: AuditFilterOptions & PageOptions = {}): Promise<AuditPage> {
    return listAudit(await this.#store(), query);
  }

  async #store(): Promise<Store> {
    return (await this.#given.connect()).store;
  }

  async #definitionParts(): Promise<DefinitionParts> {
    const { definitions, registry, options } = this.#given;
    const { store, clock } = await this.#given.connect();
    return { store, clock, definitions, registry, environment: options.environment };
  }
}
