import type { mongo } from 'mongoose';
import { LOCKED_STATUSES, type FinishedStatus, type JobDocument } from '../domain/job.js';
import { FINISHED_INDEX, LOCKS_INDEX, NEXT_DUE_INDEX, type Collections } from './models.js';

/**
 * Removes up to `limit` finished jobs of one status that ended before the instant; occurrences of schedules only if
 * they ended before the other one: somebody who decided on them may be slow to insert them a second time.
 */
export async function pruneFinished(
  c: Collections,
  status: FinishedStatus,
  before: Date,
  occurrencesBefore: Date,
  limit: number,
): Promise<number> {
  const filter: mongo.Filter<JobDocument> = { status, finishedAt: { $lt: before } };
  if (occurrencesBefore < before) {
    filter.$or = [{ schedule: null }, { finishedAt: { $lt: occurrencesBefore } }];
  }
  return prune(c, filter, FINISHED_INDEX, limit);
}

/** Removes up to `limit` jobs that were due before the instant and whose task type is none of the known ones. */
export async function pruneOrphans(
  c: Collections,
  knownTypes: readonly string[],
  before: Date,
  limit: number,
): Promise<number> {
  const filter = {
    status: 'SCHEDULED',
    nextRunAt: { $lt: before },
    taskType: { $nin: [...knownTypes] },
  } as const;
  return prune(c, filter, NEXT_DUE_INDEX, limit);
}

/** Removes up to `limit` jobs whose lock expired before the instant and which nobody recovered since. */
export async function pruneExpired(c: Collections, before: Date, limit: number): Promise<number> {
  const filter = { status: { $in: [...LOCKED_STATUSES] }, lockedUntil: { $lt: before } };
  return prune(c, filter, LOCKS_INDEX, limit);
}

/** In batches: one statement over a million jobs would outlast every time-out. */
async function prune(
  c: Collections,
  filter: mongo.Filter<JobDocument>,
  hint: string,
  limit: number,
): Promise<number> {
  const found = await c.jobs.find(filter, { projection: { _id: 1 }, hint, limit }).toArray();
  if (found.length === 0) return 0;
  // The filter again: a job may have been retried since it was read.
  const which = { ...filter, _id: { $in: found.map(({ _id }) => _id) } };
  const { deletedCount } = await c.jobs.deleteMany(which, { hint: { _id: 1 } });
  return deletedCount;
}
