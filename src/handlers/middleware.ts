import { ChronosError } from '../domain/errors.js';
import type { HandlerFunction, JobContext } from '../domain/job/handler.js';
import { fn, parse } from '../domain/validation.js';

/**
 * Runs around every handler. `next()` calls the handler and resolves to its result, which is the result of the job unless
 * the middleware throws or returns something other than undefined.
 */
export type HandlerMiddleware = (job: JobContext, next: () => Promise<unknown>) => unknown;

/** The handler with the middleware around it; the first one is the outermost. */
export function applyMiddleware(
  run: HandlerFunction<unknown>,
  middleware: readonly HandlerMiddleware[],
): HandlerFunction<unknown> {
  return middleware.reduceRight<HandlerFunction<unknown>>(
    (inner, outer) => (payload, job) =>
      callMiddleware(
        'use()',
        (next) => outer(job, () => next(undefined)),
        () => {
          // The job may have timed out, been cancelled or lost its lock in the meantime.
          job.signal.throwIfAborted();
          return inner(payload, job);
        },
      ),
    run,
  );
}

/**
 * Calls one middleware. What `inner` returns or throws stands, unless the middleware throws or returns something other
 * than undefined: one that only logs an error cannot turn it into a success. Never ends before `inner` does, so that
 * nothing still runs after its attempt is over.
 */
export async function callMiddleware<I, R>(
  kind: 'use()' | 'useDispatch()',
  outer: (next: (input: I) => Promise<R>) => unknown,
  inner: (input: I) => R | Promise<R>,
): Promise<R> {
  let result: Promise<R> | undefined;
  let hasEnded = false;
  const callInner = async (input: I): Promise<R> => inner(input);
  const next = (input: I): Promise<R> => {
    if (result === undefined && !hasEnded) return (result = handled(callInner(input)));
    const when = result === undefined ? 'after the middleware had ended' : 'twice';
    return handled(Promise.reject(misuse(kind, `called next() ${when}: call it once, and await it`)));
  };
  try {
    const returned = await outer(next);
    if (returned !== undefined) return returned as R;
    if (result !== undefined) return await result;
    throw misuse(kind, 'returned without calling next(): call it, throw, or return a result');
  } finally {
    hasEnded = true;
    await result?.catch(() => undefined);
  }
}

export function assertMiddleware(kind: 'use()' | 'useDispatch()', middleware: unknown): void {
  parse(fn(), middleware, `${kind}: the middleware`, 'INVALID_ARGUMENT');
}

/** If the middleware does not await the promise, a rejection must not end the process. */
function handled<R>(promise: Promise<R>): Promise<R> {
  promise.catch(() => undefined);
  return promise;
}

function misuse(kind: string, what: string): ChronosError {
  return new ChronosError('MIDDLEWARE_INVALID', `a middleware of ${kind} ${what}`);
}
