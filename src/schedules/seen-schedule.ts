import { isFinished } from '../domain/job.js';
import { occurrencesOf, type Occurrences } from '../domain/occurrences.js';
import type { ActiveRun } from '../domain/owed.js';
import type { ScheduleDocument } from '../domain/schedule.js';
import type { Run } from '../store/active-runs.js';
import type { Store } from '../store/store.js';

const NEVER: Occurrences = { next: () => null };

/** A schedule as decisions see it, with its current run when that is not finished. */
export interface Seen {
  schedule: ScheduleDocument;
  active: ActiveRun | null;
  /** The list names the current run although its job exists: somebody died before taking it off. */
  isStale: boolean;
}

/** Looks up the current run of each; it is not on the list any more once its job exists. */
export async function see(
  store: Pick<Store, 'findRuns'>,
  schedules: readonly ScheduleDocument[],
): Promise<Seen[]> {
  const ids = schedules.flatMap(({ active }) => active ?? []);
  const runs = ids.length === 0 ? new Map<string, Run>() : await store.findRuns(ids);
  return schedules.map((schedule) => {
    const { active, owed } = schedule;
    const exists = active !== null && runs.has(active);
    const open = exists ? owed.filter(({ kind, id }) => kind === 'skip' || id !== active) : owed;
    const isStale = open.length < owed.length;
    return { schedule: { ...schedule, owed: open }, active: activeRun(schedule, runs), isStale };
  });
}

/** One that is paused or disabled has none; what it owes from before is still carried out. */
export function occurrencesIn({ isActive, rule, anchor }: ScheduleDocument): Occurrences {
  return isActive && rule !== null ? occurrencesOf(rule, anchor) : NEVER;
}

function activeRun(
  { overlap, active, owed }: ScheduleDocument,
  runs: ReadonlyMap<string, Run>,
): ActiveRun | null {
  if (active === null || overlap === 'allow') return null;
  const run = runs.get(active);
  if (run !== undefined) {
    return isFinished(run.status)
      ? null
      : { id: active, since: run.firstStartedAt ?? run.startedAt ?? run.createdAt };
  }
  // Decided and not inserted yet; or else pruned, and long finished.
  const pending = owed.find(({ kind, id }) => kind === 'run' && id === active);
  return pending === undefined ? null : { id: active, since: pending.since };
}
