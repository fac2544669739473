import {
  type AuditEntry,
  type AuditFilterOptions,
  type ExecutionFilterOptions,
  type JobFilterOptions,
  type PageOptions,
  parseJobFilter,
} from '../config/query-options.js';
import type { Duration } from '../domain/duration.js';
import type { Instant } from '../domain/instant.js';
import type { ExecutionView, JobDetails } from '../jobs/job-views.js';
import type { SchedulerLifecycle } from '../lifecycle/lifecycle.js';
import { enqueueDue } from '../lifecycle/pass.js';
import type { PruneCounts } from '../maintenance/pruner.js';
import { systemClock } from '../runtime/system-clock.js';
import type { BackfillPreview } from '../schedules/stored/manual-runs.js';
import type { Count } from '../store/jobs/counts.js';
import { MAX_COUNTED } from '../store/query-limits.js';
import { addAudit, type AuditPage, type AuditView, listAudit } from './audit.js';
import { type BulkAction, type BulkAnswer, type BulkOptions, changeMany, countFor } from './bulk.js';
import {
  type ConfigurationView,
  type DefinitionDeps,
  type DefinitionView,
  diffSchedules,
  listDefinitions,
  type ScheduleDifference,
  toConfigurationView,
} from './definitions.js';
import { type Finding, runChecks } from './doctor/doctor.js';
import { explainJob, type Explanation } from './explain/explain.js';
import {
  type ExecutionPage,
  type JobPage,
  listExecutions,
  listJobs,
  listWorkers,
  showExecution,
  showJob,
  type WorkerView,
} from './lists.js';
import { type QueueView, readStatus, type StatusView } from './status.js';

/** The jobs that `collect()` created. */
export interface Collected {
  created: number;
  jobs: { id: string; schedule: string | null; scheduledFor: Date | null }[];
}

type DeadFilter = Omit<JobFilterOptions, 'status'>;

/**
 * Everything a person does with a running system, for the command line, the HTTP API and your own programs. Reads are
 * bounded, however much there is in the database; the names of the methods tell which ones change something.
 */
export class Operations {
  readonly #lifecycle: SchedulerLifecycle;

  constructor(lifecycle: SchedulerLifecycle) {
    this.#lifecycle = lifecycle;
  }

  /** Queues with counts, oldest waiting job and drain estimate; throughput; workers. */
  async status(): Promise<StatusView> {
    return readStatus(await this.#lifecycle.connect());
  }

  async listQueues(): Promise<QueueView[]> {
    return (await this.status()).queues;
  }

  /** Worker processes of the last day, live ones first. */
  async listWorkers(): Promise<WorkerView[]> {
    const { store, clock } = await this.#lifecycle.connect();
    return listWorkers(store, clock);
  }

  /**
   * A page of jobs. SCHEDULED jobs: the next due first; QUEUED and RUNNING: the longest first; others: the newest first.
   * Without a status, of a schedule, and by the beginning of their ids: by id, descending.
   */
  async listJobs(query: JobFilterOptions & PageOptions = {}): Promise<JobPage> {
    return listJobs((await this.#lifecycle.connect()).store, query);
  }

  /** A page of FAILED jobs, newest first. */
  async listDead(query: DeadFilter & PageOptions = {}): Promise<JobPage> {
    const { store } = await this.#lifecycle.connect();
    return listJobs(store, { ...query, status: 'FAILED' }, 'listDead() query');
  }

  /** The job with its payload, result and attempts; null if there is none. */
  async showJob(jobId: string): Promise<JobDetails | null> {
    return showJob((await this.#lifecycle.connect()).store, jobId);
  }

  /** Why the job does not run, and when it will; also for an occurrence that has no job yet. Null if there is none. */
  async explainJob(jobId: string): Promise<Explanation | null> {
    const components = await this.#lifecycle.connect();
    return explainJob(components, jobId, components.options.timezone);
  }

  /** A page of the execution log, newest first. */
  async listExecutions(query: ExecutionFilterOptions & PageOptions = {}): Promise<ExecutionPage> {
    return listExecutions((await this.#lifecycle.connect()).store, query);
  }

  /** One attempt with its log lines, by its id `<job>:<fence>`; null if there is none. */
  async showExecution(id: string): Promise<ExecutionView | null> {
    return showExecution((await this.#lifecycle.connect()).store, id);
  }

  /** How many jobs match, up to ten thousand; or how many of them an action applies to. */
  async countMatching(filter: JobFilterOptions, action?: BulkAction): Promise<Count> {
    const { store } = await this.#lifecycle.connect();
    return action === undefined
      ? store.countJobs(parseJobFilter(filter, 'countMatching() filter'), MAX_COUNTED)
      : countFor(store, action, filter, MAX_COUNTED);
  }

  /** Runs finished jobs again, as if they were new: FAILED ones, unless the filter has another status. */
  async retryJobs(filter: JobFilterOptions, options?: BulkOptions): Promise<BulkAnswer> {
    return changeMany(await this.#lifecycle.connect(), 'retry', filter, options);
  }

  /** The same for FAILED jobs only. */
  async retryDead(filter: DeadFilter = {}, options?: BulkOptions): Promise<BulkAnswer> {
    return this.retryJobs({ ...filter, status: 'FAILED' }, options);
  }

  /** Cancels waiting jobs, and asks the workers of running ones. */
  async cancelJobs(filter: JobFilterOptions, options?: BulkOptions): Promise<BulkAnswer> {
    return changeMany(await this.#lifecycle.connect(), 'cancel', filter, options);
  }

  /** Keeps SCHEDULED jobs from running until they are released. */
  async holdJobs(filter: JobFilterOptions, options?: BulkOptions): Promise<BulkAnswer> {
    return changeMany(await this.#lifecycle.connect(), 'hold', filter, options);
  }

  /** Lets held jobs run when they are due. */
  async releaseJobs(filter: JobFilterOptions, options?: BulkOptions): Promise<BulkAnswer> {
    return changeMany(await this.#lifecycle.connect(), 'release', filter, options);
  }

  /** How many jobs `prune(olderThan)` would remove, each up to ten thousand. */
  async countPrunable(olderThan?: Duration): Promise<Record<keyof PruneCounts, Count>> {
    return (await this.#lifecycle.connect()).pruner.count(olderThan, MAX_COUNTED);
  }

  /** How many jobs a backfill from one instant to another, both included, would create, and in which pieces. */
  async previewBackfill(id: string, from: Instant, to: Instant): Promise<BackfillPreview> {
    return (await this.#lifecycle.connect()).manualRuns.previewBackfill(id, from, to);
  }

  /** Checks the installation for problems, each with advice. Changes nothing. */
  async doctor(): Promise<Finding[]> {
    const { store, clock } = await this.#lifecycle.connect();
    return runChecks({ store, clock, wallClock: systemClock });
  }

  /** The definitions in the code of this process, with their rules and next times. */
  async listDefinitions(): Promise<DefinitionView[]> {
    return listDefinitions(await this.#definitionDeps());
  }

  /** Compares the definitions in code with the stored ones. */
  async diffSchedules(): Promise<ScheduleDifference[]> {
    return diffSchedules(await this.#definitionDeps());
  }

  /** The settings this process would work with. Needs no connection. */
  configuration(): ConfigurationView {
    const { options, registry, workerId, definitions } = this.#lifecycle.deps;
    // Definitions add their task types when they are frozen.
    definitions.all();
    return toConfigurationView(options, registry, workerId);
  }

  /** Creates the jobs that schedules have due, and executes nothing. */
  async collect(): Promise<Collected> {
    const created = await this.#lifecycle.trackPass(enqueueDue(this.#lifecycle));
    const jobs = created.map(({ _id: id, schedule, scheduledFor }) => ({ id, schedule, scheduledFor }));
    return { created: jobs.length, jobs };
  }

  /** Records who did what, for 90 days. The CLI and the HTTP API do so for every change; the other methods here do not. */
  async audit(entry: AuditEntry): Promise<AuditView> {
    const { store, clock } = await this.#lifecycle.connect();
    return addAudit(store, clock, entry);
  }

  /** A page of audit entries, newest first. */
  async listAudit(query: AuditFilterOptions & PageOptions = {}): Promise<AuditPage> {
    return listAudit((await this.#lifecycle.connect()).store, query);
  }

  async #definitionDeps(): Promise<DefinitionDeps> {
    const components = await this.#lifecycle.connect();
    return { ...components, environment: components.options.environment };
  }
}
