import {
  type ExecutionFilterOptions,
  type JobFilterOptions,
  type PageOptions,
  parseExecutionQuery,
  parseJobQuery,
} from '../config/query-options.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
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
import type { PagePosition, PageQuery } from '../store/pagination.js';
import { SILENT_AFTER_MS, type WorkerDocument } from '../store/schema/system-schemas.js';
import type { Store } from '../store/store.js';

export interface JobPage {
  jobs: JobSummary[];
  /** Pass this as `after` to get the next page; null on the last page. */
  next: string | null;
}

export interface ExecutionPage {
  executions: ExecutionSummary[];
  next: string | null;
}

export async function listJobs(
  store: Pick<Store, 'listJobs'>,
  query: JobFilterOptions & PageOptions,
  where = 'listJobs() query',
): Promise<JobPage> {
  const page = parseJobQuery(query, where);
  const { items, next } = await readPage(
    page,
    (one) => store.listJobs(one),
    (job) => positionOf(page.filter, job),
    (position) => isPositionIn(page.filter, position),
  );
  return { jobs: items.map(toJobSummary), next };
}

export async function showJob(
  store: Pick<Store, 'findJob' | 'findExecutions'>,
  jobId: string,
): Promise<JobDetails | null> {
  assertJobId(jobId);
  const job = await store.findJob(jobId);
  if (job === null) return null;
  const executions = await store.findExecutions(jobId);
  return { job: toJobView(job), executions: executions.map(toExecutionView) };
}

export async function listExecutions(
  store: Pick<Store, 'listExecutions'>,
  query: ExecutionFilterOptions & PageOptions,
): Promise<ExecutionPage> {
  const { items, next } = await readPage(
    parseExecutionQuery(query),
    (one) => store.listExecutions(one),
    ({ expiresAt, _id }) => ({ at: expiresAt, id: _id }),
  );
  return { executions: items.map(toExecutionSummary), next };
}

export async function showExecution(
  store: Pick<Store, 'findExecution'>,
  id: string,
): Promise<ExecutionView | null> {
  assertJobId(id);
  const row = await store.findExecution(id);
  return row === null ? null : toExecutionView(row);
}

/**
 * Reads one document more than the page has, which shows whether there is a next page. `isPosition` is false for a cursor
 * from a list in another order.
 */
export async function readPage<F, D>(
  { filter, limit, after: cursor }: { filter: F; limit: number; after: string | undefined },
  find: (query: PageQuery<F>) => Promise<D[]>,
  toPosition: (document: D) => PagePosition,
  isPosition = ({ at }: PagePosition): boolean => at !== null,
): Promise<{ items: D[]; next: string | null }> {
  const after = cursor === undefined ? undefined : parseCursor(cursor);
  if (cursor !== undefined && (after === undefined || !isPosition(after))) {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      '`after` must be the `next` of an earlier page with the same filter; leave it out to start at the first page',
    );
  }
  const found = await find({ filter, after, limit: limit + 1 });
  const items = found.slice(0, limit);
  const last = items.at(-1);
  const next = found.length > limit && last !== undefined ? toCursor(toPosition(last)) : null;
  return { items, next };
}

function toCursor({ at, id }: PagePosition): string {
  return Buffer.from(JSON.stringify([at === null ? null : at.getTime(), id])).toString('base64url');
}

function parseCursor(cursor: string): PagePosition | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (!Array.isArray(value) || value.length !== 2) return undefined;
    const [at, id] = value as unknown[];
    if (typeof id !== 'string' || id === '') return undefined;
    if (at === null) return { at, id };
    const date = new Date(typeof at === 'number' ? at : NaN);
    return Number.isNaN(date.getTime()) ? undefined : { at: date, id };
  } catch {
    return undefined;
  }
}

/** Workers that stopped stay in the collection for a day. */
export const MAX_WORKERS = 1000;

/** A worker process as of its last heartbeat. */
export type WorkerView = Omit<WorkerDocument, '_id' | 'expiresAt'> & {
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
  const { _id, expiresAt: _expiresAt, ...fields } = worker;
  const silentFor = Math.max(0, now.getTime() - fields.heartbeatAt.getTime());
  return {
    id: _id,
    ...fields,
    silentFor,
    isLive: fields.state === 'Running' && silentFor <= SILENT_AFTER_MS,
  };
}
