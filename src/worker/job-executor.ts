import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
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

/** A finished attempt. */
export interface Attempt {
  readonly outcome: Outcome;
  readonly startedAt: Date;
  readonly finishedAt: Date;
  /** Milliseconds, by the monotonic clock. */
  readonly duration: number;
  readonly log: readonly string[];
  /** The handler is still running although its signal was aborted and the grace time has passed. */
  readonly isStuck: boolean;
  readonly hookErrors: readonly HookError[];
}

/** An attempt in progress. */
export interface Execution {
  /** Resolves when there is an outcome. Never rejects. */
  readonly attempt: Promise<Attempt>;
  /** Resolves when the handler has ended: for a stuck handler later than the attempt, or never. Never rejects. */
  readonly handlerEnded: Promise<unknown>;
  /** Aborts the handler's signal. Only the first call has an effect. */
  abort(kind: AbortKind, error: Error): void;
  /** Stops waiting for the handler and clears its timers. */
  abandon(): void;
}

export interface ExecutorDeps {
  registry: HandlerRegistry;
  clock: Clock;
  random: () => number;
  options: Pick<ResolvedOptions, 'timeoutGrace'>;
  progress: ProgressReporter;
}

type Span = Pick<AttemptSpan, 'within' | 'end'>;

/** The state of one attempt, passed from step to step. */
interface Run {
  readonly job: JobDocument;
  readonly span: Span;
  readonly startedAt: Date;
  /** `startedAt` on the monotonic clock. */
  readonly started: number;
  readonly log: readonly string[];
  readonly context: AttemptContext;
  readonly abort: AttemptAbort;
  /** As stored, then as the schema returned it. */
  payload: unknown;
}

const UNTRACED: Span = { within: (work) => work(), end: () => undefined };

/** Runs handlers and returns each attempt as a value. Never throws, never touches the store. */
export class JobExecutor {
  readonly #deps: ExecutorDeps;
  readonly #timer: SharedTimer;

  constructor(deps: ExecutorDeps) {
    this.#deps = deps;
    this.#timer = new SharedTimer(deps.clock);
  }

  /** `span`: the trace span of the attempt, if tracing is on. */
  run(job: JobDocument, span: Span = UNTRACED): Execution {
    const { clock, options, progress } = this.#deps;
    const log: string[] = [];
    const abort = new AttemptAbort(this.#timer, options.timeoutGrace);
    const context = new AttemptContext(job, log, abort, progress);
    const startedAt = clock.now();
    const started = clock.monotonic();
    const run: Run = { job, span, startedAt, started, log, context, abort, payload: job.payload };
    this.#setTimeouts(run);
    const handler = span.within(() => this.#runHandler(run));
    return {
      attempt: this.#finish(run, handler),
      handlerEnded: handler,
      abort: (kind, error) => abort.abort(kind, error),
      abandon: () => abort.close(),
    };
  }

  /** Aborts when the attempt exceeds its timeout, or all attempts together exceed `maxRunningTime`. */
  #setTimeouts({ job, startedAt, abort }: Run): void {
    const { maxRunningTime } = job;
    const timeout = job.timeout ?? this.#deps.registry.settingsFor(job.taskType).timeout;
    const ranFor = startedAt.getTime() - (job.firstStartedAt ?? startedAt).getTime();
    if (maxRunningTime !== null && maxRunningTime - ranFor < timeout)
      abort.abortAfter(maxRunningTime - ranFor, 'ranTooLong', () => maxRunningTimeError(job));
    else abort.abortAfter(timeout, 'timeout', () => timeoutError(timeout));
  }

  /** Schema, filters, then the handler with its middleware and `before` hooks. Errors are returned as values. */
  async #runHandler(run: Run): Promise<HandlerEnding> {
    const { job, startedAt, context } = run;
    const handler = this.#deps.registry.get(job.taskType);
    if (handler === undefined)
      return {
        kind: 'threw',
        thrown: new Error(`no handler for task type '${job.taskType}' in this process`),
      };
    if (exceedsMaxRunningTime(job, startedAt)) return { kind: 'rejected', error: maxRunningTimeError(job) };
    const { hooks, options } = handler;
    try {
      // The stored payload may be older than the schema.
      if (options.schema !== undefined) {
        const applied = await applySchema(job.taskType, options.schema, job.payload);
        if ('error' in applied) return { kind: 'rejected', error: applied.error };
        run.payload = applied.value;
      }
      if (hooks !== undefined) {
        const reason = await findSkipReason(hooks, run.payload, context);
        if (reason !== undefined) return { kind: 'skipped', reason };
        // The job may have timed out, been cancelled or lost its lock during the filters.
        context.signal.throwIfAborted();
      }
      return { kind: 'returned', value: await handler.run(run.payload, context) };
    } catch (thrown) {
      return { kind: 'threw', thrown };
    }
  }

  /** Waits for the handler, decides the outcome and runs the hooks that follow. */
  async #finish(run: Run, handler: Promise<HandlerEnding>): Promise<Attempt> {
    const { job, span, startedAt, abort } = run;
    const { clock, registry } = this.#deps;
    const ending = await abort.endingOf(handler);
    abort.close();
    const hookErrors: HookError[] = [];
    const outcome = this.#resolveOutcome(run, ending, hookErrors);
    const hooks = registry.get(job.taskType)?.hooks;
    if (hooks !== undefined && outcome.kind !== 'skipped')
      hookErrors.push(...(await span.within(() => this.#runAfterHooks(run, hooks, outcome))));
    span.end(outcome);
    const duration = clock.monotonic() - run.started;
    const isStuck = ending.kind === 'stuck';
    // A stuck handler may write more log lines, so they are copied.
    const log = [...run.log];
    return { outcome, startedAt, finishedAt: clock.now(), duration, log, isStuck, hookErrors };
  }

  /** Adds the errors of functions in `retries` to `hookErrors`. */
  #resolveOutcome({ job, startedAt, abort }: Run, ending: HandlerEnding, hookErrors: HookError[]): Outcome {
    // The usual case: saves the allocations below.
    if (ending.kind === 'returned' && abort.reason === undefined)
      return { kind: 'completed', result: ending.value };
    const { clock, random, registry } = this.#deps;
    const { attempts, maxRunningTime } = job;
    // The first start is stored with the first outcome; before that, this attempt is the first.
    const firstStartedAt = job.firstStartedAt ?? startedAt;
    return resolveOutcome({
      ending,
      abort: abort.reason,
      job: { attempts, maxRunningTime, firstStartedAt },
      policy: () => ({ ...registry.settingsFor(job.taskType).retries, ...job.retries }),
      onRetryFunctionError: (hook, error) => hookErrors.push({ hook, error }),
      now: clock.now(),
      random,
    });
  }

  /** Runs under the job's lock, for at most the grace time: a hook that never ends must not keep the job locked. */
  async #runAfterHooks(
    { payload, context }: Run,
    hooks: HandlerHooks,
    outcome: Outcome,
  ): Promise<readonly HookError[]> {
    const { timeoutGrace } = this.#deps.options;
    const afterHooks = new AfterHooks(hooks, outcome, payload, context);
    await waitAtMost(this.#deps.clock, timeoutGrace, afterHooks.run());
    if (afterHooks.current === undefined) return afterHooks.errors;
    const error = new ChronosError(
      'JOB_TIMEOUT',
      `the hooks took longer than timeoutGrace (${timeoutGrace} ms)`,
    );
    return [...afterHooks.errors, { hook: afterHooks.current, error }];
  }
}

function timeoutError(ms: number): ChronosError {
  return new ChronosError('JOB_TIMEOUT', `the attempt exceeded its timeout of ${ms} ms`);
}
