import type { StoredError } from '../domain/errors.js';
import type { RetryPolicy } from '../domain/job/backoff.js';
import type { ExecutionDocument, ExecutionOutcome } from '../domain/job/execution.js';
import type { CancelRequest, Hold, JobDocument, JobStatus, Progress } from '../domain/job/job.js';
import { type JobState, jobState } from '../domain/job/state.js';

/** A job in a list: without its payload and result, which may be large, and without the stack of its error. */
export interface JobSummary {
  id: string;
  taskType: string;
  queue: string;
  /** 0–1000, lower is more urgent. */
  priority: number;
  /** The state in the words of other job systems, derived from the other fields. */
  state: JobState;
  /** The stored status. */
  status: JobStatus;
  /** The job is due at this time, by the database's clock. */
  nextRunAt: Date;
  createdAt: Date;
  /** Increases with every change of owner. */
  fence: number;
  /** Failed attempts. */
  attempts: number;
  /** How often its worker was gone when the lock expired, while the job was RUNNING. */
  crashes: number;
  /** How often its worker was gone when the lock expired, while the job was QUEUED. */
  lostWhileQueued: number;
  /** As set at dispatch; null: the handler's options apply. */
  retries: Partial<RetryPolicy> | null;
  /** Milliseconds; null: the handler's option applies. */
  timeout: number | null;
  /** Limit for all attempts together, from the first start, in milliseconds. */
  maxRunningTime: number | null;
  /** The schedule that created the job. */
  schedule: string | null;
  /** The occurrence of the schedule that it was created for. */
  scheduledFor: Date | null;
  userId: string | null;
  tags: readonly string[];
  /** A job that has not started by then never starts. */
  expiresAt: Date | null;
  /** Set if the finished job has its own retention: it is kept until then. */
  keepUntil: Date | null;
  /** Set while a person holds the job. */
  held: Hold | null;
  /** Why a filter skipped the job. */
  skipReason: string | null;
  /** Set if the job was cancelled, or if its worker was asked to cancel it. */
  cancelRequested: CancelRequest | null;
  /** The worker that has the job now. */
  lockedBy: string | null;
  lockedUntil: Date | null;
  /** The worker that wrote the last outcome. */
  settledBy: string | null;
  /** When a worker last claimed it. */
  queuedAt: Date | null;
  firstStartedAt: Date | null;
  startedAt: Date | null;
  finishedAt: Date | null;
  progress: Progress | null;
  /** True if the result is only the first part of the handler's result, as JSON text. */
  resultCut: boolean;
  /** The error of the last failed attempt. */
  error: StoredError | null;
  /** The span that dispatched the job, as a W3C `traceparent`. */
  trace: string | null;
  /** What is wrong with the stored document, if another program wrote a malformed one; else null. Such fields have their defaults here. */
  invalid: string | null;
}

/** A job. */
export interface JobView extends JobSummary {
  payload: unknown;
  /** What the handler returned. */
  result: unknown;
}

/** One attempt in a list: without its log lines and the stack of its error. */
export interface ExecutionSummary {
  /** `<job>:<fence>`. */
  id: string;
  jobId: string;
  taskType: string;
  queue: string;
  /** 1 is the first. */
  attempt: number;
  fence: number;
  workerId: string;
  startedAt: Date;
  finishedAt: Date;
  /** Milliseconds. */
  duration: number;
  outcome: ExecutionOutcome;
  error: StoredError | null;
  /** Present if the worker died before it recorded the attempt: the row was completed from the job, without log lines. */
  reconstructed?: boolean;
}

/** One attempt of a job. */
export interface ExecutionView extends ExecutionSummary {
  /** What the handler logged with `job.log()`. */
  log: readonly string[];
}

/** A job with its attempts, oldest first. */
export interface JobDetails {
  job: JobView;
  executions: ExecutionView[];
}

/** Works also on a document that was read without its payload and result. */
export function toJobSummary(job: JobDocument, now: Date): JobSummary {
  return {
    id: job._id,
    taskType: job.taskType,
    queue: job.queue,
    priority: job.priority,
    state: jobState(job, now),
    status: job.status,
    nextRunAt: job.nextRunAt,
    createdAt: job.createdAt,
    fence: job.fence,
    attempts: job.attempts,
    crashes: job.crashes,
    lostWhileQueued: job.lostWhileQueued,
    retries: job.retries,
    timeout: job.timeout,
    maxRunningTime: job.maxRunningTime,
    schedule: job.schedule,
    scheduledFor: job.scheduledFor,
    userId: job.userId,
    tags: job.tags ?? [],
    expiresAt: job.expiresAt ?? null,
    keepUntil: job.keepUntil ?? null,
    held: job.held,
    skipReason: job.skipReason,
    cancelRequested: job.cancelRequested,
    lockedBy: job.lockedBy,
    lockedUntil: job.lockedUntil,
    settledBy: job.settledBy,
    queuedAt: job.queuedAt,
    firstStartedAt: job.firstStartedAt ?? null,
    startedAt: job.startedAt,
    finishedAt: job.finishedAt,
    progress: job.progress,
    resultCut: job.resultCut,
    error: withoutStack(job.error),
    trace: job.trace ?? null,
    invalid: job.invalid?.reason ?? null,
  };
}

export function toJobView(job: JobDocument, now: Date): JobView {
  return { ...toJobSummary(job, now), error: job.error, payload: job.payload, result: job.result };
}

/** Works also on a row that was read without its log. */
export function toExecutionSummary(row: ExecutionDocument): ExecutionSummary {
  const { jobId, taskType, queue, attempt, fence, workerId, startedAt, finishedAt, duration, outcome } = row;
  return {
    ...{ id: row._id, jobId, taskType, queue, attempt, fence, workerId },
    ...{ startedAt, finishedAt, duration, outcome, error: withoutStack(row.error) },
    ...(row.reconstructed && { reconstructed: true }),
  };
}

export function toExecutionView(row: ExecutionDocument): ExecutionView {
  return { ...toExecutionSummary(row), error: row.error, log: row.log };
}

function withoutStack(error: StoredError | null): StoredError | null {
  return error === null ? null : { ...error, stack: null };
}
