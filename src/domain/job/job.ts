import type { StoredError } from '../errors.js';
import type { RetryPolicy } from './backoff.js';

/** In these statuses no worker owns the job, and it has not finished. */
export const UNCLAIMED_STATUSES = ['PENDING', 'SCHEDULED'] as const;

/** In these statuses a worker owns the job. */
export const LOCKED_STATUSES = ['QUEUED', 'RUNNING'] as const;

/** A job leaves these statuses only by an explicit retry. */
export const FINISHED_STATUSES = ['COMPLETED', 'FAILED', 'CANCELLED'] as const;
export type FinishedStatus = (typeof FINISHED_STATUSES)[number];

/** Every status of a job. */
export const JOB_STATUSES = [...UNCLAIMED_STATUSES, ...LOCKED_STATUSES, ...FINISHED_STATUSES] as const;

/** The stored status of a job. */
export type JobStatus = (typeof JOB_STATUSES)[number];

/** Why a job is not deleted. */
export const DELETE_RULE =
  'only finished jobs can be deleted, and jobs of schedules not before an hour after they finished';

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

export type CancelRequest = Hold;

/** Why a job is CANCELLED: on request, because a filter skipped it, or because it expired. */
export const CANCEL_KINDS = ['cancelled', 'skipped', 'expired'] as const;
export type CancelKind = (typeof CANCEL_KINDS)[number];

/** What is wrong with a malformed document, which another program, or a person, wrote. */
export interface InvalidJob {
  /** For people. */
  readonly reason: string;
  /** The fields whose values were replaced by defaults. */
  readonly fields: readonly string[];
  /** The document as it was read. */
  readonly stored: object;
}

/** How long a finished job is kept, in milliseconds, by the way it ended. */
export interface Retention {
  completed: number;
  failed: number;
  cancelled: number;
}

/** One run of a task type. store/jobs/stored-job.ts has its stored form, without the fields that are null or 0. */
export interface JobDocument {
  _id: string;
  taskType: string;
  queue: string;
  /** 0–1000, lower is more urgent. */
  priority: number;
  payload: unknown;
  status: JobStatus;
  /** The job is due at this time, by the database's clock. */
  nextRunAt: Date;
  createdAt: Date;

  /** Increases with every change of owner; see `transitions.ts`. */
  fence: number;
  /** Failed attempts. */
  attempts: number;
  /** How often its worker was gone when the lock expired, while the job was RUNNING. */
  crashes: number;
  /** How often its worker was gone when the lock expired, while the job was QUEUED. */
  lostWhileQueued: number;

  /** Set at dispatch; null: the handler's options apply. */
  retries: Partial<RetryPolicy> | null;
  timeout: number | null;
  /** Limit for all attempts together, from the first start, in milliseconds. */
  maxRunningTime: number | null;

  /** The schedule that created the job, and the occurrence it was created for. */
  schedule: string | null;
  scheduledFor: Date | null;
  userId: string | null;
  tags?: readonly string[];

  /** A job that has not started by then never starts. */
  expiresAt?: Date;
  /** Set if the job or its task type has its own retention. */
  retention?: Partial<Retention>;
  /** Set when a job with its own retention ends: it is kept until then. */
  keepUntil?: Date;

  /** The single-instance schedule whose current run must end first; set only while the job waits for that. */
  waitingFor?: string;
  held: Hold | null;
  /** Why a filter skipped the job. */
  skipReason: string | null;
  cancelRequested: CancelRequest | null;
  /** Null unless the job is CANCELLED. */
  cancelKind: CancelKind | null;

  lockedBy: string | null;
  lockedUntil: Date | null;
  lockToken: string | null;
  /** The token of the last settled attempt. After a lost reply it shows that the write took effect. */
  settledToken: string | null;
  /** The tokens of the last settled attempts that another attempt follows; absent if there were none. */
  settledTokens?: readonly string[];
  /** The worker that wrote the last outcome or swept the job; it may have died before it wrote the log row. */
  settledBy: string | null;

  queuedAt: Date | null;
  /** Absent until a start is stored; `$min` keeps the first one. */
  firstStartedAt?: Date;
  startedAt: Date | null;
  finishedAt: Date | null;

  progress: Progress | null;
  result: unknown;
  /** True if `result` is only the first part of the handler's result, as JSON text. */
  resultCut: boolean;
  error: StoredError | null;

  /** The span that dispatched the job, as a W3C `traceparent`; absent without tracing and in jobs of schedules. */
  trace?: string;

  /** Identifies the insert: after a lost reply, our own job is not mistaken for a duplicate. */
  nonce: string;

  /** Set if the stored document is malformed; never stored. Such a job never runs. */
  invalid?: InvalidJob;
}

export type FinishedJob = JobDocument & { status: FinishedStatus };

type NewJob = Pick<
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
  | 'trace'
  | 'nonce'
> &
  Partial<Pick<JobDocument, 'schedule' | 'scheduledFor' | 'userId' | 'held'>>;

/**
 * A job that was never claimed. It is PENDING if it is held. Written as one literal: V8 stores an object that is
 * put together from several spreads as a hash table, and then an insert of many jobs takes three times as long.
 */
export function newJob(fields: NewJob): JobDocument {
  return {
    schedule: null,
    scheduledFor: null,
    userId: null,
    held: null,
    ...fields,
    status: fields.held == null ? 'SCHEDULED' : 'PENDING',
    fence: 0,
    attempts: 0,
    crashes: 0,
    lostWhileQueued: 0,
    skipReason: null,
    cancelRequested: null,
    cancelKind: null,
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

/** A job that may have killed its process. It is never prefetched, and a process runs one at a time. */
export function isCrashSuspect(job: Pick<JobDocument, 'crashes' | 'lostWhileQueued'>): boolean {
  return job.crashes > 0 || job.lostWhileQueued > 0;
}

/** True if the job expired before its first start. `expiresIn` of its task type applies if the job has no expiry of its own. */
export function isExpired(
  job: Pick<JobDocument, 'expiresAt' | 'firstStartedAt' | 'nextRunAt'>,
  now: Date,
  expiresIn?: number,
): boolean {
  if (job.firstStartedAt !== undefined) return false;
  if (job.expiresAt !== undefined) return job.expiresAt <= now;
  return expiresIn !== undefined && job.nextRunAt.getTime() + expiresIn <= now.getTime();
}

/** How long a job is kept that ended with this status; undefined if the Scheduler's retention applies. */
export function keptUntil(
  status: JobStatus,
  retention: Partial<Retention> | undefined,
  finishedAt: Date,
): Date | undefined {
  if (retention === undefined || !isFinished(status)) return undefined;
  const ms = retention[RETENTION_OF[status]];
  return ms === undefined ? undefined : new Date(finishedAt.getTime() + ms);
}

const RETENTION_OF: Record<FinishedStatus, keyof Retention> = {
  COMPLETED: 'completed',
  FAILED: 'failed',
  CANCELLED: 'cancelled',
};

/** False for a run that waits to start for the first time. A claim alone does not count: it may be released. */
export function hasStarted(job: Pick<JobDocument, 'status' | 'firstStartedAt'>): boolean {
  return job.status === 'RUNNING' || job.firstStartedAt !== undefined;
}

/** When a run started; when it was created if it has not started. */
export function runningSince(
  job: Pick<JobDocument, 'status' | 'firstStartedAt' | 'startedAt' | 'createdAt'>,
): Date {
  return hasStarted(job) ? (job.firstStartedAt ?? job.startedAt ?? job.createdAt) : job.createdAt;
}
