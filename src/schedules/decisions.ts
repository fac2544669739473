import { randomUUID } from 'node:crypto';
import { DEFAULT_QUEUE } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { toError } from '../domain/errors.js';
import { isFinished, newJob, type JobDocument } from '../domain/job.js';
import { plan, type ActiveRun, type Plan } from '../domain/plan.js';
import { occurrencesOf, type Occurrences } from '../domain/rule.js';
import { jitterOf, type OwedRun, type OwedSkip, type ScheduleDocument } from '../domain/schedule.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { Run } from '../store/active-runs.js';
import type { Store } from '../store/store.js';

const NEVER: Occurrences = { next: () => null };

type DecisionStore = Pick<
  Store,
  'decideSchedules' | 'dropOwed' | 'enqueueMany' | 'recordSkips' | 'findRuns' | 'changeSchedule'
>;

export interface DecisionsParts {
  store: DecisionStore;
  clock: Clock;
  events: EventBus;
  /** How long records of skipped occurrences are kept, in milliseconds. */
  skipRetention: number;
  /** Asks a run to make way for a newer one. */
  cancel: (jobId: string, reason: string) => Promise<unknown>;
  nudge: () => void;
}

/** A schedule after a decision about it that took effect. */
export interface Decided {
  schedule: ScheduleDocument;
  plan: Plan;
}

/**
 * Decides what schedules owe, and carries it out. First one compare-and-set stores the decision, then anybody inserts
 * the jobs and takes them off the list: dying in between loses nothing, and doing it twice makes no second job,
 * because an occurrence is the job's id.
 */
export class Decisions {
  readonly #parts: DecisionsParts;

  constructor(parts: DecisionsParts) {
    this.#parts = parts;
  }

  /** Looks at each schedule and stores what that comes to, unless it comes to nothing. */
  async decide(schedules: readonly ScheduleDocument[], now: Date): Promise<{ won: Decided[]; lost: number }> {
    const actives = await this.activeRuns(schedules);
    const decided: Decided[] = [];
    for (const schedule of schedules) {
      const made = await this.#plan(schedule, actives.get(schedule._id) ?? null, now);
      if (made !== undefined && changesSomething(schedule, made)) decided.push({ schedule, plan: made });
    }
    const won = await this.store(decided);
    return { won, lost: decided.length - won.length };
  }

  /** Stores decisions made elsewhere by the same rules; returns those that took effect. */
  async store(decided: readonly Decided[]): Promise<Decided[]> {
    const { store, events } = this.#parts;
    if (decided.length === 0) return [];
    const won = await store.decideSchedules(randomUUID(), decided);
    const lost = decided.length - won.size;
    if (lost > 0) events.emit('schedule:contended', { won: won.size, lost });
    return decided.filter(({ schedule }) => won.has(schedule._id));
  }

  /** The current run of each schedule that has one which is not finished. */
  async activeRuns(schedules: readonly ScheduleDocument[]): Promise<Map<string, ActiveRun>> {
    const ids = schedules.flatMap(({ active }) => active ?? []);
    const runs = ids.length === 0 ? new Map<string, Run>() : await this.#parts.store.findRuns(ids);
    return new Map(
      schedules.flatMap((schedule) => {
        const run = activeRun(schedule, runs);
        return run === null ? [] : [[schedule._id, run] as const];
      }),
    );
  }

  /** Inserts the jobs that may run now, records skips, and takes both off the list. Returns the jobs it made. */
  async carryOut(decided: readonly Decided[], now: Date): Promise<JobDocument[]> {
    const runs = decided.flatMap(({ schedule, plan: { owed, active } }) =>
      releasable(schedule, owed, active).map((run) => ({ schedule, run })),
    );
    const skips = decided.flatMap(({ schedule, plan: { owed } }) =>
      owed.filter((entry) => entry.kind === 'skip').map((skip) => ({ schedule, skip })),
    );
    const { made, refused } = await this.#insert(runs.map(({ schedule, run }) => jobOf(schedule, run, now)));
    await this.#record(skips);
    await this.#drop([
      ...runs
        .filter(({ run }) => !refused.has(run.id))
        .map(({ schedule, run }) => [schedule._id, run.id] as const),
      ...skips.map(({ schedule, skip }) => [schedule._id, skip.id] as const),
    ]);
    for (const {
      plan: { cancel },
    } of decided) {
      if (cancel !== null) await this.#parts.cancel(cancel, 'replaced by a newer run of its schedule');
    }
    return made;
  }

  /** Records skips and takes them, and the runs given, off the list. */
  async conclude(
    schedule: ScheduleDocument,
    skips: readonly OwedSkip[],
    runIds: readonly string[],
  ): Promise<void> {
    await this.#record(skips.map((skip) => ({ schedule, skip })));
    await this.#drop([...skips.map(({ id }) => id), ...runIds].map((id) => [schedule._id, id] as const));
  }

  /** What cannot be inserted stays on the list and is tried again; it keeps none of the others. */
  async #insert(jobs: readonly JobDocument[]): Promise<{ made: JobDocument[]; refused: Set<string> }> {
    const { store, events, clock, nudge } = this.#parts;
    const made: JobDocument[] = [];
    const refused = new Set<string>();
    const results = jobs.length === 0 ? [] : await store.enqueueMany(jobs);
    for (const [index, job] of jobs.entries()) {
      const result = results[index];
      if (result === undefined || 'error' in result) {
        refused.add(job._id);
        const error = result?.error ?? new Error('no answer');
        events.emit('worker:trouble', { operation: `insert ${job._id}`, error, failures: 1, retryIn: 0 });
      } else if (!result.duplicate) made.push(job);
    }
    for (const { _id: jobId, schedule, scheduledFor } of made) {
      if (schedule === null || scheduledFor === null) continue;
      const late = clock.now().getTime() - scheduledFor.getTime();
      events.emit('schedule:due', { scheduleId: schedule, jobId, scheduledFor, late });
    }
    if (made.length > 0) nudge();
    return { made, refused };
  }

  async #record(skips: readonly { schedule: ScheduleDocument; skip: OwedSkip }[]): Promise<void> {
    const { store, events, skipRetention } = this.#parts;
    if (skips.length === 0) return;
    await store.recordSkips(
      skips.map(({ schedule, skip: { kind: _, id, ...skip } }) => ({
        _id: id,
        scheduleId: schedule._id,
        ...skip,
        expiresAt: new Date(skip.since.getTime() + skipRetention),
      })),
    );
    for (const { schedule, skip } of skips) {
      const { at: from, until, count, reason, runningFor } = skip;
      events.emit('schedule:skipped', { scheduleId: schedule._id, from, until, count, reason, runningFor });
    }
  }

  async #drop(entries: readonly (readonly [scheduleId: string, id: string])[]): Promise<void> {
    if (entries.length === 0) return;
    const byId = new Map<string, string[]>();
    for (const [scheduleId, id] of entries) byId.set(scheduleId, [...(byId.get(scheduleId) ?? []), id]);
    await this.#parts.store.dropOwed([...byId].map(([scheduleId, ids]) => ({ scheduleId, ids })));
  }

  /** A rule that cannot be read disables its schedule, with the reason, until somebody changes it; the others go on. */
  async #plan(schedule: ScheduleDocument, active: ActiveRun | null, now: Date): Promise<Plan | undefined> {
    const { store, events } = this.#parts;
    try {
      const { rule, anchor } = schedule;
      return plan(schedule, rule === null ? NEVER : occurrencesOf(rule, anchor), active, now);
    } catch (thrown) {
      const disabledReason = toError(thrown).message;
      const fields = { isActive: false, disabledReason, decision: randomUUID(), updatedAt: now };
      if (await store.changeSchedule(schedule, fields)) {
        events.emit('schedule:disabled', { scheduleId: schedule._id, reason: disabledReason });
      }
      return undefined;
    }
  }
}

/** The job for an occurrence: its time is the schedule's, however late it is made. */
export function jobOf(schedule: ScheduleDocument, { id, at }: OwedRun, now: Date): JobDocument {
  const { taskType, queue, priority, payload, retries, timeout, maxRunningTime, userId, jitter } = schedule;
  return newJob({
    _id: id,
    taskType,
    queue: queue ?? DEFAULT_QUEUE,
    priority,
    payload,
    nextRunAt: new Date(at.getTime() + jitterOf(id, jitter)),
    createdAt: now,
    retries,
    timeout,
    maxRunningTime,
    schedule: schedule._id,
    scheduledFor: at,
    userId,
    nonce: randomUUID(),
  });
}

/** Runs that may start: all of them where they may overlap, otherwise the one whose turn it is. */
export function releasable(
  { overlap }: ScheduleDocument,
  owed: Plan['owed'],
  active: string | null,
): OwedRun[] {
  const runs = owed.filter((entry) => entry.kind === 'run');
  return overlap === 'allow' ? runs : runs.filter(({ id }) => id === active);
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
  const pending = owed.find(({ id }) => id === active);
  return pending === undefined ? null : { id: active, since: pending.since };
}

/** Also when a run waits to be inserted: whoever decided it may be gone. */
function changesSomething(schedule: ScheduleDocument, made: Plan): boolean {
  return (
    made.owed.some((entry) => entry.kind === 'skip') ||
    releasable(schedule, made.owed, made.active).length > 0 ||
    made.active !== schedule.active ||
    made.cancel !== null ||
    made.nextRunAt?.getTime() !== schedule.nextRunAt?.getTime() ||
    made.owed.length !== schedule.owed.length
  );
}
