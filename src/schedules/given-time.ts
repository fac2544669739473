import { LOCKED_STATUSES, type JobStatus } from '../domain/job.js';
import { occurrencesWithin } from '../domain/occurrences.js';
import { alone, owedSkip, type ActiveRun } from '../domain/owed.js';
import { planTrigger, type Plan } from '../domain/plan.js';
import { occurrenceId, type ScheduleDocument } from '../domain/schedule.js';
import type { Store } from '../store/store.js';
import { isRunning, jobExists, type PassEntry } from './pass-entry.js';
import { occurrencesIn } from './seen-schedule.js';

// A pass for a time that is given, instead of for now.

/** How far back such a pass looks: system cron calls it once a minute. */
const TICK = 60_000;

const LOCKED: readonly JobStatus[] = LOCKED_STATUSES;

/** The occurrence that is due then has a job already: that is no skip. */
export async function takenAt(
  store: Pick<Store, 'findJob'>,
  schedule: ScheduleDocument,
  at: Date,
  now: Date,
): Promise<PassEntry | undefined> {
  const due = dueAt(schedule, at);
  const job = due && (await store.findJob(occurrenceId(schedule._id, due)));
  if (due === undefined || job == null) return undefined;
  if (!LOCKED.includes(job.status)) return jobExists(schedule._id, job._id, due);
  const since = job.firstStartedAt ?? job.startedAt ?? job.createdAt;
  return isRunning(schedule._id, now.getTime() - since.getTime(), job._id, due);
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

/** The last occurrence in the minute that ends with the instant. */
function dueAt(schedule: ScheduleDocument, at: Date): Date | undefined {
  const first = new Date(at.getTime() - TICK + 1);
  return [...occurrencesWithin(occurrencesIn(schedule), first, at)].at(-1);
}
