import type { mongo } from 'mongoose';
import { FINISHED_STATUSES, type FinishedStatus, LOCKED_STATUSES } from '../../domain/job/job.js';
import { MAX_QUERY_MS, withTimeLimit } from '../query-limits.js';
import type { Collections } from '../schema/collections.js';
import { FINISHED_INDEX, KEEP_INDEX, LOCKS_INDEX, NEXT_DUE_INDEX } from '../schema/job-schemas.js';
import { type Count, toCount } from './counts.js';
import { exceptOccurrencesSince } from './delete.js';
import { deleteExecutionsOf } from './executions.js';
import { readSomeFields, type StoredJob, toJobId } from './stored-job.js';

/**
 * Jobs to delete. `finished`: jobs of one status that finished before `before` (and not before `from`); jobs of schedules
 * must also have finished before `occurrencesBefore` (see delete.ts). Jobs with their own retention are left out unless
 * `any` is true. `kept`: jobs with their own retention that were kept until `before`. `orphans`: jobs of unknown task
 * types that were due before `before`. `expired`: jobs whose lock expired before `before` and that no sweep recovered.
 */
export type Prunable =
  | {
      kind: 'finished';
      status: FinishedStatus;
      from?: Date;
      before: Date;
      occurrencesBefore: Date;
      any?: boolean;
    }
  | { kind: 'kept'; before: Date; occurrencesBefore: Date }
  | { kind: 'orphans'; knownTypes: readonly string[]; before: Date }
  | { kind: 'expired'; before: Date };

/**
 * Deletes up to `limit` jobs, because one statement over a million jobs would exceed every timeout, and then their
 * execution rows. Returns how many.
 */
export async function prune(c: Collections, prunable: Prunable, limit: number): Promise<number> {
  const { filter, hint } = toQuery(prunable);
  const projection = { fence: 1 } as const;
  const found = await c.jobs.find(filter, { projection, hint, limit, maxTimeMS: MAX_QUERY_MS }).toArray();
  if (found.length === 0) return 0;
  // With the filter again: a job may have been retried since it was read.
  const ids = { _id: { $in: found.map(({ _id }) => _id) } };
  const { deletedCount } = await c.jobs.deleteMany({ ...filter, ...ids }, { hint: { _id: 1 } });
  const left =
    deletedCount === found.length ? [] : await c.jobs.find(ids, { projection: { _id: 1 } }).toArray();
  const leftIds = new Set(left.map(({ _id }) => toJobId(_id)));
  await deleteExecutionsOf(
    c,
    found.map(readSomeFields).filter(({ _id }) => !leftIds.has(_id)),
  );
  return deletedCount;
}

export async function countPrunable(c: Collections, prunable: Prunable, max: number): Promise<Count> {
  const { filter, hint } = toQuery(prunable);
  const options = { hint, limit: max + 1, maxTimeMS: MAX_QUERY_MS };
  const found = await withTimeLimit('counting jobs to prune', () => c.jobs.countDocuments(filter, options));
  return toCount(found, max);
}

function toQuery(prunable: Prunable): { filter: mongo.Filter<StoredJob>; hint: string } {
  const { kind, before } = prunable;
  switch (kind) {
    case 'finished': {
      const { status, from, occurrencesBefore, any = false } = prunable;
      const filter = {
        ...{ status, finishedAt: { ...(from !== undefined && { $gte: from }), $lt: before } },
        ...(!any && { keepUntil: { $exists: false } }),
        ...(occurrencesBefore < before && exceptOccurrencesSince(occurrencesBefore)),
      };
      return { filter, hint: FINISHED_INDEX };
    }
    case 'kept': {
      const filter = {
        ...{ status: { $in: [...FINISHED_STATUSES] }, keepUntil: { $lt: before } },
        ...exceptOccurrencesSince(prunable.occurrencesBefore),
      };
      return { filter, hint: KEEP_INDEX };
    }
    case 'orphans': {
      const taskType = { $nin: [...prunable.knownTypes] };
      return { filter: { status: 'SCHEDULED', nextRunAt: { $lt: before }, taskType }, hint: NEXT_DUE_INDEX };
    }
    case 'expired': {
      const filter = { status: { $in: [...LOCKED_STATUSES] }, lockedUntil: { $lt: before } };
      return { filter, hint: LOCKS_INDEX };
    }
  }
}
