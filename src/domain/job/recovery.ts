import { ChronosError, storedError } from '../errors.js';
import { backoffDelay, type RetryPolicy } from './backoff.js';
import { type ExecutionDocument, executionRow } from './execution.js';
import type { JobDocument } from './job.js';
import { exceedsMaxRunningTime, maxRunningTimeError } from './outcome.js';

/** What the sweep does with a job whose lock expired. An error of null keeps the one that the job has. */
export type Recovery =
  | { transition: 'recover'; nextRunAt: Date; error: Error | null }
  | { transition: 'recoverFailed'; error: Error }
  | { transition: 'recoverCancelled' };

export interface RecoveryInput {
  job: JobDocument;
  maxCrashes: number;
  /** The settings of the job's task type; the job's own override them. */
  retries: RetryPolicy;
  now: Date;
  random: () => number;
}

/**
 * Decides about a job whose lock expired. A QUEUED job had not started as far as anyone knows, so it runs again
 * immediately. A RUNNING job counts a crash and runs again after a backoff, unless it crashed too often or ran too long.
 */
export function decideRecovery({ job, maxCrashes, retries, now, random }: RecoveryInput): Recovery {
  if (job.cancelRequested !== null) return { transition: 'recoverCancelled' };
  if (job.status === 'QUEUED') return { transition: 'recover', nextRunAt: job.nextRunAt, error: null };

  const crashes = job.crashes + 1;
  if (crashes >= maxCrashes) {
    return { transition: 'recoverFailed', error: crashedTooOftenError(job, crashes) };
  }
  if (exceedsMaxRunningTime(job, now)) {
    return { transition: 'recoverFailed', error: maxRunningTimeError(job.maxRunningTime ?? 0) };
  }
  const delay = backoffDelay({ ...retries, ...job.retries }, crashes, random);
  return { transition: 'recover', nextRunAt: new Date(now.getTime() + delay), error: crashedError(job) };
}

/** The execution row of an attempt that ended with its process; `job` as it was before its recovery. */
export function crashedExecution(job: JobDocument, now: Date, retention: number): ExecutionDocument {
  const startedAt = job.startedAt ?? now;
  return executionRow(
    job,
    {
      lockToken: job.lockToken ?? '',
      workerId: job.lockedBy ?? '',
      startedAt,
      finishedAt: now,
      duration: now.getTime() - startedAt.getTime(),
      outcome: 'crashed',
      error: storedError(crashedError(job)),
      log: [],
    },
    retention,
  );
}

function crashedError({ lockedBy }: JobDocument): ChronosError {
  return new ChronosError(
    'JOB_CRASHED',
    `worker ${lockedBy ?? 'unknown'} died, froze or lost its connection while it ran the job`,
  );
}

function crashedTooOftenError({ lockedBy }: JobDocument, crashes: number): ChronosError {
  return new ChronosError(
    'JOB_CRASHED',
    `the worker died, froze or lost its connection ${crashes} times while it ran the job; the last one was ${lockedBy ?? 'unknown'}`,
  );
}
