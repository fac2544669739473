import {
  type ExecutionFilterOptions,
  type JobFilterOptions,
  type Page,
  type PageOptions,
  parseExecutionQuery,
  parseJobQuery,
} from '../config/query-options.js';
import type { Clock } from '../domain/clock.js';
import { assertJobId } from '../domain/identifiers.js';
import {
  toExecutionSummary,
  type ExecutionSummary,
  toExecutionView,
  type ExecutionView,
  type JobDetails,
  type JobSummary,
  toJobSummary,
  toJobView,
} from '../jobs/job-views.js';
import { isPositionIn, positionOf } from '../store/jobs/list.js';
import { readPage } from '../store/pagination.js';
import { SILENT_AFTER_MS, type WorkerDocument } from '../store/schema/system-schemas.js';
import type { Store } from '../store/store.js';

interface ListDeps {
  store: Pick<Store, 'findExecutions' | 'findJob' | 'listJobs'>;
  clock: Clock;
}

export async function listJobs(
  { store, clock }: ListDeps,
  query: JobFilterOptions & PageOptions,
  where = 'listJobs() query',
): Promise<Page<JobSummary>> {
  const now = clock.now();
  const page = parseJobQuery(query, where);
  const { items, next } = await readPage(
    page,
    (one) => store.listJobs(one, now),
    (job) => positionOf(page.filter, job),
    (position) => isPositionIn(page.filter, position),
  );
  return { items: items.map((job) => toJobSummary(job, now)), next };
}

export async function showJob({ store, clock }: ListDeps, jobId: string): Promise<JobDetails | null> {
  assertJobId(jobId);
  const job = await store.findJob(jobId);
  if (job === null) return null;
  const executions = await store.findExecutions(jobId);
  return { job: toJobView(job, clock.now()), executions: executions.map(toExecutionView) };
}

export async function listExecutions(
  store: Pick<Store, 'listExecutions'>,
  query: ExecutionFilterOptions & PageOptions,
): Promise<Page<ExecutionSummary>> {
  const { items, next } = await readPage(
    parseExecutionQuery(query),
    (one) => store.listExecutions(one),
    ({ finishedAt, _id }) => ({ at: finishedAt, id: _id }),
  );
  return { items: items.map(toExecutionSummary), next };
}

export async function showExecution(
  store: Pick<Store, 'findExecution'>,
  id: string,
): Promise<ExecutionView | null> {
  assertJobId(id);
  const row = await store.findExecution(id);
  return row === null ? null : toExecutionView(row);
}

/** Workers that stopped stay in the collection for a day. */
export const MAX_WORKERS = 1000;

/** A worker process as of its last heartbeat. */
export type WorkerView = Omit<WorkerDocument, '_id' | 'expiresAt' | 'drainRequested' | 'logCompletedFor'> & {
  id: string;
  /** It is Running, and its last heartbeat is at most a minute old by the database's clock. */
  isLive: boolean;
  /** Milliseconds since its last heartbeat. */
  silentFor: number;
};

/** Live workers first, then by id. */
export async function listWorkers(store: Pick<Store, 'findWorkers'>, clock: Clock): Promise<WorkerView[]> {
  const workers = await store.findWorkers(MAX_WORKERS);
  const now = clock.now();
  return workers
    .map((worker) => toWorkerView(worker, now))
    .sort((a, b) => Number(b.isLive) - Number(a.isLive) || (a.id < b.id ? -1 : 1));
}

export function toWorkerView(worker: WorkerDocument, now: Date): WorkerView {
  const { _id, expiresAt: _e, drainRequested: _d, logCompletedFor: _l, ...fields } = worker;
  const silentFor = Math.max(0, now.getTime() - fields.heartbeatAt.getTime());
  return {
    id: _id,
    ...fields,
    silentFor,
    isLive: fields.state === 'Running' && silentFor <= SILENT_AFTER_MS,
  };
}
