import { Schema } from 'mongoose';
import type { LifecycleState } from '../../domain/events.js';
import { date, EXPIRY_INDEX, number, optionalNumber, optionalText, schemaOptions, text } from './fields.js';

export const AUDIT_INDEX = 'newest';

/** One per process, replaced at every heartbeat. */
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
  /** The error of this process's estimate of the database's time, in milliseconds. */
  clockError: number | null;
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

export const workerSchema = new Schema(
  {
    _id: text,
    state: text,
    host: text,
    pid: number,
    version: text,
    queues: { type: [String], required: true },
    taskTypes: { type: [String], required: true },
    concurrency: number,
    running: number,
    startedAt: date,
    heartbeatAt: date,
    clockError: optionalNumber,
    expiresAt: date,
  },
  { ...schemaOptions, collection: 'workers' },
);
workerSchema.index({ expiresAt: 1 }, { name: EXPIRY_INDEX, expireAfterSeconds: 0 });

/** These documents are never deleted: a fence that restarts at zero would make an old holder look like a new one. */
export const lockSchema = new Schema(
  { _id: text, fence: number, lockToken: optionalText, lockedBy: optionalText, lockedUntil: date },
  { ...schemaOptions, collection: 'locks' },
);

export const auditSchema = new Schema(
  {
    _id: text,
    at: date,
    who: text,
    action: text,
    target: optionalText,
    filter: { type: Schema.Types.Mixed, default: null },
    counts: { type: Schema.Types.Mixed, default: null },
    requestId: optionalText,
    expiresAt: date,
  },
  { ...schemaOptions, collection: 'audit' },
);
auditSchema.index({ at: 1, _id: 1 }, { name: AUDIT_INDEX });
auditSchema.index({ expiresAt: 1 }, { name: EXPIRY_INDEX, expireAfterSeconds: 0 });
