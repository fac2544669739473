import { randomUUID } from 'node:crypto';
import { occurrencesOf } from '../../domain/calendar/occurrences.js';
import { pendingSkip } from '../../domain/schedule/pending.js';
import {
  canonicalJson,
  occurrenceId,
  type PendingSkip,
  type ScheduleDefinition,
  type ScheduleDocument,
  type SkipReason,
} from '../../domain/schedule/schedule.js';

/** A schedule as it is first stored. Its first occurrence is after now. */
export function newSchedule(
  id: string,
  owner: ScheduleDocument['owner'],
  definition: ScheduleDefinition,
  hash: string,
  now: Date,
): ScheduleDocument {
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
    nextRunAt: firstAfter(definition, now, now),
    lastRunAt: null,
    active: null,
    pending: [],
    runs: 0,
    decision: randomUUID(),
    createdAt: now,
    updatedAt: now,
  };
}

/**
 * The fields that a new definition changes. It never unpauses and never rewinds: a changed rule counts from now on, an
 * unchanged one continues where it was.
 */
export function applyDefinition(
  schedule: ScheduleDocument,
  definition: ScheduleDefinition,
  hash: string,
  now: Date,
): Partial<ScheduleDocument> & Pick<ScheduleDocument, 'decision'> {
  const isReactivated =
    (definition.enabled && !schedule.enabled) ||
    (schedule.nextRunAt === null && definition.maxRuns !== schedule.maxRuns);
  const restarts = isReactivated || !isSameRule(schedule, definition);
  return {
    ...definition,
    hash,
    isActive: definition.enabled && schedule.paused === null,
    disabledReason: null,
    decision: randomUUID(),
    updatedAt: now,
    ...(restarts && restartFrom(schedule, definition, now, 'changed')),
  };
}

/** True if nothing has to be written. A disabled schedule is written again: this process can read its rule. */
export function isCurrent({ hash, disabledReason }: ScheduleDocument, definitionHash: string): boolean {
  return hash === definitionHash && disabledReason === null;
}

/** Continues from `now`: occurrences that were due before and are not decided yet are recorded as skipped. */
export function restartFrom(
  schedule: ScheduleDocument,
  definition: ScheduleDefinition,
  now: Date,
  reason: 'changed' | 'paused',
): Pick<ScheduleDocument, 'nextRunAt' | 'pending'> {
  const { nextRunAt, anchor, pending, runs } = schedule;
  const isOver = definition.maxRuns !== null && runs >= definition.maxRuns;
  return {
    nextRunAt: isOver ? null : firstAfter(definition, anchor, now),
    pending:
      nextRunAt === null || nextRunAt > now
        ? pending
        : [...pending, skipUntilNow(schedule._id, nextRunAt, now, reason)],
  };
}

/** Skips all undecided occurrences, without counting them. */
function skipUntilNow(scheduleId: string, at: Date, now: Date, reason: SkipReason): PendingSkip {
  const until = new Date(now.getTime() + 1);
  return pendingSkip(occurrenceId(scheduleId, at), { at, until, count: null, reason }, null, now);
}

function firstAfter({ rule }: ScheduleDefinition, anchor: Date, now: Date): Date | null {
  return rule === null ? null : occurrencesOf(rule, anchor).next(now);
}

function isSameRule(a: Pick<ScheduleDefinition, 'rule'>, b: Pick<ScheduleDefinition, 'rule'>): boolean {
  return canonicalJson(a.rule) === canonicalJson(b.rule);
}
