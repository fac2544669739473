import type { mongo } from 'mongoose';
import { type CancelRequest, FINISHED_STATUSES, isFinished, type JobStatus } from '../domain/job/job.js';
import { systemClock } from '../runtime/system-clock.js';
import { sharedDeadlines, unlessAborted, waitAtMost } from '../runtime/waiting.js';
import { toJobId, toStoredIds } from './jobs/stored-job.js';
import { OperationTimeoutError } from './mongo-errors.js';
import { type Collections, passSignalToGetMore } from './schema/collections.js';

export interface ChangeStreamRequest {
  /** What a worker has to know: changed schedules, cancel requests, and jobs that become eligible for it. */
  work?: { queues: readonly string[]; taskTypes: readonly string[] };
  /** Report the end of these jobs. */
  awaited: ReadonlySet<string>;
}

/** The changes since the last batch. */
export interface ChangeBatch {
  /** A schedule was added, changed or removed. Stored decisions do not count. */
  schedules: boolean;
  /** The earliest due time of the jobs that are new, eligible again or rescheduled. */
  dueAt: Date | undefined;
  /** Jobs whose cancellation was requested; they may have finished since. */
  cancelled: ReadonlySet<string>;
  /** Jobs that finished or were deleted: all awaited ones, and cancelled ones. */
  ended: ReadonlySet<string>;
}

/** How long the server waits for changes before it sends an empty reply. Shorter than the socket timeout. */
export const MAX_AWAIT_MS = 5000;
/** The limit for every reply. */
const MAX_REPLY_MS = 10_000;
/** A server that does not reply closes the cursor by itself, later. */
const MAX_CLOSE_MS = 1000;

/**
 * Follows the changes that other processes make. Yields `open` first: earlier changes are not in the stream. Then yields
 * batches, or `quiet` if there was no change for a while. Ends when the signal is aborted, throws when the stream breaks.
 *
 * The driver's own change stream resumes by itself, without a limit or a pause. Nothing has to be resumed here: callers
 * poll after every `open` and find what a broken stream missed.
 */
export async function* watchChanges(
  c: Collections,
  request: ChangeStreamRequest,
  signal: AbortSignal,
): AsyncGenerator<'open' | 'quiet' | ChangeBatch, void> {
  const { db } = c;
  // Start before the stream is open, so that no write in progress is missed.
  const { operationTime } = await db.command({ ping: 1 });
  const start = operationTime === undefined ? {} : { startAtOperationTime: operationTime as mongo.Timestamp };
  const pipeline = [{ $changeStream: start }, { $match: changeFilter(c, request) }, { $project: PROJECTION }];
  const cursor = db.runCursorCommand(
    { aggregate: 1, pipeline, cursor: {}, readConcern: { level: 'majority' } },
    { readPreference: 'primary' },
  );
  // Close once: a second close() ends the session of the first, which then leaves the cursor open on the server.
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => (closed ??= cursor.close().catch(() => undefined));
  const abort = (): void => void close();
  const deadline = sharedDeadlines(
    MAX_REPLY_MS,
    new OperationTimeoutError('the change stream did not reply'),
  );
  const next = async (): Promise<Change | null> => {
    const limit = deadline();
    passSignalToGetMore(cursor, limit);
    return (await unlessAborted(limit, cursor.tryNext())) as Change | null;
  };
  try {
    cursor.setMaxTimeMS(1);
    let change = await next();
    // Not before the first read: the driver does not close a cursor on the server if it is closed while it opens.
    signal.addEventListener('abort', abort);
    cursor.setMaxTimeMS(MAX_AWAIT_MS);
    if (!signal.aborted) yield 'open';
    while (!signal.aborted) {
      yield change === null ? 'quiet' : toBatch(c, [change, ...(cursor.readBufferedDocuments() as Change[])]);
      change = await next();
      if (cursor.closed && !signal.aborted) throw new Error('the server closed the change stream');
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener('abort', abort);
    await waitAtMost(systemClock, MAX_CLOSE_MS, close());
  }
}

/** Opens a change stream as a worker does. Returns the error message if that fails, else null. */
export async function findStreamError(c: Collections): Promise<string | null> {
  const closing = new AbortController();
  const work = { queues: [], taskTypes: [] };
  const stream = watchChanges(c, { work, awaited: new Set() }, closing.signal);
  try {
    await stream.next();
    return null;
  } catch (error) {
    return (error as Error).message;
  } finally {
    closing.abort();
    await stream.return();
  }
}

interface Change {
  collection: string;
  id: unknown;
  operation: string;
  status?: JobStatus;
  dueAt?: unknown;
  cancelRequested?: CancelRequest;
}

const UPDATED = 'updateDescription.updatedFields';

/** Without payloads. */
const PROJECTION = {
  collection: '$ns.coll',
  id: '$documentKey._id',
  operation: '$operationType',
  status: `$${UPDATED}.status`,
  dueAt: { $ifNull: ['$fullDocument.nextRunAt', `$${UPDATED}.nextRunAt`] },
  cancelRequested: `$${UPDATED}.cancelRequested`,
};

/**
 * Only conditions that the server can check on the oplog, before it builds a change event: collections, operations, ids,
 * fields of new documents and updated fields. An update does not include the queue or the task type of the job, so every
 * worker receives it.
 */
function changeFilter(c: Collections, { work, awaited }: ChangeStreamRequest): object {
  const jobs = [...(work === undefined ? [] : workConditions(work)), ...endConditions([...awaited])];
  const ofJobs = { ns: namespaceOf(c.jobs), $or: jobs };
  const schedules = [
    { operationType: { $in: ['insert', 'replace', 'delete'] } },
    { operationType: 'update', [`${UPDATED}.rev`]: { $exists: true } },
  ];
  return work === undefined ? ofJobs : { $or: [{ ns: namespaceOf(c.schedules), $or: schedules }, ofJobs] };
}

function workConditions({ queues, taskTypes }: NonNullable<ChangeStreamRequest['work']>): object[] {
  return [
    { operationType: 'update', [`${UPDATED}.cancelRequested`]: { $type: 'object' } },
    {
      operationType: { $in: ['insert', 'replace'] },
      'fullDocument.status': 'SCHEDULED',
      'fullDocument.queue': { $in: [...queues] },
      'fullDocument.taskType': { $in: [...taskTypes] },
    },
    { operationType: 'update', [`${UPDATED}.status`]: 'SCHEDULED' },
    { operationType: 'update', [`${UPDATED}.nextRunAt`]: { $exists: true } },
  ];
}

function endConditions(ids: readonly string[]): object[] {
  if (ids.length === 0) return [];
  const isAwaited = { 'documentKey._id': { $in: toStoredIds(ids) } };
  return [
    { operationType: 'update', [`${UPDATED}.status`]: { $in: [...FINISHED_STATUSES] }, ...isAwaited },
    { operationType: 'delete', ...isAwaited },
  ];
}

function namespaceOf({ dbName, collectionName }: { dbName: string; collectionName: string }): object {
  return { db: dbName, coll: collectionName };
}

function toBatch(c: Collections, changes: readonly Change[]): ChangeBatch {
  const batch = { schedules: false, dueAt: Infinity, cancelled: new Set<string>(), ended: new Set<string>() };
  for (const { collection, id: storedId, operation, status, dueAt, cancelRequested } of changes) {
    const id = toJobId(storedId);
    const hasEnded = operation === 'delete' || (status !== undefined && isFinished(status));
    if (collection === c.schedules.collectionName) batch.schedules = true;
    else if (hasEnded) batch.ended.add(id);
    // An update without nextRunAt: the job is eligible again at its earlier time, which may have passed.
    else if (cancelRequested == null) batch.dueAt = Math.min(batch.dueAt, timeOf(dueAt));
    if (cancelRequested != null) batch.cancelled.add(id);
  }
  return { ...batch, dueAt: batch.dueAt === Infinity ? undefined : new Date(batch.dueAt) };
}

/** 0, which means now, without a valid time: the poll that follows deals with the job. */
function timeOf(dueAt: unknown): number {
  return (dueAt instanceof Date && dueAt.getTime()) || 0;
}
