import type { ResolvedOptions } from '../config/options.js';
import { backoffDelay } from '../domain/backoff.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError, storedError } from '../domain/errors.js';
import { executionRow, type ExecutionDocument, type Ran } from '../domain/execution.js';
import type { JobDocument } from '../domain/job.js';
import { ranTooLongError, runsTooLong } from '../domain/outcome.js';
import { TRANSITIONS } from '../domain/transitions.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/service.js';
import { traceFields } from '../runtime/traceparent.js';
import { isUncertain } from '../store/faults.js';
import type { Recovery } from '../store/recover.js';
import type { Store } from '../store/store.js';

const BATCH = 100;
const MOST_REFUSALS = 3;

export interface SweeperParts {
  clock: Clock;
  events: EventBus;
  random: () => number;
  workerId: string;
  store: Pick<Store, 'findExpired' | 'recover' | 'logExecutions'>;
  options: Pick<
    ResolvedOptions,
    'sweepInterval' | 'lockTimeout' | 'maxCrashes' | 'retries' | 'executionRetention'
  >;
}

type Decision = Recovery & { failure: Error | undefined };

/**
 * Recovers jobs whose lock expired: their process died, froze, or was cut off. Separate from the claim, so that
 * the claim needs no `$or`. Every worker sweeps; the guarded write lets one of them win.
 */
export class Sweeper extends PeriodicService {
  readonly name = 'sweep';
  readonly #parts: SweeperParts;
  #outage = false;
  #postponedAt = -Infinity;
  /** Rows of crashes that are counted and could not be logged yet. */
  #unlogged: ExecutionDocument[] = [];
  #refusals = 0;

  constructor(parts: SweeperParts) {
    super(parts.clock, parts.events);
    this.#parts = parts;
  }

  /** Locks could not be renewed or outcomes not be written from here: others may have the same trouble. */
  noticeOutage(): void {
    this.#outage = true;
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.#log().catch(() => undefined);
  }

  async runOnce(): Promise<number> {
    const { store, options } = this.#parts;
    const now = this.clock.now();
    const expired = await store.findExpired(now, BATCH).catch((error: unknown) => {
      this.#outage = true;
      throw error;
    });
    if (this.#mustWait()) return options.lockTimeout / 3;
    for (const job of expired) {
      if (this.stopping) break;
      await this.#recover(job, now);
    }
    await this.#log();
    return expired.length === BATCH ? 0 : options.sweepInterval;
  }

  /**
   * After an outage the owners that are alive settle or give back first, and nothing is counted against their jobs.
   * Once per lock time at most: trouble that lasts must not end recovery.
   */
  #mustWait(): boolean {
    if (!this.#outage) return false;
    this.#outage = false;
    const now = this.clock.monotonic();
    if (now - this.#postponedAt < this.#parts.options.lockTimeout) return false;
    this.#postponedAt = now;
    return true;
  }

  /** What cannot be logged now is logged after the next round; what the server refuses thrice is not worth recovery. */
  async #log(): Promise<void> {
    if (this.#unlogged.length === 0) return;
    const rows = this.#unlogged.slice(0, BATCH);
    try {
      await this.#parts.store.logExecutions(rows);
    } catch (error) {
      if (isUncertain(error) || ++this.#refusals < MOST_REFUSALS) throw error;
    }
    this.#refusals = 0;
    // Not the first ones: a pass may sweep beside the service, and have logged the same meanwhile.
    this.#unlogged = this.#unlogged.filter((row) => !rows.includes(row));
  }

  async #recover(job: JobDocument, now: Date): Promise<void> {
    const { store, events } = this.#parts;
    const decision = this.#decide(job, now);
    if (!(await store.recover(job, decision, now))) return;
    const crashed = job.status === 'RUNNING';
    const crashes = job.crashes + (crashed ? 1 : 0);
    if (crashed) this.#unlogged.push(this.#crashedRow(job, now));
    const status = TRANSITIONS[decision.transition].to;
    const { _id: jobId, taskType, queue, fence, lockedBy } = job;
    const nextRunAt = status === 'SCHEDULED' ? decision.nextRunAt : null;
    const traced = traceFields(job);
    events.emit('job:stalled', { jobId, taskType, ...traced, lockedBy, crashes, status, nextRunAt });
    if (status === 'FAILED' && decision.failure !== undefined) {
      const attempt = job.attempts + 1;
      const duration = now.getTime() - (job.startedAt ?? now).getTime();
      events.emit('job:failed', {
        jobId,
        taskType,
        ...traced,
        queue,
        fence,
        attempt,
        error: decision.failure,
        willRetry: false,
        nextRunAt,
        duration,
      });
    }
    if (status === 'CANCELLED')
      events.emit('job:cancelled', {
        ...{ jobId, taskType, ...traced },
        reason: job.cancelRequested?.reason ?? null,
      });
  }

  #decide(job: JobDocument, now: Date): Decision {
    const { options, random, workerId: by } = this.#parts;
    const stays = { nextRunAt: job.nextRunAt, error: null, failure: undefined, by };
    if (job.cancelRequested !== null) return { transition: 'recoverCancelled', ...stays };
    // It had not started, as far as anybody knows: nothing is counted, it only becomes a suspect.
    if (job.status === 'QUEUED') return { transition: 'recover', ...stays };

    const crashes = job.crashes + 1;
    const failure = crashes >= options.maxCrashes ? crashedTooOften(job, crashes) : tooLong(job, now);
    if (failure !== undefined) {
      return {
        transition: 'recoverFailed',
        nextRunAt: job.nextRunAt,
        error: storedError(failure),
        failure,
        by,
      };
    }
    const delay = backoffDelay({ ...options.retries, ...job.retries }, crashes, random);
    const error = storedError(crashed(job));
    const nextRunAt = new Date(now.getTime() + delay);
    return { transition: 'recover', nextRunAt, error, failure: undefined, by };
  }

  #crashedRow(job: JobDocument, now: Date): ExecutionDocument {
    const startedAt = job.startedAt ?? now;
    const ran: Ran = {
      lockToken: job.lockToken ?? '',
      workerId: job.lockedBy ?? '',
      startedAt,
      finishedAt: now,
      duration: now.getTime() - startedAt.getTime(),
      outcome: 'crashed',
      error: storedError(crashed(job)),
      log: [],
    };
    return executionRow(job, ran, this.#parts.options.executionRetention);
  }
}

function crashed(job: JobDocument): Error {
  return new ChronosError(
    'JOB_CRASHED',
    `worker ${job.lockedBy ?? 'unknown'} died, froze or was cut off while it ran the job`,
  );
}

function crashedTooOften(job: JobDocument, crashes: number): Error {
  return new ChronosError(
    'JOB_CRASHED',
    `the job was running ${crashes} times when its worker died, froze or was cut off; last: ${job.lockedBy ?? 'unknown'}`,
  );
}

function tooLong(job: JobDocument, now: Date): Error | undefined {
  return runsTooLong(job, now) ? ranTooLongError(job.maxRunningTime ?? 0) : undefined;
}
