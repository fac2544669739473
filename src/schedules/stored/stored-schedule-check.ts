import { ChronosError } from '../../domain/errors.js';
import { assertScheduleId } from '../../domain/identifiers.js';
import { MISFIRES, OVERLAPS, type ScheduleDocument } from '../../domain/schedule/schedule.js';
import { collectErrors, flag, listOf, matching, nullable, oneOf } from '../../domain/validation.js';
import type { Store } from '../../store/store.js';

/** Null if there is no such schedule. Throws INVALID_SCHEDULE if it is malformed. */
export async function findValidSchedule(
  store: Pick<Store, 'findSchedule'>,
  id: string,
): Promise<ScheduleDocument | null> {
  assertScheduleId(id);
  const schedule = await store.findSchedule(id);
  const reason = schedule === null ? undefined : findMalformation(schedule);
  if (reason === undefined) return schedule;
  throw new ChronosError('INVALID_SCHEDULE', `the stored schedule '${id}' is malformed: ${reason}`);
}

/** What is wrong with a stored schedule; undefined if it is valid. The planner checks its rule. */
export function findMalformation(document: unknown): string | undefined {
  const errors = collectErrors(FIELDS, document);
  return errors.length === 0 ? undefined : errors.join('; ');
}

const string = matching('a string', (value) => typeof value === 'string');
const count = matching('a number from 0', isCount);
const date = matching('a date', isDate);

const FIELDS = {
  taskType: string,
  rule: matching('an object or null', (value) => typeof value === 'object'),
  queue: nullable(string),
  priority: count,
  overlap: oneOf(...OVERLAPS),
  misfire: matching('{ policy, within, cap }', isMisfire),
  jitter: count,
  runs: count,
  maxRuns: nullable(count),
  anchor: date,
  nextRunAt: nullable(date),
  isActive: flag,
  pending: listOf(matching('a pending run or skip', isPending), { min: 0 }),
};

function isCount(value: unknown): boolean {
  return typeof value === 'number' && value >= 0;
}

function isDate(value: unknown): boolean {
  return value instanceof Date && !Number.isNaN(value.getTime());
}

function isMisfire(value: unknown): boolean {
  const { policy, within, cap } = (value ?? {}) as Record<string, unknown>;
  return (MISFIRES as readonly unknown[]).includes(policy) && isCount(within) && isCount(cap);
}

function isPending(value: unknown): boolean {
  const { kind, id, at, until, since, reason } = (value ?? {}) as Record<string, unknown>;
  const isRunOrSkip = kind === 'run' || (kind === 'skip' && isDate(until) && typeof reason === 'string');
  return isRunOrSkip && typeof id === 'string' && isDate(at) && isDate(since);
}
