import { ChronosError } from '../domain/errors.js';
import { checkScheduleId } from '../domain/names.js';
import { MISFIRES, OVERLAPS, type ScheduleDocument } from '../domain/schedule.js';
import type { Store } from '../store/store.js';

/** The schedule of an id that somebody gave. Throws INVALID_SCHEDULE when it is there and cannot be read. */
export async function findReadable(
  store: Pick<Store, 'findSchedule'>,
  id: string,
): Promise<ScheduleDocument | null> {
  checkScheduleId(id);
  const schedule = await store.findSchedule(id);
  const reason = schedule === null ? undefined : unreadable(schedule);
  if (reason === undefined) return schedule;
  throw new ChronosError('INVALID_SCHEDULE', `the stored schedule '${id}' cannot be read: ${reason}`);
}

/** Why a document is no schedule that can be worked with; undefined when it is one. Its rule is another question. */
export function unreadable(document: unknown): string | undefined {
  const schedule = document as Record<string, unknown>;
  const faults = Object.entries(EXPECTED)
    .filter(([field, holds]) => !holds(schedule[field]))
    .map(([field]) => field);
  return faults.length === 0 ? undefined : `${faults.join(', ')} cannot be read`;
}

const text = (value: unknown): boolean => typeof value === 'string';
const count = (value: unknown): boolean => typeof value === 'number' && value >= 0;
const date = (value: unknown): boolean => value instanceof Date && !Number.isNaN(value.getTime());
const orNull =
  (holds: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    value === null || holds(value);

const EXPECTED: Record<string, (value: unknown) => boolean> = {
  taskType: text,
  rule: (value) => typeof value === 'object',
  queue: orNull(text),
  priority: count,
  overlap: (value) => (OVERLAPS as readonly unknown[]).includes(value),
  misfire: isMisfire,
  jitter: count,
  runs: count,
  maxRuns: orNull(count),
  anchor: date,
  nextRunAt: orNull(date),
  isActive: (value) => typeof value === 'boolean',
  owed: (value) => Array.isArray(value) && value.every(isOwed),
};

function isMisfire(value: unknown): boolean {
  const { policy, within, cap } = (value ?? {}) as Record<string, unknown>;
  return (MISFIRES as readonly unknown[]).includes(policy) && count(within) && count(cap);
}

function isOwed(value: unknown): boolean {
  const { kind, id, at, until, since, reason } = (value ?? {}) as Record<string, unknown>;
  const isEither = kind === 'run' || (kind === 'skip' && date(until) && text(reason));
  return isEither && text(id) && date(at) && date(since);
}
