import type { ExecutionDocument } from '../domain/execution.js';
import { bounded } from './bounded.js';
import type { Collections } from './models.js';
import { pageByTime, type Place } from './pages.js';
import { EXPIRY_INDEX } from './schema-parts.js';

export interface ExecutionFilter {
  jobId?: string;
  taskType?: string;
  queue?: string;
  workerId?: string;
  outcome?: ExecutionDocument['outcome'];
}

/** A filter by anything else reads the log until it has found enough. */
const ADVICE = 'ask for the attempts of one job, or with a filter that more of them match';

export interface ExecutionQuery {
  filter: ExecutionFilter;
  after: Place | undefined;
  limit: number;
}

/**
 * The newest first. The log has no index by time, which every attempt would pay for, but one by when a row expires:
 * the same order, as long as all processes keep rows for the same time.
 */
export async function listExecutions(
  c: Collections,
  { filter, after, limit }: ExecutionQuery,
): Promise<ExecutionDocument[]> {
  const { jobId, ...exact } = filter;
  // Ids of other jobs may begin like this one and its colon.
  const ofJob = jobId === undefined ? {} : { jobId, _id: { $gt: `${jobId}:`, $lt: `${jobId};` } };
  return bounded(
    'this list of executions',
    () =>
      pageByTime(c.executions, 'expiresAt', {
        filter: { ...exact, ...ofJob },
        direction: -1,
        hint: jobId === undefined ? EXPIRY_INDEX : { _id: 1 },
        projection: { log: 0, 'error.stack': 0 },
        limit,
        after,
      }),
    ADVICE,
  );
}

export async function findExecution(c: Collections, id: string): Promise<ExecutionDocument | null> {
  return c.executions.findOne({ _id: id });
}
