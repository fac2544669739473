import { occurrenceId, type PendingEntry, type PendingRun, type PendingSkip } from './schedule.js';

/** The current run of a schedule; it is not finished. */
export interface ActiveRun {
  id: string;
  /** When it started, or was created if it has not started. */
  since: Date;
  hasStarted: boolean;
}

/** The run of an occurrence, decided now. */
export function pendingRun(scheduleId: string, at: Date, now: Date): PendingRun {
  return { kind: 'run', id: occurrenceId(scheduleId, at), at, since: now };
}

/** Occurrences that are skipped now; `active` is the run that they would have overlapped, if any. */
export function pendingSkip(
  id: string,
  skipped: Pick<PendingSkip, 'at' | 'until' | 'count' | 'reason'>,
  active: ActiveRun | null,
  now: Date,
): PendingSkip {
  return {
    kind: 'skip',
    id,
    ...skipped,
    activeId: active?.id ?? null,
    runningFor: active?.hasStarted !== true ? null : Math.max(0, now.getTime() - active.since.getTime()),
    since: now,
  };
}

export function singleOccurrence(at: Date): Pick<PendingSkip, 'at' | 'until' | 'count'> {
  return { at, until: new Date(at.getTime() + 1), count: 1 };
}

export function runsOf(pending: readonly PendingEntry[]): PendingRun[] {
  return pending.filter((entry) => entry.kind === 'run');
}

export function skipsOf(pending: readonly PendingEntry[]): PendingSkip[] {
  return pending.filter((entry) => entry.kind === 'skip');
}

/** Runs that wait for the current one to end. */
export function waitingBehind(active: string | null, pending: readonly PendingEntry[]): PendingRun[] {
  return runsOf(pending).filter(({ id }) => id !== active);
}
