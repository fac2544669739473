import type { Clock } from '../domain/clock.js';
import type { WorkerDocument } from '../store/documents.js';
import { SILENT } from '../store/heartbeat.js';
import type { Store } from '../store/store.js';

/** More than live at once; those that are gone stay listed for a day, behind them. */
export const MOST_WORKERS = 1000;

/** A worker process as it showed itself last. */
export type WorkerView = Omit<WorkerDocument, '_id' | 'expiresAt'> & {
  id: string;
  /** It works, and has shown itself within the last minute, by the database's clock. */
  isLive: boolean;
  /** Milliseconds since it showed itself. */
  silentFor: number;
};

/** Those that live first, then by id. */
export async function listWorkers(store: Pick<Store, 'findWorkers'>, clock: Clock): Promise<WorkerView[]> {
  const workers = await store.findWorkers(MOST_WORKERS);
  const now = clock.now();
  return workers
    .map((worker) => workerView(worker, now))
    .sort((a, b) => Number(b.isLive) - Number(a.isLive) || (a.id < b.id ? -1 : 1));
}

export function workerView(worker: WorkerDocument, now: Date): WorkerView {
  const { _id, expiresAt: _expiresAt, ...fields } = worker;
  const silentFor = Math.max(0, now.getTime() - fields.heartbeatAt.getTime());
  return { id: _id, ...fields, silentFor, isLive: fields.state === 'Running' && silentFor <= SILENT };
}
