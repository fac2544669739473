import type { ResolvedOptions } from './config/options.js';
import type { Parts } from './parts.js';
import type { PoolUse } from './store/pool-use.js';

/** What a process has in hand at one moment. */
export interface WorkerLoad {
  /** Slots, and how many of them are taken. */
  concurrency: number;
  running: number;
  /** Claimed jobs that wait for a slot. */
  buffered: number;
  /** Outcomes that are not written yet. */
  unsettled: number;
  queues: readonly string[];
  taskTypes: readonly string[];
  /** Null when there is none. */
  connection: (PoolUse & { isConnected: boolean }) | null;
}

export function loadOf(
  parts: Parts | undefined,
  { concurrency, queues }: ResolvedOptions,
  taskTypes: readonly string[],
): WorkerLoad {
  const { running = 0, buffered = 0, unsettled = 0 } = parts?.engine ?? {};
  const connection =
    parts === undefined ? null : { ...parts.database.poolUse(), isConnected: parts.database.isConnected() };
  return { concurrency, running, buffered, unsettled, queues, taskTypes, connection };
}
