import type { FinishedStatus } from '../domain/job.js';
import { LOCKED_STATUSES } from '../domain/job.js';
import { LOCKS_INDEX, NEXT_DUE_INDEX, RETENTION_INDEX, type Collections } from './models.js';

/** Removes finished jobs of one status that ended before the instant. */
export async function pruneFinished(c: Collections, status: FinishedStatus, before: Date): Promise<number> {
  const { deletedCount } = await c.jobs.deleteMany(
    { status, finishedAt: { $lt: before } },
    { hint: RETENTION_INDEX },
  );
  return deletedCount;
}

/** Removes jobs that were due before the instant and whose task type is none of the known ones. */
export async function pruneOrphans(
  c: Collections,
  knownTypes: readonly string[],
  before: Date,
): Promise<number> {
  const { deletedCount } = await c.jobs.deleteMany(
    { status: 'SCHEDULED', nextRunAt: { $lt: before }, taskType: { $nin: [...knownTypes] } },
    { hint: NEXT_DUE_INDEX },
  );
  return deletedCount;
}

/** Removes jobs whose lock expired before the instant and which nobody recovered since. */
export async function pruneExpired(c: Collections, before: Date): Promise<number> {
  const { deletedCount } = await c.jobs.deleteMany(
    { status: { $in: [...LOCKED_STATUSES] }, lockedUntil: { $lt: before } },
    { hint: LOCKS_INDEX },
  );
  return deletedCount;
}
