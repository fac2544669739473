import type { mongo } from 'mongoose';
import { ChronosError } from '../../domain/errors.js';
import {
  type FinishedStatus,
  type Hold,
  isFinished,
  type JobDocument,
  keptUntil,
  UNCLAIMED_STATUSES,
} from '../../domain/job/job.js';
import { type JobState, jobState } from '../../domain/job/state.js';
import { TRANSITIONS } from '../../domain/job/transitions.js';
import { retryOnConflict } from '../../runtime/retry.js';
import { isOutage } from '../mongo-errors.js';
import type { Collections } from '../schema/collections.js';
import { LOCK_FIELDS } from './fence.js';
import { STATE_PROJECTION } from './state-query.js';
import { counterIs, readJob, readSomeFields, type StoredJob, toStoredId, toStoredIds } from './stored-job.js';

/** The result of every change to one job. */
export interface JobChange {
  /**
   * `changed`: done. `requested`: the job is running, and its worker was asked to cancel it; it ends cancelled if its
   * handler stops. `refused`: the job is in a state that does not allow the change. `notFound`: there is no such job.
   */
  result: 'changed' | 'requested' | 'refused' | 'notFound';
  /** The state of the job after the change, or the one that did not allow it; null if there is no such job (any more). */
  state: JobState | null;
}

export interface CancelResult extends JobChange {
  /** Set if the job was cancelled here, for the event. */
  taskType?: string;
}

/** Cancels a job that is not running, or stores a cancel request. Tries again if the status changes in between. */
export async function cancel(
  c: Collections,
  jobId: string,
  reason: string | null,
  now: Date,
): Promise<CancelResult> {
  const cancelRequested = { reason, at: now };
  const tryOnce = async (): Promise<CancelResult | undefined> => {
    const filter = { _id: toStoredId(jobId), status: { $in: [...TRANSITIONS.cancel.from] } };
    const waiting = await cancelMatching(c, filter, reason, now);
    if (waiting !== undefined) return waiting;
    const running = await c.jobs.updateOne(
      { _id: toStoredId(jobId), status: 'RUNNING', cancelRequested: null },
      { $set: { cancelRequested } },
    );
    if (running.matchedCount === 1) return { result: 'requested', state: 'running' };
    const projection = { ...STATE_PROJECTION, cancelRequested: 1 } as const;
    const found = await c.jobs.findOne({ _id: toStoredId(jobId) }, { projection });
    const job = found === null ? null : readSomeFields(found);
    if (job === null) return { result: 'notFound', state: null };
    if (isFinished(job.status)) return { result: 'refused', state: jobState(job, now) };
    if (job.status === 'RUNNING' && job.cancelRequested !== null)
      return { result: 'requested', state: 'running' };
    return undefined;
  };
  return explainInvalid(c, jobId, () => retryOnConflict(`job '${jobId}'`, tryOnce));
}

/** MongoDB rejects some changes of a malformed job: says what is wrong with it. */
async function explainInvalid<T>(c: Collections, jobId: string, change: () => Promise<T>): Promise<T> {
  try {
    return await change();
  } catch (error) {
    if (error instanceof ChronosError || isOutage(error)) throw error;
    const found = await c.jobs.findOne({ _id: toStoredId(jobId) });
    const invalid = found === null ? undefined : readJob(found).invalid;
    if (invalid === undefined) throw error;
    throw new ChronosError(
      'INVALID_JOB',
      `job '${jobId}' cannot be changed, because its stored document is malformed: ${invalid.reason}. ` +
        'The worker that finds it due ends it as FAILED; until then, correct or delete the document in the database',
      { cause: error },
    );
  }
}

/** For the few jobs with their own retention. Without this write, the Scheduler's retention applies. */
export async function keepCancelled(
  c: Collections,
  { _id, retention }: Pick<JobDocument, '_id' | 'retention'>,
  now: Date,
): Promise<void> {
  const keepUntil = keptUntil('CANCELLED', retention, now);
  if (keepUntil !== undefined)
    await c.jobs.updateOne(
      { _id: toStoredId(_id), status: 'CANCELLED', finishedAt: now },
      { $set: { keepUntil } },
    );
}

/** Cancels a job that no worker has claimed since it was read with this fence. */
export async function cancelUnclaimed(
  c: Collections,
  { _id, fence }: Pick<JobDocument, '_id' | 'fence'>,
  reason: string | null,
  now: Date,
): Promise<CancelResult> {
  const filter = {
    ...{ _id: toStoredId(_id), fence: counterIs(fence) },
    status: { $in: [...UNCLAIMED_STATUSES] },
  };
  return (await cancelMatching(c, filter, reason, now)) ?? refusal(c, _id, now);
}

/** Undefined if no job matches. */
async function cancelMatching(
  c: Collections,
  filter: mongo.Filter<StoredJob>,
  reason: string | null,
  now: Date,
): Promise<CancelResult | undefined> {
  const cancelRequested = { reason, at: now };
  const found = await c.jobs.findOneAndUpdate(
    filter,
    {
      $set: {
        ...{ status: TRANSITIONS.cancel.to, cancelRequested, cancelKind: 'cancelled', finishedAt: now },
      },
      $unset: { ...LOCK_FIELDS, held: '', waitingFor: '' },
      $inc: { fence: TRANSITIONS.cancel.fence },
    },
    { projection: { taskType: 1, retention: 1 } },
  );
  if (found === null) return undefined;
  const job = readSomeFields(found);
  await keepCancelled(c, job, now);
  return { result: 'changed', state: 'cancelled', taskType: job.taskType };
}

/** The reasons of cancel requests, by job id. Jobs without a request are left out. */
export async function findCancelRequests(
  c: Collections,
  ids: readonly string[],
): Promise<Map<string, string | null>> {
  const found = await c.jobs
    .find(
      { _id: { $in: toStoredIds(ids) }, cancelRequested: { $ne: null } },
      { projection: { cancelRequested: 1 }, hint: { _id: 1 } },
    )
    .toArray();
  return new Map(found.map(readSomeFields).map((job) => [job._id, job.cancelRequested?.reason ?? null]));
}

export async function hold(
  c: Collections,
  jobId: string,
  reason: string | null,
  now: Date,
): Promise<JobChange> {
  return setHeld(c, jobId, 'hold', { reason, at: now }, now);
}

export async function unhold(c: Collections, jobId: string, now: Date): Promise<JobChange> {
  return setHeld(c, jobId, 'unhold', null, now);
}

async function setHeld(
  c: Collections,
  jobId: string,
  transition: 'hold' | 'unhold',
  held: Hold | null,
  now: Date,
): Promise<JobChange> {
  const { from, to } = TRANSITIONS[transition];
  // A blocked job is PENDING as well, but nobody holds it. It can be held: then it waits for nothing else.
  const isChangeable =
    transition === 'unhold'
      ? { status: from[0], held: { $ne: null } }
      : { $or: [{ status: from[0] }, { status: to, held: null, waitingFor: { $exists: true } }] };
  const changed = await c.jobs.findOneAndUpdate(
    { _id: toStoredId(jobId), ...isChangeable },
    {
      $set: { status: to, ...(held !== null && { held }) },
      $unset: { waitingFor: '', ...(held === null && { held: '' }) },
    },
    { projection: STATE_PROJECTION, returnDocument: 'after' },
  );
  return changed === null ? refusal(c, jobId, now) : { result: 'changed', state: stateOf(changed, now) };
}

/**
 * Runs a finished job again, as if it were new; the execution log keeps the earlier attempts. `from` lists the
 * statuses to retry from: a retry of all failed jobs must not repeat a job that has completed in the meantime.
 */
export async function retry(
  c: Collections,
  jobId: string,
  now: Date,
  from: readonly FinishedStatus[] = TRANSITIONS.retry.from,
): Promise<JobChange> {
  const update = {
    $set: { status: TRANSITIONS.retry.to, nextRunAt: now },
    $unset: { ...EARLIER_RUN },
    $inc: { fence: TRANSITIONS.retry.fence },
  };
  const { matchedCount } = await explainInvalid(c, jobId, () =>
    c.jobs.updateOne({ _id: toStoredId(jobId), status: { $in: [...from] } }, update),
  );
  return matchedCount === 1 ? { result: 'changed', state: 'waiting' } : refusal(c, jobId, now);
}

/** What a job that runs again must not remember. */
const EARLIER_RUN = {
  ...{ attempts: '', crashes: '', lostWhileQueued: '' },
  ...{ cancelRequested: '', cancelKind: '', skipReason: '', expiresAt: '', keepUntil: '' },
  ...{ firstStartedAt: '', startedAt: '', finishedAt: '' },
  ...{ progress: '', result: '', resultCut: '', error: '' },
} satisfies Partial<Record<keyof JobDocument, ''>>;

/** As long after the new due time as it was after the old one. */
function movedExpiry(nextRunAt: Date): object {
  const wasSet = { $eq: [{ $type: '$expiresAt' }, 'date'] };
  const moved = { $add: [nextRunAt, { $subtract: ['$expiresAt', '$nextRunAt'] }] };
  return { $cond: [wasSet, moved, '$$REMOVE'] };
}

/** Changes when a job is due, unless a worker has claimed it. Its expiry, if it has one, moves with it. */
export async function reschedule(
  c: Collections,
  jobId: string,
  nextRunAt: Date,
  now: Date,
): Promise<JobChange> {
  const changed = await explainInvalid(c, jobId, () =>
    c.jobs.findOneAndUpdate(
      { _id: toStoredId(jobId), status: { $in: [...UNCLAIMED_STATUSES] } },
      [{ $set: { nextRunAt, expiresAt: movedExpiry(nextRunAt) } }],
      { projection: STATE_PROJECTION, returnDocument: 'after' },
    ),
  );
  return changed === null ? refusal(c, jobId, now) : { result: 'changed', state: stateOf(changed, now) };
}

function stateOf(job: StoredJob, now: Date): JobState {
  return jobState(readSomeFields(job), now);
}

/** Why a guarded write did not match. */
export async function refusal(c: Collections, jobId: string, now: Date): Promise<JobChange> {
  const job = await c.jobs.findOne({ _id: toStoredId(jobId) }, { projection: STATE_PROJECTION });
  return job === null ? { result: 'notFound', state: null } : { result: 'refused', state: stateOf(job, now) };
}
