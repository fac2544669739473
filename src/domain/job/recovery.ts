import { ChronosError, storedError } from '../errors.js';
import type { LifecycleState } from '../events.js';
import { backoffDelay, type RetryPolicy } from './backoff.js';
import { type ExecutionDocument, executionRow } from './execution.js';
import type { JobDocument } from './job.js';
import { exceedsMaxRunningTime, maxRunningTimeError } from './outcome.js';

/** What the sweep does with a job whose lock expired. If `error` is null, the job keeps the error it has. */
export type Recovery =
  | { transition: 'recover'; nextRunAt: Date; error: Error | null }
  | { transition: 'recoverFailed'; error: Error }
  | { transition: 'recoverCancelled' };

/** What is known about the worker that held an expired lock. */
export interface LockOwner {
  state: LifecycleState;
  startedAt: Date;
  heartbeatAt: Date;
}

/**
 * Whether the owner of an expired lock is gone. A live owner lost its lock in an outage or a freeze, which is not the
 * job's fault: no crash is counted. `unknown`: its next heartbeat will tell, look again. `owner` is undefined if there is
 * no document of that worker. `maxWait`: how long after the expiry to wait for a heartbeat; `interval`: the usual time
 * between two.
 */
export function ownerFate(
  job: Pick<JobDocument, 'lockedUntil' | 'queuedAt'>,
  owner: LockOwner | undefined,
  { now, maxWait, interval }: { now: Date; maxWait: number; interval: number },
): 'gone' | 'alive' | 'unknown' {
  if (owner === undefined || owner.state === 'Stopped' || job.lockedUntil === null) return 'gone';
  // A process that was restarted with the same id did not run this job.
  if (job.queuedAt !== null && owner.startedAt > job.queuedAt) return 'gone';
  if (owner.heartbeatAt >= job.lockedUntil) return 'alive';
  const expiredFor = now.getTime() - job.lockedUntil.getTime();
  const silentFor = now.getTime() - owner.heartbeatAt.getTime();
  return expiredFor < maxWait && silentFor < 2.5 * interval ? 'unknown' : 'gone';
}

export interface RecoveryInput {
  job: JobDocument;
  /** The owner is gone: a RUNNING job counts a crash. */
  ownerIsGone: boolean;
  maxCrashes: number;
  /** The retry policy of the task type; the job's own settings override it. */
  retries: RetryPolicy;
  now: Date;
  random: () => number;
}

/**
 * Decides how to recover a job whose lock expired. A QUEUED job has no stored start, so it runs again immediately. A
 * RUNNING job counts a crash and runs again after a backoff, unless it crashed too often or ran too long. If its owner is
 * alive, it counts nothing and runs again immediately.
 */
export function decideRecovery(input: RecoveryInput): Recovery {
  const { job, ownerIsGone, maxCrashes, retries, now, random } = input;
  if (job.cancelRequested !== null) return { transition: 'recoverCancelled' };
  if (job.status === 'QUEUED') return { transition: 'recover', nextRunAt: job.nextRunAt, error: null };
  if (!ownerIsGone) {
    return exceedsMaxRunningTime(job, now)
      ? { transition: 'recoverFailed', error: maxRunningTimeError(job) }
      : { transition: 'recover', nextRunAt: job.nextRunAt, error: null };
  }

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
export function recoveryExecution(job: JobDocument, ownerIsGone: boolean, now: Date): ExecutionDocument {
  const startedAt = job.startedAt ?? now;
  return executionRow(job, {
    lockToken: job.lockToken ?? '',
    workerId: job.lockedBy ?? '',
    startedAt,
    finishedAt: now,
    duration: now.getTime() - startedAt.getTime(),
    outcome: ownerIsGone ? 'crashed' : 'lost',
    error: storedError(ownerIsGone ? crashedError(job) : lostError(job)),
    log: [],
  });
}

function lostError({ lockedBy }: JobDocument): ChronosError {
  const message = `worker ${lockedBy ?? 'unknown'} could not renew its lock in time and lost the job; the worker is alive, so no crash is counted`;
  return new ChronosError('LOCK_LOST', message);
}

function crashedError({ lockedBy }: JobDocument, note = ''): ChronosError {
  const worker = lockedBy ?? 'unknown';
  const message = `worker ${worker} died, froze or lost its connection while it ran the job${note}`;
  return new ChronosError('JOB_CRASHED', message);
}
