import { date, EXPIRY_INDEX, mixed, number, optional, schemaFor, subdocument, text } from './fields.js';

export const DUE_SCHEDULES_INDEX = 'due';
export const PENDING_SCHEDULES_INDEX = 'pending';
export const SKIPS_INDEX = 'schedule';

const boolean = { type: Boolean, required: true } as const;

const pendingEntry = subdocument({
  kind: text,
  id: text,
  at: date,
  until: { type: Date },
  count: optional.number,
  reason: { type: String },
  activeId: optional.text,
  runningFor: optional.number,
  since: date,
  manual: { type: Boolean },
  uncounted: { type: Boolean },
});

export const scheduleSchema = schemaFor({
  _id: text,
  owner: { ...text, enum: ['code', 'api'] },
  taskType: text,
  rule: mixed,
  payload: mixed,
  queue: optional.text,
  priority: { ...number, min: 0, max: 1000 },
  retries: mixed,
  timeout: optional.number,
  maxRunningTime: optional.number,
  expiresIn: optional.number,
  misfire: mixed,
  overlap: text,
  singleInstance: { type: Boolean, default: false },
  jitter: number,
  maxRuns: optional.number,
  enabled: boolean,
  environments: { type: [String], required: true },
  userId: optional.text,
  hash: text,
  rev: number,
  isActive: boolean,
  paused: { type: subdocument({ at: date, by: optional.text, reason: optional.text }), default: null },
  disabledReason: optional.text,
  anchor: date,
  nextRunAt: optional.date,
  lastRunAt: optional.date,
  active: optional.text,
  pending: { type: [pendingEntry], required: true },
  runs: number,
  decision: optional.text,
  createdAt: date,
  updatedAt: date,
});
scheduleSchema.index(
  { nextRunAt: 1 },
  { name: DUE_SCHEDULES_INDEX, partialFilterExpression: { isActive: true } },
);
scheduleSchema.index({ 'pending.since': 1 }, { name: PENDING_SCHEDULES_INDEX, sparse: true });

export const skipSchema = schemaFor({
  _id: text,
  scheduleId: text,
  at: date,
  until: date,
  count: optional.number,
  reason: text,
  activeId: optional.text,
  runningFor: optional.number,
  since: date,
  expiresAt: date,
});
skipSchema.index({ scheduleId: 1, at: 1 }, { name: SKIPS_INDEX });
skipSchema.index({ expiresAt: 1 }, { name: EXPIRY_INDEX, expireAfterSeconds: 0 });
