import type { RetryPolicy } from './backoff.js';
import type { StoredError } from './errors.js';

export const JOB_STATUSES = [
  'PENDING',
  'SCHEDULED',
  'QUEUED',
  'RUNNING',
  'COMPLETED',
  'FAILED',
  'CANCELLED',
] as const;

export type JobStatus = (typeof JOB_STATUSES)[number];

/** Statuses a job is locked in. */
export const LOCKED_STATUSES = ['QUEUED', 'RUNNING'] as const satisfies readonly JobStatus[];

/** Statuses a job only leaves by an explicit retry. */
export const FINISHED_STATUSES = ['COMPLETED', 'FAILED', 'CANCELLED'] as const satisfies readonly JobStatus[];

export type FinishedStatus = (typeof FINISHED_STATUSES)[number];

export function isFinished(status: JobStatus): status is FinishedStatus {
  return (FINISHED_STATUSES as readonly JobStatus[]).includes(status);
}

export interface Progress {
  value: number;
  note: string | null;
  at: Date;
}

export interface Hold {
  reason: string | null;
  at: Date;
}

/** One run of a task type, as it is stored. */
export interface JobDocument {
  _id: string;
  taskType: string;
  queue: string;
  /** 0–1000, lower is more urgent. */
  priority: number;
  payload: unknown;
  status: JobStatus;
  /** Not before this instant, by the database's clock. */
  nextRunAt: Date;
  createdAt: Date;

  /** Rises with every change of owner; see `transitions.ts`. */
  fence: number;
  /** Failed verdicts. */
  attempts: number;
  /** Times the process died, or froze, while the job was RUNNING. */
  crashes: number;
  /** Times the lock expired while the job was QUEUED. */
  abandoned: number;

  /** What the dispatcher asked for; null leaves the choice to the handler's options. */
  retries: Partial<RetryPolicy> | null;
  timeout: number | null;
  /** Limit from the first start over all attempts, in milliseconds. */
  maxRunningTime: number | null;

  /** The schedule that made it, and the occurrence it stands for, not the time it was made. */
  schedule: string | null;
  scheduledFor: Date | null;
  userId: string | null;

  held: Hold | null;
  /** Why a filter kept it from running. */
  skipReason: string | null;
  cancelRequested: CancelRequest | null;

  lockedBy: string | null;
  lockedUntil: Date | null;
  lockToken: string | null;
  /** The token under which the last attempt was settled: proof, when a reply was lost, that the write took effect. */
  settledToken: string | null;
  /** The worker that wrote the last outcome, or swept the job at its end: who is killed then may leave no row in the log. */
  settledBy: string | null;

  queuedAt: Date | null;
  /** Absent until an attempt that really started is written: `$min` sets it then, and never later. */
  firstStartedAt?: Date;
  startedAt: Date | null;
  finishedAt: Date | null;

  progress: Progress | null;
  result: unknown;
  /** True when `result` is only the first part of the handler's result, as JSON text. */
  resultCut: boolean;
  error: StoredError | null;

  /** The span that dispatched it, as a W3C `traceparent`; absent when nobody traces, and in jobs of schedules. */
  trace?: string;

  /** Names this very insert, so that a lost reply of our own is not taken for a duplicate. */
  nonce: string;
}

/** What a new job is asked to be; the rest is the same for all of them. */
export type NewJob = Pick<
  JobDocument,
  | '_id'
  | 'taskType'
  | 'queue'
  | 'priority'
  | 'payload'
  | 'nextRunAt'
  | 'createdAt'
  | 'retries'
  | 'timeout'
  | 'maxRunningTime'
  | 'nonce'
> &
  Partial<Pick<JobDocument, 'schedule' | 'scheduledFor' | 'userId' | 'held'>>;

/** A job that nobody has claimed; PENDING when it is held. */
export function newJob(asked: NewJob): JobDocument {
  return {
    schedule: null,
    scheduledFor: null,
    userId: null,
    held: null,
    ...asked,
    status: asked.held == null ? 'SCHEDULED' : 'PENDING',
    fence: 0,
    attempts: 0,
    crashes: 0,
    abandoned: 0,
    skipReason: null,
    cancelRequested: null,
    lockedBy: null,
    lockedUntil: null,
    lockToken: null,
    settledToken: null,
    settledBy: null,
    queuedAt: null,
    startedAt: null,
    finishedAt: null,
    progress: null,
    result: null,
    resultCut: false,
    error: null,
  };
}

export interface CancelRequest {
  reason: string | null;
  at: Date;
}

/** A job that has shown it may kill its process: never buffered, one at a time per process. */
export function isSuspect(job: Pick<JobDocument, 'crashes' | 'abandoned'>): boolean {
  return job.crashes > 0 || job.abandoned > 0;
}
