import {
  FINISHED_STATUSES,
  type FinishedJob,
  type JobDocument,
  LOCKED_STATUSES,
} from '../../domain/job/job.js';
import type { StateFields } from '../../domain/job/state.js';
import { ANY_DATE } from '../pagination.js';
import { MAX_QUERY_MS, withTimeLimit } from '../query-limits.js';
import type { Collections } from '../schema/collections.js';
import { FINISHED_INDEX, LOCKS_INDEX, NEXT_DUE_INDEX } from '../schema/job-schemas.js';
import { STATE_PROJECTION } from './state-query.js';
import { readJob, readSomeFields, type StoredJob, toStoredId, toStoredIds } from './stored-job.js';

export async function findJob(c: Collections, jobId: string): Promise<JobDocument | null> {
  const found = await c.jobs.findOne({ _id: toStoredId(jobId) });
  return found === null ? null : readJob(found);
}

/** What decides the state of each job, by job id. Jobs that do not exist are left out. */
export async function findStates(
  c: Collections,
  ids: readonly string[],
): Promise<Map<string, StateFields & { _id: string }>> {
  const options = { projection: STATE_PROJECTION, hint: { _id: 1 }, maxTimeMS: MAX_QUERY_MS };
  const found = await withTimeLimit('reading the states of jobs', () =>
    c.jobs.find({ _id: { $in: toStoredIds(ids) } }, options).toArray(),
  );
  return new Map(found.map(readSomeFields).map((job) => [job._id, job]));
}

/** Those of the jobs that are finished. */
export async function findFinished(c: Collections, ids: readonly string[]): Promise<FinishedJob[]> {
  const filter = { _id: { $in: toStoredIds(ids) }, status: { $in: [...FINISHED_STATUSES] } };
  const found = await withTimeLimit('reading finished jobs', () =>
    c.jobs.find(filter, { hint: { _id: 1 }, maxTimeMS: MAX_QUERY_MS }).toArray(),
  );
  return found.map((job) => readSomeFields(job) as FinishedJob);
}

export type RunState = Pick<
  JobDocument,
  '_id' | 'status' | 'createdAt' | 'firstStartedAt' | 'startedAt' | 'finishedAt'
>;

/** By job id. Jobs that do not exist are left out. */
export async function findRunStates(c: Collections, ids: readonly string[]): Promise<Map<string, RunState>> {
  const projection = { status: 1, createdAt: 1, firstStartedAt: 1, startedAt: 1, finishedAt: 1 } as const;
  const found = await c.jobs
    .find({ _id: { $in: toStoredIds(ids) } }, { projection, hint: { _id: 1 } })
    .toArray();
  return new Map(found.map(readSomeFields).map((run) => [run._id, run]));
}

/**
 * Jobs that ended because their document is malformed, of the `newest` that failed last; and SCHEDULED jobs that no claim
 * finds because their time is no date.
 */
export async function findInvalid(
  c: Collections,
  limit: number,
  newest: number,
): Promise<Pick<JobDocument, '_id'>[]> {
  const options = { limit, projection: { _id: 1 }, hint: NEXT_DUE_INDEX, maxTimeMS: MAX_QUERY_MS } as const;
  const ended = [
    { $match: { status: 'FAILED' } },
    { $sort: { finishedAt: -1 } },
    // There is no index on the code.
    { $limit: newest },
    { $match: { 'error.code': 'INVALID_JOB' } },
    { $limit: limit },
    { $project: { _id: 1 } },
  ];
  const found = await withTimeLimit('finding malformed jobs', () =>
    Promise.all([
      c.jobs.aggregate<StoredJob>(ended, { hint: FINISHED_INDEX, maxTimeMS: MAX_QUERY_MS }).toArray(),
      c.jobs.find({ status: 'SCHEDULED', nextRunAt: { $not: ANY_DATE } }, options).toArray(),
    ]),
  );
  return found.flat().slice(0, limit).map(readSomeFields);
}

export type LockedCrashSuspect = Pick<JobDocument, '_id' | 'lockedBy'>;

/** Crash suspects that workers have locked now. The index contains only locked jobs. */
export async function findLockedCrashSuspects(c: Collections, limit: number): Promise<LockedCrashSuspect[]> {
  const isSuspect = { $or: [{ crashes: { $gt: 0 } }, { lostWhileQueued: { $gt: 0 } }] };
  const found = await withTimeLimit('finding locked crash suspects', () =>
    c.jobs
      .find(
        { status: { $in: [...LOCKED_STATUSES] }, ...isSuspect },
        { hint: LOCKS_INDEX, projection: { lockedBy: 1 }, limit, maxTimeMS: MAX_QUERY_MS },
      )
      .toArray(),
  );
  return found.map(readSomeFields);
}
