import { randomUUID } from 'node:crypto';
import { storedError } from '../../domain/errors.js';
import { type JobDocument, keptUntil, LOCKED_STATUSES } from '../../domain/job/job.js';
import type { Recovery } from '../../domain/job/recovery.js';
import { type Transition, TRANSITIONS } from '../../domain/job/transitions.js';
import type { Collections } from '../schema/collections.js';
import { EXPIRES_INDEX, LOCKS_INDEX } from '../schema/job-schemas.js';
import { NO_LOCK } from './fence.js';

/** Jobs whose lock expired before `now`, oldest first. The index contains only locked jobs. */
export async function findExpired(c: Collections, now: Date, limit: number): Promise<JobDocument[]> {
  return c.jobs
    .find(
      { status: { $in: [...LOCKED_STATUSES] }, lockedUntil: { $lt: now } },
      { hint: LOCKS_INDEX, sort: { lockedUntil: 1 }, limit },
    )
    .toArray();
}

/**
 * Takes an expired job from its owner; `sweptBy` is the worker that sweeps. The filter repeats the token, the status and
 * the expiry; otherwise it would steal a lock that was just renewed. False if the job has changed since it was read.
 */
export async function recover(
  c: Collections,
  job: JobDocument,
  recovery: Recovery,
  sweptBy: string,
  now: Date,
): Promise<boolean> {
  const { to, fence }: Transition = TRANSITIONS[recovery.transition];
  const keepUntil = keptUntil(to, job.retention, now);
  const { modifiedCount } = await c.jobs.updateOne(
    {
      _id: job._id,
      lockToken: job.lockToken,
      status: job.status,
      lockedUntil: { $lt: now },
      // If a cancel request was stored after the job was read, the next sweep handles it.
      ...(recovery.transition !== 'recoverCancelled' && { cancelRequested: null }),
    },
    {
      $set: {
        status: to,
        ...NO_LOCK,
        ...(recovery.transition === 'recover'
          ? { nextRunAt: recovery.nextRunAt }
          : { finishedAt: now, settledBy: sweptBy }),
        ...(recovery.transition === 'recoverCancelled' && { cancelKind: 'cancelled' }),
        ...(keepUntil !== undefined && { keepUntil }),
        ...(recovery.transition !== 'recoverCancelled' &&
          recovery.error !== null && { error: storedError(recovery.error) }),
      },
      $inc: { fence, ...(job.status === 'RUNNING' ? { crashes: 1 } : { lostWhileQueued: 1 }) },
      // A job that is RUNNING when its lock expires has started. A claim alone does not count: it may be released.
      ...(job.status === 'RUNNING' && job.startedAt !== null && { $min: { firstStartedAt: job.startedAt } }),
    },
    { hint: { _id: 1 } },
  );
  return modifiedCount === 1;
}

/** A job that expired before it started. */
export type ExpiredJob = Pick<
  JobDocument,
  '_id' | 'taskType' | 'queue' | 'expiresAt' | 'trace' | 'retention'
>;

/**
 * Ends up to `limit` jobs that expired before a worker claimed them. The filter of the write repeats every condition, so
 * a job that was claimed or rescheduled in between stays as it is. Returns the jobs that this call ended.
 */
export async function expireJobs(
  c: Collections,
  now: Date,
  limit: number,
  sweptBy: string,
): Promise<ExpiredJob[]> {
  const { from, to, fence } = TRANSITIONS.expire;
  const expired = {
    ...{ status: { $in: [...from] }, expiresAt: { $lte: now }, firstStartedAt: { $exists: false } },
  };
  const projection = { taskType: 1, queue: 1, expiresAt: 1, trace: 1, retention: 1 } as const;
  const found = await c.jobs
    .find<ExpiredJob>(expired, { hint: EXPIRES_INDEX, sort: { expiresAt: 1 }, limit, projection })
    .toArray();
  if (found.length === 0) return [];
  const ids = found.map(({ _id }) => _id);
  const settledToken = randomUUID();
  const { modifiedCount } = await c.jobs.updateMany(
    { _id: { $in: ids }, ...expired },
    {
      $set: {
        ...{
          status: to,
          cancelKind: 'expired',
          held: null,
          finishedAt: now,
          settledBy: sweptBy,
          settledToken,
        },
      },
      $inc: { fence },
    },
    { hint: { _id: 1 } },
  );
  if (modifiedCount === found.length) return found;
  const ended = await c.jobs
    .find({ _id: { $in: ids }, settledToken }, { projection: { _id: 1 }, hint: { _id: 1 } })
    .toArray();
  const endedIds = new Set(ended.map(({ _id }) => _id));
  return found.filter(({ _id }) => endedIds.has(_id));
}
