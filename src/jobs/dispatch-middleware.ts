import { parseDispatchRequest } from '../config/dispatch-options.js';
import { ChronosError, describeValue } from '../domain/errors.js';
import type { JobDocument } from '../domain/job/job.js';
import { callMiddleware } from '../handlers/middleware.js';
import type { DispatchRequest } from './task-types.js';
import { JobHandle } from './job-handle.js';

/**
 * Runs around every dispatch. `next()` stores the job and resolves to its handle; `next(request)` stores a changed request
 * instead. The handle is the result of the dispatch, unless the middleware throws or returns another handle. Requests are
 * validated after all middleware.
 */
export type DispatchMiddleware = (
  request: Readonly<DispatchRequest>,
  next: (request?: Readonly<DispatchRequest>) => Promise<JobHandle>,
) => unknown;

/** Passes the request through the middleware, the first one outermost, to `store`. */
export async function callDispatchMiddleware(
  middleware: readonly DispatchMiddleware[],
  input: DispatchRequest,
  store: (request: DispatchRequest) => Promise<JobHandle>,
): Promise<JobHandle> {
  const request = { options: {}, ...parseDispatchRequest(input) } as DispatchRequest;
  const call = middleware.reduceRight<typeof store>(
    (inner, outer) => (passedOn) =>
      callMiddleware(
        'useDispatch()',
        async (next) => assertHandle(await outer(passedOn, (changed = passedOn) => next(changed))),
        inner,
      ),
    store,
  );
  return call(request);
}

/** A request of `dispatchMany` whose middleware waits in `next()` until the whole chunk is stored. */
export interface WaitingDispatch {
  /** Undefined if the middleware has ended without passing a valid request on. */
  readonly job: JobDocument | undefined;
  /** Ends the wait. */
  readonly settle: (stored: JobHandle | Error) => void;
  /** Settled when all middleware has ended. */
  readonly handle: Promise<JobHandle>;
}

/** Resolves when the middleware has passed the request on to `prepare`, or has ended without doing so. */
export function startDispatch(
  middleware: readonly DispatchMiddleware[],
  request: DispatchRequest,
  prepare: (request: DispatchRequest) => Promise<JobDocument>,
): Promise<WaitingDispatch> {
  return new Promise((onReady) => {
    const handle = callDispatchMiddleware(middleware, request, async (passedOn) => {
      const job = await prepare(passedOn);
      return new Promise<JobHandle>((resolve, reject) => {
        const settle = (stored: JobHandle | Error): void =>
          stored instanceof Error ? reject(stored) : resolve(stored);
        onReady({ job, settle, handle });
      });
    });
    const onEnd = (): void => onReady({ job: undefined, settle: () => undefined, handle });
    handle.then(onEnd, onEnd);
  });
}

/** A middleware returns a handle or nothing. */
function assertHandle(returned: unknown): JobHandle | undefined {
  if (returned === undefined || returned instanceof JobHandle) return returned;
  throw new ChronosError(
    'MIDDLEWARE_INVALID',
    `a middleware of useDispatch() must return what next() resolves to, or nothing, got ${describeValue(returned)}`,
  );
}
