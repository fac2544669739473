import type { Clock } from '../domain/clock.js';
import { CancelJob } from '../domain/control-flow.js';
import { ChronosError, storedError, toError, type StoredError } from '../domain/errors.js';
import { executionRow, type ExecutionDocument } from '../domain/execution.js';
import type { JobDocument } from '../domain/job.js';
import type { Outcome } from '../domain/outcome.js';
import type { EventBus } from '../runtime/event-bus.js';
import { isUncertain } from '../store/faults.js';
import type { Store } from '../store/store.js';
import type { Attempt } from './job-executor.js';
import { MOST_REFUSALS, pauseAfter } from './write-retries.js';

/** An attempt whose outcome is written. */
export interface SettledAttempt {
  readonly job: JobDocument;
  readonly token: string;
  readonly attempt: Attempt;
  /** What was written in the end. */
  readonly outcome: Outcome;
}

export interface ExecutionLogParts {
  store: Pick<Store, 'logExecutions'>;
  clock: Clock;
  events: EventBus;
  workerId: string;
  executionRetention: number;
}

/** Writes a row for every attempt whose outcome is written. */
export class ExecutionLog {
  readonly #parts: ExecutionLogParts;
  readonly #abandoned: AbortSignal;

  /** `abandoned`: nobody waits any more for what cannot be written now. */
  constructor(parts: ExecutionLogParts, abandoned: AbortSignal) {
    this.#parts = parts;
    this.#abandoned = abandoned;
  }

  async write(settled: readonly SettledAttempt[]): Promise<void> {
    if (settled.length === 0) return;
    const { store, clock, events } = this.#parts;
    const rows = settled.map((attempt) => this.#row(attempt));
    // Once at least, also when no more tries are wanted: what is settled belongs into the log.
    for (let failures = 1; ; failures++) {
      try {
        await store.logExecutions(rows);
        return;
      } catch (thrown) {
        const [operation, error, retryIn] = [
          'write the execution log',
          toError(thrown),
          pauseAfter(failures),
        ];
        events.emit('worker:trouble', { operation, error, failures, retryIn });
        if (!isUncertain(thrown) && failures >= MOST_REFUSALS) return;
        await clock.sleep(retryIn, this.#abandoned);
        if (this.#abandoned.aborted) return;
      }
    }
  }

  #row({ job, token, outcome, attempt }: SettledAttempt): ExecutionDocument {
    const { workerId, executionRetention } = this.#parts;
    const { startedAt, finishedAt, duration, log } = attempt;
    const [kind, error] = [outcome.kind, errorOf(outcome)];
    const ran = { lockToken: token, workerId, startedAt, finishedAt, duration, outcome: kind, error, log };
    return executionRow(job, ran, executionRetention);
  }
}

function errorOf(outcome: Outcome): StoredError | null {
  if (outcome.kind === 'cancelled') return storedError(new CancelJob(outcome.reason));
  if (outcome.kind === 'skipped') return storedError(new ChronosError('JOB_SKIPPED', outcome.reason));
  return 'error' in outcome ? storedError(outcome.error) : null;
}
