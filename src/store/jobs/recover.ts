import { randomUUID } from 'node:crypto';
import type { mongo } from 'mongoose';
import { storedError } from '../../domain/errors.js';
import { type JobDocument, keptUntil, LOCKED_STATUSES } from '../../domain/job/job.js';
import type { Recovery } from '../../domain/job/recovery.js';
import { type Transition, TRANSITIONS } from '../../domain/job/transitions.js';
import { toWritable } from '../../domain/stored-values.js';
import { isRejectedByValidator } from '../mongo-errors.js';
import type { Collections } from '../schema/collections.js';
import { EXPIRES_INDEX, LOCKS_INDEX } from '../schema/job-schemas.js';
import { LOCK_FIELDS } from './fence.js';
import { readJob, REQUIRED_FIELDS, type StoredJob, toJobId, toStoredId, toStoredIds } from './stored-job.js';

/** Payloads may be large, and nothing here needs them. */
const PROJECTION = { payload: 0, result: 0 } as const;

/** Jobs whose lock expired before `now`, oldest first, and locked jobs without a valid time. The index contains only locked jobs. */
export async function findExpiredLocks(c: Collections, now: Date, limit: number): Promise<JobDocument[]> {
  const filter = { status: { $in: [...LOCKED_STATUSES] }, lockedUntil: { $not: { $gte: now } } };
  const options = { hint: LOCKS_INDEX, sort: { lockedUntil: 1 }, limit, projection: PROJECTION } as const;
  return (await c.jobs.find(filter, options).toArray()).map(readJob);
}

/**
 * Takes an expired job from its owner; `sweptBy` is the worker that sweeps. Nothing is counted if the owner is alive. The
 * filter repeats the token, the status and the expiry; otherwise it would steal a lock that was just renewed. False if the
 * job has changed since it was read.
 */
export async function recover(
  c: Collections,
  job: JobDocument,
  recovery: Recovery,
  { sweptBy, ownerIsGone }: { sweptBy: string; ownerIsGone: boolean },
  now: Date,
): Promise<boolean> {
  const { to, fence }: Transition = TRANSITIONS[recovery.transition];
  const keepUntil = keptUntil(to, job.retention, now);
  const { modifiedCount } = await c.jobs.updateOne(
    {
      _id: toStoredId(job._id),
      lockToken: job.lockToken,
      status: job.status,
      lockedUntil: { $not: { $gte: now } },
      // If a cancel request was stored after the job was read, the next sweep handles it.
      ...(recovery.transition !== 'recoverCancelled' && { cancelRequested: null }),
    },
    {
      $set: {
        status: to,
        ...(recovery.transition === 'recover'
          ? { nextRunAt: recovery.nextRunAt }
          : { finishedAt: now, settledBy: sweptBy }),
        ...(recovery.transition === 'recoverCancelled' && { cancelKind: 'cancelled' }),
        ...(keepUntil !== undefined && { keepUntil }),
        ...(recovery.transition !== 'recoverCancelled' &&
          recovery.error !== null && { error: storedError(recovery.error) }),
      },
      $unset: LOCK_FIELDS,
      $inc: {
        fence,
        ...(ownerIsGone && (job.status === 'RUNNING' ? { crashes: 1 } : { lostWhileQueued: 1 })),
      },
      // A job that is RUNNING when its lock expires has started. A claim alone does not count: it may be released.
      ...(job.status === 'RUNNING' && job.startedAt !== null && { $min: { firstStartedAt: job.startedAt } }),
    },
    { hint: { _id: 1 } },
  );
  return modifiedCount === 1;
}

/** Up to `limit` jobs that expired before a worker claimed them. */
export async function findExpiredJobs(c: Collections, now: Date, limit: number): Promise<JobDocument[]> {
  const options = {
    hint: EXPIRES_INDEX,
    sort: { expiresAt: 1 },
    limit,
    projection: PROJECTION,
  } as const;
  return (await c.jobs.find(expiredFilter(now), options).toArray()).map(readJob);
}

/**
 * Ends jobs that expired before a worker claimed them. The filter of the write repeats every condition, so a job that
 * was claimed or rescheduled in between stays as it is. Returns the jobs that this call ended.
 */
export async function expireJobs(
  c: Collections,
  jobs: readonly JobDocument[],
  now: Date,
  sweptBy: string,
): Promise<JobDocument[]> {
  if (jobs.length === 0) return [];
  const { to, fence } = TRANSITIONS.expire;
  const ids = toStoredIds(jobs.map(({ _id }) => _id));
  const settledToken = randomUUID();
  const { modifiedCount } = await c.jobs.updateMany(
    { _id: { $in: ids }, ...expiredFilter(now) },
    {
      $set: { status: to, cancelKind: 'expired', finishedAt: now, settledBy: sweptBy, settledToken },
      $unset: { waitingFor: '', held: '' },
      $inc: { fence },
    },
    { hint: { _id: 1 } },
  );
  if (modifiedCount === jobs.length) return [...jobs];
  const ended = await c.jobs
    .find({ _id: { $in: ids }, settledToken }, { projection: { _id: 1 }, hint: { _id: 1 } })
    .toArray();
  const endedIds = new Set(ended.map(({ _id }) => toJobId(_id)));
  return jobs.filter(({ _id }) => endedIds.has(_id));
}

function expiredFilter(now: Date): mongo.Filter<StoredJob> {
  const { from } = TRANSITIONS.expire;
  return { status: { $in: [...from] }, expiresAt: { $lte: now }, firstStartedAt: { $exists: false } };
}

/**
 * Ends a malformed job as FAILED. The write computes nothing from stored values and replaces the malformed ones, so no
 * stored value can make it fail. False if the job has changed since it was read.
 */
export async function failInvalid(
  c: Collections,
  job: JobDocument,
  error: Error,
  failedBy: string,
  now: Date,
): Promise<boolean> {
  if (job.invalid === undefined) return false;
  const { fields } = job.invalid;
  const document = job.invalid.stored as StoredJob;
  const { to, fence } = TRANSITIONS.reject;
  const isLocked = (LOCKED_STATUSES as readonly unknown[]).includes(document.status);
  const required = REQUIRED_FIELDS.filter((field) => fields.includes(field));
  const filter = {
    // `$eq`: these may be anything, also an object that MongoDB would read as an operator.
    _id: { $eq: toWritable(document._id) },
    status: { $eq: toWritable(document.status ?? null) },
    fence: { $eq: toWritable(document.fence ?? null) },
    // Not read with a job that is due.
    ...(isLocked && { lockToken: { $eq: toWritable(document.lockToken ?? null) } }),
  } as mongo.Filter<StoredJob>;
  const $set: Record<string, unknown> = {
    ...Object.fromEntries(required.map((field) => [field, job[field]])),
    ...{ status: to, fence: job.fence + fence, finishedAt: now, settledBy: failedBy },
    error: storedError(error),
  };
  const unset = [...Object.keys(LOCK_FIELDS), 'waitingFor', 'held', ...fields];
  const $unset = Object.fromEntries(
    unset.filter((field) => field !== '_id' && !(field in $set)).map((field) => [field, '']),
  );
  const write = (options: mongo.UpdateOptions): Promise<mongo.UpdateResult> =>
    c.jobs.updateOne(filter, { $set, $unset } as mongo.UpdateFilter<StoredJob>, {
      hint: { _id: 1 },
      ...options,
    });
  const { matchedCount } = await write({}).catch((thrown: unknown) => {
    if (!isRejectedByValidator(thrown)) throw thrown;
    return write({ bypassDocumentValidation: true });
  });
  return matchedCount === 1;
}
