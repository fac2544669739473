import { occurrenceId, type Owed, type OwedRun, type OwedSkip } from './schedule.js';

/** The current run of a schedule, when it is not finished. */
export interface ActiveRun {
  id: string;
  /** When it started, or was created if it has not started. */
  since: Date;
}

/** The run of an occurrence that is decided now. */
export function owedRun(scheduleId: string, at: Date, now: Date): OwedRun {
  return { kind: 'run', id: occurrenceId(scheduleId, at), at, since: now };
}

/** Occurrences that are skipped now, because of the active run if there is one. */
export function owedSkip(
  id: string,
  skipped: Pick<OwedSkip, 'at' | 'until' | 'count' | 'reason'>,
  active: ActiveRun | null,
  now: Date,
): OwedSkip {
  return {
    kind: 'skip',
    id,
    ...skipped,
    activeId: active?.id ?? null,
    runningFor: active === null ? null : Math.max(0, now.getTime() - active.since.getTime()),
    since: now,
  };
}

/** One occurrence and no other. */
export function alone(at: Date): Pick<OwedSkip, 'at' | 'until' | 'count'> {
  return { at, until: new Date(at.getTime() + 1), count: 1 };
}

export function runsOf(owed: readonly Owed[]): OwedRun[] {
  return owed.filter((entry) => entry.kind === 'run');
}

export function skipsOf(owed: readonly Owed[]): OwedSkip[] {
  return owed.filter((entry) => entry.kind === 'skip');
}

/** Runs that are decided and wait for the current one to end. */
export function waitingBehind(active: string | null, owed: readonly Owed[]): OwedRun[] {
  return runsOf(owed).filter(({ id }) => id !== active);
}
