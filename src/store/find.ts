import type { ExecutionDocument } from '../domain/execution.js';
import type { JobDocument } from '../domain/job.js';
import type { Collections } from './models.js';

export async function findJob(c: Collections, jobId: string): Promise<JobDocument | null> {
  return c.jobs.findOne({ _id: jobId });
}

/** The attempts of a job, oldest first. Their ids begin with the job's: no index of its own has to be written for this. */
export async function findExecutions(c: Collections, jobId: string): Promise<ExecutionDocument[]> {
  // Ids of other jobs may begin like this one and its colon.
  const filter = { _id: { $gt: `${jobId}:`, $lt: `${jobId};` }, jobId };
  return c.executions.find(filter, { sort: { fence: 1 }, limit: 1000, hint: { _id: 1 } }).toArray();
}
