import type { mongo } from 'mongoose';
import { JOB_STATUSES, type JobDocument } from '../../domain/job/job.js';
import { TRANSITIONS } from '../../domain/job/transitions.js';
import type { Collections } from '../schema/collections.js';
import { CLAIM_KEYS } from '../schema/job-schemas.js';
import type { LockGrant } from './fence.js';

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

/** Fields about earlier runs, and fields that the claim overwrites. Leaving them out halves the cost of reading a job. */
type UnreadField =
  | ('held' | 'skipReason' | 'cancelRequested' | 'cancelKind' | 'settledToken' | 'settledBy' | 'finishedAt')
  | ('result' | 'resultCut' | 'error')
  | ('lockedBy' | 'lockedUntil' | 'lockToken' | 'queuedAt' | 'startedAt');

export type DueJob = Omit<JobDocument, UnreadField>;

export const DUE_PROJECTION: Record<UnreadField, 0> = {
  ...{ held: 0, skipReason: 0, cancelRequested: 0, cancelKind: 0, settledToken: 0, settledBy: 0 },
  ...{ finishedAt: 0 },
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
  return c.jobs.findOneAndUpdate(dueFilter(filter), claimUpdate('claim', grant, filter.now), {
    sort: ORDER,
    hint: CLAIM_KEYS,
    returnDocument: 'after',
  });
}

/** The first `limit` due jobs in order, after the first `skip`. Nothing is claimed yet. */
export async function findDue(c: Collections, filter: DueFilter, limit: number, skip = 0): Promise<DueJob[]> {
  const filters = splitPairs(filter);
  const options = {
    ...{ hint: CLAIM_KEYS, sort: ORDER, limit, projection: DUE_PROJECTION },
    // In one reply: by default the first batch has only 101 documents.
    ...{ batchSize: limit, singleBatch: true },
    // Not with several queries: the skipped jobs could be in any of them.
    ...(filters.length === 1 && { skip }),
  };
  const found = await Promise.all(
    filters.map((part) => c.jobs.find<DueJob>(dueFilter(part), options).toArray()),
  );
  return filters.length === 1 ? (found[0] ?? []) : mergeDue(found, limit);
}

/** The first `limit` jobs of several queries, in order. */
export function mergeDue(found: readonly (readonly DueJob[])[], limit: number): DueJob[] {
  return found.flat().sort(compareOrder).slice(0, limit);
}

/**
 * Claims those jobs, all with the same fence, that have not changed since they were read. The fence and the date in the
 * filter matter: without them, a job that was claimed and rescheduled in between would be claimed too early and with a
 * wrong fence. Returns how many were claimed; if some are missing, `findClaimed` reads back which ones were.
 */
export async function claimBatch(
  c: Collections,
  transition: ClaimTransition,
  jobs: readonly DueJob[],
  grant: LockGrant,
  now: Date,
): Promise<number> {
  const filter = {
    _id: { $in: jobs.map((job) => job._id) },
    status: 'SCHEDULED',
    fence: jobs[0]?.fence ?? 0,
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
  return c.jobs.find({ _id: { $in: [...ids] }, lockToken: token }, { hint: { _id: 1 } }).toArray();
}

/**
 * The job as it is stored after a successful claim. Written field by field, on purpose: V8 treats the driver's objects,
 * and copies by spreading, as dictionaries. Everything that reads the job later is several times faster on an object
 * with a fixed shape.
 */
export function afterClaim(
  transition: ClaimTransition,
  job: DueJob,
  grant: LockGrant,
  now: Date,
): JobDocument {
  const claimed: JobDocument = {
    _id: job._id,
    taskType: job.taskType,
    queue: job.queue,
    priority: job.priority,
    payload: job.payload,
    status: TRANSITIONS[transition].to,
    nextRunAt: job.nextRunAt,
    createdAt: job.createdAt,
    fence: job.fence + 1,
    attempts: job.attempts,
    crashes: job.crashes,
    lostWhileQueued: job.lostWhileQueued,
    retries: job.retries,
    timeout: job.timeout,
    maxRunningTime: job.maxRunningTime,
    schedule: job.schedule,
    scheduledFor: job.scheduledFor,
    userId: job.userId,
    lockedBy: grant.workerId,
    lockedUntil: grant.lockedUntil,
    lockToken: grant.token,
    queuedAt: now,
    startedAt: transition === 'claim' ? now : null,
    progress: job.progress,
    nonce: job.nonce,
    // Not read, and not needed to run the job.
    held: null,
    skipReason: null,
    cancelRequested: null,
    cancelKind: null,
    settledToken: null,
    settledBy: null,
    finishedAt: null,
    result: null,
    resultCut: false,
    error: null,
  };
  if (job.firstStartedAt !== undefined) claimed.firstStartedAt = job.firstStartedAt;
  if (job.trace !== undefined) claimed.trace = job.trace;
  if (job.tags !== undefined) claimed.tags = job.tags;
  if (job.expiresAt !== undefined) claimed.expiresAt = job.expiresAt;
  if (job.retention !== undefined) claimed.retention = job.retention;
  return claimed;
}

function claimUpdate(
  transition: ClaimTransition,
  grant: LockGrant,
  now: Date,
): mongo.UpdateFilter<JobDocument> {
  return {
    $set: {
      status: TRANSITIONS[transition].to,
      lockedBy: grant.workerId,
      lockedUntil: grant.lockedUntil,
      lockToken: grant.token,
      queuedAt: now,
      startedAt: transition === 'claim' ? now : null,
    },
    $inc: { fence: 1 },
  };
}

function dueFilter(filter: DueFilter): mongo.Filter<JobDocument> {
  const { queues, taskTypes, now, maxPriority, withoutCrashSuspects, exclude } = filter;
  return {
    status: STILL_SCHEDULED,
    queue: { $in: [...queues] },
    taskType: { $in: [...taskTypes] },
    nextRunAt: { $lte: now },
    ...(maxPriority !== undefined && { priority: { $lte: maxPriority } }),
    ...(withoutCrashSuspects && { crashes: 0, lostWhileQueued: 0 }),
    ...(exclude.length > 0 && { _id: { $nin: [...exclude] } }),
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

function compareOrder(a: DueJob, b: DueJob): number {
  return (
    a.priority - b.priority ||
    a.nextRunAt.getTime() - b.nextRunAt.getTime() ||
    (a._id < b._id ? -1 : a._id > b._id ? 1 : 0)
  );
}
