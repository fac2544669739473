import { assertNever } from '../domain/assert-never.js';
import { ChronosError, toError } from '../domain/errors.js';
import type { Outcome } from '../domain/outcome.js';
import { cutText } from '../domain/text.js';
import { isUncertain } from '../store/faults.js';
import type { Settled, Settlement as Statement } from '../store/settle.js';
import type { Store } from '../store/store.js';
import { ExecutionLog, type ExecutionLogParts, type SettledAttempt } from './execution-log.js';
import { MOST_REFUSALS, pauseAfter } from './write-retries.js';

/** What was written in the end: a retry turns into a cancellation when that was requested meanwhile. */
export type Settlement = { settled: true; outcome: Outcome } | { settled: false };

/** An outcome that is to be written. */
export interface Unwritten extends SettledAttempt {
  outcome: Outcome;
  refusals: number;
  readonly resolve: (settlement: Settlement) => void;
}

export interface OutcomeWriterParts extends ExecutionLogParts {
  store: Pick<Store, 'settle' | 'findSettled' | 'logExecutions'>;
}

/** Sees outcomes through until each is written, and its row with it, or known never to be. */
export class OutcomeWriter {
  readonly #parts: OutcomeWriterParts;
  readonly #log: ExecutionLog;
  readonly #abandoned: AbortSignal;

  /** `abandoned`: what cannot be written now never will be. */
  constructor(parts: OutcomeWriterParts, abandoned: AbortSignal) {
    this.#parts = parts;
    this.#log = new ExecutionLog(parts, abandoned);
    this.#abandoned = abandoned;
  }

  async write(items: readonly Unwritten[]): Promise<void> {
    const { clock, events } = this.#parts;
    let open = items;
    for (let failures = 0; open.length > 0;) {
      const { results, failed } = await this.#try(open);
      await this.#log.write(open.filter((_, index) => results[index] === 'settled'));
      open = open.filter((item, index) => !isOver(item, results[index] ?? 'unknown', failed));
      const pause = pauseAfter(failures);
      if (failed !== undefined) {
        events.emit('worker:trouble', {
          operation: 'settle',
          error: failed,
          failures: ++failures,
          retryIn: pause,
        });
      }
      if (failures > 0 && (failed === undefined || open.length === 0)) {
        events.emit('worker:recovered', { operation: 'settle', failures });
        failures = 0;
      }
      if (this.#abandoned.aborted) {
        for (const { resolve } of open) resolve({ settled: false });
        return;
      }
      if (failed !== undefined && !isUncertain(failed) && open.length > 1) {
        // One of them cannot be written: alone, it holds up no other.
        for (const item of open) await this.write([item]);
        return;
      }
      // Without a failure: the majority has not caught up with what the primary knows.
      if (open.length > 0 && (failed !== undefined || results.includes('unknown'))) {
        await clock.sleep(pause, this.#abandoned);
      }
    }
  }

  async #try(open: readonly Unwritten[]): Promise<{ results: readonly Settled[]; failed?: Error }> {
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

  #statement({ job, token, outcome, attempt }: Unwritten): Statement {
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
}

/** True when nothing is left to write for the item; its promise is resolved then. */
function isOver(item: Unwritten, result: Settled, failed: Error | undefined): boolean {
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
      return isHopeless(item, failed);
    default:
      return assertNever(result);
  }
}

/** What the server will not store is replaced, once, by a verdict that it will: the job must not seem to crash. */
function isHopeless(item: Unwritten, failed: Error): boolean {
  if (item.outcome.kind === 'failed' && isOutcomeRefused(item.outcome.error)) {
    item.resolve({ settled: false });
    return true;
  }
  item.refusals = 0;
  item.outcome = { kind: 'failed', error: outcomeRefused(failed) };
  return false;
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
