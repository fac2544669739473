import type { mongo } from 'mongoose';
import { LOCKED_STATUSES, type FinishedStatus, type JobDocument } from '../domain/job.js';
import { bounded, MOST_TIME } from './bounded.js';
import type { Count } from './list-jobs.js';
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
  return prune(c, finishedBefore(status, before, occurrencesBefore), FINISHED_INDEX, limit);
}

/** How many of them there are, as far as `most`. */
export async function countFinishedBefore(
  c: Collections,
  status: FinishedStatus,
  before: Date,
  occurrencesBefore: Date,
  most: number,
): Promise<Count> {
  return count(c, finishedBefore(status, before, occurrencesBefore), FINISHED_INDEX, most);
}

/** Removes up to `limit` jobs that were due before the instant and whose task type is none of the known ones. */
export async function pruneOrphans(
  c: Collections,
  knownTypes: readonly string[],
  before: Date,
  limit: number,
): Promise<number> {
  return prune(c, orphansBefore(knownTypes, before), NEXT_DUE_INDEX, limit);
}

export async function countOrphansBefore(
  c: Collections,
  knownTypes: readonly string[],
  before: Date,
  most: number,
): Promise<Count> {
  return count(c, orphansBefore(knownTypes, before), NEXT_DUE_INDEX, most);
}

/** Removes up to `limit` jobs whose lock expired before the instant and which nobody recovered since. */
export async function pruneExpired(c: Collections, before: Date, limit: number): Promise<number> {
  return prune(c, expiredBefore(before), LOCKS_INDEX, limit);
}

export async function countExpiredBefore(c: Collections, before: Date, most: number): Promise<Count> {
  return count(c, expiredBefore(before), LOCKS_INDEX, most);
}

function finishedBefore(
  status: FinishedStatus,
  before: Date,
  occurrencesBefore: Date,
): mongo.Filter<JobDocument> {
  const filter: mongo.Filter<JobDocument> = { status, finishedAt: { $lt: before } };
  if (occurrencesBefore < before) {
    filter.$or = [{ schedule: null }, { finishedAt: { $lt: occurrencesBefore } }];
  }
  return filter;
}

function orphansBefore(knownTypes: readonly string[], before: Date): mongo.Filter<JobDocument> {
  return { status: 'SCHEDULED', nextRunAt: { $lt: before }, taskType: { $nin: [...knownTypes] } };
}

function expiredBefore(before: Date): mongo.Filter<JobDocument> {
  return { status: { $in: [...LOCKED_STATUSES] }, lockedUntil: { $lt: before } };
}

async function count(
  c: Collections,
  filter: mongo.Filter<JobDocument>,
  hint: string,
  most: number,
): Promise<Count> {
  const options = { hint, limit: most + 1, maxTimeMS: MOST_TIME };
  const found = await bounded('counting what to prune', () => c.jobs.countDocuments(filter, options));
  return { count: Math.min(found, most), atLeast: found > most };
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
