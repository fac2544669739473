import { dueOf } from './misfires.js';
import type { Occurrences } from './occurrences.js';
import { line, place } from './overlaps.js';
import { runsOf, type ActiveRun } from './owed.js';
import type { Owed, OwedRun, ScheduleDocument } from './schedule.js';

/** What one look at a schedule comes to. It is stored in one write, and carried out afterwards by anybody. */
export interface Plan {
  nextRunAt: Date | null;
  lastRunAt: Date | null;
  runs: number;
  owed: Owed[];
  active: string | null;
  /** The run that has to make way. */
  cancel: string | null;
}

export type Plannable = Pick<
  ScheduleDocument,
  | '_id'
  | 'isActive'
  | 'nextRunAt'
  | 'lastRunAt'
  | 'runs'
  | 'maxRuns'
  | 'owed'
  | 'active'
  | 'overlap'
  | 'misfire'
>;

/**
 * Decides on every occurrence up to `now`: pure, so that whoever decides on the same facts decides the same.
 * Misfires first (which of the late ones still count), then overlaps (what may run beside what).
 */
export function plan(
  schedule: Plannable,
  occurrences: Occurrences,
  active: ActiveRun | null,
  now: Date,
): Plan {
  const { runs, skips } = schedule.isActive ? dueOf(schedule, occurrences, now) : { runs: [], skips: [] };
  const known = new Set([active?.id, ...runsOf(schedule.owed).map(({ id }) => id)]);
  // A person may have asked for an occurrence before it was decided.
  const due = runs.filter(({ id }) => !known.has(id));
  const left = schedule.maxRuns === null ? Infinity : Math.max(0, schedule.maxRuns - schedule.runs);
  const placed = place(schedule, due, active, now, left);
  const count = schedule.runs + placed.accepted.length - placed.withdrawn;
  const over = schedule.maxRuns !== null && count >= schedule.maxRuns;
  return {
    nextRunAt: over ? null : nextAfter(schedule, occurrences, now),
    lastRunAt: placed.accepted.at(-1)?.at ?? schedule.lastRunAt,
    runs: count,
    owed: [...placed.owed, ...skips],
    active: placed.active,
    cancel: placed.cancel,
  };
}

/** Adds a run that a person asked for, by the same rules; null when the overlap policy refuses it. */
export function planTrigger(
  schedule: Plannable,
  id: string,
  active: ActiveRun | null,
  now: Date,
): Plan | null {
  const placed = place(schedule, [{ kind: 'run', id, at: now, since: now }], active, now);
  if (placed.accepted.length === 0) return null;
  const { nextRunAt, lastRunAt } = schedule;
  const { owed, active: current, cancel, withdrawn } = placed;
  // An occurrence that a pass for a given time put in line was not counted.
  const runs = Math.max(0, schedule.runs - withdrawn);
  return { nextRunAt, lastRunAt, runs, owed, active: current, cancel };
}

/** Adds past occurrences that a person asked for; they run one after another where they must not overlap. */
export function planBackfill(schedule: Plannable, runs: readonly OwedRun[], active: ActiveRun | null): Plan {
  const { nextRunAt, lastRunAt, overlap } = schedule;
  const ids = new Set(runs.map(({ id }) => id));
  const patient = runs.map((run) => ({ ...run, patient: true as const }));
  // What was skipped and is asked for now runs after all.
  const owed = [...schedule.owed.filter(({ id }) => !ids.has(id) || id === schedule.active), ...patient];
  const lined = overlap === 'allow' ? { owed, active: schedule.active } : line(owed, schedule, active);
  return { nextRunAt, lastRunAt, runs: schedule.runs, ...lined, cancel: null };
}

function nextAfter({ isActive, nextRunAt }: Plannable, occurrences: Occurrences, now: Date): Date | null {
  return !isActive || nextRunAt === null || nextRunAt > now ? nextRunAt : occurrences.next(now);
}
