import type {
  ErrorHook,
  Filter,
  Hook,
  ResolvedHandlerOptions,
  SuccessHook,
} from '../config/handler-options.js';
import { toError } from '../domain/errors.js';
import type { HandlerFunction, JobContext } from '../domain/job/handler.js';
import type { Outcome } from '../domain/job/outcome.js';

/** The filters and hooks of a handler and of the definition that runs it. */
export interface HandlerHooks {
  readonly when: readonly Filter[];
  readonly skip: readonly Filter[];
  readonly before: readonly Hook[];
  readonly onSuccess: readonly SuccessHook[];
  readonly onError: readonly ErrorHook[];
  readonly after: readonly Hook[];
}

/**
 * The hooks of a definition around those of the handler that it runs: the definition's filters and `before` hooks come
 * first, its other hooks last. Undefined if there are none.
 */
export function combineHooks(
  own: Pick<ResolvedHandlerOptions, keyof HandlerHooks>,
  defined: Partial<HandlerHooks> = {},
): HandlerHooks | undefined {
  const hooks: HandlerHooks = {
    when: [...(defined.when ?? []), ...(own.when ?? [])],
    skip: [...(defined.skip ?? []), ...(own.skip ?? [])],
    before: [...(defined.before ?? []), ...(own.before ?? [])],
    onSuccess: [...(own.onSuccess ?? []), ...(defined.onSuccess ?? [])],
    onError: [...(own.onError ?? []), ...(defined.onError ?? [])],
    after: [...(own.after ?? []), ...(defined.after ?? [])],
  };
  return Object.values(hooks).some((list: readonly unknown[]) => list.length > 0) ? hooks : undefined;
}

/** The handler with the `before` hooks in front of it. An error of a hook is the error of the attempt. */
export function runAfter(before: readonly Hook[], run: HandlerFunction<unknown>): HandlerFunction<unknown> {
  if (before.length === 0) return run;
  return async (payload, job) => {
    for (const hook of before) {
      await hook(payload, job);
      // The job may have timed out, been cancelled or lost its lock during the hook.
      job.signal.throwIfAborted();
    }
    return run(payload, job);
  };
}

/** Why a filter skips the job; undefined if it may run: every `when` returns true and every `skip` false. */
export async function findSkipReason(
  { when, skip }: HandlerHooks,
  payload: unknown,
  job: JobContext,
): Promise<string | undefined> {
  for (const [index, filter] of when.entries()) {
    if (!(await filter(payload, job))) return `${filterName('when', filter, index)} is false`;
  }
  for (const [index, filter] of skip.entries()) {
    if (await filter(payload, job)) return `${filterName('skip', filter, index)} is true`;
  }
  return undefined;
}

export interface HookError {
  readonly hook: string;
  readonly error: Error;
}

/** Runs `onSuccess` or `onError`, then `after`. If a hook throws, the others still run and the outcome stays. */
export class AfterHooks {
  readonly errors: HookError[] = [];
  readonly #calls: [hook: string, call: () => unknown][] = [];
  #current: string | undefined;

  constructor(hooks: HandlerHooks, outcome: Outcome, payload: unknown, job: JobContext) {
    const add = (hook: string, call: () => unknown): unknown => this.#calls.push([hook, call]);
    if (outcome.kind === 'completed') {
      for (const hook of hooks.onSuccess) add('onSuccess', () => hook(payload, job, outcome.result));
    } else if (outcome.kind === 'failed' || outcome.kind === 'retry') {
      for (const hook of hooks.onError) add('onError', () => hook(outcome.error, payload, job));
    }
    for (const hook of hooks.after) add('after', () => hook(payload, job));
  }

  /** The name of the hook that is running. */
  get current(): string | undefined {
    return this.#current;
  }

  async run(): Promise<void> {
    for (const [hook, call] of this.#calls) {
      this.#current = hook;
      try {
        await call();
      } catch (thrown) {
        this.errors.push({ hook, error: toError(thrown) });
      }
    }
    this.#current = undefined;
  }
}

function filterName(kind: string, filter: Filter, index: number): string {
  return filter.name === '' ? `${kind}() number ${index + 1}` : `${kind}(${filter.name})`;
}
