import { toError } from '../../domain/errors.js';
import { occurrencesOf } from '../../domain/occurrences.js';
import { scheduleOf, type ScheduleDocument } from '../../domain/schedule.js';
import type { Blocked, Facts, Gate } from './gate.js';
import { because, span, when } from './phrases.js';

// Gates before a job exists. Once it does, its schedule does not matter: runs that exist go on.

export const unreadableSchedule: Gate = {
  name: 'unreadableSchedule',
  passed: 'No schedule that cannot be read has yet to make it.',
  explain({ id, job, scheduleFault }) {
    if (job !== null || scheduleFault === null) return undefined;
    const sentence = `It has no job, and its schedule '${scheduleOf(id) ?? id}' cannot be read${because(scheduleFault)}; correct or remove it.`;
    return { sentence, at: null, isFinal: true };
  },
};

export const skipped: Gate = {
  name: 'skipped',
  passed: 'Its occurrence was not skipped.',
  explain({ job, skip, now }) {
    if (job !== null || skip === null) return undefined;
    const inTheWay =
      skip.activeId === null
        ? ''
        : `: ${skip.activeId} was in the way, for ${span(skip.runningFor ?? 0)} already`;
    const sentence = `Its occurrence was skipped at ${when(skip.since, now)} (${skip.reason})${inTheWay}.`;
    return { sentence, at: skip.since, isFinal: true };
  },
};

/** Only of what is not decided: a rule may have been another one before. */
export const noOccurrence: Gate = {
  name: 'noOccurrence',
  passed: 'No schedule lacks its occurrence.',
  explain({ id, job, schedule, occurrence, now }) {
    if (job !== null || schedule === null || occurrence === null || owes(schedule, id)) return undefined;
    const { _id, nextRunAt } = schedule;
    if (nextRunAt === null || occurrence <= nextRunAt) return undefined;
    const found = firstFrom(schedule, occurrence);
    if ('fault' in found) {
      // The next gate tells it as it was found by who disabled the schedule.
      if (schedule.disabledReason !== null) return undefined;
      const sentence = `The rule of its schedule '${_id}' cannot be read${because(found.fault)}.`;
      return { sentence, at: null, isFinal: true };
    }
    if (found.at?.getTime() === occurrence.getTime()) return undefined;
    const next = found.at === null ? 'none follows' : `the next one after it is ${when(found.at, now)}`;
    const sentence = `There is no such job to come: '${_id}' has no occurrence at ${occurrence.toISOString()}; ${next}.`;
    return { sentence, at: found.at, isFinal: true };
  },
};

export const schedulePaused: Gate = {
  name: 'schedulePaused',
  passed: 'No schedule that is paused or disabled has yet to make it.',
  explain({ job, schedule, now }) {
    if (job !== null || schedule === null) return undefined;
    const { _id: id, paused, disabledReason, enabled } = schedule;
    if (paused !== null) {
      const by = paused.by === null ? '' : ` by ${paused.by}`;
      const sentence = `Its schedule '${id}' is paused since ${when(paused.at, now)}${by}${because(paused.reason)}; resume it.`;
      return { sentence, at: null };
    }
    if (disabledReason !== null)
      return { sentence: `Its schedule '${id}' is disabled${because(disabledReason)}.`, at: null };
    return enabled ? undefined : { sentence: `Its schedule '${id}' is not enabled.`, at: null };
  },
};

export const runningElsewhere: Gate = {
  name: 'runningElsewhere',
  passed: 'No run that it must not overlap with is in its way.',
  explain({ id, job, schedule, occurrence, active, now }) {
    if (job !== null || schedule === null || active === null || active._id === id) return undefined;
    const { overlap } = schedule;
    const isInLine = owes(schedule, id);
    // By the time it is due that run may have ended.
    const isDue = isInLine || (occurrence !== null && occurrence <= now);
    if (overlap === 'allow' || !isDue) return undefined;
    const since = active.firstStartedAt ?? active.startedAt ?? active.createdAt;
    const what = isInLine
      ? 'it goes when that one ends'
      : overlap === 'skip'
        ? 'it is skipped unless that one ends before anybody looks'
        : 'it waits for that one';
    const sentence = `${active._id}, the run before it, is ${active.status} since ${when(since, now)}, and runs of '${schedule._id}' must not overlap: ${what}.`;
    return { sentence, at: null };
  },
};

export const notMade: Gate = {
  name: 'notMade',
  passed: 'Its job exists.',
  explain(facts) {
    const { job, schedule, occurrence } = facts;
    if (job !== null || schedule === null) return undefined;
    if (owes(schedule, facts.id))
      return {
        sentence: 'It is decided and has no job yet: the next worker that looks makes it.',
        at: null,
        isFinal: true,
      };
    return occurrence === null ? undefined : ofOccurrence(facts, schedule, occurrence);
  },
};

function ofOccurrence(
  { now, workers }: Facts,
  { _id, nextRunAt, owner, taskType }: ScheduleDocument,
  at: Date,
): Blocked {
  const isUndecided = nextRunAt !== null && nextRunAt <= at;
  if (!isUndecided) {
    const sentence = `It has no job: ${at.toISOString()} is no occurrence of '${_id}' as it is now, or its job was pruned.`;
    return { sentence, at: nextRunAt, isFinal: true };
  }
  if (at > now)
    return { sentence: `Not due until ${when(at, now)}; its job is made then.`, at, isFinal: true };
  const capable = workers.filter(({ taskTypes }) => owner === 'api' || taskTypes.includes(taskType));
  const reason =
    capable.length > 0
      ? 'the next worker that looks decides on it'
      : owner === 'api'
        ? 'no live worker is there to make its job'
        : `no live worker has the definition '${_id}'`;
  return {
    sentence: `Due since ${when(at, now)}, but nobody has decided on it: ${reason}.`,
    at: null,
    isFinal: true,
  };
}

/** The first occurrence at the instant or after it. */
function firstFrom({ rule, anchor }: ScheduleDocument, at: Date): { at: Date | null } | { fault: string } {
  if (rule === null) return { at: null };
  try {
    return { at: occurrencesOf(rule, anchor).next(new Date(at.getTime() - 1)) };
  } catch (thrown) {
    // Where dates end, nothing follows.
    if (thrown instanceof RangeError) return { at: null };
    return { fault: toError(thrown).message };
  }
}

function owes({ owed }: ScheduleDocument, id: string): boolean {
  return owed.some((entry) => entry.kind === 'run' && entry.id === id);
}
