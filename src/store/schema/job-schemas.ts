import { Schema } from 'mongoose';
import { FINISHED_STATUSES, JOB_STATUSES, LOCKED_STATUSES } from '../../domain/job/job.js';
import {
  date,
  EXPIRY_INDEX,
  number,
  optionalDate,
  optionalNumber,
  optionalText,
  schemaOptions,
  subdocument,
  text,
} from './fields.js';

/** Leads with the queue: with the queue outside the index, a claim would read every due job of other queues. */
export const CLAIM_KEYS = { queue: 1, taskType: 1, priority: 1, nextRunAt: 1, _id: 1 } as const;
export const LOCKS_INDEX = 'locks';
export const NEXT_DUE_INDEX = 'next_due';
/** Leads with the status, so that a query for the few failed jobs does not read the many completed ones. */
export const FINISHED_INDEX = 'finished';
export const PENDING_INDEX = 'pending';

const storedError = subdocument({
  name: text,
  message: optionalText,
  code: optionalText,
  stack: optionalText,
});

export const jobSchema = new Schema(
  {
    _id: text,
    taskType: text,
    queue: text,
    priority: { ...number, min: 0, max: 1000 },
    payload: Schema.Types.Mixed,
    status: { ...text, enum: JOB_STATUSES },
    nextRunAt: date,
    createdAt: date,
    fence: number,
    attempts: number,
    crashes: number,
    lostWhileQueued: number,
    retries: { type: Schema.Types.Mixed, default: null },
    timeout: optionalNumber,
    maxRunningTime: optionalNumber,
    schedule: optionalText,
    scheduledFor: optionalDate,
    userId: optionalText,
    held: { type: subdocument({ reason: optionalText, at: date }), default: null },
    skipReason: optionalText,
    cancelRequested: { type: subdocument({ reason: optionalText, at: date }), default: null },
    lockedBy: optionalText,
    lockedUntil: optionalDate,
    lockToken: optionalText,
    settledToken: optionalText,
    settledBy: optionalText,
    queuedAt: optionalDate,
    firstStartedAt: { type: Date },
    startedAt: optionalDate,
    finishedAt: optionalDate,
    progress: { type: subdocument({ value: number, note: optionalText, at: date }), default: null },
    result: Schema.Types.Mixed,
    resultCut: { type: Boolean, default: false },
    error: { type: storedError, default: null },
    trace: { type: String },
    nonce: text,
  },
  { ...schemaOptions, collection: 'jobs' },
);

// Partial, so that a job is only in the indexes that its status needs: finished jobs are never in the hot ones.
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

export const executionSchema = new Schema(
  {
    _id: text,
    jobId: text,
    taskType: text,
    queue: text,
    attempt: number,
    fence: number,
    lockToken: text,
    workerId: text,
    startedAt: date,
    finishedAt: date,
    duration: number,
    outcome: text,
    error: { type: storedError, default: null },
    log: { type: [String], default: [] },
    expiresAt: date,
  },
  { ...schemaOptions, collection: 'executions' },
);
executionSchema.index({ expiresAt: 1 }, { name: EXPIRY_INDEX, expireAfterSeconds: 0 });
