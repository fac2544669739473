import { randomUUID } from 'node:crypto';
import {
  type DispatchOptions,
  parseDispatchRequest,
  resolveDispatchOptions,
} from '../config/dispatch-options.js';
import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError, describeValue, toError } from '../domain/errors.js';
import { assertTaskType } from '../domain/identifiers.js';
import { type JobDocument, newJob } from '../domain/job/job.js';
import { isThenable, tryOr } from '../domain/language.js';
import { copyOptions, custom, parse } from '../domain/validation.js';
import { isHandlerClass, taskTypeOf } from '../handlers/handler-function.js';
import type { HandlerRegistry } from '../handlers/handler-registry.js';
import { assertMatchesSchema, checkedPayload } from '../handlers/payload.js';
import { traceSend } from '../runtime/tracing.js';
import { newJobId } from '../store/bson.js';
import type { BulkResult } from '../store/jobs/enqueue.js';
import { isResultUnknown } from '../store/mongo-errors.js';
import type { Store } from '../store/store.js';
import type { WorkerEngine } from '../worker/engine.js';
import {
  callDispatchMiddleware,
  type DispatchMiddleware,
  startDispatch,
  type WaitingDispatch,
} from './dispatch-middleware.js';
import type { AdHoc, DispatchRequest } from './task-types.js';
import { type ConnectJobs, JobHandle } from './job-handle.js';

/** Jobs per insert of `dispatchMany`, so that memory stays bounded. */
const CHUNK = 1000;

const requestsShape = custom<Requests>((value) => {
  if (!isIterable(value))
    return `must be an array or another iterable of { taskType, payload, options }, got ${describeValue(value)}`;
  // An array of holes takes no memory, but an error for each of millions of holes would.
  const hole = Array.isArray(value) ? indexOfHole(value) : -1;
  return hole === -1 ? undefined : `must not be a sparse array, but index ${hole} is empty`;
});

type Requests = Iterable<DispatchRequest> | AsyncIterable<DispatchRequest>;

/** The result for one job of `dispatchMany`: stored, a duplicate, or an error (`id` is null if the request is invalid). */
export type DispatchResult = BulkResult | { id: null; error: Error };

interface DispatcherDeps {
  store: Pick<Store, 'enqueue' | 'enqueueMany'>;
  clock: Clock;
  registry: HandlerRegistry;
  options: Pick<ResolvedOptions, 'timezone' | 'maxPayloadBytes'>;
  engine: Pick<WorkerEngine, 'wake'>;
  connectJobs: ConnectJobs;
  /** The first one is the outermost. */
  dispatchMiddleware: readonly DispatchMiddleware[];
}

/** Validates new jobs before anything is written, stores them, and wakes the worker of this process. */
export class Dispatcher {
  readonly #deps: DispatcherDeps;

  constructor(deps: DispatcherDeps) {
    this.#deps = deps;
  }

  /** `target` is a task type or a handler class. Registers the class, or the handler in the options. */
  dispatch(
    target: unknown,
    payload?: unknown,
    options: DispatchOptions & AdHoc<unknown> = {},
  ): Promise<JobHandle> {
    const { registry, dispatchMiddleware } = this.#deps;
    const { handler, ...jobOptions } = copyOptions(options, 'dispatch() options');
    const taskType = isHandlerClass(target) ? taskTypeOf(target) : target;
    if (taskType !== target) registry.register(target);
    if (handler !== undefined) registry.register(taskType, handler);
    if (dispatchMiddleware.length === 0) return this.#dispatch(taskType, payload, jobOptions);
    const request = { taskType, payload, options: jobOptions } as DispatchRequest;
    return callDispatchMiddleware(dispatchMiddleware, request, async (passedOn) => {
      const { taskType, payload, options = {} } = parseDispatchRequest(passedOn);
      return this.#dispatch(taskType, payload, options);
    });
  }

  async #dispatch(taskType: unknown, payload: unknown, options: unknown): Promise<JobHandle> {
    const { store, engine, connectJobs } = this.#deps;
    const prepared = await this.#prepare(taskType, payload, options);
    const enqueued = traceSend([prepared], () => store.enqueue(prepared));
    const { job, duplicate } = await enqueued.catch(explainUnknownResult(prepared._id));
    if (!duplicate) engine.wake();
    return new JobHandle(job._id, duplicate, connectJobs);
  }

  /** Stores the jobs in chunks, each in one round trip. The results have the order of the requests. */
  async dispatchMany(requests: Requests): Promise<DispatchResult[]> {
    const { dispatchMiddleware } = this.#deps;
    parse(requestsShape, requests, 'dispatchMany() requests', 'INVALID_ARGUMENT');
    const prepare = (request: DispatchRequest): Promise<JobDocument> => this.#prepareRequest(request);
    if (dispatchMiddleware.length === 0) {
      return inChunks(
        requests,
        (request) => prepare(request).catch(toError),
        (chunk) => this.#storeChunk(chunk),
      );
    }
    return inChunks<WaitingDispatch>(
      requests,
      (request) => startDispatch(dispatchMiddleware, request, prepare),
      (chunk) => this.#storeWaiting(chunk),
      (chunk, error) => chunk.forEach(({ settle }) => settle(error)),
    );
  }

  async #prepareRequest(request: DispatchRequest): Promise<JobDocument> {
    const { taskType, payload, options = {} } = parseDispatchRequest(request);
    return this.#prepare(taskType, payload, options);
  }

  async #prepare(taskType: unknown, payload: unknown, options: unknown): Promise<JobDocument> {
    const { clock, registry, options: limits } = this.#deps;
    assertTaskType(taskType);
    registry.freezeDefinition(taskType);
    const { payload: defaultPayload = null, ...defaults } = registry.defaultsOf(taskType) ?? {};
    const resolved = resolveDispatchOptions(
      { ...withoutNulls(defaults), ...copyOptions(options as DispatchOptions, 'dispatch options') },
      limits.timezone,
    );
    const storedPayload = checkedPayload(
      `the payload for '${taskType}'`,
      payload === undefined ? defaultPayload : payload,
      limits.maxPayloadBytes,
    );
    // Only a check: the schema is applied again before execution, so the stored payload is its input.
    const schema = registry.get(taskType)?.options.schema;
    if (schema !== undefined) await assertMatchesSchema(taskType, schema, storedPayload);
    const now = clock.now();
    const nextRunAt = resolved.at ?? new Date(now.getTime() + (resolved.delay ?? 0));
    const expiresIn = resolved.expiresIn ?? registry.settingsFor(taskType).expiresIn;
    const job = newJob({
      _id: resolved.key === undefined ? newJobId() : `${taskType}=${resolved.key}`,
      taskType,
      queue: resolved.queue,
      priority: resolved.priority,
      payload: storedPayload,
      nextRunAt,
      createdAt: now,
      retries: resolved.retries ?? null,
      timeout: resolved.timeout ?? null,
      maxRunningTime: resolved.maxRunningTime ?? null,
      userId: resolved.userId ?? null,
      held: resolved.hold ? { reason: 'dispatched on hold', at: now } : null,
      nonce: randomUUID(),
    });
    if (resolved.tags !== undefined) job.tags = [...new Set(resolved.tags)];
    if (expiresIn !== undefined) job.expiresAt = new Date(nextRunAt.getTime() + expiresIn);
    if (resolved.retention !== undefined) job.retention = resolved.retention;
    return job;
  }

  async #storeChunk(chunk: readonly (JobDocument | Error)[]): Promise<DispatchResult[]> {
    const jobs = chunk.filter((one): one is JobDocument => !(one instanceof Error));
    const results = (await this.#storeJobs(jobs)).values();
    this.#deps.engine.wake();
    return chunk
      .map((one) => (one instanceof Error ? { id: null, error: one } : results.next().value))
      .filter((result) => result !== undefined);
  }

  /** Like `#storeChunk`, for requests whose middleware waits. */
  async #storeWaiting(chunk: readonly WaitingDispatch[]): Promise<DispatchResult[]> {
    const passedOn = chunk.filter(({ job }) => job !== undefined);
    const stored = await this.#storeJobs(passedOn.flatMap(({ job }) => job ?? []));
    this.#deps.engine.wake();
    for (const [index, result] of stored.entries()) {
      const handle =
        'error' in result ? result.error : new JobHandle(result.id, result.duplicate, this.#deps.connectJobs);
      passedOn[index]?.settle(handle);
    }
    return Promise.all(
      chunk.map(async ({ job, handle }) => {
        try {
          const { id, duplicate } = await handle;
          return { id, duplicate };
        } catch (thrown) {
          const error = toError(thrown);
          return job === undefined ? { id: null, error } : { id: job._id, error };
        }
      }),
    );
  }

  async #storeJobs(jobs: readonly JobDocument[]): Promise<BulkResult[]> {
    if (jobs.length === 0) return [];
    try {
      return await traceSend(jobs, () => this.#deps.store.enqueueMany(jobs));
    } catch (thrown) {
      const error = toError(thrown);
      return jobs.map(({ _id }) => ({ id: _id, error }));
    }
  }
}

/** Collects what `start` returns and stores it in chunks. `onError`: the source of the requests failed. */
async function inChunks<T>(
  requests: Requests,
  start: (request: DispatchRequest) => Promise<T>,
  store: (chunk: readonly T[]) => Promise<DispatchResult[]>,
  onError: (chunk: readonly T[], error: Error) => void = () => undefined,
): Promise<DispatchResult[]> {
  const results: DispatchResult[] = [];
  let chunk: T[] = [];
  try {
    const add = async (request: DispatchRequest): Promise<void> => {
      chunk.push(await start(request));
      if (chunk.length < CHUNK) return;
      results.push(...(await store(chunk)));
      chunk = [];
    };
    if (isAsyncIterable(requests)) {
      for await (const request of requests) await add(request);
    } else {
      // `for await` would read `then` of each request. If that throws, it is the error of this request only.
      for (const request of requests as Iterable<DispatchRequest | Promise<DispatchRequest>>)
        await add(tryOr(() => isThenable(request), false) ? await request : (request as DispatchRequest));
    }
  } catch (thrown) {
    onError(chunk, toError(thrown));
    throw thrown;
  }
  return results.concat(await store(chunk));
}

function isIterable(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    [Symbol.iterator, Symbol.asyncIterator].some(
      (key) => typeof (value as Record<symbol, unknown>)[key] === 'function',
    )
  );
}

function indexOfHole(list: readonly unknown[]): number {
  for (let index = 0; index < list.length; index++) if (!(index in list)) return index;
  return -1;
}

function isAsyncIterable(requests: Requests): requests is AsyncIterable<DispatchRequest> {
  return typeof (requests as Partial<AsyncIterable<unknown>>)[Symbol.asyncIterator] === 'function';
}

/** Null means that the definition does not set the value. */
function withoutNulls(defaults: object): object {
  return Object.fromEntries(Object.entries(defaults).filter(([, value]) => value !== null));
}

function explainUnknownResult(id: string): (error: unknown) => never {
  return (error) => {
    if (!isResultUnknown(error)) throw error;
    throw new ChronosError(
      'MONGODB_UNREACHABLE',
      `MongoDB did not respond, so job '${id}' may or may not be stored. Dispatching it again is safe if it has a key`,
      { cause: error },
    );
  };
}
