import type { JobDocument } from '../../domain/job/job.js';
import { TRANSITIONS } from '../../domain/job/transitions.js';
import type { Collections } from '../schema/collections.js';
import { WAITING_INDEX } from '../schema/job-schemas.js';
import { LOCK_FIELDS, ownedBy } from './fence.js';
import { release } from './release.js';
import { readSomeFields, toStoredId } from './stored-job.js';

/** Jobs that were locked with this token must not run yet: they wait for the current run of a single-instance schedule. */
export async function makeWait(
  c: Collections,
  token: string,
  ids: readonly string[],
  scheduleId: string,
  now: Date,
): Promise<void> {
  const { to, fence } = TRANSITIONS.wait;
  await c.jobs.updateMany(
    { ...ownedBy(token, ids), cancelRequested: null },
    { $set: { status: to, waitingFor: scheduleId }, $unset: LOCK_FIELDS, $inc: { fence } },
    { hint: { _id: 1 } },
  );
  // Ends those whose cancellation was requested in the meantime.
  await release(c, token, ids, now);
}

/** Those of the schedules that jobs wait for. */
export async function findWaitedFor(c: Collections, scheduleIds: readonly string[]): Promise<string[]> {
  // Not distinct(): before MongoDB 7.1 it takes no hint.
  const pipeline = [
    { $match: { waitingFor: { $in: [...scheduleIds] } } },
    // In a malformed job it may be a list.
    { $unwind: '$waitingFor' },
    { $group: { _id: '$waitingFor' } },
  ];
  const found = await c.jobs.aggregate<{ _id: string }>(pipeline, { hint: WAITING_INDEX }).toArray();
  return found.map(({ _id }) => _id).filter((id) => scheduleIds.includes(id));
}

/** The due job that waits for the schedule and comes first in claim order. */
export async function findFirstWaiting(
  c: Collections,
  scheduleId: string,
  now: Date,
): Promise<Pick<JobDocument, '_id' | 'priority' | 'nextRunAt'> | null> {
  const found = await c.jobs.findOne(
    { waitingFor: scheduleId, status: 'PENDING', nextRunAt: { $lte: now } },
    {
      hint: WAITING_INDEX,
      sort: { priority: 1, nextRunAt: 1, _id: 1 },
      projection: { priority: 1, nextRunAt: 1 },
    },
  );
  return found === null ? null : readSomeFields(found);
}

/** Makes a waiting job eligible. */
export async function endWait(c: Collections, jobId: string, scheduleId: string): Promise<boolean> {
  const { from, to } = TRANSITIONS.endWait;
  const { modifiedCount } = await c.jobs.updateOne(
    { _id: toStoredId(jobId), status: from[0], waitingFor: scheduleId },
    { $set: { status: to }, $unset: { waitingFor: '' } },
  );
  return modifiedCount === 1;
}
