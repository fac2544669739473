import { randomUUID } from 'node:crypto';
import { lastInMinute, occurrencesOf } from '../../domain/calendar/occurrences.js';
import { pendingSkip } from '../../domain/schedule/pending.js';
import {
  canonicalJson,
  occurrenceId,
  type ScheduleDefinition,
  type ScheduleDocument,
} from '../../domain/schedule/schedule.js';

/**
 * A schedule as it is first stored. Its first occurrence is after now; with `includeCurrentMinute` it is the last one in
 * the minute that ends now, if there is one.
 */
export function newSchedule(
  id: string,
  owner: ScheduleDocument['owner'],
  definition: ScheduleDefinition,
  hash: string,
  now: Date,
  { includeCurrentMinute = false } = {},
): ScheduleDocument {
  const current = includeCurrentMinute ? currentOccurrence(definition, now) : undefined;
  return {
    _id: id,
    owner,
    ...definition,
    hash,
    rev: 0,
    isActive: definition.enabled,
    paused: null,
    disabledReason: null,
    anchor: now,
    nextRunAt: current ?? firstAfter(definition, now, now),
    lastRunAt: null,
    active: null,
    pending: [],
    runs: 0,
    decision: randomUUID(),
    createdAt: now,
    updatedAt: now,
  };
}

/** Every change has a new `decision`: plans that are based on the schedule before the change then fail. */
export type ScheduleChange = Partial<ScheduleDocument> & Pick<ScheduleDocument, 'decision'>;

/**
 * The fields that a new definition changes. The schedule stays paused if it is paused. A changed rule applies from now
 * on; an unchanged rule continues where it was.
 */
export function applyDefinition(
  schedule: ScheduleDocument,
  definition: ScheduleDefinition,
  hash: string,
  now: Date,
): ScheduleChange {
  const isReactivated =
    (definition.enabled && !schedule.enabled) ||
    (schedule.nextRunAt === null && definition.maxRuns !== schedule.maxRuns);
  const isSameRule = canonicalJson(schedule.rule) === canonicalJson(definition.rule);
  return {
    ...definition,
    hash,
    isActive: definition.enabled && schedule.paused === null,
    disabledReason: null,
    decision: randomUUID(),
    updatedAt: now,
    ...((isReactivated || !isSameRule) && restartFrom(schedule, definition, now, 'changed')),
  };
}

/** True if the definition need not be written. It is written to a disabled schedule to enable it again. */
export function isCurrent({ hash, disabledReason }: ScheduleDocument, definitionHash: string): boolean {
  return hash === definitionHash && disabledReason === null;
}

/** Continues from `now`: earlier occurrences that are not decided yet are recorded as skipped, without counting them. */
export function restartFrom(
  schedule: ScheduleDocument,
  definition: ScheduleDefinition,
  now: Date,
  reason: 'changed' | 'paused',
): Pick<ScheduleDocument, 'nextRunAt' | 'pending'> {
  const { _id, nextRunAt: at, anchor, pending, runs } = schedule;
  const isOver = definition.maxRuns !== null && runs >= definition.maxRuns;
  const nextRunAt = isOver ? null : firstAfter(definition, anchor, now);
  if (at === null || at > now) return { nextRunAt, pending };
  const until = new Date(now.getTime() + 1);
  const skip = pendingSkip(occurrenceId(_id, at), { at, until, count: null, reason }, null, now);
  return { nextRunAt, pending: [...pending, skip] };
}

/** An interval begins when the schedule is stored, so its first occurrence is one interval later. */
function currentOccurrence({ rule, enabled }: ScheduleDefinition, now: Date): Date | undefined {
  if (!enabled || rule === null || (rule.every !== undefined && rule.startsAt === undefined))
    return undefined;
  return lastInMinute(occurrencesOf(rule, now), now);
}

function firstAfter({ rule }: ScheduleDefinition, anchor: Date, now: Date): Date | null {
  return rule === null ? null : occurrencesOf(rule, anchor).next(now);
}
