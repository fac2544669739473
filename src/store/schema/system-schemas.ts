import type { LifecycleState } from '../../domain/events.js';
import { boolean, date, EXPIRY_INDEX, number, optional, schemaFor, subdocument, text } from './fields.js';

export const AUDIT_INDEX = 'newest';

/** A worker without a heartbeat for this long counts as dead. */
export const SILENT_AFTER_MS = 60_000;

/** One per process, updated at every heartbeat. */
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
  /** Queues with limited slots (`queueSettings`), and how many of them running and prefetched jobs occupy. */
  queueSlots: readonly { queue: string; slots: number; taken: number }[];
  /** It claims no jobs. */
  isDraining: boolean;
  /** What this or another process asked for last; the worker follows it at its next heartbeat. */
  drainRequested: boolean;
  startedAt: Date;
  heartbeatAt: Date;
  /** The error of this process's estimate of the database's time, in milliseconds. */
  clockError: number | null;
  /** What is worse than usual because of the client that its application passed. */
  warnings: readonly string[];
  /** This worker died, and its heartbeat at this time was its last: the rows of its last attempts are complete. */
  logCompletedFor?: Date;
  expiresAt: Date;
}

/** A named lock. It is free when `lockedUntil` has passed. */
export interface LockDocument {
  _id: string;
  fence: number;
  lockToken: string | null;
  lockedBy: string | null;
  lockedUntil: Date;
}

/** One change that a person made. */
export interface AuditDocument {
  _id: string;
  at: Date;
  who: string;
  action: string;
  /** The id of what was changed; null for a change by filter. */
  target: string | null;
  filter: Readonly<Record<string, string>> | null;
  counts: Readonly<Record<string, number>> | null;
  requestId: string | null;
  expiresAt: Date;
}

/** The only document of its collection: what `install` created last. */
export interface InstallationDocument {
  _id: 'layout';
  layoutVersion: number;
  /** The package version that installed this layout first, for people. */
  packageVersion: string;
  installedAt: Date;
}

export const workerSchema = schemaFor({
  _id: text,
  state: text,
  host: text,
  pid: number,
  version: text,
  queues: { type: [String], required: true },
  taskTypes: { type: [String], required: true },
  concurrency: number,
  running: number,
  queueSlots: { type: [subdocument({ queue: text, slots: number, taken: number })], required: true },
  isDraining: boolean,
  drainRequested: boolean,
  startedAt: date,
  heartbeatAt: date,
  clockError: optional.number,
  warnings: { type: [String], required: true },
  logCompletedFor: { type: Date },
  expiresAt: date,
});
workerSchema.index({ expiresAt: 1 }, { name: EXPIRY_INDEX, expireAfterSeconds: 0 });

/** These documents are never deleted: a fence that restarts at zero would make an old holder look like a new one. */
export const lockSchema = schemaFor({
  _id: text,
  fence: number,
  lockToken: optional.text,
  lockedBy: optional.text,
  lockedUntil: date,
});

export const auditSchema = schemaFor({
  _id: text,
  at: date,
  who: text,
  action: text,
  target: optional.text,
  filter: optional.mixed,
  counts: optional.mixed,
  requestId: optional.text,
  expiresAt: date,
});
auditSchema.index({ at: 1, _id: 1 }, { name: AUDIT_INDEX });
auditSchema.index({ expiresAt: 1 }, { name: EXPIRY_INDEX, expireAfterSeconds: 0 });

export const installationSchema = schemaFor({
  _id: text,
  layoutVersion: number,
  packageVersion: text,
  installedAt: date,
});
