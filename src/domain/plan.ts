import type { Occurrences } from './occurrences.js';
import {
  occurrenceId,
  type Owed,
  type OwedRun,
  type OwedSkip,
  type ScheduleDocument,
  type SkipReason,
} from './schedule.js';

/** Up to this late, in milliseconds, an occurrence is on time. */
const ON_TIME = 60_000;
/** Skipped occurrences are counted up to here. */
const MOST_COUNTED = 1000;
/** Runs that wait for the one before them; past this they are skipped. */
const LONGEST_BACKLOG = 1000;

/** The current run of a schedule, when it is not finished. */
export interface ActiveRun {
  id: string;
  /** When it started, or was created if it has not started. */
  since: Date;
}

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
  return { nextRunAt, lastRunAt, runs: schedule.runs - withdrawn, owed, active: current, cancel };
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

/** The occurrences up to now that have to run, and what the misfire policy leaves out. */
function dueOf(
  { _id, nextRunAt, misfire }: Plannable,
  occurrences: Occurrences,
  now: Date,
): { runs: OwedRun[]; skips: OwedSkip[] } {
  if (nextRunAt === null || nextRunAt > now) return { runs: [], skips: [] };
  const onTimeFrom = new Date(now.getTime() - ON_TIME);
  const onTime = between(occurrences, later(nextRunAt, onTimeFrom), now);
  const oldest = later(nextRunAt, new Date(now.getTime() - misfire.within));
  const most = misfire.policy === 'skip' ? 0 : misfire.policy === 'once' ? 1 : misfire.cap;
  const madeUp = lastBefore(occurrences, oldest, onTimeFrom, most);
  const kept = [...madeUp, ...onTime];
  const until = kept[0] ?? onTimeFrom;
  const runs = kept.map((at): OwedRun => ({ kind: 'run', id: occurrenceId(_id, at), at, since: now }));
  if (until <= nextRunAt) return { runs, skips: [] };
  const count = countBefore(occurrences, nextRunAt, until);
  return {
    runs,
    skips: [
      skipOf(occurrenceId(_id, nextRunAt), {
        at: nextRunAt,
        until,
        count,
        reason: 'misfire',
        active: null,
        now,
      }),
    ],
  };
}

interface Placed {
  owed: Owed[];
  accepted: OwedRun[];
  active: string | null;
  cancel: string | null;
  /** Runs that were counted and do not run after all. */
  withdrawn: number;
}

/** Puts new runs in line behind what is there, as the overlap policy says, and lets the first of the line go. */
function place(
  schedule: Plannable,
  wanted: readonly OwedRun[],
  active: ActiveRun | null,
  now: Date,
  left = Infinity,
): Placed {
  const { overlap, owed } = schedule;
  const waiting = runsOf(owed).filter(({ id }) => id !== active?.id);
  const isBusy = active !== null || waiting.length > 0;
  const room = Math.max(0, LONGEST_BACKLOG - waiting.length);
  // Past `left` the schedule is over, and there is nothing to account for.
  const skippable = wanted.slice(room, room < left ? undefined : room);
  const fitting = wanted.slice(0, Math.min(room, left));
  const skip = (runs: readonly OwedRun[], reason: SkipReason): OwedSkip[] =>
    runs.map(({ id, at }) =>
      skipOf(id, { at, until: new Date(at.getTime() + 1), count: 1, reason, active, now }),
    );
  const none = { cancel: null, withdrawn: 0 };
  switch (overlap) {
    case 'allow': {
      const all = [...owed, ...fitting, ...skip(skippable, 'backlog')];
      return { ...none, owed: all, accepted: fitting, active: fitting.at(-1)?.id ?? schedule.active };
    }
    case 'skip': {
      const accepted = isBusy ? [] : wanted.slice(0, left);
      const skipped = isBusy ? skip(wanted, 'overlap') : [];
      return { ...none, ...line([...owed, ...accepted, ...skipped], schedule, active), accepted };
    }
    case 'queue': {
      const lined = line([...owed, ...fitting, ...skip(skippable, 'backlog')], schedule, active);
      return { ...none, ...lined, accepted: fitting };
    }
    case 'replace': {
      const impatient = waiting.filter(({ patient }) => patient !== true);
      const newest = wanted.at(-1);
      if (newest === undefined) {
        const cancel = cancelOf(active, impatient);
        return { ...none, ...line(owed, schedule, active), accepted: [], cancel };
      }
      const outdated = [...impatient, ...wanted.slice(0, -1)];
      const rest = owed.filter(({ kind, id }) => kind === 'skip' || !outdated.some((run) => run.id === id));
      const lined = line([...rest, newest, ...skip(outdated, 'replaced')], schedule, active);
      return {
        ...lined,
        accepted: [newest],
        cancel: active?.id ?? null,
        withdrawn: impatient.filter(isOfCalendar).length,
      };
    }
  }
}

/** What a person triggered is counted nowhere. */
function isOfCalendar({ id }: OwedRun): boolean {
  return id.includes('@');
}

function runsOf(owed: readonly Owed[]): OwedRun[] {
  return owed.filter((entry) => entry.kind === 'run');
}

/** Asked again as long as somebody waits: the request may have been lost. */
function cancelOf(active: ActiveRun | null, waiting: readonly OwedRun[]): string | null {
  return waiting.length > 0 ? (active?.id ?? null) : null;
}

/** When nothing runs, the first run in line becomes the current one. */
function line(owed: Owed[], schedule: Plannable, active: ActiveRun | null): Pick<Placed, 'owed' | 'active'> {
  if (active !== null) return { owed, active: active.id };
  return { owed, active: owed.find(({ kind }) => kind === 'run')?.id ?? schedule.active };
}

function skipOf(
  id: string,
  {
    active,
    now,
    ...skipped
  }: Pick<OwedSkip, 'at' | 'until' | 'count' | 'reason'> & { active: ActiveRun | null; now: Date },
): OwedSkip {
  return {
    kind: 'skip',
    id,
    ...skipped,
    activeId: active?.id ?? null,
    runningFor: active === null ? null : now.getTime() - active.since.getTime(),
    since: now,
  };
}

/** All occurrences from `first` to `last`, both included. */
function between(occurrences: Occurrences, first: Date, last: Date): Date[] {
  const found: Date[] = [];
  for (let at = occurrences.next(before(first)); at !== null && at <= last; at = occurrences.next(at))
    found.push(at);
  return found;
}

/** The last `count` occurrences from `first` up to `end`, exclusive: looked for backwards in growing steps. */
function lastBefore(occurrences: Occurrences, first: Date, end: Date, count: number): Date[] {
  if (count === 0 || end <= first) return [];
  for (let span = 60_000; ; span *= 2) {
    const from = later(first, new Date(end.getTime() - span));
    const found = between(occurrences, from, before(end));
    if (found.length >= count || from <= first) return found.slice(-count);
  }
}

function countBefore(occurrences: Occurrences, first: Date, end: Date): number | null {
  let count = 0;
  for (let at = occurrences.next(before(first)); at !== null && at < end; at = occurrences.next(at)) {
    if (++count > MOST_COUNTED) return null;
  }
  return count;
}

function before(instant: Date): Date {
  return new Date(instant.getTime() - 1);
}

function later(a: Date, b: Date): Date {
  return a > b ? a : b;
}
