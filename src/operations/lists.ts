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
import type { PagePosition } from '../store/pagination.js';
import type { WorkerDocument } from '../store/schema/system-schemas.js';
import type { Store } from '../store/store.js';
import { SILENT_AFTER_MS } from '../store/system.js';

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
  const { filter, limit, after: cursor } = parseJobQuery(query, where);
  const after = fromCursor(cursor);
  if (after !== undefined && !isPositionIn(filter, after)) throw invalidCursor();
  const found = await store.listJobs({ filter, after, limit: limit + 1 });
  const { items, next } = toPage(found, limit, (job) => positionOf(filter, job), toJobSummary);
  return { jobs: items, next };
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
  const { filter, limit, after: cursor } = parseExecutionQuery(query);
  const after = fromCursor(cursor);
  if (after?.at === null) throw invalidCursor();
  const found = await store.listExecutions({ filter, after, limit: limit + 1 });
  const position = (row: { _id: string; expiresAt: Date }) => ({ at: row.expiresAt, id: row._id });
  const { items, next } = toPage(found, limit, position, toExecutionSummary);
  return { executions: items, next };
}

export async function showExecution(
  store: Pick<Store, 'findExecution'>,
  id: string,
): Promise<ExecutionView | null> {
  assertJobId(id);
  const row = await store.findExecution(id);
  return row === null ? null : toExecutionView(row);
}

/** Queries read one document more than the page has, which shows whether there is a next page. */
export function toPage<D, T>(
  found: readonly D[],
  limit: number,
  position: (document: D) => PagePosition,
  toView: (document: D) => T,
): { items: T[]; next: string | null } {
  const shown = found.slice(0, limit);
  const last = shown.at(-1);
  const next = found.length > limit && last !== undefined ? toCursor(position(last)) : null;
  return { items: shown.map(toView), next };
}

function toCursor({ at, id }: PagePosition): string {
  return Buffer.from(JSON.stringify([at === null ? null : at.getTime(), id])).toString('base64url');
}

export function fromCursor(cursor: string | undefined): PagePosition | undefined {
  if (cursor === undefined) return undefined;
  const position = parseCursor(cursor);
  if (position === undefined) throw invalidCursor();
  return position;
}

export function invalidCursor(): ChronosError {
  return new ChronosError(
    'INVALID_ARGUMENT',
    '`after` must be the `next` of an earlier page with the same filter; leave it out to start at the first page',
  );
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

/** Workers that are gone stay listed for a day, after the live ones. */
export const MAX_WORKERS = 1000;

/** A worker process as of its last heartbeat. */
export type WorkerView = Omit<WorkerDocument, '_id' | 'expiresAt'> & {
  id: string;
  /** It is running, and its last heartbeat is less than a minute old by the database's clock. */
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
