import type { ExecutionDocument } from '../domain/job/execution.js';
import type { JobDocument } from '../domain/job/job.js';

/** A job without the fields that only the locking protocol needs. */
export type JobView = Omit<
  JobDocument,
  '_id' | 'lockToken' | 'settledToken' | 'nonce' | 'firstStartedAt' | 'lostWhileQueued'
> & {
  id: string;
  /** Times the lock expired while the job was QUEUED. */
  abandoned: number;
  firstStartedAt: Date | null;
};

export function toJobView(job: JobDocument): JobView {
  const { _id, lockToken, settledToken, nonce, lostWhileQueued: abandoned, firstStartedAt, ...fields } = job;
  return { id: _id, ...fields, abandoned, firstStartedAt: firstStartedAt ?? null };
}

/** A job in a list: without its payload and result, which may be large, and without the stack of its error. */
export type JobSummary = Omit<JobView, 'payload' | 'result'>;

/** One attempt of a job. */
export type ExecutionView = Omit<ExecutionDocument, '_id' | 'lockToken' | 'expiresAt'> & { id: string };

/** One attempt in a list: without its log lines and the stack of its error. */
export type ExecutionSummary = Omit<ExecutionView, 'log'>;

/** A job with its attempts, oldest first. */
export interface JobDetails {
  job: JobView;
  executions: ExecutionView[];
}

export function toJobSummary(job: JobDocument): JobSummary {
  const { payload, result, error, ...fields } = toJobView(job);
  return { ...fields, error: error === null ? null : { ...error, stack: null } };
}

export function toExecutionView(row: ExecutionDocument): ExecutionView {
  const { _id, lockToken, expiresAt, ...fields } = row;
  return { id: _id, ...fields };
}

export function toExecutionSummary(row: ExecutionDocument): ExecutionSummary {
  const { log, error, ...fields } = toExecutionView(row);
  return { ...fields, error: error === null ? null : { ...error, stack: null } };
}
