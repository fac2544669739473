import { bounded, MOST_TIME } from './bounded.js';
import type { WorkerDocument } from './documents.js';
import type { Collections } from './models.js';

export async function saveHeartbeat(c: Collections, worker: WorkerDocument): Promise<void> {
  await c.workers.replaceOne({ _id: worker._id }, worker, { upsert: true });
}

/** Task types that some worker has, or had within the day that a silent one stays listed. */
export async function findListedTaskTypes(c: Collections): Promise<string[]> {
  return c.workers.distinct('taskTypes');
}

/** A worker that has not shown itself for this long, in milliseconds, is not counted on. */
export const SILENT = 60_000;

/** Task types that some worker has which is alive now. */
export async function findLiveTaskTypes(c: Collections, now: Date): Promise<string[]> {
  const since = new Date(now.getTime() - SILENT);
  return c.workers.distinct('taskTypes', { state: 'Running', heartbeatAt: { $gte: since } });
}

/** Those that live, and those that were seen within the day, the last that showed themselves first. */
export async function findWorkers(c: Collections, limit: number): Promise<WorkerDocument[]> {
  return bounded('listing the workers', () =>
    c.workers.find({}, { sort: { heartbeatAt: -1 }, limit, maxTimeMS: MOST_TIME }).toArray(),
  );
}
