import { occurrencesWithin } from '../domain/occurrences.js';
import { alone, owedSkip, type ActiveRun } from '../domain/owed.js';
import { planTrigger, type Plan } from '../domain/plan.js';
import { occurrenceId, type ScheduleDocument } from '../domain/schedule.js';
import { occurrencesIn } from './seen-schedule.js';

// A pass for a time that is given, instead of for now.

/** How far back such a pass looks: system cron calls it once a minute. */
const TICK = 60_000;

/** The last occurrence in the minute that ends with the instant. */
export function dueAt(schedule: ScheduleDocument, at: Date): Date | undefined {
  const first = new Date(at.getTime() - TICK + 1);
  return [...occurrencesWithin(occurrencesIn(schedule), first, at)].at(-1);
}

/** What is due then, by the rules of the overlap policy. */
export function planAt(schedule: ScheduleDocument, active: ActiveRun | null, at: Date): Plan | undefined {
  const due = dueAt(schedule, at);
  if (due === undefined) return undefined;
  const id = occurrenceId(schedule._id, due);
  const made = planTrigger(schedule, id, active, due);
  if (made !== null) return made;
  const { nextRunAt, lastRunAt, runs, owed } = schedule;
  const skip = owedSkip(id, { ...alone(due), reason: 'overlap' }, active, at);
  return { nextRunAt, lastRunAt, runs, owed: [...owed, skip], active: schedule.active, cancel: null };
}
