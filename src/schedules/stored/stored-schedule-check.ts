import { isStoredRetryPolicy } from '../../config/handler-options.js';
import { DEFAULT_PRIORITY } from '../../config/options.js';
import { occurrencesOf } from '../../domain/calendar/occurrences.js';
import type { Rule } from '../../domain/calendar/rule.js';
import { isWithinYears } from '../../domain/calendar/time-zone.js';
import { ChronosError, toError } from '../../domain/errors.js';
import { assertScheduleId, findNameError } from '../../domain/identifiers.js';
import { isDateObject, isRecord } from '../../domain/language.js';
import {
  DEFAULT_MISFIRE,
  MAX_MISFIRE_CAP,
  MISFIRES,
  OVERLAPS,
  type ScheduleDocument,
} from '../../domain/schedule/schedule.js';
import * as stored from '../../domain/stored-values.js';
import { jsonText } from '../../domain/text.js';
import * as v from '../../domain/validation.js';
import type { Store } from '../../store/store.js';

// Other programs, other versions and people may write to the collection, and the server checks only types. Everything
// that reads a schedule checks it here first.

/** Null if there is no such schedule. Throws INVALID_SCHEDULE if it is malformed. */
export async function findValidSchedule(
  store: Pick<Store, 'findSchedule'>,
  id: string,
): Promise<ScheduleDocument | null> {
  assertScheduleId(id);
  const schedule = await store.findSchedule(id);
  const reason = schedule === null ? undefined : findMalformation(schedule);
  if (reason === undefined) return schedule;
  throw new ChronosError('INVALID_SCHEDULE', malformedMessage(id, reason));
}

export function malformedMessage(id: string, reason: string): string {
  return `the stored schedule '${id}' is malformed: ${reason}. Correct the stored document, or remove it and add it again`;
}

/** What is wrong with a stored schedule; undefined if it is valid. The planner checks its rule. */
export function findMalformation(document: unknown): string | undefined {
  const errors = [...v.collectErrors(FIELDS, document), ...findReservedKeys(document)];
  return errors.length === 0 ? undefined : errors.join('; ');
}

/** For example, such a payload could not be written to the schedule's jobs. */
function findReservedKeys(document: unknown): string[] {
  const fields = Object.entries(document ?? {}).filter(([, value]) => stored.hasReservedKey(value));
  return fields.map(
    ([field]) => `${field} must not contain the key _bsontype, which the MongoDB driver reserves`,
  );
}

/** A schedule for a list: fields that cannot be shown are replaced. `invalid` says what is wrong with it. */
export interface ShownSchedule {
  schedule: ScheduleDocument;
  invalid: string | null;
}

export function toShownSchedule(document: ScheduleDocument): ShownSchedule {
  const errors: string[] = [];
  const shown: Record<string, unknown> = { ...document, _id: idText(document) };
  for (const [field, shape] of Object.entries(FIELDS)) {
    const before = errors.length;
    const value = (document as unknown as Record<string, unknown>)[field];
    shape.read(value, field, errors);
    if ((errors.length > before || value === undefined) && field !== '_id')
      shown[field] = REPLACEMENTS[field as keyof typeof FIELDS];
  }
  errors.push(...findReservedKeys(document));
  const schedule = shown as unknown as ScheduleDocument;
  const ruleError = schedule.rule === null ? undefined : findRuleError(schedule.rule, schedule.anchor);
  if (ruleError !== undefined) errors.push(ruleError);
  return {
    schedule: ruleError === undefined ? schedule : { ...schedule, rule: null },
    invalid: errors.length === 0 ? null : errors.join('; '),
  };
}

/** The id as text: a document that was inserted without an id has an ObjectId. */
export function idText({ _id }: { _id: unknown }): string {
  return typeof _id === 'string' ? _id : jsonText(_id).replaceAll('"', '');
}

function findRuleError(rule: Rule, anchor: Date): string | undefined {
  try {
    occurrencesOf(rule, anchor);
    return undefined;
  } catch (error) {
    return toError(error).message;
  }
}

const { text, count, priority, milliseconds } = stored;
const date = stored.matching('a date', isDate);
const name = v.custom(findNameError);

const FIELDS = {
  _id: name,
  owner: v.oneOf('code', 'api'),
  taskType: name,
  rule: stored.matching('an object or null', (value) => value === null || isRecord(value)),
  queue: v.nullable(v.name),
  priority,
  retries: v.nullable(stored.matching('{ max, base, cap, jitter } with numbers', isStoredRetryPolicy)),
  timeout: v.nullable(milliseconds),
  maxRunningTime: v.nullable(milliseconds),
  // Schedules of earlier versions have neither `expiresIn` nor `singleInstance`.
  expiresIn: absentOr(v.nullable(milliseconds)),
  overlap: v.oneOf(...OVERLAPS),
  singleInstance: absentOr(v.flag),
  misfire: stored.matching(
    `{ policy, within, cap } with milliseconds and a number up to ${MAX_MISFIRE_CAP}`,
    isMisfire,
  ),
  jitter: milliseconds,
  runs: count,
  maxRuns: v.nullable(count),
  enabled: v.flag,
  environments: v.listOf(text, { min: 0 }),
  userId: v.nullable(text),
  hash: text,
  rev: count,
  anchor: date,
  nextRunAt: v.nullable(date),
  lastRunAt: v.nullable(date),
  isActive: v.flag,
  paused: v.nullable(stored.matching('{ at, by, reason }', isPause)),
  disabledReason: v.nullable(text),
  active: v.nullable(text),
  pending: v.listOf(stored.matching('a pending run or skip', isPending), { min: 0 }),
  decision: v.nullable(text),
  createdAt: date,
  updatedAt: date,
} satisfies Partial<Record<keyof ScheduleDocument, v.Shape<unknown>>>;

/** Shown instead of a value of the wrong type. */
const REPLACEMENTS: Omit<ScheduleDocument, 'payload'> = {
  _id: '',
  owner: 'api',
  taskType: '',
  rule: null,
  queue: null,
  priority: DEFAULT_PRIORITY,
  retries: null,
  timeout: null,
  maxRunningTime: null,
  expiresIn: null,
  overlap: 'skip',
  singleInstance: false,
  misfire: DEFAULT_MISFIRE,
  jitter: 0,
  runs: 0,
  maxRuns: null,
  enabled: false,
  environments: [],
  userId: null,
  hash: '',
  rev: 0,
  anchor: new Date(0),
  nextRunAt: null,
  lastRunAt: null,
  isActive: false,
  paused: null,
  disabledReason: null,
  active: null,
  pending: [],
  decision: null,
  createdAt: new Date(0),
  updatedAt: new Date(0),
};

function absentOr<T>(shape: v.Shape<T>): v.Shape<T> {
  return {
    ...shape,
    read: (value, path, errors) => (value === undefined ? undefined : shape.read(value, path, errors)),
  };
}

function isDate(value: unknown): boolean {
  return isDateObject(value) && isWithinYears(value);
}

function isMisfire(value: unknown): boolean {
  const { policy, within, cap } = (value ?? {}) as Record<string, unknown>;
  const isKnown = (MISFIRES as readonly unknown[]).includes(policy);
  return isKnown && stored.isMilliseconds(within) && stored.isCount(cap) && cap <= MAX_MISFIRE_CAP;
}

function isPause(value: unknown): boolean {
  const { at, by, reason } = (value ?? {}) as Record<string, unknown>;
  return isDate(at) && stored.isTextOrNull(by) && stored.isTextOrNull(reason);
}

function isPending(value: unknown): boolean {
  const { kind, id, at, until, since, reason } = (value ?? {}) as Record<string, unknown>;
  const isRunOrSkip = kind === 'run' || (kind === 'skip' && isDate(until) && typeof reason === 'string');
  return isRunOrSkip && typeof id === 'string' && isDate(at) && isDate(since);
}
