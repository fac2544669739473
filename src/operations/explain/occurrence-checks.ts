import { occurrencesOf } from '../../domain/calendar/occurrences.js';
import { toError } from '../../domain/errors.js';
import { runningSince } from '../../domain/job/job.js';
import { type ScheduleDocument, scheduleIdOf } from '../../domain/schedule/schedule.js';
import {
  formatReason,
  type Blocked,
  type Facts,
  type ExplainCheck,
  formatDuration,
  formatMoment,
} from './check.js';

// Checks of an occurrence that has no job yet. Once the job exists, its schedule no longer affects it.

export const invalidSchedule: ExplainCheck = {
  name: 'unreadableSchedule',
  passed: 'It does not depend on a malformed schedule.',
  explain({ id, job, scheduleFault }) {
    if (job !== null || scheduleFault === null) return undefined;
    const sentence = `It has no job yet, and its schedule '${scheduleIdOf(id) ?? id}' is malformed${formatReason(scheduleFault)}; correct or remove it.`;
    return { sentence, at: null, isFinal: true };
  },
};

export const skipped: ExplainCheck = {
  name: 'skipped',
  passed: 'Its occurrence was not skipped.',
  explain({ job, skip, now }) {
    if (job !== null || skip === null) return undefined;
    const previousRun =
      skip.activeId === null
        ? ''
        : `: ${skip.activeId} was still running (for ${formatDuration(skip.runningFor ?? 0)})`;
    const sentence = `Its occurrence was skipped at ${formatMoment(skip.since, now)} (${skip.reason})${previousRun}.`;
    return { sentence, at: skip.since, isFinal: true };
  },
};

/** Applies only to times that are not planned yet: for earlier ones the rule may have been different. */
export const noOccurrence: ExplainCheck = {
  name: 'noOccurrence',
  passed: 'Its schedule has such an occurrence.',
  explain({ id, job, schedule, occurrence, now }) {
    if (job !== null || schedule === null || occurrence === null || isPending(schedule, id)) return undefined;
    const { _id, nextRunAt } = schedule;
    if (nextRunAt === null || occurrence <= nextRunAt) return undefined;
    const found = firstFrom(schedule, occurrence);
    if ('fault' in found) {
      // The next check reports the reason that was stored when the schedule was disabled.
      if (schedule.disabledReason !== null) return undefined;
      const sentence = `The rule of its schedule '${_id}' is invalid${formatReason(found.fault)}.`;
      return { sentence, at: null, isFinal: true };
    }
    if (found.at?.getTime() === occurrence.getTime()) return undefined;
    const next =
      found.at === null ? 'there are no later ones' : `the next one is ${formatMoment(found.at, now)}`;
    const sentence = `'${_id}' has no occurrence at ${occurrence.toISOString()}; ${next}.`;
    return { sentence, at: found.at, isFinal: true };
  },
};

export const schedulePaused: ExplainCheck = {
  name: 'schedulePaused',
  passed: 'It does not depend on a paused or disabled schedule.',
  explain({ job, schedule, now }) {
    if (job !== null || schedule === null) return undefined;
    const { _id: id, paused, disabledReason, enabled } = schedule;
    if (paused !== null) {
      const by = paused.by === null ? '' : ` by ${paused.by}`;
      const sentence = `Its schedule '${id}' has been paused since ${formatMoment(paused.at, now)}${by}${formatReason(paused.reason)}; resume it.`;
      return { sentence, at: null };
    }
    if (disabledReason !== null)
      return { sentence: `Its schedule '${id}' is disabled${formatReason(disabledReason)}.`, at: null };
    return enabled ? undefined : { sentence: `Its schedule '${id}' is not enabled.`, at: null };
  },
};

export const runningElsewhere: ExplainCheck = {
  name: 'runningElsewhere',
  passed: 'It does not have to wait for an earlier run of its schedule.',
  explain({ id, job, schedule, occurrence, active, now }) {
    if (job !== null || schedule === null || active === null || active._id === id) return undefined;
    const { overlap } = schedule;
    const isPlanned = isPending(schedule, id);
    // An active run does not block a later occurrence: it may have ended by then.
    const isDue = isPlanned || (occurrence !== null && occurrence <= now);
    if (overlap === 'allow' || !isDue) return undefined;
    const since = runningSince(active);
    const next = isPlanned
      ? 'it starts when that run ends'
      : overlap === 'skip'
        ? 'it is skipped unless that run ends before a worker checks the schedule'
        : 'it waits for that run';
    const sentence = `The previous run, ${active._id}, has been ${active.status} since ${formatMoment(since, now)}, and runs of '${schedule._id}' must not overlap: ${next}.`;
    return { sentence, at: null };
  },
};

export const noJobYet: ExplainCheck = {
  name: 'notMade',
  passed: 'Its job exists.',
  explain(facts) {
    const { job, schedule, occurrence } = facts;
    if (job !== null || schedule === null) return undefined;
    if (isPending(schedule, facts.id))
      return {
        sentence: 'It is planned and has no job yet: a worker creates it at its next check of the schedules.',
        at: null,
        isFinal: true,
      };
    return occurrence === null ? undefined : explainOccurrence(facts, schedule, occurrence);
  },
};

function explainOccurrence(
  { now, workers }: Facts,
  { _id, nextRunAt, owner, taskType }: ScheduleDocument,
  at: Date,
): Blocked {
  const isPlanned = nextRunAt === null || nextRunAt > at;
  if (isPlanned) {
    const sentence = `It has no job: its job was pruned, or ${at.toISOString()} is not an occurrence of '${_id}' any more.`;
    return { sentence, at: nextRunAt, isFinal: true };
  }
  if (at > now)
    return {
      sentence: `Not due until ${formatMoment(at, now)}; its job is created then.`,
      at,
      isFinal: true,
    };
  const capable = workers.filter(({ taskTypes }) => owner === 'api' || taskTypes.includes(taskType));
  const reason =
    capable.length > 0
      ? 'a worker creates it at its next check of the schedules'
      : owner === 'api'
        ? 'no worker is alive to create it'
        : `no live worker has the definition '${_id}'`;
  return {
    sentence: `Due since ${formatMoment(at, now)}, but its job does not exist yet: ${reason}.`,
    at: null,
    isFinal: true,
  };
}

/** The first occurrence at or after an instant. */
function firstFrom({ rule, anchor }: ScheduleDocument, at: Date): { at: Date | null } | { fault: string } {
  if (rule === null) return { at: null };
  try {
    return { at: occurrencesOf(rule, anchor).next(new Date(at.getTime() - 1)) };
  } catch (thrown) {
    // No occurrence before the end of the calendar.
    if (thrown instanceof RangeError) return { at: null };
    return { fault: toError(thrown).message };
  }
}

function isPending({ pending }: ScheduleDocument, id: string): boolean {
  return pending.some((entry) => entry.kind === 'run' && entry.id === id);
}
