import type { AuditFilterOptions } from '../config/query-options.js';
import type { LockOwner } from '../domain/job/recovery.js';
import type { LockGrant } from './jobs/fence.js';
import { isDuplicateKey } from './mongo-errors.js';
import { pageByTime, type PageQuery } from './pagination.js';
import { MAX_QUERY_MS, withTimeLimit } from './query-limits.js';
import type { Collections } from './schema/collections.js';
import {
  AUDIT_INDEX,
  type AuditDocument,
  type LockDocument,
  SILENT_AFTER_MS,
  type WorkerDocument,
} from './schema/system-schemas.js';

/**
 * Stores the state of a worker, and returns whether it is requested to drain. Other processes write that request, so it
 * is stored only if `drainRequested` is set.
 */
export async function saveHeartbeat(
  c: Collections,
  { _id, ...fields }: Omit<WorkerDocument, 'drainRequested'>,
  drainRequested?: boolean,
): Promise<boolean> {
  const stored = await c.workers.findOneAndUpdate(
    { _id },
    drainRequested === undefined
      ? // The document may be gone: it expires after a day without a connection.
        { $set: fields, $setOnInsert: { drainRequested: fields.isDraining } }
      : { $set: { ...fields, drainRequested } },
    { upsert: true, returnDocument: 'after', projection: { drainRequested: 1 } },
  );
  return stored?.drainRequested ?? false;
}

/**
 * The result of a request to drain or undrain a worker. `requested`: it follows with its next heartbeat. `notLive`: it
 * has stopped, or sent no heartbeat for a minute. `notFound`: there was no such worker within the last day.
 */
export interface WorkerChange {
  result: 'requested' | 'notLive' | 'notFound';
}

/** Asks a live worker to drain, or to claim jobs again. */
export async function requestDrain(
  c: Collections,
  workerId: string,
  drainRequested: boolean,
  now: Date,
): Promise<WorkerChange> {
  const live = {
    state: 'Running',
    heartbeatAt: { $gte: new Date(now.getTime() - SILENT_AFTER_MS) },
  } as const;
  const { matchedCount } = await c.workers.updateOne(
    { _id: workerId, ...live },
    { $set: { drainRequested } },
  );
  if (matchedCount === 1) return { result: 'requested' };
  const found = await c.workers.findOne({ _id: workerId }, { projection: { _id: 1 } });
  return { result: found === null ? 'notFound' : 'notLive' };
}

/** Task types of the workers that are alive or stopped within the last day. */
export async function findListedTaskTypes(c: Collections): Promise<string[]> {
  return c.workers.distinct('taskTypes');
}

/** Task types of the workers that are alive now. */
export async function findLiveTaskTypes(c: Collections, now: Date): Promise<string[]> {
  const since = new Date(now.getTime() - SILENT_AFTER_MS);
  return c.workers.distinct('taskTypes', { state: 'Running', heartbeatAt: { $gte: since } });
}

/** What the workers that are alive now can run. */
export async function findLiveCapabilities(
  c: Collections,
  now: Date,
): Promise<Pick<WorkerDocument, 'queues' | 'taskTypes'>[]> {
  const since = new Date(now.getTime() - SILENT_AFTER_MS);
  const filter = { state: 'Running', heartbeatAt: { $gte: since } } as const;
  const options = { projection: { queues: 1, taskTypes: 1 }, maxTimeMS: MAX_QUERY_MS };
  return withTimeLimit('reading what live workers can run', () => c.workers.find(filter, options).toArray());
}

/** Workers with a heartbeat within the last day, the latest heartbeat first. Processes that only run passes list no queues. */
export async function findWorkers(c: Collections, limit: number): Promise<WorkerDocument[]> {
  return withTimeLimit('listing the workers', () =>
    c.workers
      .find({ queues: { $ne: [] } }, { sort: { heartbeatAt: -1 }, limit, maxTimeMS: MAX_QUERY_MS })
      .toArray(),
  );
}

/** When these workers started and sent their last heartbeat, by id. */
export async function findLockOwners(
  c: Collections,
  workerIds: readonly string[],
): Promise<Map<string, LockOwner>> {
  const projection = { state: 1, startedAt: 1, heartbeatAt: 1 } as const;
  const found = await c.workers
    .find<LockOwner & { _id: string }>(
      { _id: { $in: [...workerIds] } },
      { projection, maxTimeMS: MAX_QUERY_MS },
    )
    .toArray();
  return new Map(found.map((worker) => [worker._id, worker]));
}

/** A worker that sends no heartbeats any more and did not stop; the time is that of the last one. */
export type DeadWorker = Pick<WorkerDocument, '_id' | 'heartbeatAt'>;

/** Workers that died and whose execution log nobody has completed since. */
export async function findDeadWorkers(c: Collections, now: Date): Promise<DeadWorker[]> {
  const filter = {
    state: { $ne: 'Stopped' },
    heartbeatAt: { $lt: new Date(now.getTime() - SILENT_AFTER_MS) },
    $expr: { $ne: ['$logCompletedFor', '$heartbeatAt'] },
  } as const;
  const projection = { heartbeatAt: 1 } as const;
  return c.workers.find<DeadWorker>(filter, { projection, limit: 100, maxTimeMS: MAX_QUERY_MS }).toArray();
}

/** Has no effect if the worker came back in the meantime. */
export async function markLogCompleted(c: Collections, { _id, heartbeatAt }: DeadWorker): Promise<void> {
  await c.workers.updateOne({ _id, heartbeatAt }, { $set: { logCompletedFor: heartbeatAt } });
}

/** Takes the lock if it is free; null if it is held. The fence increases with every holder. */
export async function acquireLock(
  c: Collections,
  name: string,
  grant: LockGrant,
  now: Date,
): Promise<LockDocument | null> {
  try {
    return await c.locks.findOneAndUpdate(
      { _id: name, lockedUntil: { $lte: now } },
      {
        $set: { lockToken: grant.token, lockedBy: grant.workerId, lockedUntil: grant.lockedUntil },
        $inc: { fence: 1 },
      },
      { upsert: true, returnDocument: 'after' },
    );
  } catch (error) {
    // The lock is held: the filter did not match, so the upsert tried to insert the document a second time.
    if (isDuplicateKey(error)) return null;
    throw error;
  }
}

/** False if the caller no longer holds the lock. */
export async function releaseLock(c: Collections, name: string, token: string): Promise<boolean> {
  const { matchedCount } = await c.locks.updateOne(
    { _id: name, lockToken: token },
    { $set: { lockToken: null, lockedBy: null, lockedUntil: new Date(0) } },
  );
  return matchedCount === 1;
}

export async function findLock(c: Collections, name: string): Promise<LockDocument | null> {
  return c.locks.findOne({ _id: name });
}

export async function addAudit(c: Collections, entry: AuditDocument): Promise<void> {
  await c.audit.insertOne(entry);
}

/** Newest first. Filters are checked entry by entry: 90 days have few entries. */
export async function listAudit(
  c: Collections,
  query: PageQuery<AuditFilterOptions>,
): Promise<AuditDocument[]> {
  const request = { ...query, direction: -1, hint: AUDIT_INDEX, projection: {} } as const;
  return withTimeLimit('this list of audit entries', () => pageByTime(c.audit, 'at', request));
}
