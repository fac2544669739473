import { toError } from '../domain/errors.js';
import type { Outcome } from '../domain/job/outcome.js';
import type { JobContext } from './handler.js';

export type Filter = (payload: unknown, job: JobContext) => boolean | Promise<boolean>;
export type Hook = (payload: unknown, job: JobContext) => unknown;
export type SuccessHook = (payload: unknown, job: JobContext, result: unknown) => unknown;
export type ErrorHook = (error: Error, payload: unknown, job: JobContext) => unknown;

/** The filters and hooks of a definition; they run before and after its handler. */
export interface HandlerHooks {
  readonly when: readonly Filter[];
  readonly skip: readonly Filter[];
  readonly before: readonly Hook[];
  readonly onSuccess: readonly SuccessHook[];
  readonly onError: readonly ErrorHook[];
  readonly after: readonly Hook[];
}

/** Why a filter keeps the job from running; undefined if none does. Every `when` must be true, and no `skip`. */
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

/** Runs `onSuccess` or `onError`, then `after`. A hook that throws changes neither the other hooks nor the outcome. */
export class AfterHooks {
  readonly errors: HookError[] = [];
  readonly #calls: readonly (readonly [hook: string, call: () => unknown])[];
  #current: string | undefined;

  constructor(hooks: HandlerHooks, outcome: Outcome, payload: unknown, job: JobContext) {
    const after = hooks.after.map((hook) => ['after', () => hook(payload, job)] as const);
    if (outcome.kind === 'completed') {
      const { result } = outcome;
      const calls = hooks.onSuccess.map((hook) => ['onSuccess', () => hook(payload, job, result)] as const);
      this.#calls = [...calls, ...after];
    } else if (outcome.kind === 'failed' || outcome.kind === 'retry') {
      const { error } = outcome;
      const calls = hooks.onError.map((hook) => ['onError', () => hook(error, payload, job)] as const);
      this.#calls = [...calls, ...after];
    } else this.#calls = after;
  }

  /** The name of the hook that has not ended yet. */
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
