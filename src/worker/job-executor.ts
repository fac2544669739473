import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import { isUnrecoverableError } from '../domain/job/control-flow.js';
import type { JobDocument } from '../domain/job/job.js';
import {
  type AbortKind,
  exceedsMaxRunningTime,
  type HandlerEnding,
  maxRunningTimeError,
  type Outcome,
  resolveOutcome,
} from '../domain/job/outcome.js';
import type { HandlerRegistry } from '../handlers/handler-registry.js';
import { AfterHooks, findSkipReason, type HandlerHooks, type HookError } from '../handlers/hooks.js';
import { applySchema } from '../handlers/payload.js';
import { SharedTimer } from '../runtime/shared-timer.js';
import type { AttemptSpan } from '../runtime/tracing.js';
import { waitAtMost } from '../runtime/waiting.js';
import { AttemptAbort, AttemptContext, type ProgressReporter } from './job-context.js';

/** One attempt that has an outcome. */
export interface Attempt {
  readonly outcome: Outcome;
  readonly startedAt: Date;
  readonly finishedAt: Date;
  /** Milliseconds, by the monotonic clock. */
  readonly duration: number;
  readonly log: readonly string[];
  /** The handler still runs although its signal was aborted and the grace time has passed. */
  readonly isStuck: boolean;
  readonly hookErrors: readonly HookError[];
}

/** One handler that runs. */
export interface Execution {
  /** Resolves when there is an outcome. Never rejects. */
  readonly attempt: Promise<Attempt>;
  /** Resolves when the handler has really ended: later than the attempt, or never, if it is stuck. Never rejects. */
  readonly handlerEnded: Promise<unknown>;
  /** Aborts the handler's signal. The first reason counts. */
  abort(kind: AbortKind, error: Error): void;
  /** No longer waits for the handler: clears its timers. */
  abandon(): void;
}

export interface ExecutorDeps {
  registry: HandlerRegistry;
  clock: Clock;
  random: () => number;
  options: Pick<ResolvedOptions, 'timeoutGrace'>;
  progress: ProgressReporter;
}

/** The state of one attempt, passed from step to step. */
interface Run {
  readonly job: JobDocument;
  readonly startedAt: Date;
  readonly context: AttemptContext;
  readonly abort: AttemptAbort;
  /** As stored, then as the schema returned it. */
  payload: unknown;
}

const UNTRACED: Pick<AttemptSpan, 'within' | 'end'> = { within: (work) => work(), end: () => undefined };

/** Runs handlers. Returns the result of an attempt as a value; never throws, never touches the store. */
export class JobExecutor {
  readonly #deps: ExecutorDeps;
  readonly #timer: SharedTimer;

  constructor(deps: ExecutorDeps) {
    this.#deps = deps;
    this.#timer = new SharedTimer(deps.clock);
  }

  /** `span`: the trace span of the attempt, if tracing is on. */
  run(job: JobDocument, span: Pick<AttemptSpan, 'within' | 'end'> = UNTRACED): Execution {
    const { clock, options, progress } = this.#deps;
    const log: string[] = [];
    const abort = new AttemptAbort(this.#timer, options.timeoutGrace);
    const context = new AttemptContext(job, log, abort, progress);
    const run: Run = { job, startedAt: clock.now(), context, abort, payload: job.payload };
    const started = clock.monotonic();
    this.#setTimeouts(run);
    const handler = span.within(() => this.#runHandler(run));

    const finish = async (): Promise<Attempt> => {
      const ending = await abort.endingOf(handler);
      abort.close();
      const outcome = this.#resolveOutcome(run, ending);
      const hooks = this.#deps.registry.get(job.taskType)?.hooks;
      const hookErrors =
        hooks === undefined || outcome.kind === 'skipped'
          ? []
          : await span.within(() => this.#runAfterHooks(run, hooks, outcome));
      span.end(outcome);
      return {
        outcome,
        startedAt: run.startedAt,
        finishedAt: clock.now(),
        duration: clock.monotonic() - started,
        // A copy: a stuck handler may go on to write.
        log: [...log],
        isStuck: ending.kind === 'stuck',
        hookErrors,
      };
    };
    return {
      attempt: finish(),
      handlerEnded: handler,
      abort: (kind, error) => {
        abort.abort(kind, error);
      },
      abandon: () => {
        abort.close();
      },
    };
  }

  /** Aborts when the attempt, or the job over all its attempts, has run for too long. */
  #setTimeouts({ job, startedAt, abort }: Run): void {
    const timeout = job.timeout ?? this.#deps.registry.settingsFor(job.taskType).timeout;
    const firstStart = job.firstStartedAt ?? startedAt;
    const left =
      job.maxRunningTime === null
        ? Infinity
        : firstStart.getTime() + job.maxRunningTime - startedAt.getTime();
    if (left < timeout)
      abort.abortAfter(left, 'ranTooLong', () => maxRunningTimeError(job.maxRunningTime ?? 0));
    else
      abort.abortAfter(
        timeout,
        'timeout',
        () => new ChronosError('JOB_TIMEOUT', `the attempt passed its timeout of ${timeout} ms`),
      );
  }

  /** Schema, filters, `before` hooks, handler; every way to end becomes a value. */
  async #runHandler(run: Run): Promise<HandlerEnding> {
    const { job, startedAt, context } = run;
    const handler = this.#deps.registry.get(job.taskType);
    if (handler === undefined)
      return { kind: 'threw', thrown: new Error(`no handler for '${job.taskType}' in this process`) };
    if (exceedsMaxRunningTime(job, startedAt))
      return { kind: 'refused', error: maxRunningTimeError(job.maxRunningTime ?? 0) };
    const { hooks, options } = handler;
    try {
      // The stored payload may be older than the schema.
      if (options.schema !== undefined)
        run.payload = await applySchema(job.taskType, options.schema, job.payload);
      if (hooks !== undefined) {
        const reason = await findSkipReason(hooks, run.payload, context);
        if (reason !== undefined) return { kind: 'skipped', reason };
        for (const hook of hooks.before) {
          context.signal.throwIfAborted();
          await hook(run.payload, context);
        }
        // The job may have timed out, been cancelled or lost its lock meanwhile.
        context.signal.throwIfAborted();
      }
      return { kind: 'returned', value: await handler.run(run.payload, context) };
    } catch (thrown) {
      return isUnrecoverableError(thrown) ? { kind: 'refused', error: thrown } : { kind: 'threw', thrown };
    }
  }

  #resolveOutcome({ job, startedAt, abort }: Run, ending: HandlerEnding): Outcome {
    // The usual case, without the allocations below.
    if (ending.kind === 'returned' && abort.reason === undefined)
      return { kind: 'completed', result: ending.value };
    const { clock, random, registry } = this.#deps;
    const { attempts, maxRunningTime } = job;
    // The first start is stored with the first outcome; until then it is this one.
    const firstStartedAt = job.firstStartedAt ?? startedAt;
    return resolveOutcome({
      ending,
      abort: abort.reason,
      job: { attempts, maxRunningTime, firstStartedAt },
      policy: () => ({ ...registry.settingsFor(job.taskType).retries, ...job.retries }),
      now: clock.now(),
      random,
    });
  }

  /** Runs under the job's lock, for the grace time at most: a hook that does not end must not keep the job locked. */
  async #runAfterHooks(
    { payload, context }: Run,
    hooks: HandlerHooks,
    outcome: Outcome,
  ): Promise<readonly HookError[]> {
    const { clock, options } = this.#deps;
    const afterHooks = new AfterHooks(hooks, outcome, payload, context);
    await waitAtMost(clock, options.timeoutGrace, afterHooks.run());
    if (afterHooks.current === undefined) return afterHooks.errors;
    const error = new ChronosError('JOB_TIMEOUT', `the hooks took longer than ${options.timeoutGrace} ms`);
    return [...afterHooks.errors, { hook: afterHooks.current, error }];
  }
}
