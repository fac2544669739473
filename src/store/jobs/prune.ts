import type { mongo } from 'mongoose';
import { type FinishedStatus, type JobDocument, LOCKED_STATUSES } from '../../domain/job/job.js';
import { MAX_QUERY_MS, withTimeLimit } from '../query-limits.js';
import type { Collections } from '../schema/collections.js';
import { FINISHED_INDEX, LOCKS_INDEX, NEXT_DUE_INDEX } from '../schema/job-schemas.js';
import { type Count, toCount } from './counts.js';

/**
 * Deletes up to `limit` jobs of one status that finished before `before`. Jobs of schedules must also have finished
 * before `occurrencesBefore`: a slow process that planned the same occurrence may still try to insert it.
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

/** Counted up to `max`, like the other counts below. */
export async function countFinishedBefore(
  c: Collections,
  status: FinishedStatus,
  before: Date,
  occurrencesBefore: Date,
  max: number,
): Promise<Count> {
  return count(c, finishedBefore(status, before, occurrencesBefore), FINISHED_INDEX, max);
}

/** Deletes up to `limit` jobs of unknown task types that were due before `before`. */
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
  max: number,
): Promise<Count> {
  return count(c, orphansBefore(knownTypes, before), NEXT_DUE_INDEX, max);
}

/** Deletes up to `limit` jobs whose lock expired before `before` and that no sweep recovered. */
export async function pruneExpired(c: Collections, before: Date, limit: number): Promise<number> {
  return prune(c, expiredBefore(before), LOCKS_INDEX, limit);
}

export async function countExpiredBefore(c: Collections, before: Date, max: number): Promise<Count> {
  return count(c, expiredBefore(before), LOCKS_INDEX, max);
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
  max: number,
): Promise<Count> {
  const options = { hint, limit: max + 1, maxTimeMS: MAX_QUERY_MS };
  const found = await withTimeLimit('counting jobs to prune', () => c.jobs.countDocuments(filter, options));
  return toCount(found, max);
}

/** In batches, because one statement over a million jobs would exceed every timeout. */
async function prune(
  c: Collections,
  filter: mongo.Filter<JobDocument>,
  hint: string,
  limit: number,
): Promise<number> {
  const found = await c.jobs.find(filter, { projection: { _id: 1 }, hint, limit }).toArray();
  if (found.length === 0) return 0;
  // With the filter again: a job may have been retried since it was read.
  const matching = { ...filter, _id: { $in: found.map(({ _id }) => _id) } };
  const { deletedCount } = await c.jobs.deleteMany(matching, { hint: { _id: 1 } });
  return deletedCount;
}
