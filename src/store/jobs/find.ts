import {
  FINISHED_STATUSES,
  type FinishedJob,
  type JobDocument,
  LOCKED_STATUSES,
} from '../../domain/job/job.js';
import type { StateFields } from '../../domain/job/state.js';
import { MAX_QUERY_MS, withTimeLimit } from '../query-limits.js';
import type { Collections } from '../schema/collections.js';
import { LOCKS_INDEX } from '../schema/job-schemas.js';
import { STATE_PROJECTION } from './state-query.js';

export async function findJob(c: Collections, jobId: string): Promise<JobDocument | null> {
  return c.jobs.findOne({ _id: jobId });
}

/** What decides the state of each job, by job id. Jobs that do not exist are left out. */
export async function findStates(
  c: Collections,
  ids: readonly string[],
): Promise<Map<string, StateFields & { _id: string }>> {
  const options = { projection: STATE_PROJECTION, hint: { _id: 1 }, maxTimeMS: MAX_QUERY_MS };
  const found = await withTimeLimit('reading the states of jobs', () =>
    c.jobs.find<StateFields & { _id: string }>({ _id: { $in: [...ids] } }, options).toArray(),
  );
  return new Map(found.map((job) => [job._id, job]));
}

/** Those of the jobs that are finished. */
export async function findFinished(c: Collections, ids: readonly string[]): Promise<FinishedJob[]> {
  const filter = { _id: { $in: [...ids] }, status: { $in: [...FINISHED_STATUSES] } };
  return withTimeLimit('reading finished jobs', () =>
    c.jobs.find<FinishedJob>(filter, { hint: { _id: 1 }, maxTimeMS: MAX_QUERY_MS }).toArray(),
  );
}

export type RunState = Pick<
  JobDocument,
  '_id' | 'status' | 'createdAt' | 'firstStartedAt' | 'startedAt' | 'finishedAt'
>;

/** By job id. Jobs that do not exist are left out. */
export async function findRunStates(c: Collections, ids: readonly string[]): Promise<Map<string, RunState>> {
  const projection = { status: 1, createdAt: 1, firstStartedAt: 1, startedAt: 1, finishedAt: 1 } as const;
  const found = await c.jobs
    .find<RunState>({ _id: { $in: [...ids] } }, { projection, hint: { _id: 1 } })
    .toArray();
  return new Map(found.map((run) => [run._id, run]));
}

export type LockedCrashSuspect = Pick<JobDocument, '_id' | 'lockedBy'>;

/** Crash suspects that workers have locked now. The index contains only locked jobs. */
export async function findLockedCrashSuspects(c: Collections, limit: number): Promise<LockedCrashSuspect[]> {
  const isSuspect = { $or: [{ crashes: { $gt: 0 } }, { lostWhileQueued: { $gt: 0 } }] };
  return withTimeLimit('finding locked crash suspects', () =>
    c.jobs
      .find<LockedCrashSuspect>(
        { status: { $in: [...LOCKED_STATUSES] }, ...isSuspect },
        { hint: LOCKS_INDEX, projection: { lockedBy: 1 }, limit, maxTimeMS: MAX_QUERY_MS },
      )
      .toArray(),
  );
}
