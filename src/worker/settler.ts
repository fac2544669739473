import type { Clock } from '../domain/clock.js';
import { ChronosError, storedError, type StoredError, toError } from '../domain/errors.js';
import { CancelJob } from '../domain/job/control-flow.js';
import { type ExecutionDocument, type ExecutionOutcome, executionRow } from '../domain/job/execution.js';
import type { JobDocument } from '../domain/job/job.js';
import type { Outcome } from '../domain/job/outcome.js';
import { truncateUtf8 } from '../domain/text.js';
import type { HandlerRegistry } from '../handlers/handler-registry.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { OutageMonitor } from '../runtime/outage-monitor.js';
import { MAX_REJECTIONS, retry, retryDelay } from '../runtime/retry.js';
import type { Settled, Settlement } from '../store/jobs/settle.js';
import { isOutage } from '../store/mongo-errors.js';
import type { Store } from '../store/store.js';
import type { Attempt } from './job-executor.js';

const MAX_BATCH = 1000;
/** A batch of this size is written without waiting for more. */
const FULL_BATCH = 500;
/** While the server executes one write, this process prepares the next. */
const MAX_CONCURRENT_WRITES = 2;
const WRITE_RETRY = { first: 100, max: 5000 };

/** The stored outcome may differ from the attempt's: a retry becomes a cancellation if one was requested. */
export type SettleResult = { settled: true; outcome: Outcome } | { settled: false };

export interface SettlerDeps {
  store: Pick<Store, 'settle' | 'findSettled' | 'logExecutions'>;
  clock: Clock;
  events: EventBus;
  workerId: string;
  registry: Pick<HandlerRegistry, 'settingsFor'>;
  outages: OutageMonitor;
}

/** An outcome that is not stored yet. */
interface PendingOutcome {
  readonly job: JobDocument;
  readonly token: string;
  readonly attempt: Attempt;
  /** Differs from the attempt's outcome after a cancel request or a rejected write. */
  outcome: Outcome;
  rejections: number;
  /** MongoDB rejected the attempt's outcome, and `outcome` is a FAILED one instead. */
  isReplaced: boolean;
  readonly resolve: (result: SettleResult) => void;
}

/**
 * Writes outcomes in batches and retries until each is stored or its lock is known to be lost. Outcomes that arrive while
 * writes are in progress go with the next one: a single job settles at once, many settle together, without a timer.
 */
export class Settler {
  readonly #deps: SettlerDeps;
  readonly #closed = new AbortController();
  readonly #writes = new Set<Promise<void>>();
  #waiting: PendingOutcome[] = [];
  /** Outcomes in the writes in progress. */
  #writing = 0;
  #isGathering = false;

  constructor(deps: SettlerDeps) {
    this.#deps = deps;
  }

  /** Outcomes that are not stored yet. */
  get pending(): number {
    return this.#waiting.length + this.#writing;
  }

  /** Resolves when the outcome is stored or dropped. `immediately`: in a write of its own. */
  settle(job: JobDocument, token: string, attempt: Attempt, immediately = false): Promise<SettleResult> {
    return new Promise((resolve) => {
      const { outcome } = attempt;
      const item = { job, token, attempt, outcome, rejections: 0, isReplaced: false, resolve };
      if (immediately) this.#startWrite([item]);
      else {
        this.#waiting.push(item);
        this.#flush();
      }
    });
  }

  /** Stops retrying; resolves when the writes in progress have ended. The locks of dropped outcomes expire. */
  async close(): Promise<void> {
    this.#closed.abort();
    await this.whenFlushed();
  }

  /** Resolves when every outcome passed so far is stored or dropped. */
  async whenFlushed(): Promise<void> {
    while (this.#waiting.length > 0 || this.#writes.size > 0) {
      await (this.#writes.size > 0 ? Promise.all(this.#writes) : new Promise(setImmediate));
    }
  }

  #flush(): void {
    if (this.#isGathering || this.#waiting.length === 0 || this.#writes.size >= MAX_CONCURRENT_WRITES) return;
    this.#isGathering = true;
    this.#gather(this.#waiting.length);
  }

  /** Waits as long as every turn of the event loop adds outcomes, up to a full batch. */
  #gather(before: number): void {
    setImmediate(() => {
      const now = this.#waiting.length;
      if (now > before && now < FULL_BATCH) return this.#gather(now);
      this.#isGathering = false;
      this.#startWrite(this.#waiting.splice(0, MAX_BATCH));
      this.#flush();
    });
  }

  #startWrite(batch: readonly PendingOutcome[]): void {
    this.#writing += batch.length;
    const write = this.#write(batch).finally(() => {
      this.#writing -= batch.length;
      this.#writes.delete(write);
      this.#flush();
    });
    this.#writes.add(write);
  }

  async #write(batch: readonly PendingOutcome[]): Promise<void> {
    const { clock, events, outages } = this.#deps;
    let open = batch;
    for (let failures = 0; open.length > 0;) {
      const { results, error } = await this.#tryWrite(open);
      await this.#logExecutions(open.filter((_, index) => results[index] === 'settled'));
      open = open.filter((item, index) => !applyResult(item, results[index] ?? 'unknown', error));
      const retryIn = retryDelay(WRITE_RETRY, failures + 1);
      if (error !== undefined) {
        outages.recordFailure();
        events.reportError('settle', error, { failures: ++failures, retryIn });
      }
      if (failures > 0 && (error === undefined || open.length === 0)) {
        events.emit('worker:recovered', { operation: 'settle', failures });
        failures = 0;
      }
      if (this.#closed.signal.aborted) {
        for (const { resolve } of open) resolve({ settled: false });
        return;
      }
      if (error !== undefined && !isOutage(error) && open.length > 1) {
        // MongoDB rejected one of them: write them one by one, so that the others are stored.
        for (const item of open) await this.#write([item]);
        return;
      }
      // Unknown without an error: the majority read has not caught up with the primary yet.
      if (open.length > 0 && (error !== undefined || results.includes('unknown')))
        await clock.sleep(retryIn, this.#closed.signal);
    }
  }

  async #tryWrite(open: readonly PendingOutcome[]): Promise<{ results: readonly Settled[]; error?: Error }> {
    const { store, workerId, registry } = this.#deps;
    const settlements = open.map(({ job, token, outcome, attempt }): Settlement => {
      const { startedAt, finishedAt } = attempt;
      const typeRetention = registry.settingsFor(job.taskType).retention;
      const retention = job.retention === undefined ? typeRetention : { ...typeRetention, ...job.retention };
      return { jobId: job._id, token, workerId, outcome, startedAt, finishedAt, retention };
    });
    try {
      return { results: await store.settle(settlements) };
    } catch (error) {
      // The write may have taken effect although its reply was lost: read back by token.
      const results = await store.findSettled(settlements).catch(() => open.map((): Settled => 'unknown'));
      return { results, error: toError(error) };
    }
  }

  /** One row per settled attempt; a job that expired was not attempted. Tried at least once, even after close(), so that the log agrees with the jobs. */
  async #logExecutions(settled: readonly PendingOutcome[]): Promise<void> {
    const rows = settled.filter(({ outcome }) => outcome.kind !== 'expired').map((item) => this.#toRow(item));
    if (rows.length === 0) return;
    const { store, clock, events } = this.#deps;
    const write = async (): Promise<void> => {
      await store.logExecutions(rows);
      events.reportSuccess('write execution log');
    };
    await retry(write, {
      ...WRITE_RETRY,
      clock,
      signal: this.#closed.signal,
      shouldRetry: (error, failures) => isOutage(error) || failures < MAX_REJECTIONS,
      onRetry: (error, _, retryIn) => events.reportFailure('write execution log', error, retryIn),
    }).catch((cause: unknown) => {
      const missing = rows.length === 1 ? '1 row is missing' : `${rows.length} rows are missing`;
      const message = `gave up: ${missing} in the execution log (${toError(cause).message})`;
      events.reportFailure('write execution log', new Error(message, { cause }));
    });
  }

  #toRow({ job, token, outcome, attempt }: PendingOutcome): ExecutionDocument {
    const { workerId } = this.#deps;
    const { startedAt, finishedAt, duration, log } = attempt;
    const kind = outcome.kind as ExecutionOutcome;
    const error = toStoredError(outcome);
    return executionRow(job, {
      ...{ lockToken: token, workerId, startedAt, finishedAt, duration, log, outcome: kind, error },
    });
  }
}

/** Resolves the item's promise and returns true if nothing is left to store for it. */
function applyResult(item: PendingOutcome, result: Settled, error: Error | undefined): boolean {
  if (result === 'settled') {
    item.resolve({ settled: true, outcome: item.outcome });
    return true;
  }
  if (typeof result === 'object') {
    item.outcome = { kind: 'cancelled', reason: result.cancelRequested ?? 'cancelled on request' };
    return false;
  }
  if (result === 'unknown' && !isPermanentlyRejected(item, error)) return false;
  if (result === 'lost' || item.isReplaced) {
    item.resolve({ settled: false });
    return true;
  }
  // MongoDB rejected this outcome three times (for example, a result that is too large): store a FAILED outcome instead.
  // Otherwise the lock would expire and the job would count as crashed.
  const message = `MongoDB rejected the outcome of the attempt: ${truncateUtf8(error?.message ?? '', 1024)}`;
  item.outcome = { kind: 'failed', error: new ChronosError('OUTCOME_REFUSED', message) };
  item.isReplaced = true;
  item.rejections = 0;
  return false;
}

function isPermanentlyRejected(item: PendingOutcome, error: Error | undefined): boolean {
  return error !== undefined && !isOutage(error) && ++item.rejections >= MAX_REJECTIONS;
}

function toStoredError(outcome: Outcome): StoredError | null {
  if (outcome.kind === 'cancelled') return storedError(new CancelJob(outcome.reason));
  if (outcome.kind === 'skipped') return storedError(new ChronosError('JOB_SKIPPED', outcome.reason));
  return 'error' in outcome ? storedError(outcome.error) : null;
}
