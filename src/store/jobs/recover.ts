import { storedError } from '../../domain/errors.js';
import { type JobDocument, LOCKED_STATUSES } from '../../domain/job/job.js';
import type { Recovery } from '../../domain/job/recovery.js';
import { type Transition, TRANSITIONS } from '../../domain/job/transitions.js';
import type { Collections } from '../schema/collections.js';
import { LOCKS_INDEX } from '../schema/job-schemas.js';
import { NO_LOCK } from './fence.js';

/** Jobs whose lock expired before `now`, oldest first. The index has locked jobs only. */
export async function findExpired(c: Collections, now: Date, limit: number): Promise<JobDocument[]> {
  return c.jobs
    .find(
      { status: { $in: [...LOCKED_STATUSES] }, lockedUntil: { $lt: now } },
      { hint: LOCKS_INDEX, sort: { lockedUntil: 1 }, limit },
    )
    .toArray();
}

/**
 * Takes an expired job from its owner, for the worker `sweptBy`. The filter repeats the token, the status and the
 * expiry; otherwise it would steal a lock that was just renewed. False if another worker was first.
 */
export async function recover(
  c: Collections,
  job: JobDocument,
  recovery: Recovery,
  sweptBy: string,
  now: Date,
): Promise<boolean> {
  const { to, fence }: Transition = TRANSITIONS[recovery.transition];
  const { modifiedCount } = await c.jobs.updateOne(
    {
      _id: job._id,
      lockToken: job.lockToken,
      status: job.status,
      lockedUntil: { $lt: now },
      // A cancel request that was stored after the job was read is left for the next sweep.
      ...(recovery.transition !== 'recoverCancelled' && { cancelRequested: null }),
    },
    {
      $set: {
        status: to,
        ...NO_LOCK,
        ...(recovery.transition === 'recover'
          ? { nextRunAt: recovery.nextRunAt }
          : { finishedAt: now, settledBy: sweptBy }),
        ...(recovery.transition !== 'recoverCancelled' &&
          recovery.error !== null && { error: storedError(recovery.error) }),
      },
      $inc: { fence, ...(job.status === 'RUNNING' ? { crashes: 1 } : { lostWhileQueued: 1 }) },
      // A job that was RUNNING until its lock expired has started; a claim alone does not count, it may be released.
      ...(job.status === 'RUNNING' && job.startedAt !== null && { $min: { firstStartedAt: job.startedAt } }),
    },
    { hint: { _id: 1 } },
  );
  return modifiedCount === 1;
}
