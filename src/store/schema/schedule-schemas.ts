import { Schema } from 'mongoose';
import {
  boolean,
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

export const DUE_SCHEDULES_INDEX = 'due';
export const PENDING_SCHEDULES_INDEX = 'pending';

const pendingEntry = subdocument({
  kind: text,
  id: text,
  at: date,
  until: { type: Date },
  count: optionalNumber,
  reason: { type: String },
  activeId: optionalText,
  runningFor: optionalNumber,
  since: date,
  manual: { type: Boolean },
});

export const scheduleSchema = new Schema(
  {
    _id: text,
    owner: { ...text, enum: ['code', 'api'] },
    taskType: text,
    rule: Schema.Types.Mixed,
    payload: Schema.Types.Mixed,
    queue: optionalText,
    priority: { ...number, min: 0, max: 1000 },
    retries: Schema.Types.Mixed,
    timeout: optionalNumber,
    maxRunningTime: optionalNumber,
    misfire: Schema.Types.Mixed,
    overlap: text,
    jitter: number,
    maxRuns: optionalNumber,
    enabled: boolean,
    environments: { type: [String], required: true },
    userId: optionalText,
    hash: text,
    rev: number,
    isActive: boolean,
    paused: { type: subdocument({ at: date, by: optionalText, reason: optionalText }), default: null },
    disabledReason: optionalText,
    anchor: date,
    nextRunAt: optionalDate,
    lastRunAt: optionalDate,
    active: optionalText,
    pending: { type: [pendingEntry], required: true },
    runs: number,
    decision: optionalText,
    createdAt: date,
    updatedAt: date,
  },
  { ...schemaOptions, collection: 'schedules' },
);
scheduleSchema.index(
  { nextRunAt: 1 },
  { name: DUE_SCHEDULES_INDEX, partialFilterExpression: { isActive: true } },
);
scheduleSchema.index({ 'pending.since': 1 }, { name: PENDING_SCHEDULES_INDEX, sparse: true });

export const skipSchema = new Schema(
  {
    _id: text,
    scheduleId: text,
    at: date,
    until: date,
    count: optionalNumber,
    reason: text,
    activeId: optionalText,
    runningFor: optionalNumber,
    since: date,
    expiresAt: date,
  },
  { ...schemaOptions, collection: 'skips' },
);
skipSchema.index({ scheduleId: 1, at: 1 }, { name: 'schedule' });
skipSchema.index({ expiresAt: 1 }, { name: EXPIRY_INDEX, expireAfterSeconds: 0 });
