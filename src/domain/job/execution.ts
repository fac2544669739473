import type { StoredError } from '../errors.js';
import type { JobDocument } from './job.js';
import { type OutcomeKind, TRANSITION_OF } from './outcome.js';

/** The outcomes in the execution log. A job that expired was never attempted. */
export const EXECUTION_OUTCOMES = [
  ...(Object.keys(TRANSITION_OF) as OutcomeKind[]).filter((kind) => kind !== 'expired'),
  // The lock expired: the worker is gone, or it is alive and could not renew the lock in time.
  ...(['crashed', 'lost'] as const),
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
  /** Present if the row was written from the job, because its worker died before it wrote the row. */
  reconstructed?: boolean;
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
      (fence === job.fence - 1 &&
        (outcome === 'crashed' || outcome === 'lost' || lockToken === job.settledToken)),
  );
}

/** A finished job whose worker may have died before it wrote the row of the last attempt. */
export type SettledJob = Pick<
  JobDocument,
  | ('_id' | 'taskType' | 'queue' | 'status' | 'fence' | 'attempts' | 'error' | 'cancelKind')
  | ('startedAt' | 'finishedAt' | 'settledToken' | 'settledBy')
>;

/** Codes of errors with which a sweep ends a job; it writes the row of that attempt itself. */
const SWEEP_ERRORS: readonly (string | null)[] = ['JOB_CRASHED', 'JOB_RAN_TOO_LONG'];

/**
 * The row of the last attempt of a job that a worker settled, as far as the job tells: the lines that its handler logged
 * are lost. Undefined if the job does not tell how its last attempt ended.
 */
export function reconstructedExecution(job: SettledJob): ExecutionDocument | undefined {
  const { _id: jobId, taskType, queue, fence, error, startedAt, finishedAt, settledToken, settledBy } = job;
  if (startedAt === null || finishedAt === null || settledToken === null || settledBy === null)
    return undefined;
  if (job.status !== 'COMPLETED' && job.status !== 'FAILED') return undefined;
  const hasFailed = job.status === 'FAILED';
  if (hasFailed && SWEEP_ERRORS.includes(error?.code ?? null)) return undefined;
  return {
    ...{ _id: executionId(jobId, fence), jobId, taskType, queue, fence },
    attempt: hasFailed ? job.attempts : job.attempts + 1,
    ...{ lockToken: settledToken, workerId: settledBy, startedAt, finishedAt },
    duration: Math.max(0, finishedAt.getTime() - startedAt.getTime()),
    outcome: hasFailed ? 'failed' : 'completed',
    error: hasFailed ? error : null,
    log: [],
    reconstructed: true,
  };
}
