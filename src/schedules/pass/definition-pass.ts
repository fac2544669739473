import { DEFAULT_QUEUE, type ResolvedOptions } from '../../config/options.js';
import { lastInMinute } from '../../domain/calendar/occurrences.js';
import type { Clock } from '../../domain/clock.js';
import { toError } from '../../domain/errors.js';
import {
  type JobDocument,
  type JobStatus,
  hasStarted,
  LOCKED_STATUSES,
  runningSince,
} from '../../domain/job/job.js';
import { runnableNow } from '../../domain/schedule/overlap.js';
import { pendingSkip, runsOf, singleOccurrence, skipsOf } from '../../domain/schedule/pending.js';
import { type Plan, planTrigger } from '../../domain/schedule/plan.js';
import { occurrenceId, type ScheduleDocument } from '../../domain/schedule/schedule.js';
import { isResultUnknown } from '../../store/mongo-errors.js';
import type { Store } from '../../store/store.js';
import type { WorkerEngine } from '../../worker/engine.js';
import type { DefinitionRegistry } from '../definition/definition-registry.js';
import { type Definition, isInline } from '../definition/definition.js';
import { type PlanExecutor, createOccurrenceJob } from '../enqueue/plan-executor.js';
import {
  type PlannedSchedule,
  type SchedulePlanner,
  type ScheduleSnapshot,
  type StoredPlans,
  activeOccurrences,
  loadSnapshot,
} from '../enqueue/schedule-planner.js';
import {
  entry,
  stillRunningEntry,
  existingJobEntry,
  type PassEntry,
  skipEntry,
  skippedHere,
  skippedInactive,
  waitingEntry,
  nothingDueEntry,
} from './pass-entry.js';

/** How often a pass plans a schedule that other processes keep changing. */
const MAX_CONFLICTS = 5;

export interface PassPreviewDeps {
  store: Pick<Store, 'findSchedule' | 'findJob' | 'findRunStates'>;
  clock: Clock;
  definitions: DefinitionRegistry;
  options: Pick<ResolvedOptions, 'environment' | 'queues'>;
}

export interface DefinitionPassDeps extends PassPreviewDeps {
  planner: SchedulePlanner;
  executor: PlanExecutor;
  engine: Pick<WorkerEngine, 'runInline' | 'isStopped'>;
}

/** A stored plan, or the reason why there is none. */
type Step = { planned: PlannedSchedule } | { planned?: never; reason: PassEntry };

/**
 * Evaluates every definition once, in the order of their dependencies. Due runs of a definition without a queue run
 * inline, with one attempt each; the others are enqueued. A pass and workers plan from the same stored schedule, so each
 * occurrence runs either here or in a worker.
 */
export class DefinitionPass {
  readonly #deps: DefinitionPassDeps;

  constructor(deps: DefinitionPassDeps) {
    this.#deps = deps;
  }

  /** A definition that fails does not stop the others. `at`: run what is due at this instant instead of now. */
  async run(at: Date | undefined): Promise<PassEntry[]> {
    const { definitions, options, engine } = this.#deps;
    const entries: PassEntry[] = [];
    for (const definition of definitions.inOrder()) {
      if (engine.isStopped) break;
      try {
        const reason = skippedHere(definition, options.environment);
        entries.push(...(reason === undefined ? await this.#evaluate(definition, at) : [reason]));
      } catch (error) {
        if (engine.isStopped) break;
        // The database is unreachable: the other definitions would fail, too.
        if (isResultUnknown(error)) throw error;
        entries.push(entry(definition.name, 'failed', toError(error).message));
      }
    }
    return entries;
  }

  async #evaluate(definition: Definition, at: Date | undefined): Promise<PassEntry[]> {
    // The same time for all rounds: occurrences that become due during this pass are left to the next pass.
    const now = this.#deps.clock.now();
    const entries: PassEntry[] = [];
    let step = await this.#planNext(definition, at, now);
    while (step.planned !== undefined) {
      const { schedule, plan } = step.planned;
      entries.push(...(await this.#execute(definition, step.planned, now)));
      if (entries.length === 0) return [await this.#explainWaiting(schedule, now)];
      // A plan starts only one of several runs that must not overlap. This one has ended, so the next may start.
      const hasRunInline = isInline(definition) && runnableNow(schedule, plan).length > 0;
      if (at !== undefined || !hasRunInline || this.#deps.engine.isStopped) return entries;
      step = await this.#planNext(definition, at, now, { isFirst: false });
    }
    return entries.length > 0 ? entries : [step.reason];
  }

  async #planNext(
    { name }: Definition,
    at: Date | undefined,
    now: Date,
    { isFirst } = { isFirst: true },
  ): Promise<Step> {
    const { store, clock } = this.#deps;
    for (let tries = 0; tries < MAX_CONFLICTS; tries++) {
      const schedule = await store.findSchedule(name);
      if (schedule === null) return { reason: entry(name, 'skipped', 'not registered') };
      const reason =
        skippedInactive(schedule) ?? (at && (await existingEntryAt(store, schedule, at, clock.now())));
      if (reason !== undefined) return { reason };
      const [nextRun] = runsOf(schedule.pending);
      if (!isFirst && nextRun !== undefined && nextRun.at > now) return { reason: waitingEntry(name) };
      const { stored, conflicts } = await this.#plan(schedule, at, now);
      if (stored[0] !== undefined) return { planned: stored[0] };
      if (conflicts === 0) return { reason: nothingDueEntry(schedule) };
    }
    return { reason: entry(name, 'skipped', 'planned by another process at the same time') };
  }

  async #plan(
    schedule: ScheduleDocument,
    at: Date | undefined,
    now: Date,
  ): Promise<Pick<StoredPlans, 'stored' | 'conflicts'>> {
    const { store, planner } = this.#deps;
    if (at === undefined) {
      const isDue = (schedule.nextRunAt !== null && schedule.nextRunAt <= now) || schedule.pending.length > 0;
      return planner.decide(isDue ? [schedule] : [], now);
    }
    const snapshot = await loadSnapshot(store, schedule);
    const plan = planAt(snapshot, at);
    return planner.store(plan === undefined ? [] : [{ schedule: snapshot.schedule, plan }]);
  }

  /** Why a plan has nothing to run and nothing to skip: the due occurrence is running already, or waits. */
  async #explainWaiting(schedule: ScheduleDocument, now: Date): Promise<PassEntry> {
    const { active } = await loadSnapshot(this.#deps.store, schedule);
    if (active === null || schedule.overlap !== 'skip') return waitingEntry(schedule._id);
    const runningFor = active.hasStarted ? now.getTime() - active.since.getTime() : null;
    return stillRunningEntry(schedule._id, runningFor, active.id);
  }

  async #execute(definition: Definition, planned: PlannedSchedule, now: Date): Promise<PassEntry[]> {
    const { name } = definition;
    const runs = isInline(definition)
      ? await this.#runInline(name, planned, now)
      : await this.#enqueue(name, planned, now);
    return [...runs, ...skipsOf(planned.plan.pending).map((skip) => skipEntry(name, skip))];
  }

  async #enqueue(name: string, planned: PlannedSchedule, now: Date): Promise<PassEntry[]> {
    const jobs = await this.#deps.executor.execute([planned], now);
    const inserted = new Set(jobs.map(({ _id }) => _id));
    return runnableNow(planned.schedule, planned.plan).map(({ id, at }) =>
      inserted.has(id) ? entry(name, 'enqueued', null, id, at) : existingJobEntry(name, id, at),
    );
  }

  async #runInline(name: string, planned: PlannedSchedule, now: Date): Promise<PassEntry[]> {
    const { executor, options } = this.#deps;
    const { queues } = options;
    const { schedule, plan } = planned;
    await executor.recordSkipsAndCancels([planned]);
    // A queue that this process serves, so that its next pass recovers an inline run that crashed.
    const queue = queues.includes(DEFAULT_QUEUE) ? DEFAULT_QUEUE : (queues[0] ?? DEFAULT_QUEUE);
    const entries: PassEntry[] = [];
    for (const run of runnableNow(schedule, plan)) {
      const job = createOccurrenceJob(schedule, run, now);
      const once = { ...job, queue, nextRunAt: run.at, retries: { ...job.retries, max: 1 } };
      entries.push(await this.#runJob(name, once));
      await executor.removeRun(schedule, run.id);
    }
    return entries;
  }

  async #runJob(name: string, job: JobDocument): Promise<PassEntry> {
    const { _id: id, scheduledFor } = job;
    const { engine, store } = this.#deps;
    if (!(await engine.runInline(job))) return existingJobEntry(name, id, scheduledFor);
    const ended = await store.findJob(id);
    switch (ended?.status) {
      case 'COMPLETED':
        return entry(name, 'run', null, id, scheduledFor);
      case 'FAILED':
        return entry(name, 'failed', ended.error?.message ?? 'failed', id, scheduledFor);
      case 'CANCELLED': {
        const reason =
          ended.skipReason === null ? (ended.cancelKind ?? 'cancelled') : `filter: ${ended.skipReason}`;
        return entry(name, 'skipped', reason, id, scheduledFor);
      }
      default:
        return entry(name, 'run', `not finished: ${ended?.status ?? 'gone'}`, id, scheduledFor);
    }
  }
}

// A pass for an instant other than now.

/** The entry for the occurrence that is due at the instant, if it already has a job. */
export async function existingEntryAt(
  store: Pick<Store, 'findJob'>,
  schedule: ScheduleDocument,
  at: Date,
  now: Date,
): Promise<PassEntry | undefined> {
  const due = lastInMinute(activeOccurrences(schedule), at);
  const job = due && (await store.findJob(occurrenceId(schedule._id, due)));
  if (due === undefined || job == null) return undefined;
  const isLocked = (LOCKED_STATUSES as readonly JobStatus[]).includes(job.status);
  if (!isLocked) return existingJobEntry(schedule._id, job._id, due);
  const runningFor = hasStarted(job) ? now.getTime() - runningSince(job).getTime() : null;
  return stillRunningEntry(schedule._id, runningFor, job._id, due);
}

/** Applies the overlap policy to the occurrence that is due at the instant. Undefined if there is none. */
export function planAt({ schedule, active }: ScheduleSnapshot, at: Date): Plan | undefined {
  const due = lastInMinute(activeOccurrences(schedule), at);
  if (due === undefined) return undefined;
  const id = occurrenceId(schedule._id, due);
  const triggered = planTrigger(schedule, id, active, due);
  if (triggered !== null) return triggered;
  const { nextRunAt, lastRunAt, runs, pending } = schedule;
  const skip = pendingSkip(id, { ...singleOccurrence(due), reason: 'overlap' }, active, at);
  return { nextRunAt, lastRunAt, runs, pending: [...pending, skip], active: schedule.active, cancel: null };
}
