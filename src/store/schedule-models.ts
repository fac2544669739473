import { Schema } from 'mongoose';
import {
  count,
  date,
  EXPIRY_INDEX,
  flag,
  maybeDate,
  maybeText,
  options,
  part,
  text,
} from './schema-parts.js';

export const DUE_SCHEDULES_INDEX = 'due';
export const OWING_SCHEDULES_INDEX = 'owing';

const owedPart = part({
  kind: text,
  id: text,
  at: date,
  until: { type: Date },
  count: { type: Number, default: null },
  reason: { type: String },
  activeId: maybeText,
  runningFor: { type: Number, default: null },
  since: date,
  patient: { type: Boolean },
});

export const scheduleSchema = new Schema(
  {
    _id: text,
    owner: { ...text, enum: ['code', 'api'] },
    taskType: text,
    rule: Schema.Types.Mixed,
    payload: Schema.Types.Mixed,
    queue: maybeText,
    priority: { ...count, min: 0, max: 1000 },
    retries: Schema.Types.Mixed,
    timeout: { type: Number, default: null },
    maxRunningTime: { type: Number, default: null },
    misfire: Schema.Types.Mixed,
    overlap: text,
    jitter: count,
    maxRuns: { type: Number, default: null },
    enabled: flag,
    environments: { type: [String], required: true },
    userId: maybeText,
    hash: text,
    rev: count,
    isActive: flag,
    paused: { type: part({ at: date, by: maybeText, reason: maybeText }), default: null },
    disabledReason: maybeText,
    anchor: date,
    nextRunAt: maybeDate,
    lastRunAt: maybeDate,
    active: maybeText,
    owed: { type: [owedPart], required: true },
    runs: count,
    decision: maybeText,
    createdAt: date,
    updatedAt: date,
  },
  { ...options, collection: 'schedules' },
);
scheduleSchema.index(
  { nextRunAt: 1 },
  { name: DUE_SCHEDULES_INDEX, partialFilterExpression: { isActive: true } },
);
scheduleSchema.index({ 'owed.since': 1 }, { name: OWING_SCHEDULES_INDEX, sparse: true });

export const skipSchema = new Schema(
  {
    _id: text,
    scheduleId: text,
    at: date,
    until: date,
    count: { type: Number, default: null },
    reason: text,
    activeId: maybeText,
    runningFor: { type: Number, default: null },
    since: date,
    expiresAt: date,
  },
  { ...options, collection: 'skips' },
);
skipSchema.index({ scheduleId: 1, at: 1 }, { name: 'schedule' });
skipSchema.index({ expiresAt: 1 }, { name: EXPIRY_INDEX, expireAfterSeconds: 0 });
