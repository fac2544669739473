import {
  readExecutionQuery,
  readJobQuery,
  type ExecutionFilterOptions,
  type JobFilterOptions,
  type PageOptions,
} from '../config/query-options.js';
import { viewOf } from '../dispatch/job-view.js';
import { checkJobId } from '../domain/names.js';
import { isPlaceIn, placeOf } from '../store/list-jobs.js';
import type { Store } from '../store/store.js';
import { badCursor, fromCursor, paged } from './cursor.js';
import {
  executionSummary,
  executionView,
  summaryOf,
  type ExecutionSummary,
  type ExecutionView,
  type JobDetails,
  type JobSummary,
} from './views.js';

export interface JobPage {
  jobs: JobSummary[];
  /** `after` of the next page; null when this is the last. */
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
  const { filter, limit, after: cursor } = readJobQuery(query, where);
  const after = fromCursor(cursor);
  if (after !== undefined && !isPlaceIn(filter, after)) throw badCursor();
  const found = await store.listJobs({ filter, after, limit: limit + 1 });
  const { items, next } = paged(found, limit, (job) => placeOf(filter, job), summaryOf);
  return { jobs: items, next };
}

export async function showJob(
  store: Pick<Store, 'findJob' | 'findExecutions'>,
  jobId: string,
): Promise<JobDetails | null> {
  checkJobId(jobId);
  const job = await store.findJob(jobId);
  if (job === null) return null;
  const executions = await store.findExecutions(jobId);
  return { job: viewOf(job), executions: executions.map(executionView) };
}

export async function listExecutions(
  store: Pick<Store, 'listExecutions'>,
  query: ExecutionFilterOptions & PageOptions,
): Promise<ExecutionPage> {
  const { filter, limit, after: cursor } = readExecutionQuery(query);
  const after = fromCursor(cursor);
  if (after?.at === null) throw badCursor();
  const found = await store.listExecutions({ filter, after, limit: limit + 1 });
  const placeOfRow = (row: { _id: string; expiresAt: Date }) => ({ at: row.expiresAt, id: row._id });
  const { items, next } = paged(found, limit, placeOfRow, executionSummary);
  return { executions: items, next };
}

export async function showExecution(
  store: Pick<Store, 'findExecution'>,
  id: string,
): Promise<ExecutionView | null> {
  checkJobId(id);
  const row = await store.findExecution(id);
  return row === null ? null : executionView(row);
}
