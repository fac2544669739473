import type { mongo } from 'mongoose';
import { JOB_STATUSES, type JobDocument } from '../../domain/job/job.js';
import { TRANSITIONS } from '../../domain/job/transitions.js';
import type { Collections } from '../schema/collections.js';
import { CLAIM_KEYS } from '../schema/job-schemas.js';
import type { LockGrant } from './fence.js';
import { compareJobIds, counterIs, readJob, type StoredJob, toStoredId, toStoredIds } from './stored-job.js';

/** The planner merges up to this many index scans in order. With one more it sorts all due jobs. */
export const MAX_QUEUE_TYPE_PAIRS = 200;

export interface DueFilter {
  queues: readonly string[];
  taskTypes: readonly string[];
  now: Date;
  /** Only jobs at least as urgent. A range: with an equality the planner would sort all due jobs. */
  maxPriority?: number;
  /** A process runs one crash suspect at a time. */
  withoutCrashSuspects: boolean;
  /** Jobs in flight in this process, for example because a handler is still running after its lock was lost. */
  exclude: readonly string[];
}

/** Fields about earlier runs, and fields that the claim overwrites: reading them for every job costs time. */
type UnreadField =
  | ('held' | 'skipReason' | 'cancelKind' | 'finishedAt')
  | ('settledToken' | 'settledTokens' | 'settledBy')
  | ('result' | 'resultCut' | 'error')
  | ('lockedBy' | 'lockedUntil' | 'lockToken' | 'queuedAt' | 'startedAt');

export const DUE_PROJECTION: Record<UnreadField, 0> = {
  ...{ held: 0, skipReason: 0, cancelKind: 0, finishedAt: 0 },
  ...{ settledToken: 0, settledTokens: 0, settledBy: 0 },
  ...{ result: 0, resultCut: 0, error: 0 },
  ...{ lockedBy: 0, lockedUntil: 0, lockToken: 0, queuedAt: 0, startedAt: 0 },
};

/** `claim` into a free slot, `buffer` to prefetch. */
type ClaimTransition = 'claim' | 'buffer';

const ORDER = { priority: 1, nextRunAt: 1, _id: 1 } as const;

/**
 * States the same condition twice, on purpose. MongoDB 7.0 and later do not check a condition on the document if the
 * partial index implies it. If the server yields between index and document, a job that was claimed, held, cancelled or
 * finished in the meantime would still be found by its old keys and be taken from its owner. `$nin` is checked.
 */
const STILL_SCHEDULED = {
  $eq: 'SCHEDULED',
  $nin: JOB_STATUSES.filter((status) => status !== 'SCHEDULED'),
} as const;

/** Claims the first due job, straight to RUNNING, in one atomic write. The reference for `claimBatch`. */
export async function claimOne(
  c: Collections,
  filter: DueFilter,
  grant: LockGrant,
): Promise<JobDocument | null> {
  const claimed = await c.jobs.findOneAndUpdate(dueFilter(filter), claimUpdate('claim', grant, filter.now), {
    sort: ORDER,
    hint: CLAIM_KEYS,
    returnDocument: 'after',
  });
  return claimed === null ? null : readJob(claimed);
}

/** The first `limit` due jobs in order, after the first `skip`. Nothing is claimed yet. */
export async function findDue(
  c: Collections,
  filter: DueFilter,
  limit: number,
  skip = 0,
): Promise<JobDocument[]> {
  const filters = splitPairs(filter);
  const options = {
    ...{ hint: CLAIM_KEYS, sort: ORDER, limit, projection: DUE_PROJECTION },
    // In one reply: by default the first batch has only 101 documents.
    ...{ batchSize: limit, singleBatch: true },
    // Not with several queries: the skipped jobs could be in any of them.
    ...(filters.length === 1 && { skip }),
  };
  const found = await Promise.all(
    filters.map(async (part) => (await c.jobs.find(dueFilter(part), options).toArray()).map(readJob)),
  );
  return filters.length === 1 ? (found[0] ?? []) : mergeDue(found, limit);
}

/** The first `limit` jobs of several queries, in order. */
export function mergeDue(found: readonly (readonly JobDocument[])[], limit: number): JobDocument[] {
  return found.flat().sort(compareClaimOrder).slice(0, limit);
}

/**
 * Claims those jobs, all with the same fence, that have not changed since they were read. The fence and the date in the
 * filter matter: without them, a job that was claimed and rescheduled in between would be claimed too early and with a
 * wrong fence. Returns how many were claimed; if some are missing, `findClaimed` reads back which ones were.
 */
export async function claimBatch(
  c: Collections,
  transition: ClaimTransition,
  jobs: readonly JobDocument[],
  grant: LockGrant,
  now: Date,
): Promise<number> {
  const filter = {
    _id: { $in: jobs.map((job) => toStoredId(job._id)) },
    status: 'SCHEDULED',
    fence: counterIs(jobs[0]?.fence ?? 0),
    nextRunAt: { $lte: now },
  } as const;
  const { modifiedCount } = await c.jobs.updateMany(filter, claimUpdate(transition, grant, now), {
    hint: { _id: 1 },
  });
  return modifiedCount;
}

export async function findClaimed(
  c: Collections,
  ids: readonly string[],
  token: string,
): Promise<JobDocument[]> {
  const filter = { _id: { $in: toStoredIds(ids) }, lockToken: token };
  return (await c.jobs.find(filter, { hint: { _id: 1 } }).toArray()).map(readJob);
}

/** Changes a job that was read to what is stored after a successful claim. */
export function afterClaim(
  transition: ClaimTransition,
  job: JobDocument,
  grant: LockGrant,
  now: Date,
): JobDocument {
  job.status = TRANSITIONS[transition].to;
  job.fence += 1;
  job.lockedBy = grant.workerId;
  job.lockedUntil = grant.lockedUntil;
  job.lockToken = grant.token;
  job.queuedAt = now;
  job.startedAt = transition === 'claim' ? now : null;
  return job;
}

function claimUpdate(
  transition: ClaimTransition,
  grant: LockGrant,
  now: Date,
): mongo.UpdateFilter<StoredJob> {
  return {
    $set: {
      status: TRANSITIONS[transition].to,
      lockedBy: grant.workerId,
      lockedUntil: grant.lockedUntil,
      lockToken: grant.token,
      queuedAt: now,
      ...(transition === 'claim' && { startedAt: now }),
    },
    ...(transition === 'buffer' && { $unset: { startedAt: '' } }),
    $inc: { fence: 1 },
  };
}

function dueFilter(filter: DueFilter): mongo.Filter<StoredJob> {
  const { queues, taskTypes, now, maxPriority, withoutCrashSuspects, exclude } = filter;
  return {
    status: STILL_SCHEDULED,
    queue: { $in: [...queues] },
    taskType: { $in: [...taskTypes] },
    nextRunAt: { $lte: now },
    ...(maxPriority !== undefined && { priority: { $lte: maxPriority } }),
    ...(withoutCrashSuspects && { crashes: counterIs(0), lostWhileQueued: counterIs(0) }),
    ...(exclude.length > 0 && { _id: { $nin: toStoredIds(exclude) } }),
  };
}

/** Splits a filter into filters with at most MAX_QUEUE_TYPE_PAIRS pairs each. */
function splitPairs(filter: DueFilter): DueFilter[] {
  const { queues, taskTypes } = filter;
  if (queues.length * taskTypes.length <= MAX_QUEUE_TYPE_PAIRS) return [filter];
  return chunks(queues, MAX_QUEUE_TYPE_PAIRS).flatMap((someQueues) => {
    const typesPerFilter = Math.floor(MAX_QUEUE_TYPE_PAIRS / someQueues.length);
    return chunks(taskTypes, typesPerFilter).map((types) => ({
      ...filter,
      queues: someQueues,
      taskTypes: types,
    }));
  });
}

function chunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) =>
    items.slice(i * size, (i + 1) * size),
  );
}

type ClaimOrder = Pick<JobDocument, '_id' | 'priority' | 'nextRunAt'>;

/** The order in which jobs are claimed. */
export function compareClaimOrder(a: ClaimOrder, b: ClaimOrder): number {
  return (
    a.priority - b.priority || a.nextRunAt.getTime() - b.nextRunAt.getTime() || compareJobIds(a._id, b._id)
  );
}
