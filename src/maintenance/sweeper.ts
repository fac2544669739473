import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { type ExecutionDocument, reconstructedExecution } from '../domain/job/execution.js';
import type { JobDocument } from '../domain/job/job.js';
import { decideRecovery, recoveryExecution, ownerFate } from '../domain/job/recovery.js';
import type { HandlerRegistry } from '../handlers/handler-registry.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { OutageMonitor } from '../runtime/outage-monitor.js';
import { PeriodicService } from '../runtime/periodic-service.js';
import { MAX_REJECTIONS } from '../runtime/retry.js';
import { traceFields } from '../runtime/tracing.js';
import { isOutage } from '../store/mongo-errors.js';
import type { Store } from '../store/store.js';
import type { WorkerEngine } from '../worker/engine.js';
import type { InvalidJobs } from '../worker/invalid-jobs.js';
import { emitRecovered } from '../worker/job-events.js';

const BATCH = 100;
const EXPIRE_BATCH = 1000;
/** When to look again for a heartbeat of a worker that may be alive. */
const LOOK_AGAIN_MS = 1000;
/** A worker that died settled its last jobs at most this long before or after its last heartbeat. */
const LAST_SETTLED_MS = 30_000;
const MAX_UNLOGGED = 100_000;

interface SweeperDeps {
  clock: Clock;
  events: EventBus;
  random: () => number;
  workerId: string;
  store: Pick<
    Store,
    | ('expireJobs' | 'findExpiredJobs' | 'findExpiredLocks' | 'keepCancelled' | 'recover' | 'logExecutions')
    | ('findDeadWorkers' | 'findLockOwners' | 'findUnloggedJobs' | 'markLogCompleted')
  >;
  registry: Pick<HandlerRegistry, 'settingsFor'>;
  outages: OutageMonitor;
  invalidJobs: Pick<InvalidJobs, 'removeFrom'>;
  engine: Pick<WorkerEngine, 'wake'>;
  options: Pick<ResolvedOptions, 'sweepInterval' | 'maxCrashes' | 'lockTimeout' | 'heartbeatInterval'>;
}

/**
 * Recovers jobs whose lock expired: their process died, froze, or lost its connection. Separate from the claim, so that
 * the claim needs no `$or`. Also ends jobs that expired before they started. Every worker sweeps; the fenced write lets
 * only one of them recover a job.
 */
export class Sweeper extends PeriodicService {
  readonly name = 'sweep';
  readonly #deps: SweeperDeps;
  /** Rows for the execution log that are not written yet. */
  #unlogged: ExecutionDocument[] = [];
  #rejections = 0;
  /** Jobs with an expired lock that the last round found and could not recover. */
  #unrecovered = 0;

  constructor(deps: SweeperDeps) {
    super(deps.clock, deps.events);
    this.#deps = deps;
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.#logCrashes().catch(() => undefined);
  }

  async runOnce(): Promise<number> {
    const { store, options, outages, invalidJobs } = this.#deps;
    const now = this.clock.now();
    // Those that cannot be recovered come first, and must not keep others from it.
    const limit = BATCH + this.#unrecovered;
    const expired = await store.findExpiredLocks(now, limit).catch((error: unknown) => {
      outages.recordFailure();
      throw error;
    });
    const delay = outages.takeSweepDelay();
    if (delay > 0) return delay;
    const valid = await invalidJobs.removeFrom(expired);
    this.#unrecovered = expired.length - valid.length;
    const isUndecided = await this.#recoverAll(valid, now);
    await this.#logCrashes();
    const mayBeMoreJobs = await this.#endExpiredJobs(now);
    await this.#completeLogs(now);
    if (isUndecided) return Math.min(options.sweepInterval, LOOK_AGAIN_MS);
    const mayBeMoreLocks = expired.length === limit && this.#unrecovered < limit;
    return mayBeMoreLocks || mayBeMoreJobs ? 0 : options.sweepInterval;
  }

  /** True if some jobs must wait until it is known whether their owner is gone. */
  async #recoverAll(expired: readonly JobDocument[], now: Date): Promise<boolean> {
    if (expired.length === 0) return false;
    const { store, options } = this.#deps;
    const ids = new Set(expired.map(({ lockedBy }) => lockedBy).filter((id) => id !== null));
    const owners = await store.findLockOwners([...ids]);
    const limits = { now, maxWait: options.lockTimeout, interval: options.heartbeatInterval };
    let isUndecided = false;
    for (const job of expired) {
      if (this.stopping) break;
      this.restartTimeLimit();
      const fate = ownerFate(job, owners.get(job.lockedBy ?? ''), limits);
      if (fate === 'unknown') isUndecided = true;
      else await this.#recoverOrReport(job, fate === 'gone', now);
    }
    return isUndecided;
  }

  /** Jobs that nobody claimed before they expired. A worker that claims one first ends it itself. True if there may be more. */
  async #endExpiredJobs(now: Date): Promise<boolean> {
    const { store, events, workerId, invalidJobs } = this.#deps;
    const found = await store.findExpiredJobs(now, EXPIRE_BATCH);
    const ended = await store.expireJobs(await invalidJobs.removeFrom(found), now, workerId);
    for (const job of ended) {
      const { _id: jobId, taskType, queue, expiresAt = now } = job;
      if (job.retention !== undefined) await store.keepCancelled(job, now);
      events.emit('job:expired', { jobId, taskType, queue, ...traceFields(job), expiresAt });
    }
    return found.length === EXPIRE_BATCH;
  }

  /** A job whose recovery MongoDB rejects, for example because its document is too large, does not keep the others from theirs. */
  async #recoverOrReport(job: JobDocument, ownerIsGone: boolean, now: Date): Promise<void> {
    try {
      await this.#recover(job, ownerIsGone, now);
    } catch (error) {
      if (isOutage(error)) throw error;
      this.#unrecovered++;
      this.events.reportError('sweep', error, { subject: job._id });
    }
  }

  async #recover(job: JobDocument, ownerIsGone: boolean, now: Date): Promise<void> {
    const { store, events, random, workerId, options, registry, engine } = this.#deps;
    const { retries } = registry.settingsFor(job.taskType);
    const { maxCrashes } = options;
    const recovery = decideRecovery({ job, ownerIsGone, maxCrashes, retries, now, random });
    if (!(await store.recover(job, recovery, { sweptBy: workerId, ownerIsGone }, now))) return;
    if (job.status === 'RUNNING') this.#unlogged.push(recoveryExecution(job, ownerIsGone, now));
    emitRecovered(events, job, recovery, ownerIsGone, now);
    engine.wake();
  }

  /** A worker that dies between the outcome of a job and the row of its attempt leaves the row to the others. */
  async #completeLogs(now: Date): Promise<void> {
    const { store } = this.#deps;
    for (const worker of await store.findDeadWorkers(now)) {
      if (this.stopping) return;
      this.restartTimeLimit();
      const last = worker.heartbeatAt.getTime();
      const time = { from: new Date(last - LAST_SETTLED_MS), to: new Date(last + LAST_SETTLED_MS) };
      const unlogged = await store.findUnloggedJobs(worker._id, time, MAX_UNLOGGED);
      const rows = unlogged.map(reconstructedExecution).filter((row) => row !== undefined);
      if (rows.length > 0) await store.logExecutions(rows);
      await store.markLogCompleted(worker);
    }
  }

  /** Rows that could not be written are retried after the next sweep. Rows that the server keeps rejecting are dropped. */
  async #logCrashes(): Promise<void> {
    if (this.#unlogged.length === 0) return;
    const rows = this.#unlogged.slice(0, BATCH);
    try {
      await this.#deps.store.logExecutions(rows);
    } catch (error) {
      if (isOutage(error) || ++this.#rejections < MAX_REJECTIONS) throw error;
    }
    this.#rejections = 0;
    // A concurrent pass may sweep too and may already have removed some of these rows.
    this.#unlogged = this.#unlogged.filter((row) => !rows.includes(row));
  }
}
