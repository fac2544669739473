import type { mongo } from 'mongoose';
import { LOCKED_STATUSES, type JobDocument } from '../domain/job.js';
import { TRANSITIONS } from '../domain/transitions.js';
import { NO_LOCK } from './lock-fields.js';
import { LOCKS_INDEX, type Collections } from './models.js';

/** Returns jobs that were locked under the token and did not start. Nothing is counted against them. */
export async function giveBack(
  c: Collections,
  token: string,
  ids: readonly string[],
  now: Date,
): Promise<number> {
  return returnJobs(c, { _id: { $in: [...ids] } }, { _id: 1 }, token, now);
}

/** The same for a claim whose reply was lost, so that its jobs are not known. Reads the locked jobs only. */
export async function giveBackByToken(c: Collections, token: string, now: Date): Promise<number> {
  return returnJobs(c, {}, LOCKS_INDEX, token, now);
}

async function returnJobs(
  c: Collections,
  which: mongo.Filter<JobDocument>,
  hint: mongo.Hint,
  token: string,
  now: Date,
): Promise<number> {
  const owned = { ...which, lockToken: token, status: { $in: [...LOCKED_STATUSES] } };
  const returned = await c.jobs.updateMany(
    { ...owned, cancelRequested: null },
    { $set: { status: TRANSITIONS.giveBack.to, ...NO_LOCK }, $inc: { fence: TRANSITIONS.giveBack.fence } },
    { hint },
  );
  // What is left under the token is wanted cancelled: it must not come back.
  const cancelled = await c.jobs.updateMany(
    { ...owned, cancelRequested: { $ne: null } },
    { $set: { status: TRANSITIONS.stopRunning.to, ...NO_LOCK, finishedAt: now } },
    { hint },
  );
  return returned.modifiedCount + cancelled.modifiedCount;
}
