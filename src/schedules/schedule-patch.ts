import { BASES, optionsOf } from '../config/rule-options.js';
import type { CronField } from '../domain/cron.js';
import type { ScheduleDocument } from '../domain/schedule.js';
import type { GivenSchedule, NewSchedule } from './given-schedule.js';

/** What changes; null takes something back. */
export type SchedulePatch = { [K in keyof Omit<NewSchedule, 'id'>]?: NewSchedule[K] | null };

/** What was said about the schedule so far, with the patch over it. A new base takes the place of the old one. */
export function patched(
  schedule: ScheduleDocument,
  patch: Omit<SchedulePatch, 'isActive'>,
): { given: GivenSchedule; loose: readonly CronField[] } {
  const { taskType, payload, rule, queue, priority, retries, timeout, maxRunningTime } = schedule;
  const { misfire, overlap, jitter, maxRuns, enabled, environments, userId } = schedule;
  const before = {
    ...{ taskType, payload, queue, priority, retries, timeout, maxRunningTime },
    ...{ misfire, overlap, jitter, maxRuns, enabled, environments, userId },
    ...(rule !== null && optionsOf(rule)),
  };
  const hasNewBase = BASES.some((base) => patch[base] != null);
  const replaced = hasNewBase ? Object.fromEntries(BASES.map((base) => [base, null])) : {};
  const merged = Object.entries({ ...before, ...replaced, ...patch }).filter(([, value]) => value !== null);
  return {
    given: Object.fromEntries(merged) as unknown as GivenSchedule,
    loose: hasNewBase ? [] : (rule?.loose ?? []),
  };
}
