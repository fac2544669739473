import { randomUUID } from 'node:crypto';
import { occurrencesOf } from '../domain/occurrences.js';
import { owedSkip } from '../domain/owed.js';
import {
  canonicalJson,
  occurrenceId,
  type OwedSkip,
  type ScheduleDefinition,
  type ScheduleDocument,
  type SkipReason,
} from '../domain/schedule.js';

/** A schedule as it is first stored: due from now on, with nothing behind it. */
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
    owed: [],
    runs: 0,
    decision: randomUUID(),
    createdAt: now,
    updatedAt: now,
  };
}

/**
 * What a new definition changes. Never unpauses, never rewinds: a changed rule counts from the change on, an unchanged
 * one goes on where it was.
 */
export function changedSchedule(
  schedule: ScheduleDocument,
  definition: ScheduleDefinition,
  hash: string,
  now: Date,
): Partial<ScheduleDocument> & Pick<ScheduleDocument, 'decision'> {
  const isRevived =
    (definition.enabled && !schedule.enabled) ||
    (schedule.nextRunAt === null && definition.maxRuns !== schedule.maxRuns);
  const recounts = isRevived || !isSameRule(schedule, definition);
  return {
    ...definition,
    hash,
    isActive: definition.enabled && schedule.paused === null,
    disabledReason: null,
    decision: randomUUID(),
    updatedAt: now,
    ...(recounts && recountedFrom(schedule, definition, now, 'changed')),
  };
}

/** Nothing has to be written. One that was disabled because its rule could not be read is written again: here it can. */
export function isCurrent({ hash, disabledReason }: ScheduleDocument, definitionHash: string): boolean {
  return hash === definitionHash && disabledReason === null;
}

/** Counts anew from `now` on; what was due before and not decided is recorded as skipped. */
export function recountedFrom(
  schedule: ScheduleDocument,
  definition: ScheduleDefinition,
  now: Date,
  reason: 'changed' | 'paused',
): Pick<ScheduleDocument, 'nextRunAt' | 'owed'> {
  const { nextRunAt, anchor, owed, runs } = schedule;
  const isOver = definition.maxRuns !== null && runs >= definition.maxRuns;
  return {
    nextRunAt: isOver ? null : firstAfter(definition, anchor, now),
    owed:
      nextRunAt === null || nextRunAt > now
        ? owed
        : [...owed, passedOver(schedule._id, nextRunAt, now, reason)],
  };
}

/** Everything from the first occurrence that nobody has decided on up to now; nobody counts how many that are. */
function passedOver(scheduleId: string, at: Date, now: Date, reason: SkipReason): OwedSkip {
  const until = new Date(now.getTime() + 1);
  return owedSkip(occurrenceId(scheduleId, at), { at, until, count: null, reason }, null, now);
}

function firstAfter({ rule }: ScheduleDefinition, anchor: Date, now: Date): Date | null {
  return rule === null ? null : occurrencesOf(rule, anchor).next(now);
}

function isSameRule(a: Pick<ScheduleDefinition, 'rule'>, b: Pick<ScheduleDefinition, 'rule'>): boolean {
  return canonicalJson(a.rule) === canonicalJson(b.rule);
}
