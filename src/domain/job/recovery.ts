import { ChronosError, storedError } from '../errors.js';
import { backoffDelay, type RetryPolicy } from './backoff.js';
import { type ExecutionDocument, executionRow } from './execution.js';
import type { JobDocument } from './job.js';
import { exceedsMaxRunningTime, maxRunningTimeError } from './outcome.js';

/** What the sweep does with a job whose lock expired. If `error` is null, the job keeps the error it has. */
export type Recovery =
  | { transition: 'recover'; nextRunAt: Date; error: Error | null }
  | { transition: 'recoverFailed'; error: Error }
  | { transition: 'recoverCancelled' };

export interface RecoveryInput {
  job: JobDocument;
  maxCrashes: number;
  /** The retry policy of the task type; the job's own settings override it. */
  retries: RetryPolicy;
  now: Date;
  random: () => number;
}

/**
 * Decides how to recover a job whose lock expired. A QUEUED job has no stored start, so it runs again immediately. A
 * RUNNING job counts a crash and runs again after a backoff, unless it crashed too often or ran too long.
 */
export function decideRecovery({ job, maxCrashes, retries, now, random }: RecoveryInput): Recovery {
  if (job.cancelRequested !== null) return { transition: 'recoverCancelled' };
  if (job.status === 'QUEUED') return { transition: 'recover', nextRunAt: job.nextRunAt, error: null };

  const crashes = job.crashes + 1;
  if (crashes >= maxCrashes) {
    return {
      transition: 'recoverFailed',
      error: crashedError(job, `; it crashed ${crashes} times and is not retried`),
    };
  }
  if (exceedsMaxRunningTime(job, now))
    return { transition: 'recoverFailed', error: maxRunningTimeError(job) };
  const delay = backoffDelay({ ...retries, ...job.retries }, crashes, random);
  return { transition: 'recover', nextRunAt: new Date(now.getTime() + delay), error: crashedError(job) };
}

/** The execution row of an attempt whose lock expired; `job` as it was before its recovery. */
export function crashedExecution(job: JobDocument, now: Date): ExecutionDocument {
  const startedAt = job.startedAt ?? now;
  return executionRow(job, {
    lockToken: job.lockToken ?? '',
    workerId: job.lockedBy ?? '',
    startedAt,
    finishedAt: now,
    duration: now.getTime() - startedAt.getTime(),
    outcome: 'crashed',
    error: storedError(crashedError(job)),
    log: [],
  });
}

function crashedError({ lockedBy }: JobDocument, note = ''): ChronosError {
  const worker = lockedBy ?? 'unknown';
  const message = `worker ${worker} died, froze or lost its connection while it ran the job${note}`;
  return new ChronosError('JOB_CRASHED', message);
}
