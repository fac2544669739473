import type { ActiveRun } from '../../../src/domain/schedule/pending.js';
import type { Plan, PlanInput } from '../../../src/domain/schedule/plan.js';
import {
  DEFAULT_MISFIRE,
  type Misfire,
  occurrenceId,
  type PendingRun,
  type PendingSkip,
} from '../../../src/domain/schedule/schedule.js';
import { START, timeAfter } from '../instants.js';

const HOUR = 3_600_000;

export function aPlanInput(fields: Partial<PlanInput> = {}): PlanInput {
  return {
    _id: 's',
    isActive: true,
    nextRunAt: timeAfter(HOUR),
    lastRunAt: null,
    runs: 0,
    maxRuns: null,
    pending: [],
    active: null,
    overlap: 'skip',
    singleInstance: false,
    misfire: DEFAULT_MISFIRE,
    ...fields,
  };
}

export function misfire(
  policy: Misfire['policy'],
  limits: Partial<Misfire> = {},
): Pick<PlanInput, 'misfire'> {
  return { misfire: { ...DEFAULT_MISFIRE, policy, ...limits } };
}

export function run(at: Date, since: Date = at): PendingRun {
  return { kind: 'run', id: occurrenceId('s', at), at, since };
}

export function active(at: Date, since: Date = at): ActiveRun {
  return { id: occurrenceId('s', at), since, hasStarted: true };
}

export function runsOf({ pending }: Pick<Plan, 'pending'>): PendingRun[] {
  return pending.filter((entry) => entry.kind === 'run');
}

export function skipsOf({ pending }: Pick<Plan, 'pending'>): PendingSkip[] {
  return pending.filter((entry) => entry.kind === 'skip');
}

/** The planned runs, and the skips with their ends and reasons, in hours after the start. */
export function hours(plan: Plan): { run: number[]; skip: [number, number, string][] } {
  const hour = (at: Date): number => (at.getTime() - START.getTime()) / HOUR;
  return {
    run: runsOf(plan).map(({ at }) => hour(at)),
    skip: skipsOf(plan).map(({ at, until, reason }) => [hour(at), hour(until), reason]),
  };
}
