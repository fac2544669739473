import { alone, owedSkip, runsOf, waitingBehind, type ActiveRun } from './owed.js';
import type { Owed, OwedRun, OwedSkip, ScheduleDocument, SkipReason } from './schedule.js';

/** Runs that wait for the one before them; past this they are skipped. */
const LONGEST_BACKLOG = 1000;

/** What a schedule owes once new runs have their place, and which run is the current one. */
export interface Placed {
  owed: Owed[];
  /** Those of the new runs that will run. */
  accepted: OwedRun[];
  active: string | null;
  /** The run that has to make way. */
  cancel: string | null;
  /** Runs that were counted and do not run after all. */
  withdrawn: number;
}

/** Puts new runs in line behind what is there, as the overlap policy says, and lets the first of the line go. */
export function place(
  schedule: Pick<ScheduleDocument, 'overlap' | 'owed' | 'active'>,
  wanted: readonly OwedRun[],
  active: ActiveRun | null,
  now: Date,
  left = Infinity,
): Placed {
  const { overlap, owed } = schedule;
  const waiting = waitingBehind(active?.id ?? null, owed);
  const isBusy = active !== null || waiting.length > 0;
  const room = Math.max(0, LONGEST_BACKLOG - waiting.length);
  // Past `left` the schedule is over, and there is nothing to account for.
  const skippable = wanted.slice(room, room < left ? undefined : room);
  const fitting = wanted.slice(0, Math.min(room, left));
  const skip = (runs: readonly OwedRun[], reason: SkipReason): OwedSkip[] =>
    runs.map(({ id, at }) => owedSkip(id, { ...alone(at), reason }, active, now));
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

/** When nothing runs, the first run in line becomes the current one. */
export function line(
  owed: Owed[],
  schedule: Pick<ScheduleDocument, 'active'>,
  active: ActiveRun | null,
): Pick<Placed, 'owed' | 'active'> {
  return { owed, active: active?.id ?? runsOf(owed)[0]?.id ?? schedule.active };
}

/** Owed runs that may start: all of them where they may overlap, otherwise the one whose turn it is. */
export function releasable(
  { overlap }: Pick<ScheduleDocument, 'overlap'>,
  { owed, active }: Pick<Placed, 'owed' | 'active'>,
): OwedRun[] {
  const runs = runsOf(owed);
  return overlap === 'allow' ? runs : runs.filter(({ id }) => id === active);
}

/** What a person triggered is counted nowhere. */
function isOfCalendar({ id }: OwedRun): boolean {
  return id.includes('@');
}

/** Asked again as long as somebody waits: the request may have been lost. */
function cancelOf(active: ActiveRun | null, waiting: readonly OwedRun[]): string | null {
  return waiting.length > 0 ? (active?.id ?? null) : null;
}
