import type { PoolUse } from '../store/connection.js';
import type { QueueBacklog } from '../store/jobs/counts.js';
import type { QueueSlots } from '../worker/in-flight-jobs.js';
import type { SchedulerLifecycle } from './lifecycle.js';

/** How busy this process is now. */
export interface WorkerLoad {
  /** Slots for handlers. */
  concurrency: number;
  /** Slots in use. */
  running: number;
  /** Claimed jobs that wait for a slot. */
  buffered: number;
  /** Outcomes that are not stored yet. */
  unsettled: number;
  /** It claims no jobs: `drain()` was called. */
  isDraining: boolean;
  /** Queues with limited slots (`queueSettings`), and how many of them running and prefetched jobs occupy. */
  queueSlots: readonly QueueSlots[];
  queues: readonly string[];
  taskTypes: readonly string[];
  /** Null without a connection. */
  connection: (PoolUse & { isConnected: boolean }) | null;
}

export function currentLoad({ connected, deps }: SchedulerLifecycle): WorkerLoad {
  const { concurrency, queues } = deps.options;
  const {
    running = 0,
    prefetched: buffered = 0,
    unsettled = 0,
    isDraining = false,
    queueSlots = [],
  } = connected?.engine ?? {};
  const database = connected?.database;
  const connection = database ? { ...database.poolStats(), isConnected: database.isConnected() } : null;
  return {
    ...{ concurrency, running, buffered, unsettled, isDraining, queueSlots, queues, connection },
    taskTypes: deps.registry.taskTypes,
  };
}

/** Due, unclaimed jobs in the queues of this process. Empty without a connection: it does not connect. */
export async function currentBacklog({ connected, deps }: SchedulerLifecycle): Promise<QueueBacklog[]> {
  if (!connected?.database.isConnected()) return [];
  return connected.store.findBacklog(deps.options.queues, connected.clock);
}
