import type { ResolvedOptions } from '../../config/options.js';
import type { Clock } from '../../domain/clock.js';
import type { JobDocument } from '../../domain/job/job.js';
import { waitingBehind } from '../../domain/schedule/pending.js';
import { type ScheduleDocument, scheduleIdOf } from '../../domain/schedule/schedule.js';
import type { EventBus } from '../../runtime/event-bus.js';
import { PeriodicService } from '../../runtime/periodic-service.js';
import type { ChangeBatch } from '../../store/change-stream.js';
import type { ScheduleScope } from '../../store/schedules/due.js';
import type { Store } from '../../store/store.js';
import type { ChangeListener, ChangeSubscriber } from '../../worker/change-listener.js';
import type { DefinitionSync } from './definition-sync.js';
import type { MalformedSchedules } from './malformed-schedules.js';
import type { PlanExecutor } from './plan-executor.js';
import { type PlanningLock, PLANNING_LOCK_MS } from './planning-lock.js';
import type { PlannedSchedule, SchedulePlanner } from './schedule-planner.js';

const BATCH = 500;
/** The process that stores a plan executes it at once. If it has not done so by then, it has probably crashed. */
const EXECUTE_PENDING_AFTER_MS = 2000;
/** How long a malformed or unplannable schedule is left out, unless any schedule changes. */
const QUARANTINE_MS = 60_000;
const UNSELECTABLE_CHECK_MS = 600_000;
/** The first check is as long after the start: workers that start together must have sent their first heartbeats. */
const UNSERVED_CHECK_MS = 60_000;

export interface ScheduleEnqueuerDeps {
  clock: Clock;
  events: EventBus;
  random: () => number;
  store: Pick<
    Store,
    | 'findDueSchedules'
    | 'findPendingSchedules'
    | 'findSchedules'
    | 'findUnselectableSchedules'
    | 'nextScheduleAt'
  >;
  options: Pick<ResolvedOptions, 'environment' | 'pollInterval'>;
  planner: SchedulePlanner;
  executor: PlanExecutor;
  definitionSync: DefinitionSync;
  malformed: MalformedSchedules;
  planningLock: PlanningLock;
  changes: Pick<ChangeListener, 'intervalMultiplier'>;
}

interface FoundSchedules {
  /** Due, or with a plan that was stored but not executed. Other processes find these, too. */
  shared: ScheduleDocument[];
  /** Passed to `checkSchedule()`. Only this process knows that a run may start, so it plans them without the lock. */
  toCheck: ScheduleDocument[];
  nextDueAt: Date | null;
  /** The batch is full, so there may be more due schedules. */
  isFull: boolean;
}

interface Round {
  jobs: JobDocument[];
  /** When the next round follows: immediately, at this time, or (null) with the next poll. */
  next: 'now' | Date | null;
}

/**
 * Turns due occurrences into jobs. Every worker does this, without a leader: each occurrence is decided once, by the
 * compare-and-set that stores its plan.
 */
export class ScheduleEnqueuer extends PeriodicService implements ChangeSubscriber {
  readonly name = 'enqueue schedules';
  readonly #deps: ScheduleEnqueuerDeps;
  /** Ids of malformed and unplannable schedules, and until when (monotonic) they are left out. */
  readonly #quarantined = new Map<string, number>();
  /** Schedules with a run that waits for an earlier one to end. */
  readonly #withWaitingRuns = new Set<string>();
  readonly #toCheck = new Set<string>();
  /** Where the next batch of pending schedules begins. */
  #pendingAfter = '';
  /** Monotonic. */
  #checkUnselectableAt = -Infinity;
  /** Monotonic. */
  #checkUnservedAt: number;

  constructor(deps: ScheduleEnqueuerDeps) {
    super(deps.clock, deps.events);
    this.#deps = deps;
    this.#checkUnservedAt = deps.clock.monotonic() + UNSERVED_CHECK_MS;
  }

  onChanges({ schedules }: Pick<ChangeBatch, 'schedules'>): void {
    if (schedules) this.onSchedulesChanged();
  }

  onMissedChanges(): void {
    this.onSchedulesChanged();
  }

  onSchedulesChanged(): void {
    this.#quarantined.clear();
    this.wake();
  }

  /** Wakes the service to check whether a waiting run of the schedule may start. */
  checkSchedule(scheduleId: string): void {
    this.#toCheck.add(scheduleId);
    this.wake();
  }

  /** Called for every job that ended in this process. */
  runEnded(jobId: string, taskType: string): void {
    // A dispatched run of a definition, whose name is its task type, may be the current one.
    const scheduleId = scheduleIdOf(jobId) ?? taskType;
    if (this.#withWaitingRuns.has(scheduleId)) this.checkSchedule(scheduleId);
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.#deps.planningLock.release();
  }

  async runOnce(): Promise<number> {
    await this.#deps.definitionSync.registerNew();
    await this.#reportUnserved();
    let { next } = await this.#round(this.#scope);
    while (next === 'now' && !this.stopping) {
      this.restartTimeLimit();
      ({ next } = await this.#round(this.#scope));
    }
    if (next === 'now') return 0;
    const delay = next === null ? Infinity : Math.max(0, next.getTime() - this.clock.now().getTime());
    return Math.min(this.#interval, delay);
  }

  /** Enqueues the due runs of all schedules, or only of those added through the API. Returns the inserted jobs. */
  async collect(scope: 'all' | 'stored'): Promise<JobDocument[]> {
    const jobs: JobDocument[] = [];
    let round: Round;
    do {
      const limits = scope === 'all' ? {} : { names: [] };
      round = await this.#round({ ...this.#scope, ...limits }, { needsLock: false });
      jobs.push(...round.jobs);
    } while (round.next === 'now');
    return jobs;
  }

  async #round(scope: ScheduleScope, { needsLock } = { needsLock: true }): Promise<Round> {
    const { planner, executor, planningLock, malformed } = this.#deps;
    await this.#disableUnselectable();
    const now = this.clock.now();
    const { shared, toCheck, nextDueAt, isFull } = await this.#find(scope, now);
    const mayPlanShared = !needsLock || shared.length === 0 || (await planningLock.tryAcquire(scope));
    const valid = await malformed.removeFrom([...shared, ...toCheck], ({ _id }) => this.#quarantine(_id));
    const schedules = mayPlanShared ? valid : valid.filter((schedule) => toCheck.includes(schedule));
    const { stored, conflicts, unplannable } = await planner.decide(schedules, now);
    for (const id of unplannable) this.#quarantine(id);
    planningLock.observe(stored.length, conflicts);
    const jobs = await executor.execute(stored, now);
    this.#trackWaitingRuns(valid, stored);

    if (!mayPlanShared) return { jobs, next: this.#retryPlanningAt(now) };
    if (isFull) return { jobs, next: 'now' };
    // Another process changed these schedules first: read them again.
    if (conflicts > 0) return { jobs, next: this.clock.now() };
    return { jobs, next: earliest([nextDueAt, ...stored.map(({ plan }) => plan.nextRunAt)]) };
  }

  /** Random, so that processes do not all retry at the same moment when the planning lock expires. */
  #retryPlanningAt(now: Date): Date {
    const { options, random } = this.#deps;
    return new Date(now.getTime() + Math.min(options.pollInterval, PLANNING_LOCK_MS * (0.5 + random() / 2)));
  }

  /** Nothing reports the end of a run in another process, so waiting runs are polled for at the full rate. */
  get #interval(): number {
    const { options, changes } = this.#deps;
    return options.pollInterval * (this.#withWaitingRuns.size > 0 ? 1 : changes.intervalMultiplier);
  }

  #trackWaitingRuns(schedules: readonly ScheduleDocument[], stored: readonly PlannedSchedule[]): void {
    const plans = new Map(stored.map(({ schedule, plan }) => [schedule._id, plan]));
    for (const schedule of schedules) {
      const { pending, active } = plans.get(schedule._id) ?? schedule;
      const hasWaitingRuns = schedule.overlap !== 'allow' && waitingBehind(active, pending).length > 0;
      if (hasWaitingRuns) this.#withWaitingRuns.add(schedule._id);
      else this.#withWaitingRuns.delete(schedule._id);
    }
  }

  async #find(scope: ScheduleScope, now: Date): Promise<FoundSchedules> {
    const { store } = this.#deps;
    const idsToCheck = [...this.#toCheck];
    this.#toCheck.clear();
    const pendingBefore = new Date(now.getTime() - EXECUTE_PENDING_AFTER_MS);
    const [found, nextDueAt, pending, toCheck] = await Promise.all([
      store.findDueSchedules(scope, now, BATCH),
      store.nextScheduleAt(scope, now),
      store.findPendingSchedules(scope, pendingBefore, this.#pendingAfter, BATCH),
      idsToCheck.length === 0 ? [] : store.findSchedules(idsToCheck),
    ]);
    this.#pendingAfter = pending.length === BATCH ? (pending.at(-1)?._id ?? '') : '';
    // Plan each schedule once. The scan by nextRunAt returns a schedule again, in its newer version, if its nextRunAt
    // moves forward during the scan.
    const due = new Map(found.map((schedule) => [schedule._id, schedule]));
    const others = pending.filter(({ _id }) => !due.has(_id) && !idsToCheck.includes(_id));
    return {
      shared: [...due.values(), ...others],
      toCheck: toCheck.filter(({ _id }) => !due.has(_id)),
      nextDueAt,
      isFull: found.length === BATCH,
    };
  }

  /** Finds malformed schedules that the other queries never return: nothing else would report them. */
  async #disableUnselectable(): Promise<void> {
    const { clock } = this;
    if (clock.monotonic() < this.#checkUnselectableAt) return;
    this.#checkUnselectableAt = clock.monotonic() + UNSELECTABLE_CHECK_MS;
    const { store, malformed } = this.#deps;
    for (const schedule of await store.findUnselectableSchedules(BATCH)) await malformed.disable(schedule);
  }

  async #reportUnserved(): Promise<void> {
    const now = this.clock.monotonic();
    if (now < this.#checkUnservedAt) return;
    this.#checkUnservedAt = now + UNSERVED_CHECK_MS;
    await this.#deps.definitionSync.reportUnserved();
  }

  #quarantine(scheduleId: string): void {
    this.#quarantined.set(scheduleId, this.clock.monotonic() + QUARANTINE_MS);
  }

  get #scope(): ScheduleScope {
    const now = this.clock.monotonic();
    for (const [id, until] of this.#quarantined) if (until <= now) this.#quarantined.delete(id);
    const { definitionSync, options } = this.#deps;
    const except = [...this.#quarantined.keys()];
    return { names: definitionSync.names, environment: options.environment, except };
  }
}

function earliest(times: readonly (Date | null)[]): Date | null {
  const sorted = times.filter((time) => time !== null).toSorted((a, b) => a.getTime() - b.getTime());
  return sorted[0] ?? null;
}
