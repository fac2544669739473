import { occurrencesOf } from '../../domain/calendar/occurrences.js';
import { toError } from '../../domain/errors.js';
import { hasStarted, runningSince } from '../../domain/job/job.js';
import { type ScheduleDocument, scheduleIdOf } from '../../domain/schedule/schedule.js';
import {
  type Blocked,
  blocked,
  type ExplainCheck,
  type Facts,
  final,
  formatDuration,
  formatMoment,
  formatReason,
} from './check.js';

// Checks of an occurrence that has no job yet. Once the job exists, its schedule no longer affects it.

export const invalidSchedule: ExplainCheck = {
  name: 'invalidSchedule',
  passed: 'It does not depend on a malformed schedule.',
  explain({ id, job, scheduleError }) {
    if (job !== null || scheduleError === null) return undefined;
    return final(
      `It has no job yet, and its schedule '${scheduleIdOf(id) ?? id}' is malformed${formatReason(scheduleError)}; correct or remove it.`,
    );
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
        : skip.runningFor === null
          ? `: ${skip.activeId} was waiting to start`
          : `: ${skip.activeId} was still running (for ${formatDuration(skip.runningFor)})`;
    return final(
      `Its occurrence was skipped at ${formatMoment(skip.since, now)} (${skip.reason})${previousRun}.`,
      skip.since,
    );
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
    if ('error' in found) {
      // The next check reports the reason that was stored when the schedule was disabled.
      if (schedule.disabledReason !== null) return undefined;
      return final(`The rule of its schedule '${_id}' is invalid${formatReason(found.error)}.`);
    }
    if (found.at?.getTime() === occurrence.getTime()) return undefined;
    const next =
      found.at === null ? 'there are no later ones' : `the next one is ${formatMoment(found.at, now)}`;
    return final(`'${_id}' has no occurrence at ${occurrence.toISOString()}; ${next}.`, found.at);
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
      return blocked(
        `Its schedule '${id}' has been paused since ${formatMoment(paused.at, now)}${by}${formatReason(paused.reason)}; resume it.`,
      );
    }
    if (disabledReason !== null)
      return blocked(`Its schedule '${id}' is disabled${formatReason(disabledReason)}.`);
    return enabled ? undefined : blocked(`Its schedule '${id}' is not enabled.`);
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
    const state = hasStarted(active) ? active.status : 'waiting to start';
    const next = isPlanned
      ? 'it starts when that run ends'
      : overlap === 'skip'
        ? 'it is skipped unless that run ends before a worker checks the schedule'
        : 'it waits for that run';
    return blocked(
      `The previous run, ${active._id}, has been ${state} since ${formatMoment(runningSince(active), now)}, and runs of '${schedule._id}' must not overlap: ${next}.`,
    );
  },
};

export const noJobYet: ExplainCheck = {
  name: 'noJobYet',
  passed: 'Its job exists.',
  explain(facts) {
    const { job, schedule, occurrence } = facts;
    if (job !== null || schedule === null) return undefined;
    if (isPending(schedule, facts.id))
      return final(
        'It is planned and has no job yet: a worker creates it at its next check of the schedules.',
      );
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
    return final(
      `It has no job: its job was pruned or deleted, or ${at.toISOString()} is not an occurrence of '${_id}' any more.`,
      nextRunAt,
    );
  }
  if (at > now) return final(`Not due until ${formatMoment(at, now)}; its job is created then.`, at);
  const capable = workers.filter(({ taskTypes }) => owner === 'api' || taskTypes.includes(taskType));
  const reason =
    capable.length > 0
      ? 'a worker creates it at its next check of the schedules'
      : owner === 'api'
        ? 'no worker is alive to create it'
        : `no live worker has the definition '${_id}'`;
  return final(`Due since ${formatMoment(at, now)}, but its job does not exist yet: ${reason}.`);
}

/** The first occurrence at or after an instant. */
function firstFrom({ rule, anchor }: ScheduleDocument, at: Date): { at: Date | null } | { error: string } {
  if (rule === null) return { at: null };
  try {
    return { at: occurrencesOf(rule, anchor).next(new Date(at.getTime() - 1)) };
  } catch (thrown) {
    // No occurrence before the end of the calendar.
    if (thrown instanceof RangeError) return { at: null };
    return { error: toError(thrown).message };
  }
}

function isPending({ pending }: ScheduleDocument, id: string): boolean {
  return pending.some((entry) => entry.kind === 'run' && entry.id === id);
}
