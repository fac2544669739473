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
import { findMalformation } from '../stored/stored-schedule-check.js';
import type { DefinitionSync } from './definition-sync.js';
import type { PlanExecutor } from './plan-executor.js';
import { type PlanningLock, PLANNING_LOCK_MS } from './planning-lock.js';
import type { PlannedSchedule, SchedulePlanner } from './schedule-planner.js';

const BATCH = 500;
/** The process that stores a plan executes it at once. If a run is pending for longer, that process has crashed. */
const EXECUTE_PENDING_AFTER_MS = 2000;
/** How long an unusable schedule is left out, unless a schedule changes. */
const QUARANTINE_MS = 60_000;

export interface ScheduleEnqueuerDeps {
  clock: Clock;
  events: EventBus;
  random: () => number;
  store: Pick<Store, 'findDueSchedules' | 'findPendingSchedules' | 'findSchedules' | 'nextScheduleAt'>;
  options: Pick<ResolvedOptions, 'environment' | 'pollInterval'>;
}

interface FoundSchedules {
  due: ScheduleDocument[];
  /** With plans that nobody has executed yet. */
  pending: ScheduleDocument[];
  /** With a waiting run, because one of their runs ended here or a run was added here. */
  toCheck: ScheduleDocument[];
  nextDueAt: Date | null;
  /** The batch is full, so there may be more due schedules. */
  isFull: boolean;
}

interface Round {
  jobs: JobDocument[];
  /** When the next round follows: at once, at a time, or with the next poll. */
  next: 'now' | Date | null;
}

/**
 * Turns due occurrences into jobs. Every worker does this, without a leader: a stored plan decides each occurrence
 * exactly once.
 */
export class ScheduleEnqueuer extends PeriodicService implements ChangeSubscriber {
  readonly name = 'enqueue schedules';
  readonly #deps: ScheduleEnqueuerDeps;
  readonly #planner: SchedulePlanner;
  readonly #executor: PlanExecutor;
  readonly #definitionSync: DefinitionSync;
  readonly #planningLock: PlanningLock;
  readonly #changes: Pick<ChangeListener, 'intervalMultiplier'>;
  /** Unusable schedules, and until when (monotonic) they are left out. */
  readonly #quarantined = new Map<string, number>();
  readonly #malformed = new Set<string>();
  /** Schedules with a run that waits for an earlier one to end. */
  readonly #withWaitingRuns = new Set<string>();
  readonly #toCheck = new Set<string>();
  /** Where the next batch of pending schedules begins. */
  #pendingAfter = '';

  constructor(
    deps: ScheduleEnqueuerDeps,
    planner: SchedulePlanner,
    executor: PlanExecutor,
    definitionSync: DefinitionSync,
    planningLock: PlanningLock,
    changes: Pick<ChangeListener, 'intervalMultiplier'>,
  ) {
    super(deps.clock, deps.events);
    this.#deps = deps;
    this.#planner = planner;
    this.#executor = executor;
    this.#definitionSync = definitionSync;
    this.#planningLock = planningLock;
    this.#changes = changes;
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

  /** Checks soon whether a waiting run of the schedule may start. */
  checkSchedule(scheduleId: string): void {
    this.#toCheck.add(scheduleId);
    this.wake();
  }

  /** Called for every job that ended in this process. */
  runEnded(jobId: string): void {
    const scheduleId = scheduleIdOf(jobId);
    if (scheduleId !== undefined && this.#withWaitingRuns.has(scheduleId)) this.checkSchedule(scheduleId);
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.#planningLock.release();
  }

  async runOnce(): Promise<number> {
    await this.#definitionSync.registerNew();
    let { next } = await this.#round(this.#scope);
    while (next === 'now' && !this.stopping) ({ next } = await this.#round(this.#scope));
    if (next === 'now') return 0;
    const delay = next === null ? Infinity : Math.max(0, next.getTime() - this.clock.now().getTime());
    return Math.min(this.#interval, delay);
  }

  /** Enqueues everything that is due, or only what stored schedules have due. Returns the jobs. */
  async collect(scope: 'all' | 'stored'): Promise<JobDocument[]> {
    const limited = scope === 'all' ? this.#scope : { ...this.#scope, names: [] };
    const jobs: JobDocument[] = [];
    let round: Round;
    do {
      round = await this.#round(limited, { needsLock: false });
      jobs.push(...round.jobs);
    } while (round.next === 'now');
    return jobs;
  }

  async #round(scope: ScheduleScope, { needsLock } = { needsLock: true }): Promise<Round> {
    const now = this.clock.now();
    const { due, pending, toCheck, nextDueAt, isFull } = await this.#find(scope, now);
    const mayPlan =
      !needsLock || due.length + pending.length === 0 || (await this.#planningLock.tryAcquire(scope));
    const valid = this.#validOnly([...due, ...pending, ...toCheck]);
    // Only this process knows of the schedules to check, so it plans them without the lock.
    const schedules = mayPlan ? valid : valid.filter((schedule) => toCheck.includes(schedule));
    const { stored, conflicts, unplannable } =
      schedules.length === 0
        ? { stored: [], conflicts: 0, unplannable: [] }
        : await this.#planner.decide(schedules, now);
    for (const id of unplannable) this.#quarantine(id);
    this.#planningLock.observe(stored.length, conflicts);
    const jobs = stored.length === 0 ? [] : await this.#executor.execute(stored, now);
    this.#trackWaitingRuns(valid, stored);

    if (!mayPlan) return { jobs, next: this.#retryPlanningAt(now) };
    if (isFull) return { jobs, next: 'now' };
    // Other processes have planned some of the schedules: read these again.
    if (conflicts > 0) return { jobs, next: this.clock.now() };
    return { jobs, next: earliest([nextDueAt, ...stored.map(({ plan }) => plan.nextRunAt)]) };
  }

  /** When the process that holds the planning lock may be done. */
  #retryPlanningAt(now: Date): Date {
    const { options, random } = this.#deps;
    return new Date(now.getTime() + Math.min(options.pollInterval, PLANNING_LOCK_MS * (0.5 + random() / 2)));
  }

  /** Nothing reports the end of a run in another process, so waiting runs are polled for at the full rate. */
  get #interval(): number {
    const { pollInterval } = this.#deps.options;
    return this.#withWaitingRuns.size > 0 ? pollInterval : pollInterval * this.#changes.intervalMultiplier;
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
    // An index scan by nextRunAt returns a schedule twice if it moves on meanwhile: the last version counts.
    const due = [...new Map(found.map((schedule) => [schedule._id, schedule])).values()];
    const seen = new Set(due.map(({ _id }) => _id));
    const isNew = ({ _id }: ScheduleDocument): boolean => !seen.has(_id) && seen.add(_id).size > 0;
    return {
      due,
      toCheck: toCheck.filter(isNew),
      pending: pending.filter(isNew),
      nextDueAt,
      isFull: found.length === BATCH,
    };
  }

  #validOnly(schedules: readonly ScheduleDocument[]): ScheduleDocument[] {
    return schedules.filter((schedule) => {
      const reason = findMalformation(schedule);
      if (reason === undefined) {
        this.#malformed.delete(schedule._id);
        return true;
      }
      this.#quarantine(schedule._id);
      if (!this.#malformed.has(schedule._id)) {
        const count = this.#malformed.add(schedule._id).size;
        this.events.emit('schedule:unreadable', { scheduleId: schedule._id, reason, count });
      }
      return false;
    });
  }

  #quarantine(scheduleId: string): void {
    this.#quarantined.set(scheduleId, this.clock.monotonic() + QUARANTINE_MS);
  }

  get #scope(): ScheduleScope {
    const now = this.clock.monotonic();
    for (const [id, until] of this.#quarantined) if (until <= now) this.#quarantined.delete(id);
    const { environment } = this.#deps.options;
    return { names: this.#definitionSync.names, environment, except: [...this.#quarantined.keys()] };
  }
}

function earliest(times: readonly (Date | null)[]): Date | null {
  return times.reduce(
    (first, time) => (first === null || (time !== null && time < first) ? time : first),
    null,
  );
}
