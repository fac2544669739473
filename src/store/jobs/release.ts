import type { mongo } from 'mongoose';
import { TRANSITIONS } from '../../domain/job/transitions.js';
import type { Collections } from '../schema/collections.js';
import { LOCKS_INDEX } from '../schema/job-schemas.js';
import { LOCK_FIELDS, ownedBy } from './fence.js';
import type { StoredJob } from './stored-job.js';

/** Releases jobs that were locked with this token and did not start. No counter of the job changes. */
export async function release(
  c: Collections,
  token: string,
  ids: readonly string[],
  now: Date,
): Promise<number> {
  return releaseOwned(c, ownedBy(token, ids), { _id: 1 }, now);
}

/** Releases the jobs of a claim whose reply was lost: their ids are unknown. The index contains only locked jobs. */
export async function releaseByToken(c: Collections, token: string, now: Date): Promise<number> {
  return releaseOwned(c, ownedBy(token), LOCKS_INDEX, now);
}

async function releaseOwned(
  c: Collections,
  owned: mongo.Filter<StoredJob>,
  hint: mongo.Hint,
  now: Date,
): Promise<number> {
  const released = await c.jobs.updateMany(
    { ...owned, cancelRequested: null },
    {
      $set: { status: TRANSITIONS.release.to },
      $unset: LOCK_FIELDS,
      $inc: { fence: TRANSITIONS.release.fence },
    },
    { hint },
  );
  // A job whose cancellation was requested must not run again.
  const cancelled = await c.jobs.updateMany(
    { ...owned, cancelRequested: { $ne: null } },
    {
      $set: { status: TRANSITIONS.stopRunning.to, cancelKind: 'cancelled', finishedAt: now },
      $unset: LOCK_FIELDS,
    },
    { hint },
  );
  return released.modifiedCount + cancelled.modifiedCount;
}
