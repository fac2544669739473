import { randomUUID } from 'node:crypto';
import { DEFAULT_QUEUE } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError, toError } from '../domain/errors.js';
import { isFinished, newJob, type JobDocument } from '../domain/job.js';
import type { ActiveRun } from '../domain/owed.js';
import { plan, type Plan } from '../domain/plan.js';
import { occurrencesOf, type Occurrences } from '../domain/occurrences.js';
import { jitterOf, type OwedRun, type OwedSkip, type ScheduleDocument } from '../domain/schedule.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { Run } from '../store/active-runs.js';
import type { Store } from '../store/store.js';

const NEVER: Occurrences = { next: () => null };

export interface DecisionsParts {
  store: Pick<
    Store,
    'decideSchedules' | 'dropOwed' | 'enqueueMany' | 'recordSkips' | 'findRuns' | 'changeSchedule'
  >;
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

/** What came of looking at schedules. */
export interface DecisionRound {
  /** Where nobody else was first. */
  won: Decided[];
  /** How many others were first with. */
  lost: number;
  /** Those that nothing can be decided about here, or that the server refuses to write. */
  hopeless: string[];
}

/** A schedule as decisions see it, with its current run when that is not finished. */
export interface Seen {
  schedule: ScheduleDocument;
  active: ActiveRun | null;
  /** The list names the current run although its job exists: somebody died before taking it off. */
  isStale: boolean;
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

  /** Looks at each schedule and stores what that comes to, unless it comes to nothing. One that fails stops no other. */
  async decide(schedules: readonly ScheduleDocument[], now: Date): Promise<DecisionRound> {
    const hopeless: string[] = [];
    const decided: Decided[] = [];
    for (const { schedule, active, isStale } of await this.see(schedules)) {
      try {
        const made = plan(schedule, occurrencesIn(schedule), active, now);
        if (isStale || changesSomething(schedule, made)) decided.push({ schedule, plan: made });
      } catch (thrown) {
        if (!(await this.#disable(schedule, toError(thrown), now))) hopeless.push(schedule._id);
      }
    }
    const { won, lost, refused } = await this.#store(decided);
    return { won, lost, hopeless: [...hopeless, ...refused] };
  }

  /** Stores decisions made elsewhere by the same rules; returns those that took effect. */
  async store(decided: readonly Decided[]): Promise<Decided[]> {
    return (await this.#store(decided)).won;
  }

  /** Looks up the current run of each; it is not on the list any more once its job exists. */
  async see(schedules: readonly ScheduleDocument[]): Promise<Seen[]> {
    const ids = schedules.flatMap(({ active }) => active ?? []);
    const runs = ids.length === 0 ? new Map<string, Run>() : await this.#parts.store.findRuns(ids);
    return schedules.map((schedule) => {
      const { active, owed } = schedule;
      const exists = active !== null && runs.has(active);
      const open = exists ? owed.filter(({ kind, id }) => kind === 'skip' || id !== active) : owed;
      const isStale = open.length < owed.length;
      return { schedule: { ...schedule, owed: open }, active: activeRun(schedule, runs), isStale };
    });
  }

  /** Inserts the jobs that may run now, records skips, and takes both off the list. Returns the jobs it made. */
  async carryOut(decided: readonly Decided[], now: Date): Promise<JobDocument[]> {
    const runs = decided.flatMap(({ schedule, plan: { owed, active } }) =>
      releasable(schedule, owed, active).map((run) => ({ schedule, run })),
    );
    const { made, refused } = await this.#insert(runs.map(({ schedule, run }) => jobOf(schedule, run, now)));
    await this.#drop(
      'run',
      runs.filter(({ run }) => !refused.has(run.id)).map(({ schedule, run }) => [schedule._id, run.id]),
    );
    await this.concludeRest(decided);
    return made;
  }

  /** What is left of a decision besides its runs: skips to record, a run that has to make way. */
  async concludeRest(decided: readonly Decided[]): Promise<void> {
    await this.#record(
      decided.flatMap(({ schedule, plan: { owed } }) =>
        owed.filter((entry) => entry.kind === 'skip').map((skip) => ({ schedule, skip })),
      ),
    );
    for (const { plan: made } of decided) {
      if (made.cancel !== null) {
        await this.#parts.cancel(made.cancel, 'replaced by a newer run of its schedule');
      }
    }
  }

  /** A run that was inserted elsewhere. */
  async dropRun(schedule: ScheduleDocument, runId: string): Promise<void> {
    await this.#drop('run', [[schedule._id, runId]]);
  }

  async #store(decided: readonly Decided[]): Promise<{ won: Decided[]; lost: number; refused: string[] }> {
    const { store, events } = this.#parts;
    if (decided.length === 0) return { won: [], lost: 0, refused: [] };
    const { won, refused } = await store.decideSchedules(randomUUID(), decided);
    for (const [scheduleId, error] of refused) this.#report(`decide on ${scheduleId}`, error);
    const lost = decided.length - won.size - refused.size;
    events.emit('schedule:decided', { won: won.size, lost, refused: refused.size });
    if (lost > 0) events.emit('schedule:contended', { won: won.size, lost });
    return {
      won: decided.filter(({ schedule }) => won.has(schedule._id)),
      lost,
      refused: [...refused.keys()],
    };
  }

  /** What cannot be inserted stays on the list and is tried again; it keeps none of the others. */
  async #insert(jobs: readonly JobDocument[]): Promise<{ made: JobDocument[]; refused: Set<string> }> {
    const { store, events, clock, nudge } = this.#parts;
    const made: JobDocument[] = [];
    const refused = new Set<string>();
    if (jobs.length === 0) return { made, refused };
    const results = await store.enqueueMany(jobs).catch((error: unknown) => {
      events.emit('schedule:pushed', { pushed: 0, failed: jobs.length });
      throw error;
    });
    for (const [index, job] of jobs.entries()) {
      const result = results[index];
      if (result === undefined || 'error' in result) {
        refused.add(job._id);
        this.#report(`insert ${job._id}`, result?.error ?? new Error('no answer'));
      } else if (!result.duplicate) made.push(job);
    }
    events.emit('schedule:pushed', { pushed: made.length, failed: refused.size });
    for (const { _id: jobId, schedule, scheduledFor } of made) {
      if (schedule === null || scheduledFor === null) continue;
      const late = clock.now().getTime() - scheduledFor.getTime();
      events.emit('schedule:due', { scheduleId: schedule, jobId, scheduledFor, late });
    }
    if (made.length > 0) nudge();
    return { made, refused };
  }

  /** One that the server will not keep is reported and let go: it would be tried for ever. */
  async #record(skips: readonly { schedule: ScheduleDocument; skip: OwedSkip }[]): Promise<void> {
    const { store, events, skipRetention } = this.#parts;
    if (skips.length === 0) return;
    const refused = await store.recordSkips(
      skips.map(({ schedule, skip: { kind: _, id, ...skip } }) => ({
        _id: id,
        scheduleId: schedule._id,
        ...skip,
        expiresAt: new Date(skip.since.getTime() + skipRetention),
      })),
    );
    for (const [id, error] of refused) this.#report(`record the skip of ${id}`, error);
    await this.#drop(
      'skip',
      skips.map(({ schedule, skip }) => [schedule._id, skip.id]),
    );
    for (const { schedule, skip } of skips) {
      const { at: from, until, count, reason, runningFor } = skip;
      events.emit('schedule:skipped', { scheduleId: schedule._id, from, until, count, reason, runningFor });
    }
  }

  async #drop(kind: 'run' | 'skip', entries: readonly (readonly [string, string])[]): Promise<void> {
    if (entries.length === 0) return;
    const byId = new Map<string, string[]>();
    for (const [scheduleId, id] of entries) byId.set(scheduleId, [...(byId.get(scheduleId) ?? []), id]);
    await this.#parts.store.dropOwed([...byId].map(([scheduleId, ids]) => ({ scheduleId, kind, ids })));
  }

  /**
   * True when that is the end of it. A rule that is wrong disables its schedule, with the reason, until somebody changes it. Any other trouble may be this
   * process's alone, like a time zone that it does not know: others may still run it.
   */
  async #disable(schedule: ScheduleDocument, error: Error, now: Date): Promise<boolean> {
    const { store, events } = this.#parts;
    if (!(error instanceof ChronosError)) {
      this.#report(`decide on ${schedule._id}`, error);
      return false;
    }
    const disabledReason = error.message;
    const fields = { isActive: false, disabledReason, decision: randomUUID(), updatedAt: now };
    if (await store.changeSchedule(schedule, fields)) {
      events.emit('schedule:disabled', { scheduleId: schedule._id, reason: disabledReason });
    }
    return true;
  }

  #report(operation: string, error: Error): void {
    this.#parts.events.emit('worker:trouble', { operation, error, failures: 1, retryIn: 0 });
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
