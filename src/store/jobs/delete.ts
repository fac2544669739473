import type { mongo } from 'mongoose';
import { FINISHED_STATUSES, type JobDocument, type JobStatus } from '../../domain/job/job.js';
import { type JobState, jobState } from '../../domain/job/state.js';
import { groupBy } from '../../domain/language.js';
import type { Collections } from '../schema/collections.js';
import { type JobChange, refusal } from './change.js';
import { STATE_PROJECTION } from './state-query.js';
import { deleteExecutionsOf } from './executions.js';
import { counterIs, readSomeFields, type StoredJob, toStoredId } from './stored-job.js';

/** Jobs of schedules are kept at least this long: their ids prevent a second job for the same occurrence. */
export const KEEP_OCCURRENCES_MS = 3_600_000;

/** Jobs of schedules that finished after this time must not be deleted yet. */
export function keptOccurrencesSince(now: Date): Date {
  return new Date(now.getTime() - KEEP_OCCURRENCES_MS);
}

/**
 * Excludes jobs of schedules that finished after this time: a slow process that planned the same occurrence may still
 * try to insert it, and would create its job a second time.
 */
export function exceptOccurrencesSince(time: Date): mongo.Filter<StoredJob> {
  return { $or: [{ schedule: null }, { finishedAt: { $lt: time } }] };
}

/** Deletes a finished job, and then its execution rows: a new job with the same key would have the same row ids. */
export async function deleteJob(c: Collections, jobId: string, now: Date): Promise<JobChange> {
  const deleted = await c.jobs.findOneAndDelete(
    {
      _id: toStoredId(jobId),
      status: { $in: [...FINISHED_STATUSES] },
      ...exceptOccurrencesSince(keptOccurrencesSince(now)),
    },
    { projection: { fence: 1 } },
  );
  if (deleted === null) return refusal(c, jobId, now);
  await deleteExecutionsOf(c, [readSomeFields(deleted)]);
  return { result: 'changed', state: null };
}

/**
 * Deletes those jobs that have one of these statuses and the fence they were read with, and then their execution rows. A
 * job that was claimed or retried since then stays. Returns how many were deleted, and the states of those that stay.
 */
export async function deleteUnchanged(
  c: Collections,
  jobs: readonly Pick<JobDocument, '_id' | 'fence'>[],
  statuses: readonly JobStatus[],
  now: Date,
): Promise<{ deleted: number; left: JobState[] }> {
  let deleted = 0;
  for (const [fence, group] of groupBy(jobs, (job) => job.fence)) {
    const filter = {
      ...{ _id: { $in: group.map(({ _id }) => toStoredId(_id)) }, fence: counterIs(fence) },
      status: { $in: [...statuses] },
    };
    deleted += (await c.jobs.deleteMany(filter, { hint: { _id: 1 } })).deletedCount;
  }
  const ids = { $in: jobs.map(({ _id }) => toStoredId(_id)) };
  const found =
    deleted === jobs.length
      ? []
      : await c.jobs.find({ _id: ids }, { projection: STATE_PROJECTION, hint: { _id: 1 } }).toArray();
  const left = found.map(readSomeFields);
  const leftIds = new Set(left.map(({ _id }) => _id));
  await deleteExecutionsOf(
    c,
    jobs.filter(({ _id }) => !leftIds.has(_id)),
  );
  return { deleted, left: left.map((job) => jobState(job, now)) };
}
