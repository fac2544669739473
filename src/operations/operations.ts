import {
  type AuditEntry,
  type AuditFilterOptions,
  type ExecutionFilterOptions,
  type JobFilterOptions,
  type Page,
  type PageOptions,
  parseJobFilter,
} from '../config/query-options.js';
import type { Duration } from '../domain/duration.js';
import type { Instant } from '../domain/instant.js';
import { copyOptions, name, parse } from '../domain/validation.js';
import type { ExecutionSummary, ExecutionView, JobDetails, JobSummary } from '../jobs/job-views.js';
import type { SchedulerLifecycle } from '../lifecycle/lifecycle.js';
import { enqueueDue } from '../lifecycle/pass.js';
import type { PruneCounts } from '../maintenance/pruner.js';
import { systemClock } from '../runtime/system-clock.js';
import type { BackfillPreview } from '../schedules/stored/manual-runs.js';
import type { Count } from '../store/jobs/counts.js';
import { MAX_COUNTED } from '../store/query-limits.js';
import type { WorkerChange } from '../store/system.js';
import { addAudit, type AuditView, listAudit } from './audit.js';
import {
  type BulkChange,
  type BulkOptions,
  changeMany,
  countAffected,
  type CountedAction,
  type EmptiedQueue,
  emptyQueue,
} from './bulk.js';
import {
  type ConfigurationView,
  type DefinitionView,
  diffSchedules,
  listDefinitions,
  type ScheduleDifference,
  toConfigurationView,
} from './definitions.js';
import { type Finding, runChecks } from './doctor/doctor.js';
import { explainJob, type Explanation } from './explain/explain.js';
import { listExecutions, listJobs, listWorkers, showExecution, showJob, type WorkerView } from './lists.js';
import { type QueueView, readStatus, type StatusView } from './status.js';

/** The jobs that `collect()` created. */
export interface Collected {
  created: number;
  jobs: { id: string; schedule: string | null; scheduledFor: Date | null }[];
}

/** Failed jobs that match every field. */
export type DeadFilter = Omit<JobFilterOptions, 'state'>;

/**
 * Inspects and controls a running system: the command line and the HTTP API use it, and so can your programs. Every read
 * has a limit, however large the database is.
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

  /** All queues, in one page. */
  async listQueues(): Promise<Page<QueueView>> {
    return { items: (await this.status()).queues, next: null };
  }

  /** Worker processes of the last day, live ones first, in one page of at most a thousand. */
  async listWorkers(): Promise<Page<WorkerView>> {
    const { store, clock } = await this.#lifecycle.connect();
    return { items: await listWorkers(store, clock), next: null };
  }

  /**
   * Asks a live worker, in any process, to drain like `scheduler.drain()`. It does so with its next heartbeat; then
   * `listWorkers()` shows `isDraining`, and `running: 0` when it is drained.
   */
  drainWorker(workerId: string): Promise<WorkerChange> {
    return this.#requestDrain(workerId, true);
  }

  /** Asks a live worker to claim jobs again. */
  undrainWorker(workerId: string): Promise<WorkerChange> {
    return this.#requestDrain(workerId, false);
  }

  async #requestDrain(workerId: string, isDraining: boolean): Promise<WorkerChange> {
    parse(name, workerId, 'the id of a worker', 'INVALID_ARGUMENT');
    const { store, clock, heartbeat } = await this.#lifecycle.connect();
    const change = await store.requestDrain(workerId, isDraining, clock.now());
    if (workerId === this.#lifecycle.deps.workerId) heartbeat.wake();
    return change;
  }

  /**
   * A page of jobs. Waiting, delayed and retrying ones: next due first. Prefetched and running ones: longest first.
   * Others: newest first. Without a state, with a schedule or with an id prefix: ordered by id, descending.
   */
  async listJobs(query: JobFilterOptions & PageOptions = {}): Promise<Page<JobSummary>> {
    return listJobs(await this.#lifecycle.connect(), query);
  }

  /** A page of failed jobs, newest first. */
  async listDead(query: DeadFilter & PageOptions = {}): Promise<Page<JobSummary>> {
    const filter = { ...copyOptions(query, 'listDead() query'), state: 'failed' as const };
    return listJobs(await this.#lifecycle.connect(), filter, 'listDead() query');
  }

  /** The job with its payload, result and attempts; null if there is none. */
  async showJob(jobId: string): Promise<JobDetails | null> {
    return showJob(await this.#lifecycle.connect(), jobId);
  }

  /** Why the job does not run, and when it will. Also for an occurrence without a job. Null if neither exists. */
  async explainJob(jobId: string): Promise<Explanation | null> {
    return explainJob(await this.#lifecycle.connect(), jobId);
  }

  /** A page of the execution log, newest first. */
  async listExecutions(query: ExecutionFilterOptions & PageOptions = {}): Promise<Page<ExecutionSummary>> {
    return listExecutions((await this.#lifecycle.connect()).store, query);
  }

  /** One attempt with its log lines, by its id `<job>:<fence>`; null if there is none. */
  async showExecution(id: string): Promise<ExecutionView | null> {
    return showExecution((await this.#lifecycle.connect()).store, id);
  }

  /**
   * How many jobs match the filter (and, with an action, would be changed by it), up to ten thousand.
   * `countMatching({ queue }, 'empty')` counts what `emptyQueue(queue)` would remove.
   */
  async countMatching(filter: JobFilterOptions, action?: CountedAction): Promise<Count> {
    const components = await this.#lifecycle.connect();
    if (action !== undefined) return countAffected(components, action, filter, MAX_COUNTED);
    const { store, clock } = components;
    return store.countJobs(parseJobFilter(filter, 'countMatching() filter'), MAX_COUNTED, clock.now());
  }

  /** Runs finished jobs again as if they were new: failed ones, unless the filter has another state. */
  async retryJobs(filter: JobFilterOptions, options?: BulkOptions): Promise<BulkChange> {
    return changeMany(await this.#lifecycle.connect(), 'retry', filter, options);
  }

  /** Like `retryJobs`, for failed jobs only. */
  async retryDead(filter: DeadFilter = {}, options?: BulkOptions): Promise<BulkChange> {
    return this.retryJobs({ ...copyOptions(filter, 'retryDead() filter'), state: 'failed' }, options);
  }

  /** Cancels waiting jobs, and asks the workers of running jobs to cancel them. */
  async cancelJobs(filter: JobFilterOptions, options?: BulkOptions): Promise<BulkChange> {
    return changeMany(await this.#lifecycle.connect(), 'cancel', filter, options);
  }

  /** Keeps jobs that are not claimed yet from running until `unholdJobs`. */
  async holdJobs(filter: JobFilterOptions, options?: BulkOptions): Promise<BulkChange> {
    return changeMany(await this.#lifecycle.connect(), 'hold', filter, options);
  }

  /** Lets held jobs run when they are due. */
  async unholdJobs(filter: JobFilterOptions, options?: BulkOptions): Promise<BulkChange> {
    return changeMany(await this.#lifecycle.connect(), 'unhold', filter, options);
  }

  /**
   * Deletes finished jobs and the rows of their attempts. Jobs of schedules that finished within the last hour do not
   * match: they prevent a second job for the same occurrence.
   */
  async deleteJobs(filter: JobFilterOptions, options?: BulkOptions): Promise<BulkChange> {
    return changeMany(await this.#lifecycle.connect(), 'delete', filter, options);
  }

  /**
   * Deletes the jobs of a queue that no worker has claimed: waiting, delayed, retrying, held and blocked ones. Those of
   * schedules are cancelled instead, so that their occurrences are not created again.
   */
  async emptyQueue(queue: string, options?: BulkOptions): Promise<EmptiedQueue> {
    return emptyQueue(await this.#lifecycle.connect(), queue, options);
  }

  /** How many jobs `prune(olderThan)` would remove, each up to ten thousand. */
  async countPrunable(olderThan?: Duration): Promise<Record<keyof PruneCounts, Count>> {
    return (await this.#lifecycle.connect()).pruner.count(olderThan, MAX_COUNTED);
  }

  /** How many jobs a backfill between two instants (both included) would create, and the calls of `backfill` it takes. */
  async previewBackfill(id: string, from: Instant, to: Instant): Promise<BackfillPreview> {
    return (await this.#lifecycle.connect()).manualRuns.previewBackfill(id, from, to);
  }

  /** Checks the installation for problems, each with advice. Changes nothing. */
  async doctor(): Promise<Finding[]> {
    const { store, clock } = await this.#lifecycle.connect();
    return runChecks({ store, clock, wallClock: systemClock });
  }

  /** The schedules defined in the code of this process, with their next occurrences. */
  async listDefinitions(): Promise<Page<DefinitionView>> {
    return { items: await listDefinitions(await this.#lifecycle.connect()), next: null };
  }

  /** Compares the definitions in code with the stored ones. */
  async diffSchedules(): Promise<ScheduleDifference[]> {
    return diffSchedules(await this.#lifecycle.connect());
  }

  /** The resolved options of this process. Needs no connection. */
  configuration(): ConfigurationView {
    const { options, registry, workerId, definitions } = this.#lifecycle.deps;
    definitions.all(); // freezes the definitions, which registers their task types
    return toConfigurationView(options, registry, workerId);
  }

  /** Creates the jobs of due schedules without running them. */
  async collect(): Promise<Collected> {
    const created = await enqueueDue(this.#lifecycle);
    const jobs = created.map(({ _id: id, schedule, scheduledFor }) => ({ id, schedule, scheduledFor }));
    return { created: jobs.length, jobs };
  }

  /** Adds an audit entry, kept for 90 days. The CLI and the HTTP API add one per change; other methods here add none. */
  async audit(entry: AuditEntry): Promise<AuditView> {
    const { store, clock } = await this.#lifecycle.connect();
    return addAudit(store, clock, entry);
  }

  /** A page of audit entries, newest first. */
  async listAudit(query: AuditFilterOptions & PageOptions = {}): Promise<Page<AuditView>> {
    return listAudit((await this.#lifecycle.connect()).store, query);
  }
}
