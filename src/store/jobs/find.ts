import { type JobDocument, LOCKED_STATUSES } from '../../domain/job/job.js';
import { MAX_QUERY_MS, withTimeLimit } from '../query-limits.js';
import type { Collections } from '../schema/collections.js';
import { LOCKS_INDEX } from '../schema/job-schemas.js';

export async function findJob(c: Collections, jobId: string): Promise<JobDocument | null> {
  return c.jobs.findOne({ _id: jobId });
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
