import type { Occurrences } from '../calendar/occurrences.js';
import { selectDueRuns } from './misfire.js';
import { activateNext, applyOverlapPolicy } from './overlap.js';
import { type ActiveRun, runsOf } from './pending.js';
import { occurrenceId, type PendingRun, type ScheduleDocument } from './schedule.js';

type PlannedFields = Pick<ScheduleDocument, 'nextRunAt' | 'lastRunAt' | 'runs' | 'pending' | 'active'>;

/** What one planning round changes in a schedule. It is stored in one write; afterwards any process may execute it. */
export interface Plan extends PlannedFields {
  /** The run to cancel, because a newer one replaces it. */
  cancel: string | null;
}

export type PlanInput = PlannedFields &
  Pick<ScheduleDocument, '_id' | 'isActive' | 'maxRuns' | 'overlap' | 'singleInstance' | 'misfire'>;

/**
 * Decides every occurrence up to `now`. Pure: every process that reads the same document makes the same plan.
 * The misfire policy selects which late occurrences still run, then the overlap policy is applied.
 */
export function plan(
  schedule: PlanInput,
  occurrences: Occurrences,
  active: ActiveRun | null,
  now: Date,
): Plan {
  const { runs, skips } = selectDueRuns(schedule, occurrences, now);
  const known = new Set([active?.id, ...runsOf(schedule.pending).map(({ id }) => id)]);
  // A backfill or a pass at a chosen instant may have requested an occurrence before it was due.
  const due = runs.filter(({ id }) => !known.has(id));
  const maxRuns = schedule.maxRuns ?? Infinity;
  const runsLeft = Math.max(0, maxRuns - schedule.runs);
  const result = applyOverlapPolicy(schedule, due, active, now, runsLeft);
  const count = schedule.runs + result.accepted.length - result.withdrawn;
  return {
    nextRunAt: count >= maxRuns ? null : nextAfter(schedule, occurrences, now),
    lastRunAt: result.accepted.at(-1)?.at ?? schedule.lastRunAt,
    runs: count,
    pending: [...result.pending, ...skips],
    active: result.active,
    cancel: replaceable(schedule, result.cancel),
  };
}

/**
 * Adds a run in addition to the planned ones, triggered or by a pass at a chosen instant; null if the overlap policy
 * skips it. It does not count toward `maxRuns`.
 */
export function planTrigger(
  schedule: PlanInput,
  id: string,
  active: ActiveRun | null,
  now: Date,
): Plan | null {
  const isOccurrence = id === occurrenceId(schedule._id, now);
  const run: PendingRun = { kind: 'run', id, at: now, since: now, ...(isOccurrence && { uncounted: true }) };
  const { accepted, withdrawn, ...result } = applyOverlapPolicy(schedule, [run], active, now);
  if (accepted.length === 0) return null;
  const { nextRunAt, lastRunAt } = schedule;
  const cancel = replaceable(schedule, result.cancel);
  return { nextRunAt, lastRunAt, runs: schedule.runs - withdrawn, ...result, cancel };
}

/** Adds the past occurrences of a backfill. They run one after another unless runs may overlap. */
export function planBackfill(
  schedule: PlanInput,
  runs: readonly PendingRun[],
  active: ActiveRun | null,
): Plan {
  const { nextRunAt, lastRunAt, overlap } = schedule;
  const ids = new Set(runs.map(({ id }) => id));
  const manualRuns = runs.map((run) => ({ ...run, manual: true as const }));
  // A pending skip of a requested occurrence is dropped: it runs after all.
  const pending = [
    ...schedule.pending.filter(({ id }) => !ids.has(id) || id === schedule.active),
    ...manualRuns,
  ];
  const current = overlap === 'allow' ? schedule.active : activateNext(schedule, pending, active);
  return { nextRunAt, lastRunAt, runs: schedule.runs, pending, active: current, cancel: null };
}

/** A dispatched or triggered run of a single-instance schedule is never replaced: the new run waits for it. */
function replaceable({ _id, singleInstance }: PlanInput, active: string | null): string | null {
  return singleInstance && active?.startsWith(`${_id}@`) !== true ? null : active;
}

function nextAfter({ isActive, nextRunAt }: PlanInput, occurrences: Occurrences, now: Date): Date | null {
  return !isActive || nextRunAt === null || nextRunAt > now ? nextRunAt : occurrences.next(now);
}
