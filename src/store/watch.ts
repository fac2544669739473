import type { mongo } from 'mongoose';
import type { CancelRequest } from '../domain/job.js';
import type { Collections } from './models.js';

export interface WatchRequest {
  queues: readonly string[];
  taskTypes: readonly string[];
}

/** What happened since the last reading. */
export interface News {
  /** A schedule was added, changed or removed; what decisions write does not count. */
  schedules: boolean;
  /** When the first of the jobs is due that are new, came back or were moved. */
  dueAt: Date | undefined;
  /** Jobs that somebody wanted cancelled when it happened. */
  cancelled: ReadonlySet<string>;
}

/** How long the server waits before it says that nothing happened: shorter than the socket's time-out. */
const QUIET_AFTER = 5000;
/** As good as not at all. */
const AT_ONCE = 1;

/**
 * Follows what other processes do. Says `open` when the stream is: what happened before is not in it. Ends when the
 * signal is aborted, throws when the stream breaks. Reading on is the caller's business, who may take a pause.
 *
 * The driver's own change stream would resume by itself, as often as it takes and without a pause. Here whoever looks
 * after an `open` finds what a broken stream has missed, so nothing has to be resumed.
 */
export async function* watch(
  c: Collections,
  request: WatchRequest,
  signal: AbortSignal,
): AsyncGenerator<'open' | 'quiet' | News, void> {
  const { db } = c.jobs;
  // From before the stream is open on: a write that was under way then is not overlooked.
  const { operationTime } = await db.command({ ping: 1 });
  const start = operationTime === undefined ? {} : { startAtOperationTime: operationTime as mongo.Timestamp };
  const pipeline = [
    { $changeStream: start },
    { $match: matching(db.databaseName, request) },
    { $project: KEPT },
  ];
  const cursor = db.runCursorCommand(
    { aggregate: 1, pipeline, cursor: {}, readConcern: { level: 'majority' } },
    { readPreference: 'primary' },
  );
  // Once: a second close ends the session under the first, which then leaves the cursor open on the server.
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => (closed ??= cursor.close().catch(() => undefined));
  const abort = (): void => void close();
  try {
    let change = (await cursor.setMaxTimeMS(AT_ONCE).tryNext()) as Change | null;
    // Not before: the driver forgets to close a cursor on the server that was closed while it opened.
    signal.addEventListener('abort', abort);
    cursor.setMaxTimeMS(QUIET_AFTER);
    if (!signal.aborted) yield 'open';
    while (!signal.aborted) {
      yield change === null ? 'quiet' : toNews([change, ...(cursor.readBufferedDocuments() as Change[])]);
      change = (await cursor.tryNext()) as Change | null;
      if (cursor.closed && !signal.aborted) throw new Error('the server ended the change stream');
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener('abort', abort);
    await close();
  }
}

interface Change {
  of: 'jobs' | 'schedules';
  id: string;
  dueAt?: Date;
  cancelRequested?: CancelRequest;
}

const UPDATED = 'updateDescription.updatedFields';

/** Little of it, and nothing of payloads. */
const KEPT = {
  of: '$ns.coll',
  id: '$documentKey._id',
  dueAt: { $ifNull: ['$fullDocument.nextRunAt', `$${UPDATED}.nextRunAt`] },
  cancelRequested: `$${UPDATED}.cancelRequested`,
};

/**
 * Only what the server can look for in its log of writes before it makes a change of it: names of collections,
 * operations, fields of new documents and fields that were set. An update does not say of which queue or task type
 * the job is; those are heard of by all.
 */
function matching(db: string, { queues, taskTypes }: WatchRequest): object {
  const schedules = [
    { operationType: { $in: ['insert', 'replace', 'delete'] } },
    { operationType: 'update', [`${UPDATED}.rev`]: { $exists: true } },
  ];
  const cancelled = { operationType: 'update', [`${UPDATED}.cancelRequested`]: { $type: 'object' } };
  const due = [
    {
      operationType: { $in: ['insert', 'replace'] },
      'fullDocument.status': 'SCHEDULED',
      'fullDocument.queue': { $in: [...queues] },
      'fullDocument.taskType': { $in: [...taskTypes] },
    },
    { operationType: 'update', [`${UPDATED}.status`]: 'SCHEDULED' },
    { operationType: 'update', [`${UPDATED}.nextRunAt`]: { $exists: true } },
  ];
  return {
    $or: [
      { ns: { db, coll: 'schedules' }, $or: schedules },
      { ns: { db, coll: 'jobs' }, $or: [cancelled, ...due] },
    ],
  };
}

function toNews(changes: readonly Change[]): News {
  const jobs = changes.filter(({ of }) => of === 'jobs');
  const wanted = jobs.filter(({ cancelRequested }) => cancelRequested != null);
  const due = jobs
    .filter(({ cancelRequested }) => cancelRequested == null)
    // Back in play when it was due before: the time did not change then, and is not told.
    .map(({ dueAt }) => dueAt?.getTime() ?? 0);
  return {
    schedules: changes.some(({ of }) => of === 'schedules'),
    dueAt: due.length === 0 ? undefined : new Date(Math.min(...due)),
    cancelled: new Set(wanted.map(({ id }) => id)),
  };
}
