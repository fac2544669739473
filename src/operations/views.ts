import { viewOf, type JobView } from '../dispatch/job-view.js';
import type { ExecutionDocument } from '../domain/execution.js';
import type { JobDocument } from '../domain/job.js';

/** A job as lists show it: without its payload and result, which may be large, and the stack of its error. */
export type JobSummary = Omit<JobView, 'payload' | 'result'>;

/** One attempt. */
export type ExecutionView = Omit<ExecutionDocument, '_id' | 'lockToken' | 'expiresAt'> & { id: string };

/** The same as lists show it: without its log lines and the stack of its error. */
export type ExecutionSummary = Omit<ExecutionView, 'log'>;

/** A job with its attempts, oldest first. */
export interface JobDetails {
  job: JobView;
  executions: ExecutionView[];
}

export function summaryOf(job: JobDocument): JobSummary {
  const { payload: _payload, result: _result, error, ...fields } = viewOf(job);
  return { ...fields, error: error === null ? null : { ...error, stack: null } };
}

export function executionView(row: ExecutionDocument): ExecutionView {
  const { _id, lockToken: _lockToken, expiresAt: _expiresAt, ...fields } = row;
  return { id: _id, ...fields };
}

export function executionSummary(row: ExecutionDocument): ExecutionSummary {
  const { log: _log, error, ...fields } = executionView(row);
  return { ...fields, error: error === null ? null : { ...error, stack: null } };
}
