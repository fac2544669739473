import type { StoredError } from '../errors.js';
import type { JobDocument } from './job.js';
import { type OutcomeKind, TRANSITION_OF } from './outcome.js';

/** The outcomes in the execution log. */
export const EXECUTION_OUTCOMES = [...(Object.keys(TRANSITION_OF) as OutcomeKind[]), 'crashed'] as const;

/** One attempt of a job, as it is stored in the execution log. */
export interface ExecutionDocument {
  /** `<job>:<fence>`: at most one row per claim. */
  _id: string;
  jobId: string;
  taskType: string;
  queue: string;
  attempt: number;
  fence: number;
  lockToken: string;
  workerId: string;
  startedAt: Date;
  finishedAt: Date;
  /** Milliseconds. */
  duration: number;
  outcome: OutcomeKind | 'crashed';
  error: StoredError | null;
  log: readonly string[];
  expiresAt: Date;
}

function executionId(jobId: string, fence: number): string {
  return `${jobId}:${fence}`;
}

/** The fields that do not come from the job. */
export type AttemptRecord = Pick<
  ExecutionDocument,
  'lockToken' | 'workerId' | 'startedAt' | 'finishedAt' | 'duration' | 'outcome' | 'error' | 'log'
>;

/** The row of an attempt; `job` as it was while it ran. It expires after `retention` milliseconds. */
export function executionRow(job: JobDocument, ran: AttemptRecord, retention: number): ExecutionDocument {
  return {
    _id: executionId(job._id, job.fence),
    jobId: job._id,
    taskType: job.taskType,
    queue: job.queue,
    attempt: job.attempts + 1,
    fence: job.fence,
    lockToken: ran.lockToken,
    workerId: ran.workerId,
    startedAt: ran.startedAt,
    finishedAt: ran.finishedAt,
    duration: ran.duration,
    outcome: ran.outcome,
    error: ran.error,
    log: ran.log,
    expiresAt: new Date(ran.finishedAt.getTime() + retention),
  };
}
