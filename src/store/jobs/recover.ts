import { storedError } from '../../domain/errors.js';
import { type JobDocument, LOCKED_STATUSES } from '../../domain/job/job.js';
import type { Recovery } from '../../domain/job/recovery.js';
import { type Transition, TRANSITIONS } from '../../domain/job/transitions.js';
import type { Collections } from '../schema/collections.js';
import { LOCKS_INDEX } from '../schema/job-schemas.js';
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
