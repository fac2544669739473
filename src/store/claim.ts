import type { mongo } from 'mongoose';
import { JOB_STATUSES, type JobDocument } from '../domain/job.js';
import { TRANSITIONS } from '../domain/transitions.js';
import type { LockGrant } from './lock-fields.js';
import { CLAIM_KEYS, type Collections } from './models.js';

/** The planner merges at most this many index scans in order; one more and it sorts everything there is. */
export const MOST_PAIRS = 200;

export interface DueFilter {
  queues: readonly string[];
  taskTypes: readonly string[];
  now: Date;
  /** Only jobs at least as urgent. A bound and no equality: for that the planner would sort everything there is. */
  mostPriority?: number;
  /** Leave out jobs that may kill their process: one at a time per process. */
  withoutSuspects: boolean;
  /** Jobs whose handlers still run here although their lock is gone. */
  exclude: readonly string[];
}

/** What a job that is due says about its past, and what the claim writes anew: not worth reading. */
type Unread =
  | ('held' | 'skipReason' | 'cancelRequested' | 'settledToken' | 'settledBy' | 'finishedAt')
  | ('result' | 'resultCut' | 'error')
  | ('lockedBy' | 'lockedUntil' | 'lockToken' | 'queuedAt' | 'startedAt');

/** A job that nobody has taken yet, as far as it is read. */
export type DueJob = Omit<JobDocument, Unread>;

/** The projection that leaves the rest out: half of what a document costs to read. */
export const AS_DUE: Record<Unread, 0> = {
  ...{ held: 0, skipReason: 0, cancelRequested: 0, settledToken: 0, settledBy: 0, finishedAt: 0 },
  ...{ result: 0, resultCut: 0, error: 0 },
  ...{ lockedBy: 0, lockedUntil: 0, lockToken: 0, queuedAt: 0, startedAt: 0 },
};

const ORDER = { priority: 1, nextRunAt: 1, _id: 1 } as const;

/**
 * Says the same twice, on purpose. MongoDB, from 7.0 on, does not look at a condition again that its partial index
 * implies. When the server yields between the index and the document, a job that was claimed, held, cancelled or
 * finished meanwhile still has the keys it was found by, and would be taken from its owner. It does look at this one.
 */
const STILL_SCHEDULED = {
  $eq: 'SCHEDULED',
  $nin: JOB_STATUSES.filter((status) => status !== 'SCHEDULED'),
} as const;

/** The reference: takes the first due job, straight to RUNNING, in one atomic write. */
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

/** The first `limit` due jobs in order, after the first `skip` of them. Nothing is taken yet. */
export async function findDue(c: Collections, filter: DueFilter, limit: number, skip = 0): Promise<DueJob[]> {
  const parts = splitPairs(filter);
  const options = {
    ...{ hint: CLAIM_KEYS, sort: ORDER, limit, projection: AS_DUE },
    // In one go: by itself the server sends a hundred, and waits to be asked for the rest.
    ...{ batchSize: limit, singleBatch: true },
    // Of several finds nobody knows which ones to leave out.
    ...(parts.length === 1 && { skip }),
  };
  const found = await Promise.all(
    parts.map((part) => c.jobs.find<DueJob>(dueFilter(part), options).toArray()),
  );
  return parts.length === 1 ? (found[0] ?? []) : found.flat().sort(inOrder).slice(0, limit);
}

/**
 * Takes those of `jobs` that nobody changed since they were read, which all had the same fence. The fence and the
 * date in the guard matter: without them a job that was claimed and rescheduled in between would be taken early and
 * with a wrong fence. Returns how many were taken; on fewer than asked `findClaimed` has them.
 */
export async function claimBatch(
  c: Collections,
  transition: 'claim' | 'buffer',
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
 * The job as it is after a successful claim of the document that was read before. Field by field, on purpose: what the
 * driver reads is a dictionary to the engine, and so would be a copy by spreading; everything that touches the job
 * later is several times faster on an object of a known shape.
 */
export function afterClaim(
  transition: 'claim' | 'buffer',
  job: DueJob,
  grant: LockGrant,
  now: Date,
): JobDocument {
  const starts = transition === 'claim';
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
    abandoned: job.abandoned,
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
    startedAt: starts ? now : null,
    progress: job.progress,
    nonce: job.nonce,
    // Nothing to who runs it.
    held: null,
    skipReason: null,
    cancelRequested: null,
    settledToken: null,
    settledBy: null,
    finishedAt: null,
    result: null,
    resultCut: false,
    error: null,
  };
  if (job.firstStartedAt !== undefined) claimed.firstStartedAt = job.firstStartedAt;
  if (job.trace !== undefined) claimed.trace = job.trace;
  return claimed;
}

function claimUpdate(
  transition: 'claim' | 'buffer',
  grant: LockGrant,
  now: Date,
): mongo.UpdateFilter<JobDocument> {
  const starts = transition === 'claim';
  return {
    $set: {
      status: TRANSITIONS[transition].to,
      lockedBy: grant.workerId,
      lockedUntil: grant.lockedUntil,
      lockToken: grant.token,
      queuedAt: now,
      startedAt: starts ? now : null,
    },
    $inc: { fence: 1 },
  };
}

function dueFilter({
  queues,
  taskTypes,
  now,
  mostPriority,
  withoutSuspects,
  exclude,
}: DueFilter): mongo.Filter<JobDocument> {
  return {
    status: STILL_SCHEDULED,
    queue: { $in: [...queues] },
    taskType: { $in: [...taskTypes] },
    nextRunAt: { $lte: now },
    ...(mostPriority !== undefined && { priority: { $lte: mostPriority } }),
    ...(withoutSuspects && { crashes: 0, abandoned: 0 }),
    ...(exclude.length > 0 && { _id: { $nin: [...exclude] } }),
  };
}

/** Filters that together cover the same (queue, task type) pairs, none with more than the planner merges. */
function splitPairs(filter: DueFilter): DueFilter[] {
  const { queues, taskTypes } = filter;
  if (queues.length * taskTypes.length <= MOST_PAIRS) return [filter];
  return chunks(queues, MOST_PAIRS).flatMap((someQueues) =>
    chunks(taskTypes, Math.max(1, Math.floor(MOST_PAIRS / someQueues.length))).map((someTypes) => ({
      ...filter,
      queues: someQueues,
      taskTypes: someTypes,
    })),
  );
}

function chunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) =>
    items.slice(i * size, (i + 1) * size),
  );
}

function inOrder(a: DueJob, b: DueJob): number {
  return (
    a.priority - b.priority ||
    a.nextRunAt.getTime() - b.nextRunAt.getTime() ||
    (a._id < b._id ? -1 : a._id > b._id ? 1 : 0)
  );
}
