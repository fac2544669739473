import { FINISHED_STATUSES, JOB_STATUSES, LOCKED_STATUSES } from '../../domain/job/job.js';
import { date, EXPIRY_INDEX, mixed, number, optional, schemaFor, subdocument, text } from './fields.js';

/** Starts with the queue: otherwise a claim would read every due job of other queues. */
export const CLAIM_KEYS = { queue: 1, taskType: 1, priority: 1, nextRunAt: 1, _id: 1 } as const;
export const LOCKS_INDEX = 'locks';
export const NEXT_DUE_INDEX = 'next_due';
/** Starts with the status, so that a query for the few failed jobs does not read the many completed ones. */
export const FINISHED_INDEX = 'finished';
/** Tells cancelled, skipped and expired jobs apart; only CANCELLED jobs pay for it. */
export const CANCELLED_INDEX = 'cancelled';
export const PENDING_INDEX = 'pending';
export const RETRYING_INDEX = 'retrying';
export const EXPIRES_INDEX = 'expires';
export const KEEP_INDEX = 'keep_until';
/** In claim order. */
export const WAITING_INDEX = 'waiting';
export const USER_INDEX = 'user';
export const TAGS_INDEX = 'tags';

/** Rows are deleted with their job. Those of jobs that were deleted by other means end after this time. */
const MAX_EXECUTION_AGE_S = 366 * 86_400;

/** The condition of the index of retries; a query must repeat it to use the index. */
export const HAS_FAILED = { $or: [{ attempts: { $gt: 0 } }, { crashes: { $gt: 0 } }] };

const storedError = subdocument({
  name: text,
  message: optional.text,
  code: optional.text,
  stack: optional.text,
});

export const jobSchema = schemaFor({
  // An ObjectId or text.
  _id: mixed,
  taskType: text,
  queue: text,
  priority: { ...number, min: 0, max: 1000 },
  payload: mixed,
  status: { ...text, enum: JOB_STATUSES },
  nextRunAt: date,
  createdAt: optional.date,
  fence: optional.number,
  attempts: optional.number,
  crashes: optional.number,
  lostWhileQueued: optional.number,
  retries: optional.mixed,
  timeout: optional.number,
  maxRunningTime: optional.number,
  schedule: optional.text,
  scheduledFor: optional.date,
  userId: optional.text,
  tags: { type: [String], default: undefined },
  expiresAt: { type: Date },
  retention: mixed,
  keepUntil: { type: Date },
  waitingFor: { type: String },
  held: { type: subdocument({ reason: optional.text, at: date }), default: null },
  skipReason: optional.text,
  cancelRequested: { type: subdocument({ reason: optional.text, at: date }), default: null },
  cancelKind: optional.text,
  lockedBy: optional.text,
  lockedUntil: optional.date,
  lockToken: optional.text,
  settledToken: optional.text,
  settledTokens: { type: [String], default: undefined },
  settledBy: optional.text,
  queuedAt: optional.date,
  firstStartedAt: { type: Date },
  startedAt: optional.date,
  finishedAt: optional.date,
  progress: { type: subdocument({ value: number, note: optional.text, at: date }), default: null },
  result: mixed,
  resultCut: { type: Boolean, default: false },
  error: { type: storedError, default: null },
  trace: { type: String },
  nonce: optional.text,
});

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
jobSchema.index(
  { cancelKind: 1, finishedAt: 1 },
  { name: CANCELLED_INDEX, partialFilterExpression: { status: 'CANCELLED' } },
);
jobSchema.index(
  { nextRunAt: 1 },
  { name: RETRYING_INDEX, partialFilterExpression: { status: 'SCHEDULED', ...HAS_FAILED } },
);
jobSchema.index({ createdAt: 1 }, { name: PENDING_INDEX, partialFilterExpression: { status: 'PENDING' } });

// Only jobs that have the field are in these.
jobSchema.index(
  { expiresAt: 1 },
  {
    name: EXPIRES_INDEX,
    partialFilterExpression: { expiresAt: { $exists: true }, status: { $in: ['PENDING', 'SCHEDULED'] } },
  },
);
jobSchema.index(
  { keepUntil: 1 },
  { name: KEEP_INDEX, partialFilterExpression: { keepUntil: { $exists: true } } },
);
jobSchema.index(
  { waitingFor: 1, priority: 1, nextRunAt: 1, _id: 1 },
  { name: WAITING_INDEX, partialFilterExpression: { waitingFor: { $exists: true } } },
);
jobSchema.index(
  { userId: 1, _id: 1 },
  { name: USER_INDEX, partialFilterExpression: { userId: { $gt: '' } } },
);
jobSchema.index(
  { tags: 1, _id: 1 },
  { name: TAGS_INDEX, partialFilterExpression: { tags: { $exists: true } } },
);

export const executionSchema = schemaFor({
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
  error: { type: storedError },
  log: { type: [String], default: undefined },
  reconstructed: { type: Boolean },
});
executionSchema.index({ finishedAt: 1 }, { name: EXPIRY_INDEX, expireAfterSeconds: MAX_EXECUTION_AGE_S });
