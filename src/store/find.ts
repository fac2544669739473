import type { ExecutionDocument } from '../domain/execution.js';
import type { JobDocument } from '../domain/job.js';
import type { Collections } from './models.js';

export async function findJob(c: Collections, jobId: string): Promise<JobDocument | null> {
  return c.jobs.findOne({ _id: jobId });
}

/** The attempts of a job, oldest first. */
export async function findExecutions(c: Collections, jobId: string): Promise<ExecutionDocument[]> {
  return c.executions.find({ jobId }, { sort: { fence: 1 }, limit: 1000 }).toArray();
}
