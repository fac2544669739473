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

/** What identifies an attempt of a job. */
export type AttemptKey = Pick<ExecutionDocument, '_id' | 'jobId' | 'fence' | 'lockToken' | 'outcome'>;

/** The ids that the row of the last attempt of a finished job may have: its end may have changed the fence. */
export function lastRowIds({ _id, fence }: Pick<JobDocument, '_id' | 'fence'>): string[] {
  return [executionId(_id, fence), executionId(_id, fence - 1)];
}

/**
 * Whether the row of the last attempt of a finished job is among these, or the job never started. The row is written
 * just after the job: by the worker that settled it, or by the one that found its lock expired. A job that was cancelled
 * while it waited for its next attempt has the row of the attempt before.
 */
export function hasLastRow(
  job: Pick<JobDocument, 'startedAt' | 'cancelKind' | 'fence' | 'settledToken'>,
  rows: readonly AttemptKey[],
): boolean {
  if (job.startedAt === null || job.cancelKind === 'expired') return true;
  return rows.some(
    ({ fence, outcome, lockToken }) =>
      fence === job.fence ||
      (fence === job.fence - 1 && (outcome === 'crashed' || lockToken === job.settledToken)),
  );
}
