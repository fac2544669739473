import { LOCKED_STATUSES, type JobDocument } from '../domain/job.js';
import { bounded, MOST_TIME } from './bounded.js';
import { LOCKS_INDEX, type Collections } from './models.js';

export type LockedSuspect = Pick<JobDocument, '_id' | 'lockedBy'>;

/** Suspects that workers have now. Reads the locked jobs only: as many as there are slots and buffers in all workers. */
export async function findLockedSuspects(c: Collections, limit: number): Promise<LockedSuspect[]> {
  const isSuspect = { $or: [{ crashes: { $gt: 0 } }, { abandoned: { $gt: 0 } }] };
  return bounded('looking for jobs that run one at a time', () =>
    c.jobs
      .find<LockedSuspect>(
        { status: { $in: [...LOCKED_STATUSES] }, ...isSuspect },
        { hint: LOCKS_INDEX, projection: { lockedBy: 1 }, limit, maxTimeMS: MOST_TIME },
      )
      .toArray(),
  );
}
