import type { WorkerDocument } from './documents.js';
import type { Collections } from './models.js';

export async function saveHeartbeat(c: Collections, worker: WorkerDocument): Promise<void> {
  await c.workers.replaceOne({ _id: worker._id }, worker, { upsert: true });
}

/** Task types that some worker with a heartbeat since `since` has handlers for. */
export async function findLiveTaskTypes(c: Collections, since: Date): Promise<string[]> {
  return c.workers.distinct('taskTypes', { heartbeatAt: { $gte: since }, state: { $ne: 'Stopped' } });
}
