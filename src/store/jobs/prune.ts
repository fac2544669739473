import type { mongo } from 'mongoose';
import { type FinishedStatus, type JobDocument, LOCKED_STATUSES } from '../../domain/job/job.js';
import { MAX_QUERY_MS, withTimeLimit } from '../query-limits.js';
import type { Collections } from '../schema/collections.js';
import { FINISHED_INDEX, LOCKS_INDEX, NEXT_DUE_INDEX } from '../schema/job-schemas.js';
import { type Count, toCount } from './counts.js';

/**
 * Jobs to delete. `finished`: jobs of one status that finished before `before`; jobs of schedules must also have finished
 * before `occurrencesBefore`, because a slow process that planned the same occurrence may still try to insert it.
 * `orphans`: jobs of unknown task types that were due before `before`. `expired`: jobs whose lock expired before `before`
 * and that no sweep recovered.
 */
export type Prunable =
  | { kind: 'finished'; status: FinishedStatus; before: Date; occurrencesBefore: Date }
  | { kind: 'orphans'; knownTypes: readonly string[]; before: Date }
  | { kind: 'expired'; before: Date };

/** Deletes up to `limit` jobs: one statement over a million jobs would exceed every timeout. Returns how many. */
export async function prune(c: Collections, prunable: Prunable, limit: number): Promise<number> {
  const { filter, hint } = toQuery(prunable);
  const found = await c.jobs.find(filter, { projection: { _id: 1 }, hint, limit }).toArray();
  if (found.length === 0) return 0;
  // With the filter again: a job may have been retried since it was read.
  const matching = { ...filter, _id: { $in: found.map(({ _id }) => _id) } };
  const { deletedCount } = await c.jobs.deleteMany(matching, { hint: { _id: 1 } });
  return deletedCount;
}

export async function countPrunable(c: Collections, prunable: Prunable, max: number): Promise<Count> {
  const { filter, hint } = toQuery(prunable);
  const options = { hint, limit: max + 1, maxTimeMS: MAX_QUERY_MS };
  const found = await withTimeLimit('counting jobs to prune', () => c.jobs.countDocuments(filter, options));
  return toCount(found, max);
}

function toQuery(prunable: Prunable): { filter: mongo.Filter<JobDocument>; hint: string } {
  const { kind, before } = prunable;
  switch (kind) {
    case 'finished': {
      const { status, occurrencesBefore } = prunable;
      const keepsOccurrences = occurrencesBefore < before && {
        $or: [{ schedule: null }, { finishedAt: { $lt: occurrencesBefore } }],
      };
      return { filter: { status, finishedAt: { $lt: before }, ...keepsOccurrences }, hint: FINISHED_INDEX };
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
