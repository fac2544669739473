import type { StoredError } from '../errors.js';
import type { JobDocument } from './job.js';
import { type OutcomeKind, TRANSITION_OF } from './outcome.js';

/** The outcomes in the execution log. A job that expired was never attempted. */
export const EXECUTION_OUTCOMES = [
  ...(Object.keys(TRANSITION_OF) as OutcomeKind[]).filter((kind) => kind !== 'expired'),
  'crashed',
] as const;

/** How an attempt ended. */
export type ExecutionOutcome = (typeof EXECUTION_OUTCOMES)[number];

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
  outcome: ExecutionOutcome;
  error: StoredError | null;
  log: readonly string[];
}

/** The fields that do not come from the job. */
type AttemptRecord = Omit<ExecutionDocument, '_id' | 'jobId' | 'taskType' | 'queue' | 'attempt' | 'fence'>;

/** The id of the row of a job's attempt. */
export function executionId(jobId: string, fence: number): string {
  return `${jobId}:${fence}`;
}

/** The row of an attempt; `job` as it was while it ran. Written field by field for speed, like `newJob`. */
export function executionRow(job: JobDocument, record: AttemptRecord): ExecutionDocument {
  return {
    _id: executionId(job._id, job.fence),
    jobId: job._id,
    taskType: job.taskType,
    queue: job.queue,
    attempt: job.attempts + 1,
    fence: job.fence,
    lockToken: record.lockToken,
    workerId: record.workerId,
    startedAt: record.startedAt,
    finishedAt: record.finishedAt,
    duration: record.duration,
    outcome: record.outcome,
    error: record.error,
    log: record.log,
  };
}
