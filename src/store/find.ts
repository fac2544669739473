import type { ExecutionDocument } from '../domain/execution.js';
import type { JobDocument } from '../domain/job.js';
import { bounded, MOST_TIME } from './bounded.js';
import type { Collections } from './models.js';

export async function findJob(c: Collections, jobId: string): Promise<JobDocument | null> {
  return c.jobs.findOne({ _id: jobId });
}

/** A job that is retried for ever has more attempts than anybody reads. */
const MOST_EXECUTIONS = 1000;

/**
 * The last attempts of a job, oldest first. Their ids begin with the job's: no index of its own has to be written for
 * this. It is no order, though, as `:10` comes before `:9`: the fence is.
 */
export async function findExecutions(c: Collections, jobId: string): Promise<ExecutionDocument[]> {
  // Ids of other jobs may begin like this one and its colon.
  const filter = { _id: { $gt: `${jobId}:`, $lt: `${jobId};` }, jobId };
  const options = { hint: { _id: 1 }, limit: MOST_EXECUTIONS, maxTimeMS: MOST_TIME };
  const newestFirst = await bounded('reading the attempts of a job', () =>
    c.executions.find(filter, { ...options, sort: { fence: -1 } }).toArray(),
  );
  return newestFirst.reverse();
}
