import type { ResolvedOptions } from '../config/options.js';
import type { RetryPolicy } from '../domain/backoff.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import type { JobDocument } from '../domain/job.js';
import {
  judge,
  ranTooLongError,
  runsTooLong,
  type AbortKind,
  type Ending,
  type Outcome,
} from '../domain/outcome.js';
import { Deadlines } from '../runtime/deadlines.js';
import type { AttemptSpan } from '../runtime/tracing.js';
import { within } from '../runtime/within.js';
import { Aborting } from './aborting.js';
import { conclude, refusal, type Around } from './around.js';
import type { JobContext } from './handler.js';
import type { HandlerRegistry } from './handler-registry.js';
import { applySchema } from './payload-schema.js';
import { isRefused } from './refused.js';
import { RunningJob, type SaveProgress } from './running-job.js';

/** One attempt that has come to an outcome. */
export interface Attempt {
  readonly outcome: Outcome;
  readonly startedAt: Date;
  readonly finishedAt: Date;
  /** Milliseconds, by the monotonic clock. */
  readonly duration: number;
  readonly log: readonly string[];
  /** The handler still runs, although its signal was aborted and the grace time has passed. */
  readonly stuck: boolean;
}

/** One handler at work. */
export interface Execution {
  /** Resolves when there is an outcome. Never rejects. */
  readonly attempt: Promise<Attempt>;
  /** Resolves when the handler has really ended: later, or never, when it is stuck. Never rejects. */
  readonly handled: Promise<unknown>;
  /** Aborts the handler's signal. The first reason stays. */
  abort(kind: AbortKind, error: Error): void;
  /** Leaves a handler that will not end to itself: no timer waits for it any more. */
  abandon(): void;
}

export interface ExecutorParts {
  registry: HandlerRegistry;
  clock: Clock;
  random: () => number;
  options: Pick<ResolvedOptions, 'timeout' | 'timeoutGrace' | 'retries'>;
  saveProgress: SaveProgress;
  onHookFailed: (job: JobDocument, hook: string, error: Error) => void;
}

/** Runs handlers. Returns what an attempt came to as a value; never throws, never touches the store. */
export class JobExecutor {
  readonly #parts: ExecutorParts;
  readonly #deadlines: Deadlines;

  constructor(parts: ExecutorParts) {
    this.#parts = parts;
    this.#deadlines = new Deadlines(parts.clock);
  }

  /** Longest time of one attempt of this job, in milliseconds. */
  timeoutOf(job: JobDocument): number {
    return (
      job.timeout ?? this.#parts.registry.get(job.taskType)?.options.timeout ?? this.#parts.options.timeout
    );
  }

  /** `span`: what the handler and its hooks are part of, where somebody traces. */
  run(job: JobDocument, span?: AttemptSpan): Execution {
    const { clock } = this.#parts;
    const startedAt = clock.now();
    const started = clock.monotonic();
    const log: string[] = [];
    const args = { payload: job.payload };
    const aborting = new Aborting();
    const context = new RunningJob(job, log, aborting, this.#parts.saveProgress);
    this.#limitTime(job, startedAt, aborting);

    const handle = (): Promise<Ending> => this.#handle(job, startedAt, args, context);
    const handled = span === undefined ? handle() : span.within(handle);
    const conclude = async (): Promise<Attempt> => {
      const ending = await aborting.ending(handled);
      this.#end(aborting);
      const outcome = this.#judge(job, ending, aborting, startedAt);
      const around = this.#parts.registry.get(job.taskType)?.around;
      if (around !== undefined) {
        const hooks = (): Promise<void> => this.#conclude(job, around, outcome, args.payload, context);
        await (span === undefined ? hooks() : span.within(hooks));
      }
      span?.end(outcome);
      const [finishedAt, duration] = [clock.now(), clock.monotonic() - started];
      // A copy: one that is stuck may go on to write.
      return { outcome, startedAt, finishedAt, duration, log: [...log], stuck: ending.kind === 'stuck' };
    };
    return {
      attempt: conclude(),
      handled,
      abort: (kind, error) => {
        this.#abort(aborting, kind, error);
      },
      abandon: () => {
        this.#end(aborting);
      },
    };
  }

  /** Validates, asks the filters, runs, and turns every way to end into a value. */
  async #handle(
    job: JobDocument,
    startedAt: Date,
    args: { payload: unknown },
    context: JobContext,
  ): Promise<Ending> {
    const handler = this.#parts.registry.get(job.taskType);
    if (handler === undefined)
      return { kind: 'threw', thrown: new Error(`no handler for '${job.taskType}' in this process`) };
    if (runsTooLong(job, startedAt))
      return { kind: 'refused', error: ranTooLongError(job.maxRunningTime ?? 0) };
    try {
      const { schema } = handler.options;
      // The stored payload may be older than the schema it meets now.
      if (schema !== undefined) args.payload = await applySchema(job.taskType, schema, job.payload);
      const { payload } = args;
      if (handler.around !== undefined) {
        const reason = await refusal(handler.around, payload, context);
        if (reason !== undefined) return { kind: 'skipped', reason };
        for (const hook of handler.around.before) {
          context.signal.throwIfAborted();
          await hook(payload, context);
        }
        // Meanwhile it may have timed out, been cancelled, or lost its lock.
        context.signal.throwIfAborted();
      }
      return { kind: 'returned', value: await handler.run(payload, context) };
    } catch (thrown) {
      return isRefused(thrown) ? { kind: 'refused', error: thrown } : { kind: 'threw', thrown };
    }
  }

  #judge(job: JobDocument, ending: Ending, { abort }: Aborting, startedAt: Date): Outcome {
    const { clock, random } = this.#parts;
    // As nearly all of them end.
    if (ending.kind === 'returned' && abort === undefined) return { kind: 'completed', result: ending.value };
    const { attempts, maxRunningTime } = job;
    // The first start is stored with the first outcome; until then it is this one.
    const begun = { attempts, maxRunningTime, firstStartedAt: job.firstStartedAt ?? startedAt };
    const policy = (): RetryPolicy => this.#policyOf(job);
    return judge({ ending, abort, job: begun, policy, now: clock.now(), random });
  }

  /** The hooks that follow the handler, under its lock; one that does not end keeps nothing from ending. */
  async #conclude(
    job: JobDocument,
    around: Around,
    outcome: Outcome,
    payload: unknown,
    context: JobContext,
  ): Promise<void> {
    const { clock, options, onHookFailed } = this.#parts;
    if (outcome.kind === 'skipped') return;
    let atWork: string | undefined;
    const hooks = conclude(around, outcome, payload, context, {
      begins: (hook) => (atWork = hook),
      failed: (hook, error) => {
        onHookFailed(job, hook, error);
      },
    }).then(() => (atWork = undefined));
    await within(clock, options.timeoutGrace, hooks);
    if (atWork !== undefined) {
      const error = new ChronosError('JOB_TIMEOUT', `the hooks took longer than ${options.timeoutGrace} ms`);
      onHookFailed(job, atWork, error);
    }
  }

  /** Aborts when the attempt, or the job over all its attempts, has run for too long. */
  #limitTime(job: JobDocument, startedAt: Date, aborting: Aborting): void {
    const timeout = this.timeoutOf(job);
    const left =
      job.maxRunningTime === null
        ? Infinity
        : (job.firstStartedAt ?? startedAt).getTime() + job.maxRunningTime - startedAt.getTime();
    const passed = (): void => {
      if (left < timeout) this.#abort(aborting, 'ranTooLong', ranTooLongError(job.maxRunningTime ?? 0));
      else {
        const error = new ChronosError('JOB_TIMEOUT', `the attempt passed its timeout of ${timeout} ms`);
        this.#abort(aborting, 'timeout', error);
      }
    };
    aborting.deadlines.push(this.#deadlines.set(Math.min(timeout, left), passed));
  }

  /** A handler that has not ended when the grace time has passed is stuck. On shutdown the caller keeps the time. */
  #abort(aborting: Aborting, kind: AbortKind, error: Error): void {
    if (!aborting.begin(kind, error) || kind === 'shutdown') return;
    const passed = (): void => {
      aborting.giveUp();
    };
    aborting.deadlines.push(this.#deadlines.set(this.#parts.options.timeoutGrace, passed));
  }

  #end(aborting: Aborting): void {
    aborting.end();
    for (const deadline of aborting.deadlines) this.#deadlines.clear(deadline);
  }

  #policyOf(job: JobDocument): RetryPolicy {
    return {
      ...this.#parts.options.retries,
      ...this.#parts.registry.get(job.taskType)?.options.retries,
      ...job.retries,
    };
  }
}
