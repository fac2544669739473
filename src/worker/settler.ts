import { assertNever } from '../domain/assert-never.js';
import type { Clock } from '../domain/clock.js';
import { CancelJob } from '../domain/control-flow.js';
import { ChronosError, storedError, toError, type StoredError } from '../domain/errors.js';
import { cutText } from '../domain/text.js';
import { executionRow, type ExecutionDocument } from '../domain/execution.js';
import type { JobDocument } from '../domain/job.js';
import type { Outcome } from '../domain/outcome.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { Begun } from '../store/begin.js';
import { isUncertain } from '../store/faults.js';
import type { Settled } from '../store/settle.js';
import type { Store } from '../store/store.js';
import type { Attempt } from './job-executor.js';

const LARGEST_BATCH = 1000;
/** So many outcomes are not held back for more. */
const ENOUGH = 500;
/** Writes under way at the same time: while the server works on one, this process prepares the next. */
const MOST_WRITES = 2;
/** A buffered job that has not settled by then is marked as running. Milliseconds; most are through long before. */
const MARK_AFTER = 25;
const FIRST_RETRY = 100;
const LONGEST_RETRY = 5000;
/** A write the server refuses, not for lack of a connection, is not tried more often than this. */
const MOST_REFUSALS = 3;

/** What was written in the end: a retry turns into a cancellation when that was requested meanwhile. */
export type Settlement = { settled: true; outcome: Outcome } | { settled: false };

interface Item {
  readonly job: JobDocument;
  readonly token: string;
  readonly attempt: Attempt;
  outcome: Outcome;
  refusals: number;
  readonly resolve: (settlement: Settlement) => void;
}

export interface SettlerParts {
  store: Pick<Store, 'settle' | 'findSettled' | 'logExecutions' | 'markBegun'>;
  clock: Clock;
  events: EventBus;
  workerId: string;
  executionRetention: number;
}

/**
 * Writes outcomes, fenced, then their rows in the execution log. What arrives while writes are under way goes
 * with the next one: a job alone settles at once, many settle together, and no timer is needed for it.
 */
export class Settler {
  readonly #parts: SettlerParts;
  readonly #abandoned = new AbortController();
  readonly #writes = new Set<Promise<void>>();
  #waiting: Item[] = [];
  /** Outcomes in the writes under way. */
  #writing = 0;
  #gathering = false;
  /** Buffered jobs that have started and are not marked; none is in flight twice in one process. */
  #begun = new Map<string, Begun>();
  #marking: Promise<void> | undefined;

  constructor(parts: SettlerParts) {
    this.#parts = parts;
  }

  /** Outcomes that are not written yet. */
  get pending(): number {
    return this.#waiting.length + this.#writing;
  }

  /** Resolves when the outcome is written, or can never be. `alone`: in a write of its own, now. */
  settle(job: JobDocument, token: string, attempt: Attempt, alone = false): Promise<Settlement> {
    this.#begun.delete(job._id);
    return new Promise((resolve) => {
      const item = { job, token, attempt, outcome: attempt.outcome, refusals: 0, resolve };
      if (alone) this.#begin([item]);
      else {
        this.#waiting.push(item);
        this.#flush();
      }
    });
  }

  /** Marks a buffered job RUNNING, unless it settles before that is worth a write. */
  begin(begun: Begun): void {
    this.#begun.set(begun.jobId, begun);
    this.#startMarking();
  }

  /** Resolves when everything given so far is written. */
  async flushed(): Promise<void> {
    while (this.#waiting.length > 0 || this.#writes.size > 0) {
      await (this.#writes.size > 0 ? Promise.all(this.#writes) : new Promise(setImmediate));
    }
    await this.#marking;
  }

  /** Gives up on what cannot be written: the locks run out, and others recover the jobs. */
  abandon(): void {
    this.#begun.clear();
    this.#abandoned.abort();
  }

  #flush(): void {
    if (this.#gathering || this.#waiting.length === 0 || this.#writes.size >= MOST_WRITES) return;
    this.#gathering = true;
    this.#gather(this.#waiting.length);
  }

  /** As long as every turn of the event loop brings more, a few hundred go together; one alone waits for no other. */
  #gather(before: number): void {
    setImmediate(() => {
      const now = this.#waiting.length;
      if (now > before && now < ENOUGH) {
        this.#gather(now);
        return;
      }
      this.#gathering = false;
      this.#begin(this.#waiting.splice(0, LARGEST_BATCH));
      this.#flush();
    });
  }

  #begin(items: readonly Item[]): void {
    this.#writing += items.length;
    const write = this.#write(items).finally(() => {
      this.#writing -= items.length;
      this.#writes.delete(write);
      this.#flush();
    });
    this.#writes.add(write);
  }

  #startMarking(): void {
    this.#marking ??= this.#mark().finally(() => {
      this.#marking = undefined;
      // One that began between the last look and this.
      if (this.#begun.size > 0) this.#startMarking();
    });
  }

  /** Best effort: a mark that is lost makes a crash look like a job that had not started, which counts nothing. */
  async #mark(): Promise<void> {
    const { clock, store } = this.#parts;
    while (this.#begun.size > 0 && !this.#abandoned.signal.aborted) {
      await clock.sleep(MARK_AFTER, this.#abandoned.signal);
      const begun = [...this.#begun.values()];
      this.#begun.clear();
      if (begun.length === 0) return;
      try {
        await store.markBegun(begun);
      } catch (error) {
        this.#report('mark jobs as running', error, 1, 0);
      }
    }
  }

  /** Tries until every outcome is written, or known never to be. */
  async #write(items: readonly Item[]): Promise<void> {
    const { clock, events } = this.#parts;
    let open = items;
    for (let failures = 0; open.length > 0;) {
      const { results, failed } = await this.#try(open);
      await this.#log(open.filter((_, index) => results[index] === 'settled'));
      open = open.filter((item, index) => !this.#isOver(item, results[index] ?? 'unknown', failed));
      const pause = Math.min(LONGEST_RETRY, FIRST_RETRY * 2 ** failures);
      if (failed !== undefined) this.#report('settle', failed, ++failures, pause);
      if (failures > 0 && (failed === undefined || open.length === 0)) {
        events.emit('worker:recovered', { operation: 'settle', failures });
        failures = 0;
      }
      if (this.#abandoned.signal.aborted) {
        for (const { resolve } of open) resolve({ settled: false });
        return;
      }
      if (failed !== undefined && !isUncertain(failed) && open.length > 1) {
        // One of them cannot be written: alone, it holds up no other.
        for (const item of open) await this.#write([item]);
        return;
      }
      // Without a failure: the majority has not caught up with what the primary knows.
      if (open.length > 0 && (failed !== undefined || results.includes('unknown'))) {
        await clock.sleep(pause, this.#abandoned.signal);
      }
    }
  }

  async #try(open: readonly Item[]): Promise<{ results: readonly Settled[]; failed?: Error }> {
    const { store } = this.#parts;
    const statements = open.map((item) => this.#statement(item));
    try {
      return { results: await store.settle(statements) };
    } catch (error) {
      // Nothing is known: the write may have taken effect although its reply was lost.
      const results = await store.findSettled(statements).catch(() => open.map((): Settled => 'unknown'));
      return { results, failed: toError(error) };
    }
  }

  /** True when nothing is left to write for the item; its promise is resolved then. */
  #isOver(item: Item, result: Settled, failed: Error | undefined): boolean {
    if (typeof result === 'object') {
      item.outcome = { kind: 'cancelled', reason: result.cancelRequested ?? 'cancelled on request' };
      return false;
    }
    switch (result) {
      case 'settled':
        item.resolve({ settled: true, outcome: item.outcome });
        return true;
      case 'lost':
        item.resolve({ settled: false });
        return true;
      case 'unknown':
        if (failed === undefined || isUncertain(failed) || ++item.refusals < MOST_REFUSALS) return false;
        return this.#refused(item, failed);
      default:
        return assertNever(result);
    }
  }

  /** What the server will not store is replaced, once, by a verdict that it will: the job must not seem to crash. */
  #refused(item: Item, failed: Error): boolean {
    if (item.outcome.kind === 'failed' && isOutcomeRefused(item.outcome.error)) {
      item.resolve({ settled: false });
      return true;
    }
    item.refusals = 0;
    item.outcome = { kind: 'failed', error: outcomeRefused(failed) };
    return false;
  }

  async #log(settled: readonly Item[]): Promise<void> {
    if (settled.length === 0) return;
    const rows = settled.map((item) => this.#row(item));
    // Once at least, also when no more tries are wanted: what is settled belongs into the log.
    for (let failures = 1; ; failures++) {
      try {
        await this.#parts.store.logExecutions(rows);
        return;
      } catch (error) {
        const pause = Math.min(LONGEST_RETRY, FIRST_RETRY * 2 ** failures);
        this.#report('write the execution log', error, failures, pause);
        if (!isUncertain(error) && failures >= MOST_REFUSALS) return;
        await this.#parts.clock.sleep(pause, this.#abandoned.signal);
        if (this.#abandoned.signal.aborted) return;
      }
    }
  }

  #statement({ job, token, outcome, attempt }: Item): Parameters<Store['settle']>[0][number] {
    const { workerId } = this.#parts;
    return {
      jobId: job._id,
      token,
      workerId,
      outcome,
      startedAt: attempt.startedAt,
      finishedAt: attempt.finishedAt,
    };
  }

  #row({ job, token, outcome, attempt }: Item): ExecutionDocument {
    const { workerId, executionRetention } = this.#parts;
    const { startedAt, finishedAt, duration, log } = attempt;
    const [kind, error] = [outcome.kind, errorOf(outcome)];
    const ran = { lockToken: token, workerId, startedAt, finishedAt, duration, outcome: kind, error, log };
    return executionRow(job, ran, executionRetention);
  }

  #report(operation: string, error: unknown, failures: number, retryIn: number): void {
    this.#parts.events.emit('worker:trouble', { operation, error: toError(error), failures, retryIn });
  }
}

function errorOf(outcome: Outcome): StoredError | null {
  if (outcome.kind === 'cancelled') return storedError(new CancelJob(outcome.reason));
  if (outcome.kind === 'skipped') return storedError(new ChronosError('JOB_SKIPPED', outcome.reason));
  return 'error' in outcome ? storedError(outcome.error) : null;
}

function outcomeRefused(cause: Error): ChronosError {
  return new ChronosError(
    'OUTCOME_REFUSED',
    `MongoDB refused to store the outcome of the attempt: ${cutText(cause.message, 1024)}`,
  );
}

function isOutcomeRefused(error: Error): boolean {
  return error instanceof ChronosError && error.code === 'OUTCOME_REFUSED';
}
