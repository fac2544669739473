import type { AuditFilterOptions } from '../config/query-options.js';
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

export async function saveHeartbeat(c: Collections, worker: WorkerDocument): Promise<void> {
  await c.workers.replaceOne({ _id: worker._id }, worker, { upsert: true });
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

/** Workers with a heartbeat within the last day, the latest heartbeat first. */
export async function findWorkers(c: Collections, limit: number): Promise<WorkerDocument[]> {
  return withTimeLimit('listing the workers', () =>
    c.workers.find({}, { sort: { heartbeatAt: -1 }, limit, maxTimeMS: MAX_QUERY_MS }).toArray(),
  );
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
