import type { LifecycleState } from '../domain/events.js';

/** One per process, refreshed at every heartbeat. */
export interface WorkerDocument {
  _id: string;
  state: LifecycleState;
  host: string;
  pid: number;
  version: string;
  queues: readonly string[];
  taskTypes: readonly string[];
  concurrency: number;
  running: number;
  startedAt: Date;
  heartbeatAt: Date;
  /** How well this process knows the database's time, in milliseconds. */
  clockError: number | null;
  expiresAt: Date;
}

/** A named lock; `lockedUntil` in the past means it is free. */
export interface LockDocument {
  _id: string;
  fence: number;
  lockToken: string | null;
  lockedBy: string | null;
  lockedUntil: Date;
}

/** Who changed what, and what came of it. */
export interface AuditDocument {
  _id: string;
  at: Date;
  who: string;
  action: string;
  /** The id of the job, schedule or whatever else was changed; null where a filter says which. */
  target: string | null;
  filter: Readonly<Record<string, string>> | null;
  counts: Readonly<Record<string, number>> | null;
  requestId: string | null;
  expiresAt: Date;
}
