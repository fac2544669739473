import { toError } from '../domain/errors.js';
import type { Outcome } from '../domain/outcome.js';
import type { JobContext } from './handler.js';

export type Filter = (payload: unknown, job: JobContext) => boolean | Promise<boolean>;
export type Hook = (payload: unknown, job: JobContext) => unknown;
export type SuccessHook = (payload: unknown, job: JobContext, result: unknown) => unknown;
export type ErrorHook = (error: Error, payload: unknown, job: JobContext) => unknown;

/** What a definition puts around its handler. */
export interface Around {
  readonly when: readonly Filter[];
  readonly skip: readonly Filter[];
  readonly before: readonly Hook[];
  readonly onSuccess: readonly SuccessHook[];
  readonly onError: readonly ErrorHook[];
  readonly after: readonly Hook[];
}

/** Why the job must not run now, if a filter says so: every `when` must hold, and no `skip`. */
export async function refusal(
  { when, skip }: Around,
  payload: unknown,
  job: JobContext,
): Promise<string | undefined> {
  for (const [index, filter] of when.entries()) {
    if (!(await filter(payload, job))) return `${nameOf('when', filter, index)} does not hold`;
  }
  for (const [index, filter] of skip.entries()) {
    if (await filter(payload, job)) return `${nameOf('skip', filter, index)} holds`;
  }
  return undefined;
}

/** `onSuccess` or `onError`, then `after`. One that throws is reported, and stops neither the others nor the outcome. */
export async function conclude(
  around: Around,
  outcome: Outcome,
  payload: unknown,
  job: JobContext,
  watch: { begins: (hook: string) => void; failed: (hook: string, error: Error) => void },
): Promise<void> {
  const guarded = async (name: string, hooks: readonly (() => unknown)[]): Promise<void> => {
    for (const hook of hooks) {
      watch.begins(name);
      try {
        await hook();
      } catch (thrown) {
        watch.failed(name, toError(thrown));
      }
    }
  };
  if (outcome.kind === 'completed') {
    const { result } = outcome;
    await guarded(
      'onSuccess',
      around.onSuccess.map((hook) => () => hook(payload, job, result)),
    );
  }
  if (outcome.kind === 'failed' || outcome.kind === 'retry') {
    const { error } = outcome;
    await guarded(
      'onError',
      around.onError.map((hook) => () => hook(error, payload, job)),
    );
  }
  await guarded(
    'after',
    around.after.map((hook) => () => hook(payload, job)),
  );
}

function nameOf(kind: string, filter: Filter, index: number): string {
  return filter.name === '' ? `${kind}() number ${index + 1}` : `${kind}(${filter.name})`;
}
