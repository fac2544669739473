import { type FinishedStatus, type Hold, isFinished, type JobStatus } from '../../domain/job/job.js';
import { TRANSITIONS } from '../../domain/job/transitions.js';
import { retryOnConflict } from '../../runtime/retry.js';
import type { Collections } from '../schema/collections.js';
import { NO_LOCK } from './fence.js';

/** `requested`: the job is running. Its worker aborts the signal; the job ends CANCELLED if the handler stops. */
export type CancelAnswer =
  | { answer: 'cancelled'; taskType: string }
  | { answer: 'requested' }
  | { answer: 'alreadyFinished'; status: FinishedStatus }
  | { answer: 'notFound' };

/** Cancels a job that is not running, or stores a cancel request. Tries again if the status changes in between. */
export async function cancel(
  c: Collections,
  jobId: string,
  reason: string | null,
  now: Date,
): Promise<CancelAnswer> {
  const cancelRequested = { reason, at: now };
  return retryOnConflict(`job '${jobId}'`, async (): Promise<CancelAnswer | undefined> => {
    const waiting = await c.jobs.findOneAndUpdate(
      { _id: jobId, status: { $in: [...TRANSITIONS.cancel.from] } },
      {
        $set: { status: TRANSITIONS.cancel.to, ...NO_LOCK, cancelRequested, finishedAt: now, held: null },
        $inc: { fence: TRANSITIONS.cancel.fence },
      },
      { projection: { taskType: 1 } },
    );
    if (waiting !== null) return { answer: 'cancelled', taskType: waiting.taskType };
    const running = await c.jobs.updateOne(
      { _id: jobId, status: 'RUNNING', cancelRequested: null },
      { $set: { cancelRequested } },
    );
    if (running.matchedCount === 1) return { answer: 'requested' };
    const job = await c.jobs.findOne({ _id: jobId }, { projection: { status: 1, cancelRequested: 1 } });
    if (job === null) return { answer: 'notFound' };
    if (isFinished(job.status)) return { answer: 'alreadyFinished', status: job.status };
    if (job.status === 'RUNNING' && job.cancelRequested !== null) return { answer: 'requested' };
    return undefined;
  });
}

/** The reasons of cancel requests, by job id. Jobs without a request are left out. */
export async function findCancelRequests(
  c: Collections,
  ids: readonly string[],
): Promise<Map<string, string | null>> {
  const found = await c.jobs
    .find(
      { _id: { $in: [...ids] }, cancelRequested: { $ne: null } },
      { projection: { cancelRequested: 1 }, hint: { _id: 1 } },
    )
    .toArray();
  return new Map(found.map((job) => [job._id, job.cancelRequested?.reason ?? null]));
}

/** `status`: the job's status, which does not allow the change; null if the job does not exist. */
export type HoldAnswer = { changed: true } | { changed: false; status: JobStatus | null };

export async function hold(
  c: Collections,
  jobId: string,
  reason: string | null,
  now: Date,
): Promise<HoldAnswer> {
  return setHeld(c, jobId, 'hold', { reason, at: now });
}

export async function unhold(c: Collections, jobId: string): Promise<HoldAnswer> {
  return setHeld(c, jobId, 'unhold', null);
}

async function setHeld(
  c: Collections,
  jobId: string,
  transition: 'hold' | 'unhold',
  held: Hold | null,
): Promise<HoldAnswer> {
  const { from, to } = TRANSITIONS[transition];
  const { matchedCount } = await c.jobs.updateOne(
    { _id: jobId, status: from[0] },
    { $set: { status: to, held } },
  );
  return matchedCount === 1 ? { changed: true } : { changed: false, status: await findStatus(c, jobId) };
}

/** `status`: the job's status, from which it cannot be retried; null if the job does not exist. */
export type RetryAnswer = { retried: true } | { retried: false; status: JobStatus | null };

/**
 * Runs a finished job again, as if it were new; the execution log keeps the earlier attempts. `from` lists the
 * statuses to retry from: a retry of all failed jobs must not repeat a job that has completed in the meantime.
 */
export async function retry(
  c: Collections,
  jobId: string,
  now: Date,
  from: readonly FinishedStatus[] = TRANSITIONS.retry.from,
): Promise<RetryAnswer> {
  const { matchedCount } = await c.jobs.updateOne(
    { _id: jobId, status: { $in: [...from] } },
    {
      $set: {
        status: TRANSITIONS.retry.to,
        nextRunAt: now,
        attempts: 0,
        crashes: 0,
        lostWhileQueued: 0,
        cancelRequested: null,
        skipReason: null,
        startedAt: null,
        finishedAt: null,
        progress: null,
        result: null,
        resultCut: false,
        error: null,
      },
      $unset: { firstStartedAt: '' },
      $inc: { fence: TRANSITIONS.retry.fence },
    },
  );
  return matchedCount === 1 ? { retried: true } : { retried: false, status: await findStatus(c, jobId) };
}

/** `status`: the job's status, if it is claimed or finished; null if the job does not exist. */
export type MoveAnswer = { moved: true; nextRunAt: Date } | { moved: false; status: JobStatus | null };

/** Changes when a job is due, unless a worker has claimed it. */
export async function reschedule(c: Collections, jobId: string, nextRunAt: Date): Promise<MoveAnswer> {
  const { matchedCount } = await c.jobs.updateOne(
    { _id: jobId, status: { $in: ['PENDING', 'SCHEDULED'] } },
    { $set: { nextRunAt } },
  );
  return matchedCount === 1
    ? { moved: true, nextRunAt }
    : { moved: false, status: await findStatus(c, jobId) };
}

async function findStatus(c: Collections, jobId: string): Promise<JobStatus | null> {
  const job = await c.jobs.findOne({ _id: jobId }, { projection: { status: 1 } });
  return job?.status ?? null;
}
