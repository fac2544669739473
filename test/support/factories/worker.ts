import { VERSION } from '../../../src/config/version.js';
import type { WorkerDocument } from '../../../src/store/schema/system-schemas.js';
import { timeAfter, START } from '../instants.js';

/** An idle worker with a handler for `work`, whose last heartbeat was at the start of the manual clock. */
export function aWorker(fields: Partial<WorkerDocument> = {}): WorkerDocument {
  return {
    _id: 'worker',
    state: 'Running',
    host: 'host',
    pid: 1,
    version: VERSION,
    queues: ['default'],
    taskTypes: ['work'],
    concurrency: 5,
    running: 0,
    queueSlots: [],
    isDraining: false,
    drainRequested: false,
    startedAt: START,
    heartbeatAt: START,
    clockError: 1,
    warnings: [],
    expiresAt: timeAfter(86_400_000),
    ...fields,
  };
}
