import { type ActiveRun, pendingSkip, runsOf, singleOccurrence, waitingBehind } from './pending.js';
import type { Overlap, PendingEntry, PendingRun, ScheduleDocument, SkipReason } from './schedule.js';

/** At most this many runs wait for an earlier one to end; further ones are skipped. */
const MAX_WAITING_RUNS = 1000;

interface OverlapInput {
  /** New runs, oldest first. */
  due: readonly PendingRun[];
  /** Runs decided earlier that wait for the active one to end. */
  waiting: readonly PendingRun[];
  active: ActiveRun | null;
  /** How many more runs `maxRuns` allows. */
  runsLeft: number;
}

interface OverlapDecision {
  accept: readonly PendingRun[];
  skip: readonly PendingRun[];
  reason: SkipReason;
  cancel?: ActiveRun | null;
}

/** What each overlap policy does with new runs. */
const OVERLAP_POLICIES: Record<Overlap, (input: OverlapInput) => OverlapDecision> = {
  allow: acceptWhatFits,
  queue: acceptWhatFits,
  skip: ({ due, waiting, active, runsLeft }) =>
    active !== null || waiting.length > 0
      ? { accept: [], skip: due, reason: 'overlap' }
      : { accept: due.slice(0, runsLeft), skip: [], reason: 'overlap' },
  replace: ({ due, waiting, active, runsLeft }) => {
    const replaceable = waiting.filter(({ manual }) => manual !== true);
    // The replaced runs no longer count. Past `maxRuns` the schedule has ended: nothing replaces the active run.
    if (runsLeft + replaceable.filter(isCounted).length <= 0)
      return { accept: [], skip: [], reason: 'replaced', cancel: null };
    // Without a new run, repeat the cancel request while an earlier one waits: the request may have been lost.
    if (due.length === 0)
      return { accept: [], skip: [], reason: 'replaced', cancel: replaceable.length > 0 ? active : null };
    return {
      accept: due.slice(-1),
      skip: [...replaceable, ...due.slice(0, -1)],
      reason: 'replaced',
      cancel: active,
    };
  },
};

/** Accepts what fits into the backlog. Runs past `maxRuns` are not recorded as skipped: the schedule has ended. */
function acceptWhatFits({ due, waiting, runsLeft }: OverlapInput): OverlapDecision {
  const room = Math.max(0, MAX_WAITING_RUNS - waiting.length);
  return {
    accept: due.slice(0, Math.min(room, runsLeft)),
    skip: room < runsLeft ? due.slice(room) : [],
    reason: 'backlog',
  };
}

interface OverlapResult {
  pending: PendingEntry[];
  /** The new runs that will run. */
  accepted: readonly PendingRun[];
  active: string | null;
  /** The run to cancel, because a newer one replaces it. */
  cancel: string | null;
  /** How many occurrences are skipped now that already counted toward `maxRuns`. */
  withdrawn: number;
}

export function applyOverlapPolicy(
  schedule: Pick<ScheduleDocument, 'overlap' | 'pending' | 'active'>,
  due: readonly PendingRun[],
  active: ActiveRun | null,
  now: Date,
  runsLeft = Infinity,
): OverlapResult {
  const waiting = waitingBehind(active?.id ?? null, schedule.pending);
  const decide = OVERLAP_POLICIES[schedule.overlap];
  const { accept, skip, reason, cancel } = decide({ due, waiting, active, runsLeft });
  const skipped = new Set<PendingEntry>(skip);
  const pending = [
    ...schedule.pending.filter((entry) => !skipped.has(entry)),
    ...accept,
    ...skip.map(({ id, at }) => pendingSkip(id, { ...singleOccurrence(at), reason }, active, now)),
  ];
  return {
    pending,
    accepted: accept,
    active:
      schedule.overlap === 'allow'
        ? (accept.at(-1)?.id ?? schedule.active)
        : activateNext(schedule, pending, active),
    cancel: cancel?.id ?? null,
    withdrawn: waiting.filter((run) => skipped.has(run) && isCounted(run)).length,
  };
}

/** The id of the current run: the first pending one when none is active. */
export function activateNext(
  schedule: Pick<ScheduleDocument, 'active'>,
  pending: readonly PendingEntry[],
  active: ActiveRun | null,
): string | null {
  return active?.id ?? runsOf(pending)[0]?.id ?? schedule.active;
}

/** Pending runs that may start: all of them if runs may overlap, otherwise only the current one. */
export function runnableNow(
  { overlap }: Pick<ScheduleDocument, 'overlap'>,
  { pending, active }: Pick<OverlapResult, 'pending' | 'active'>,
): PendingRun[] {
  const runs = runsOf(pending);
  return overlap === 'allow' ? runs : runs.filter(({ id }) => id === active);
}

/** Triggered runs and those of a pass at a chosen instant do not count toward `maxRuns`. */
function isCounted({ id, uncounted }: PendingRun): boolean {
  return id.includes('@') && uncounted !== true;
}
