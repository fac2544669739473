import { Schema, type Connection, type mongo } from 'mongoose';
import { FINISHED_STATUSES, JOB_STATUSES, LOCKED_STATUSES, type JobDocument } from '../domain/job.js';
import type { ExecutionDocument } from '../domain/execution.js';
import type { ScheduleDocument, SkipDocument } from '../domain/schedule.js';
import type { AuditDocument, LockDocument, WorkerDocument } from './documents.js';
import { scheduleSchema, skipSchema } from './schedule-models.js';
import { count, date, EXPIRY_INDEX, maybeDate, maybeText, options, part, text } from './schema-parts.js';

/** The collections as the operations see them: the driver's own, because hydrating documents costs several times its work. */
export interface Collections {
  jobs: mongo.Collection<JobDocument>;
  executions: mongo.Collection<ExecutionDocument>;
  workers: mongo.Collection<WorkerDocument>;
  locks: mongo.Collection<LockDocument>;
  schedules: mongo.Collection<ScheduleDocument>;
  skips: mongo.Collection<SkipDocument>;
  audit: mongo.Collection<AuditDocument>;
}

/** Leads with the queue: a filter outside the index would read every due job of foreign queues. */
export const CLAIM_KEYS = { queue: 1, taskType: 1, priority: 1, nextRunAt: 1, _id: 1 } as const;
export const LOCKS_INDEX = 'locks';
export const NEXT_DUE_INDEX = 'next_due';
/** Leads with the status: whoever looks for the few that failed does not read the many that completed. */
export const FINISHED_INDEX = 'finished';
export const PENDING_INDEX = 'pending';
export const AUDIT_INDEX = 'newest';

const storedError = part({ name: text, message: maybeText, code: maybeText, stack: maybeText });

const jobSchema = new Schema(
  {
    _id: text,
    taskType: text,
    queue: text,
    priority: { ...count, min: 0, max: 1000 },
    payload: Schema.Types.Mixed,
    status: { ...text, enum: JOB_STATUSES },
    nextRunAt: date,
    createdAt: date,
    fence: count,
    attempts: count,
    crashes: count,
    abandoned: count,
    retries: { type: Schema.Types.Mixed, default: null },
    timeout: { type: Number, default: null },
    maxRunningTime: { type: Number, default: null },
    schedule: maybeText,
    scheduledFor: maybeDate,
    userId: maybeText,
    held: { type: part({ reason: maybeText, at: date }), default: null },
    skipReason: maybeText,
    cancelRequested: { type: part({ reason: maybeText, at: date }), default: null },
    lockedBy: maybeText,
    lockedUntil: maybeDate,
    lockToken: maybeText,
    settledToken: maybeText,
    settledBy: maybeText,
    queuedAt: maybeDate,
    firstStartedAt: { type: Date },
    startedAt: maybeDate,
    finishedAt: maybeDate,
    progress: { type: part({ value: count, note: maybeText, at: date }), default: null },
    result: Schema.Types.Mixed,
    resultCut: { type: Boolean, default: false },
    error: { type: storedError, default: null },
    trace: { type: String },
    nonce: text,
  },
  { ...options, collection: 'jobs' },
);

// Partial, so that a job only costs an index entry while it can be found by it: finished jobs never sit in the hot ones.
jobSchema.index(CLAIM_KEYS, { name: 'claim', partialFilterExpression: { status: 'SCHEDULED' } });
jobSchema.index(
  { lockedUntil: 1 },
  { name: LOCKS_INDEX, partialFilterExpression: { status: { $in: [...LOCKED_STATUSES] } } },
);
jobSchema.index({ nextRunAt: 1 }, { name: NEXT_DUE_INDEX, partialFilterExpression: { status: 'SCHEDULED' } });
jobSchema.index(
  { status: 1, finishedAt: 1 },
  { name: FINISHED_INDEX, partialFilterExpression: { status: { $in: [...FINISHED_STATUSES] } } },
);
jobSchema.index({ createdAt: 1 }, { name: PENDING_INDEX, partialFilterExpression: { status: 'PENDING' } });

const executionSchema = new Schema(
  {
    _id: text,
    jobId: text,
    taskType: text,
    queue: text,
    attempt: count,
    fence: count,
    lockToken: text,
    workerId: text,
    startedAt: date,
    finishedAt: date,
    duration: count,
    outcome: text,
    error: { type: storedError, default: null },
    log: { type: [String], default: [] },
    expiresAt: date,
  },
  { ...options, collection: 'executions' },
);
executionSchema.index({ expiresAt: 1 }, { name: EXPIRY_INDEX, expireAfterSeconds: 0 });

const workerSchema = new Schema(
  {
    _id: text,
    state: text,
    host: text,
    pid: count,
    version: text,
    queues: { type: [String], required: true },
    taskTypes: { type: [String], required: true },
    concurrency: count,
    running: count,
    startedAt: date,
    heartbeatAt: date,
    clockError: { type: Number, default: null },
    expiresAt: date,
  },
  { ...options, collection: 'workers' },
);
workerSchema.index({ expiresAt: 1 }, { name: EXPIRY_INDEX, expireAfterSeconds: 0 });

/** Never deleted: a fence that restarted at zero would let an old holder pass for a new one. */
const lockSchema = new Schema(
  { _id: text, fence: count, lockToken: maybeText, lockedBy: maybeText, lockedUntil: date },
  { ...options, collection: 'locks' },
);

const auditSchema = new Schema(
  {
    _id: text,
    at: date,
    who: text,
    action: text,
    target: maybeText,
    filter: { type: Schema.Types.Mixed, default: null },
    counts: { type: Schema.Types.Mixed, default: null },
    requestId: maybeText,
    expiresAt: date,
  },
  { ...options, collection: 'audit' },
);
auditSchema.index({ at: 1, _id: 1 }, { name: AUDIT_INDEX });
auditSchema.index({ expiresAt: 1 }, { name: EXPIRY_INDEX, expireAfterSeconds: 0 });

export const SCHEMAS: Readonly<Record<string, Schema>> = {
  Job: jobSchema,
  Execution: executionSchema,
  Worker: workerSchema,
  Lock: lockSchema,
  Schedule: scheduleSchema,
  Skip: skipSchema,
  Audit: auditSchema,
};

export function defineModels(connection: Connection): void {
  for (const [name, schema] of Object.entries(SCHEMAS)) connection.model(name, schema);
}

export function openCollections(connection: Connection): Collections {
  const db = connection.getClient().db(connection.name);
  return {
    jobs: db.collection('jobs'),
    executions: db.collection('executions'),
    workers: db.collection('workers'),
    locks: db.collection('locks'),
    schedules: db.collection('schedules'),
    skips: db.collection('skips'),
    audit: db.collection('audit'),
  };
}
