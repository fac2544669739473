import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import type { ExecutionDocument } from '../domain/job/execution.js';
import type { JobDocument } from '../domain/job/job.js';
import { crashedExecution, decideRecovery } from '../domain/job/recovery.js';
import type { HandlerRegistry } from '../handlers/handler-registry.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { OutageMonitor } from '../runtime/outage-monitor.js';
import { PeriodicService } from '../runtime/periodic-service.js';
import { MAX_REJECTIONS } from '../runtime/retry.js';
import { traceFields } from '../runtime/tracing.js';
import { isResultUnknown } from '../store/mongo-errors.js';
import type { Store } from '../store/store.js';
import type { WorkerEngine } from '../worker/engine.js';
import { emitRecovered } from '../worker/job-events.js';

const BATCH = 100;
const EXPIRE_BATCH = 1000;

interface SweeperDeps {
  clock: Clock;
  events: EventBus;
  random: () => number;
  workerId: string;
  store: Pick<Store, 'expireJobs' | 'findExpired' | 'keepCancelled' | 'recover' | 'logExecutions'>;
  registry: Pick<HandlerRegistry, 'settingsFor'>;
  outages: OutageMonitor;
  engine: Pick<WorkerEngine, 'wake'>;
  options: Pick<ResolvedOptions, 'sweepInterval' | 'maxCrashes'>;
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

  constructor(deps: SweeperDeps) {
    super(deps.clock, deps.events);
    this.#deps = deps;
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.#logCrashes().catch(() => undefined);
  }

  async runOnce(): Promise<number> {
    const { store, options, outages } = this.#deps;
    const now = this.clock.now();
    const expired = await store.findExpired(now, BATCH).catch((error: unknown) => {
      outages.recordFailure();
      throw error;
    });
    const delay = outages.takeSweepDelay();
    if (delay > 0) return delay;
    for (const job of expired) {
      if (this.stopping) break;
      await this.#recover(job, now);
    }
    await this.#logCrashes();
    const ended = await this.#endExpiredJobs(now);
    return expired.length === BATCH || ended === EXPIRE_BATCH ? 0 : options.sweepInterval;
  }

  /** Jobs that nobody claimed before they expired. A worker that claims one first ends it itself. */
  async #endExpiredJobs(now: Date): Promise<number> {
    const { store, events, workerId } = this.#deps;
    const ended = await store.expireJobs(now, EXPIRE_BATCH, workerId);
    for (const job of ended) {
      const { _id: jobId, taskType, queue, expiresAt = now } = job;
      if (job.retention !== undefined) await store.keepCancelled(job, now);
      events.emit('job:expired', { jobId, taskType, queue, ...traceFields(job), expiresAt });
    }
    return ended.length;
  }

  async #recover(job: JobDocument, now: Date): Promise<void> {
    const { store, events, random, workerId, options, registry, engine } = this.#deps;
    const { retries } = registry.settingsFor(job.taskType);
    const recovery = decideRecovery({ job, maxCrashes: options.maxCrashes, retries, now, random });
    if (!(await store.recover(job, recovery, workerId, now))) return;
    if (job.status === 'RUNNING') this.#unlogged.push(crashedExecution(job, now));
    emitRecovered(events, job, recovery, now);
    engine.wake();
  }

  /** Rows that could not be written are retried after the next sweep. Rows that the server keeps rejecting are dropped. */
  async #logCrashes(): Promise<void> {
    if (this.#unlogged.length === 0) return;
    const rows = this.#unlogged.slice(0, BATCH);
    try {
      await this.#deps.store.logExecutions(rows);
    } catch (error) {
      if (isResultUnknown(error) || ++this.#rejections < MAX_REJECTIONS) throw error;
    }
    this.#rejections = 0;
    // A concurrent pass may sweep too and may already have removed some of these rows.
    this.#unlogged = this.#unlogged.filter((row) => !rows.includes(row));
  }
}
