import { randomUUID } from 'node:crypto';
import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { isFinished, type JobDocument } from '../domain/job/job.js';
import { groupBy } from '../domain/language.js';
import type { HandlerRegistry } from '../handlers/handler-registry.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/periodic-service.js';
import { retryOnConflict } from '../runtime/retry.js';
import { compareClaimOrder } from '../store/jobs/claim.js';
import type { CurrentRun } from '../store/schedules/decisions.js';
import type { Store } from '../store/store.js';
import type { ChangeListener } from './change-listener.js';
import type { ClaimedJob } from './job-picker.js';
import type { UncertainClaims } from './uncertain-claims.js';

/** How often to look at the definitions of a process that has none with `singleInstance()`. */
const IDLE_MS = 60_000;

export interface SingleInstancesDeps {
  clock: Clock;
  events: EventBus;
  store: Pick<
    Store,
    | ('findCurrentRun' | 'storeCurrentRun' | 'findRunStates')
    | ('makeWait' | 'findWaitedFor' | 'findFirstWaiting' | 'endWait')
  >;
  registry: Pick<HandlerRegistry, 'singleInstances'>;
  uncertainClaims: Pick<UncertainClaims, 'release'>;
  changes: Pick<ChangeListener, 'intervalMultiplier'>;
  options: Pick<ResolvedOptions, 'pollInterval'>;
}

/**
 * Lets at most one run of a single-instance schedule start at a time, however its job was created. The schedule's
 * document names the current run, `active`. A claimed job starts only after a compare-and-set has made it the current
 * run, even if it already was: a process that has just found the current run finished, and chooses another, then fails
 * if that run was retried and claimed in the meantime. A job that may not start becomes PENDING and waits; the rounds of
 * this service make the next one eligible when the current run has ended.
 */
export class SingleInstances extends PeriodicService {
  readonly name = 'admit waiting jobs';
  readonly #deps: SingleInstancesDeps;
  /** Schedules that jobs wait for, as far as this process knows. */
  readonly #waitedFor = new Set<string>();
  #onAdmitted: () => void = () => undefined;

  constructor(deps: SingleInstancesDeps) {
    super(deps.clock, deps.events);
    this.#deps = deps;
  }

  /** True if jobs wait for another run of their schedule, as far as this process knows. */
  get hasWaitingJobs(): boolean {
    return this.#waitedFor.size > 0;
  }

  /** Calls the listener when a waiting job has become eligible. */
  onAdmitted(listener: () => void): void {
    this.#onAdmitted = listener;
  }

  /** Called for every job that ended in this process: jobs of the same type may wait for it. */
  jobEnded(taskType: string): void {
    if (this.#deps.registry.singleInstances.has(taskType)) this.wake();
  }

  /** The claimed jobs that need `admit()` before they may start. */
  select(claimed: readonly ClaimedJob[]): readonly ClaimedJob[] {
    const { singleInstances } = this.#deps.registry;
    return singleInstances.size === 0 ? [] : claimed.filter(({ job }) => singleInstances.has(job.taskType));
  }

  /** Returns those of the claimed jobs that may start now; the others wait. If it throws, all of them are released. */
  async admit(claimed: readonly ClaimedJob[]): Promise<ClaimedJob[]> {
    const admitted: ClaimedJob[] = [];
    try {
      for (const [scheduleId, jobs] of groupBy(claimed, ({ job }) => job.taskType)) {
        const chosen = await this.#choose(scheduleId, jobs);
        if (chosen !== null) admitted.push(chosen);
        const refused = jobs.filter((one) => one !== chosen);
        if (refused.length > 0) await this.#makeWait(scheduleId, refused);
      }
      return admitted;
    } catch (error) {
      // A job that already waits has lost its lock, so releasing it changes nothing.
      await this.#deps.uncertainClaims.release(claimed);
      throw error;
    }
  }

  /** Makes the next waiting job of each schedule eligible whose current run has ended. */
  async runOnce(): Promise<number> {
    const { store, registry, changes, options } = this.#deps;
    const { singleInstances } = registry;
    if (singleInstances.size === 0) return IDLE_MS;
    this.#waitedFor.clear();
    const scheduleIds = await store.findWaitedFor([...singleInstances]);
    for (const scheduleId of scheduleIds) {
      this.restartTimeLimit();
      this.#waitedFor.add(scheduleId);
      if (await this.#admitNext(scheduleId)) this.#onAdmitted();
    }
    // The change stream does not report that a run ended in another process.
    return options.pollInterval * (this.hasWaitingJobs ? 1 : changes.intervalMultiplier);
  }

  /** Makes one of the jobs the current run, if it is already or if there is none. Null: all of them must wait. */
  #choose(scheduleId: string, jobs: readonly ClaimedJob[]): Promise<ClaimedJob | null> {
    const { store, clock } = this.#deps;
    const [first] = [...jobs].sort((a, b) => compareClaimOrder(a.job, b.job));
    return this.#makeCurrent(scheduleId, async (current) => {
      const again = jobs.find(({ job }) => job._id === current.active);
      if (again !== undefined) return again;
      if (first === undefined || !(await this.#isFree(current))) return null;
      // Jobs that wait already may come first: the next round of this service admits them.
      const waiting = await store.findFirstWaiting(scheduleId, clock.now());
      return waiting !== null && compareClaimOrder(waiting, first.job) < 0 ? null : first;
    });
  }

  async #makeWait(scheduleId: string, refused: readonly ClaimedJob[]): Promise<void> {
    const { store, clock } = this.#deps;
    for (const [token, jobs] of groupBy(refused, (one) => one.token)) {
      const ids = jobs.map(({ job }) => job._id);
      await store.makeWait(token, ids, scheduleId, clock.now());
    }
    this.#waitedFor.add(scheduleId);
    // The current run may have ended before these jobs were visible as waiting.
    this.wake();
  }

  /** True if a waiting job became eligible. */
  async #admitNext(scheduleId: string): Promise<boolean> {
    const { store, clock } = this.#deps;
    const next = await this.#makeCurrent(scheduleId, async (current) => {
      if (!(await this.#isFree(current))) return null;
      const job = await store.findFirstWaiting(scheduleId, clock.now());
      return job === null ? null : { job };
    });
    return next !== null && (await store.endWait(next.job._id, scheduleId));
  }

  /** Makes the job that `choose` returns the current run. Chooses again if the schedule was changed in the meantime. */
  #makeCurrent<T extends { job: Pick<JobDocument, '_id'> }>(
    scheduleId: string,
    choose: (current: CurrentRun) => Promise<T | null>,
  ): Promise<T | null> {
    const { store } = this.#deps;
    return retryOnConflict(`the schedule '${scheduleId}'`, async () => {
      const current = await store.findCurrentRun(scheduleId);
      // Not stored yet: its jobs wait until it is.
      const chosen = current && (await choose(current));
      if (current === null || chosen === null) return null;
      return (await store.storeCurrentRun(current, chosen.job._id, randomUUID())) ? chosen : undefined;
    });
  }

  /** The schedule was read before the job: a planned run leaves `pending` only after its job was inserted. */
  async #isFree({ scheduleId, active, hasPlannedRuns }: CurrentRun): Promise<boolean> {
    const { store } = this.#deps;
    const run = active === null ? undefined : (await store.findRunStates([active])).get(active);
    // Planned runs become the current one in their own order.
    if (run === undefined || isFinished(run.status)) return !hasPlannedRuns;
    // A process may have crashed after it chose this job and before it made it eligible.
    if (run.status === 'PENDING' && (await store.endWait(run._id, scheduleId))) this.#onAdmitted();
    return false;
  }
}
