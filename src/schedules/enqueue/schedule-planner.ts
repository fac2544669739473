import { randomUUID } from 'node:crypto';
import { type Occurrences, occurrencesOf } from '../../domain/calendar/occurrences.js';
import { toError } from '../../domain/errors.js';
import { hasStarted, isFinished, runningSince } from '../../domain/job/job.js';
import { runnableNow } from '../../domain/schedule/overlap.js';
import { type ActiveRun, skipsOf } from '../../domain/schedule/pending.js';
import { plan, type Plan } from '../../domain/schedule/plan.js';
import type { ScheduleDocument } from '../../domain/schedule/schedule.js';
import type { EventBus } from '../../runtime/event-bus.js';
import type { RunState } from '../../store/jobs/find.js';
import { isResultUnknown } from '../../store/mongo-errors.js';
import type { Store } from '../../store/store.js';

export interface SchedulePlannerDeps {
  store: Pick<Store, 'storeDecisions' | 'findRunStates' | 'disableSchedule'>;
  events: EventBus;
}

/** A schedule as it was read, and the plan for it. */
export interface PlannedSchedule {
  schedule: ScheduleDocument;
  plan: Plan;
}

export interface StoredPlans {
  stored: PlannedSchedule[];
  /** How many plans were not stored because another process changed the schedule first. */
  conflicts: number;
  /** Ids of schedules whose plan MongoDB rejects, or that cannot be planned and not be disabled either. */
  unplannable: string[];
}

/**
 * Decides which runs of a schedule are due. A compare-and-set stores the decision before it is executed. From then on
 * any process can execute it, so a crash in between loses nothing.
 */
export class SchedulePlanner {
  readonly #deps: SchedulePlannerDeps;

  constructor(deps: SchedulePlannerDeps) {
    this.#deps = deps;
  }

  /** Plans each schedule and stores the plans that change something. A schedule that fails does not affect the others. */
  async decide(schedules: readonly ScheduleDocument[], now: Date): Promise<StoredPlans> {
    const planned: PlannedSchedule[] = [];
    const failed: string[] = [];
    const runs = await findCurrentRuns(this.#deps.store, schedules);
    for (const { schedule, active, isStale } of schedules.map((found) => toSnapshot(found, runs))) {
      try {
        const made = plan(schedule, activeOccurrences(schedule), active, now);
        if (isStale || changesSomething(schedule, made)) planned.push({ schedule, plan: made });
      } catch (thrown) {
        // Planning is pure: whatever it throws, every process would throw for this document.
        if (!(await this.#disable(schedule, toError(thrown), now))) failed.push(schedule._id);
      }
    }
    const result = await this.store(planned);
    return { ...result, unplannable: [...failed, ...result.unplannable] };
  }

  async store(planned: readonly PlannedSchedule[]): Promise<StoredPlans> {
    const { store, events } = this.#deps;
    if (planned.length === 0) return { stored: [], conflicts: 0, unplannable: [] };
    const { stored, rejected } = await store.storeDecisions(randomUUID(), planned);
    for (const [scheduleId, error] of rejected)
      events.reportError('plan schedule', error, { subject: scheduleId });
    const conflicts = planned.length - stored.size - rejected.size;
    events.measure('plan', { stored: stored.size, conflicts, rejected: rejected.size });
    return {
      stored: planned.filter(({ schedule }) => stored.has(schedule._id)),
      conflicts,
      unplannable: [...rejected.keys()],
    };
  }

  /** Disables a schedule whose rule is invalid, until the schedule is changed. False if MongoDB rejects the write. */
  async #disable(schedule: ScheduleDocument, { message: reason }: Error, now: Date): Promise<boolean> {
    const { store, events } = this.#deps;
    try {
      if (await store.disableSchedule(schedule, reason, now))
        events.emit('schedule:disabled', { scheduleId: schedule._id, reason });
      return true;
    } catch (thrown) {
      if (isResultUnknown(thrown)) throw thrown;
      events.reportError('disable schedule', toError(thrown), { subject: schedule._id });
      return false;
    }
  }
}

/** Also true if runs or skips are pending: the process that decided on them may have crashed. */
function changesSomething(schedule: ScheduleDocument, made: Plan): boolean {
  return (
    skipsOf(made.pending).length > 0 ||
    runnableNow(schedule, made).length > 0 ||
    made.active !== schedule.active ||
    made.cancel !== null ||
    made.nextRunAt?.getTime() !== schedule.nextRunAt?.getTime() ||
    made.pending.length !== schedule.pending.length
  );
}

/** Everything that a plan depends on, except the time. */
export interface ScheduleSnapshot {
  schedule: ScheduleDocument;
  /** The current run, unless it is finished. */
  active: ActiveRun | null;
  /** The stored document has the current run as pending although its job exists: a process crashed in between. */
  isStale: boolean;
}

export async function loadSnapshot(
  store: Pick<Store, 'findRunStates'>,
  schedule: ScheduleDocument,
): Promise<ScheduleSnapshot> {
  return toSnapshot(schedule, await findCurrentRuns(store, [schedule]));
}

async function findCurrentRuns(
  store: Pick<Store, 'findRunStates'>,
  schedules: readonly ScheduleDocument[],
): Promise<ReadonlyMap<string, RunState>> {
  const ids = schedules.flatMap(({ active }) => active ?? []);
  return ids.length === 0 ? new Map() : store.findRunStates(ids);
}

function toSnapshot(schedule: ScheduleDocument, runs: ReadonlyMap<string, RunState>): ScheduleSnapshot {
  const { active, pending } = schedule;
  const hasJob = active !== null && runs.has(active);
  const open = hasJob ? pending.filter(({ kind, id }) => kind === 'skip' || id !== active) : pending;
  const isStale = open.length < pending.length;
  return { schedule: { ...schedule, pending: open }, active: activeRun(schedule, runs), isStale };
}

/** A paused or disabled schedule has no occurrences; its pending runs are still executed. */
export function activeOccurrences({ isActive, rule, anchor }: ScheduleDocument): Occurrences {
  return isActive && rule !== null ? occurrencesOf(rule, anchor) : { next: () => null };
}

function activeRun(
  { overlap, active, pending }: ScheduleDocument,
  runs: ReadonlyMap<string, RunState>,
): ActiveRun | null {
  if (active === null || overlap === 'allow') return null;
  const run = runs.get(active);
  if (run === undefined) {
    // Without a job, the run is still pending, or it finished long ago and its job was pruned.
    const entry = pending.find(({ kind, id }) => kind === 'run' && id === active);
    return entry === undefined ? null : { id: active, since: entry.since, hasStarted: false };
  }
  if (isFinished(run.status)) return null;
  return { id: active, since: runningSince(run), hasStarted: hasStarted(run) };
}
