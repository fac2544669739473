import { mongo } from 'mongoose';
import { isStoredRetryPolicy } from '../../config/handler-options.js';
import { DEFAULT_PRIORITY } from '../../config/options.js';
import { findTextError, MAX_JOB_ID_LENGTH } from '../../domain/identifiers.js';
import { CANCEL_KINDS, JOB_STATUSES, type JobDocument } from '../../domain/job/job.js';
import { isRecord } from '../../domain/language.js';
import * as stored from '../../domain/stored-values.js';
import { jsonText } from '../../domain/text.js';
import * as v from '../../domain/validation.js';

// How jobs are stored, in one place; docs/wire.md describes it for other programs. A field that is null is not stored,
// and neither is a counter that is 0. Other programs and people write to the collection, and the server checks only a
// few fields, so every job is checked where it is read.

/** An id of 24 hex digits is stored as an ObjectId, any other id as text. */
export type StoredId = string | mongo.ObjectId;

/** A job in the collection. It may not fit this type: only `readJob` and `readSomeFields` may look at its values. */
export type StoredJob = { _id: StoredId } & {
  [K in Exclude<keyof JobDocument, '_id' | 'invalid'>]?: JobDocument[K] | null;
};

const HEX_ID = /^[0-9a-f]{24}$/;

function isHexId(id: string): boolean {
  return id.length === 24 && HEX_ID.test(id);
}

export function toStoredId(id: string): StoredId {
  return isHexId(id) ? mongo.ObjectId.createFromHexString(id) : id;
}

export function toStoredIds(ids: readonly string[]): StoredId[] {
  return ids.map(toStoredId);
}

/** The id outside the store. Ids of other types, which no operation finds, are shown as JSON. */
export function toJobId(id: unknown): string {
  if (typeof id === 'string') return id;
  return isObjectId(id) ? id.toHexString() : jsonText(id).replaceAll('"', '');
}

function isObjectId(value: unknown): value is mongo.ObjectId {
  return stored.driverType(value) === 'ObjectId';
}

/** The order in which MongoDB sorts the stored ids: text comes before ObjectIds. */
export function compareJobIds(a: string, b: string): number {
  const isHex = isHexId(a);
  if (isHex !== isHexId(b)) return isHex ? 1 : -1;
  return a < b ? -1 : a > b ? 1 : 0;
}

/** For filters: a counter that is 0 may be absent. */
export function counterIs(value: number): number | { $in: (number | null)[] } {
  return value === 0 ? { $in: [0, null] } : value;
}

export function toStoredJob(job: JobDocument): StoredJob {
  const document: Record<string, unknown> = {
    _id: toStoredId(job._id),
    taskType: job.taskType,
    queue: job.queue,
    priority: job.priority,
    status: job.status,
    nextRunAt: job.nextRunAt,
    createdAt: job.createdAt,
    nonce: job.nonce,
  };
  for (const field of OPTIONAL_FIELDS) {
    const value = job[field];
    if (value !== null && value !== undefined) document[field] = value;
  }
  for (const field of COUNTERS) if (job[field] !== 0) document[field] = job[field];
  if (job.resultCut) document['resultCut'] = true;
  return document as StoredJob;
}

/**
 * The job, with the defaults of absent fields. Malformed values are replaced by defaults as well; then `invalid`
 * says what is wrong. Never throws.
 */
export function readJob(document: StoredJob): JobDocument {
  const errors = findErrors(document);
  for (const field of REQUIRED_FIELDS) {
    if (document[field] === undefined) errors.push({ field, message: `${field} is missing` });
  }
  const job = toJob(withoutFields(document, errors));
  if (errors.length > 0) {
    const fields = errors.map(({ field }) => field);
    job.invalid = { reason: errors.map(({ message }) => message).join('; '), fields, stored: document };
  }
  return job;
}

/** The same for a document that was read with only some of its fields. The others have their defaults. */
export function readSomeFields(document: StoredJob): JobDocument {
  return toJob(withoutFields(document, findErrors(document)));
}

/** Written as one literal: V8 treats the driver's objects as dictionaries, and reading those is several times slower. */
function toJob(s: StoredJob): JobDocument {
  const job: JobDocument = {
    _id: toJobId(s._id),
    taskType: s.taskType ?? '',
    queue: s.queue ?? '',
    priority: s.priority ?? DEFAULT_PRIORITY,
    payload: s.payload ?? null,
    status: s.status ?? 'PENDING',
    nextRunAt: s.nextRunAt ?? new Date(0),
    createdAt: s.createdAt ?? s.nextRunAt ?? new Date(0),
    fence: s.fence ?? 0,
    attempts: s.attempts ?? 0,
    crashes: s.crashes ?? 0,
    lostWhileQueued: s.lostWhileQueued ?? 0,
    retries: s.retries ?? null,
    timeout: s.timeout ?? null,
    maxRunningTime: s.maxRunningTime ?? null,
    schedule: s.schedule ?? null,
    scheduledFor: s.scheduledFor ?? null,
    userId: s.userId ?? null,
    held: s.held == null ? null : { reason: s.held.reason ?? null, at: s.held.at },
    skipReason: s.skipReason ?? null,
    cancelRequested:
      s.cancelRequested == null
        ? null
        : { reason: s.cancelRequested.reason ?? null, at: s.cancelRequested.at },
    cancelKind: s.cancelKind ?? null,
    lockedBy: s.lockedBy ?? null,
    lockedUntil: s.lockedUntil ?? null,
    lockToken: s.lockToken ?? null,
    settledToken: s.settledToken ?? null,
    settledBy: s.settledBy ?? null,
    queuedAt: s.queuedAt ?? null,
    startedAt: s.startedAt ?? null,
    finishedAt: s.finishedAt ?? null,
    progress: s.progress == null ? null : { ...s.progress, note: s.progress.note ?? null },
    result: s.result ?? null,
    resultCut: s.resultCut ?? false,
    error: s.error == null ? null : { ...s.error, code: s.error.code ?? null, stack: s.error.stack ?? null },
    nonce: s.nonce ?? '',
  };
  if (s.tags != null) job.tags = s.tags;
  if (s.expiresAt != null) job.expiresAt = s.expiresAt;
  if (s.retention != null) job.retention = s.retention;
  if (s.keepUntil != null) job.keepUntil = s.keepUntil;
  if (s.waitingFor != null) job.waitingFor = s.waitingFor;
  if (s.settledTokens != null) job.settledTokens = s.settledTokens;
  if (s.firstStartedAt != null) job.firstStartedAt = s.firstStartedAt;
  if (s.trace != null) job.trace = s.trace;
  return job;
}

const date = stored.matching<Date>('a date', isDate);
const texts = stored.matching<string[]>('a list of strings', isTexts);
const reasonAt = stored.matching('{ reason, at }', isReasonAt);
const counter = v.custom<number>(findCounterError);

/** A job cannot be claimed without these. */
export const REQUIRED_FIELDS = ['taskType', 'queue', 'priority', 'status', 'nextRunAt'] as const;

/** What each field may contain if it is stored. */
const FIELDS = {
  _id: v.custom(findIdError),
  taskType: stored.text,
  queue: stored.text,
  priority: stored.priority,
  payload: v.anything,
  status: v.oneOf(...JOB_STATUSES),
  nextRunAt: date,
  createdAt: v.nullable(date),
  fence: counter,
  attempts: counter,
  crashes: counter,
  lostWhileQueued: counter,
  retries: v.nullable(stored.matching('{ max, base, cap, jitter } with milliseconds', isStoredRetryPolicy)),
  timeout: v.nullable(stored.milliseconds),
  maxRunningTime: v.nullable(stored.milliseconds),
  schedule: v.nullable(stored.text),
  scheduledFor: v.nullable(date),
  userId: v.nullable(stored.text),
  tags: v.nullable(texts),
  expiresAt: v.nullable(date),
  retention: v.nullable(stored.matching('{ completed, failed, cancelled } with milliseconds', isRetention)),
  keepUntil: v.nullable(date),
  waitingFor: v.nullable(stored.text),
  held: v.nullable(reasonAt),
  skipReason: v.nullable(stored.text),
  cancelRequested: v.nullable(reasonAt),
  cancelKind: v.nullable(v.oneOf(...CANCEL_KINDS)),
  lockedBy: v.nullable(stored.text),
  lockedUntil: v.nullable(date),
  lockToken: v.nullable(stored.text),
  settledToken: v.nullable(stored.text),
  settledTokens: v.nullable(texts),
  settledBy: v.nullable(stored.text),
  queuedAt: v.nullable(date),
  firstStartedAt: v.nullable(date),
  startedAt: v.nullable(date),
  finishedAt: v.nullable(date),
  progress: v.nullable(stored.matching('{ value, note, at }', isProgress)),
  result: v.anything,
  resultCut: v.nullable(v.flag),
  error: v.nullable(stored.matching('{ name, message, code, stack }', isError)),
  trace: v.nullable(stored.text),
  nonce: v.nullable(stored.text),
} satisfies Record<Exclude<keyof JobDocument, 'invalid'>, v.Shape<unknown>>;

type Field = keyof typeof FIELDS;

const SHAPES: ReadonlyMap<string, v.Shape<unknown>> = new Map(Object.entries(FIELDS));
const COUNTERS = ['fence', 'attempts', 'crashes', 'lostWhileQueued'] as const;
const NOT_OPTIONAL = [...REQUIRED_FIELDS, ...COUNTERS, '_id', 'createdAt', 'nonce', 'resultCut'];
const OPTIONAL_FIELDS = (Object.keys(FIELDS) as Field[]).filter((field) => !NOT_OPTIONAL.includes(field));

interface FieldError {
  field: Field;
  message: string;
}

/** Unknown fields are not errors: a newer version may have added them. */
function findErrors(document: StoredJob): FieldError[] {
  const errors: FieldError[] = [];
  const messages: string[] = [];
  for (const field in document) {
    SHAPES.get(field)?.read(document[field as Field], field, messages);
    const message = messages.pop();
    if (message !== undefined) errors.push({ field: field as Field, message });
  }
  return errors;
}

function withoutFields(document: StoredJob, errors: readonly FieldError[]): StoredJob {
  if (errors.length === 0) return document;
  const fields = new Set<string>(errors.map(({ field }) => field));
  const rest = Object.entries(document).filter(([field]) => field === '_id' || !fields.has(field));
  return Object.fromEntries(rest) as StoredJob;
}

/** Text of 24 hex digits would be looked for as an ObjectId. */
function findIdError(id: unknown): string | undefined {
  if (isObjectId(id)) return undefined;
  if (typeof id !== 'string') return `must be a string or an ObjectId, got ${jsonText(id)}`;
  if (isHexId(id)) return `must not be text of 24 hex digits, which stands for an ObjectId, got '${id}'`;
  return findTextError(id, MAX_JOB_ID_LENGTH);
}

function isDate(value: unknown): value is Date {
  return value instanceof Date && !Number.isNaN(value.getTime());
}

/** `$inc` fails for the largest number, and JavaScript cannot count that far. */
function findCounterError(value: unknown): string | undefined {
  if (Number.isInteger(value) && stored.isCount(value) && value <= Number.MAX_SAFE_INTEGER / 2)
    return undefined;
  return `must be a whole number from 0 to 2^52, got ${stored.describeStored(value)}`;
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

function isReasonAt(value: unknown): boolean {
  return isRecord(value) && isAbsentOrText(value['reason']) && isDate(value['at']);
}

function isProgress(value: unknown): boolean {
  return (
    isRecord(value) &&
    typeof value['value'] === 'number' &&
    isAbsentOrText(value['note']) &&
    isDate(value['at'])
  );
}

function isRetention(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { completed = 0, failed = 0, cancelled = 0 } = value;
  return [completed, failed, cancelled].every(stored.isMilliseconds);
}

function isError(value: unknown): boolean {
  return (
    isRecord(value) &&
    typeof value['name'] === 'string' &&
    typeof value['message'] === 'string' &&
    isAbsentOrText(value['code']) &&
    isAbsentOrText(value['stack'])
  );
}

function isAbsentOrText(value: unknown): boolean {
  return value === undefined || stored.isTextOrNull(value);
}
