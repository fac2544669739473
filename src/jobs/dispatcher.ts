import { randomUUID } from 'node:crypto';
import { type DispatchOptions, resolveDispatchOptions } from '../config/dispatch-options.js';
import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError, toError } from '../domain/errors.js';
import { assertTaskType } from '../domain/identifiers.js';
import { type JobDocument, newJob } from '../domain/job/job.js';
import { anything, object, parse } from '../domain/validation.js';
import { isHandlerClass, taskTypeOf } from '../handlers/handler-function.js';
import type { HandlerRegistry } from '../handlers/handler-registry.js';
import { applySchema, checkedPayload } from '../handlers/payload.js';
import { isTracing, traceSend } from '../runtime/tracing.js';
import { newJobId } from '../store/bson.js';
import type { BulkResult } from '../store/jobs/enqueue.js';
import { isResultUnknown } from '../store/mongo-errors.js';
import type { Store } from '../store/store.js';
import type { WorkerEngine } from '../worker/engine.js';
import type { AdHoc, DispatchRequest } from './dispatch-types.js';
import type { JobActions } from './job-actions.js';
import { JobHandle } from './job-handle.js';

/** Jobs per insert of `dispatchMany`: memory stays bounded however many there are. */
const CHUNK = 1000;

/** These fields and no others: a `delay` beside them instead of in `options` would be ignored silently. */
const requestShape = object<{ taskType: unknown; payload: unknown; options: unknown }>({
  taskType: anything,
  payload: anything,
  options: anything,
});

/** What became of one job of `dispatchMany`: stored, a duplicate, or refused (`id` is null if it was invalid). */
export type DispatchResult = BulkResult | { id: null; error: Error };

export interface DispatcherDeps {
  store: Pick<Store, 'enqueue' | 'enqueueMany'>;
  clock: Clock;
  registry: HandlerRegistry;
  options: Pick<ResolvedOptions, 'timezone' | 'maxPayloadBytes'>;
}

/** Validates new jobs completely before anything is written, stores them, and wakes the worker of this process. */
export class Dispatcher {
  readonly #deps: DispatcherDeps;
  readonly #jobs: JobActions;
  readonly #engine: Pick<WorkerEngine, 'wake'>;

  constructor(deps: DispatcherDeps, jobs: JobActions, engine: Pick<WorkerEngine, 'wake'>) {
    this.#deps = deps;
    this.#jobs = jobs;
    this.#engine = engine;
  }

  /** `target` is a task type or a handler class; a class, or a handler among the options, is registered here. */
  async dispatch(
    target: unknown,
    payload?: unknown,
    options: DispatchOptions & AdHoc<unknown> = {},
  ): Promise<JobHandle> {
    const { store, registry } = this.#deps;
    assertIsObject(options);
    const { handler, ...jobOptions } = options;
    const taskType = isHandlerClass(target) ? taskTypeOf(target) : target;
    if (taskType !== target) registry.register(target);
    if (handler !== undefined) registry.register(taskType, handler);

    const prepared = await this.#prepare(taskType, payload, jobOptions);
    const enqueue = () => store.enqueue(prepared);
    const enqueued = isTracing() ? traceSend([prepared], enqueue) : enqueue();
    const { job, duplicate } = await enqueued.catch(explainUnknownResult(prepared._id));
    if (!duplicate) this.#engine.wake();
    return new JobHandle(job._id, duplicate, this.#jobs, this.#deps);
  }

  /** Stores the jobs in chunks, one round trip each; the results are in the order of the requests. */
  async dispatchMany(
    requests: Iterable<DispatchRequest> | AsyncIterable<DispatchRequest>,
  ): Promise<DispatchResult[]> {
    assertIsIterable(requests);
    const results: DispatchResult[] = [];
    let chunk: (JobDocument | Error)[] = [];
    for await (const request of requests) {
      chunk.push(await this.#prepareRequest(request).catch(toError));
      if (chunk.length < CHUNK) continue;
      results.push(...(await this.#storeChunk(chunk)));
      chunk = [];
    }
    return results.concat(await this.#storeChunk(chunk));
  }

  async #prepareRequest(request: DispatchRequest): Promise<JobDocument> {
    const { taskType, payload, options = {} } = parse(requestShape, request, 'request', 'INVALID_ARGUMENT');
    return this.#prepare(taskType, payload, options);
  }

  async #prepare(taskType: unknown, payload: unknown, options: unknown): Promise<JobDocument> {
    const { clock, registry, options: limits } = this.#deps;
    assertTaskType(taskType);
    registry.freezeDefinition(taskType);
    const { payload: defaultPayload = null, ...defaults } = registry.defaultsOf(taskType) ?? {};
    const resolved = resolveDispatchOptions(
      { ...withoutNulls(defaults), ...(options as DispatchOptions) },
      limits.timezone,
    );
    const storedPayload = checkedPayload(
      `the payload for '${taskType}'`,
      payload === undefined ? defaultPayload : payload,
      limits.maxPayloadBytes,
    );
    // The payload is stored as it is, not as the schema transforms it: it is checked again before execution.
    const schema = registry.get(taskType)?.options.schema;
    if (schema !== undefined) await applySchema(taskType, schema, storedPayload);
    const now = clock.now();
    return newJob({
      _id: resolved.key === undefined ? newJobId() : `${taskType}#${resolved.key}`,
      taskType,
      queue: resolved.queue,
      priority: resolved.priority,
      payload: storedPayload,
      nextRunAt: resolved.at ?? new Date(now.getTime() + (resolved.delay ?? 0)),
      createdAt: now,
      retries: resolved.retries ?? null,
      timeout: resolved.timeout ?? null,
      maxRunningTime: resolved.maxRunningTime ?? null,
      held: resolved.hold ? { reason: 'dispatched on hold', at: now } : null,
      nonce: randomUUID(),
    });
  }

  async #storeChunk(chunk: readonly (JobDocument | Error)[]): Promise<DispatchResult[]> {
    const jobs = chunk.filter((one): one is JobDocument => !(one instanceof Error));
    const results = (await this.#storeJobs(jobs)).values();
    this.#engine.wake();
    return chunk
      .map((one) => (one instanceof Error ? { id: null, error: one } : results.next().value))
      .filter((result) => result !== undefined);
  }

  async #storeJobs(jobs: readonly JobDocument[]): Promise<DispatchResult[]> {
    if (jobs.length === 0) return [];
    try {
      return await traceSend(jobs, () => this.#deps.store.enqueueMany(jobs));
    } catch (thrown) {
      const error = toError(thrown);
      return jobs.map(({ _id }) => ({ id: _id, error }));
    }
  }
}

function assertIsObject(options: unknown): void {
  if (typeof options === 'object' && options !== null) return;
  const found = options === null ? 'null' : typeof options;
  throw new ChronosError('INVALID_ARGUMENT', `dispatch() options must be an object, got ${found}`);
}

function assertIsIterable(requests: unknown): void {
  const isIterable =
    typeof requests === 'object' &&
    requests !== null &&
    (Symbol.iterator in requests || Symbol.asyncIterator in requests);
  if (isIterable) return;
  throw new ChronosError(
    'INVALID_ARGUMENT',
    'dispatchMany() takes a list of { taskType, payload, options }, or another iterable of them',
  );
}

/** A definition leaves open what is null. */
function withoutNulls(defaults: object): object {
  return Object.fromEntries(Object.entries(defaults).filter(([, value]) => value !== null));
}

function explainUnknownResult(id: string): (error: unknown) => never {
  return (error) => {
    if (!isResultUnknown(error)) throw error;
    throw new ChronosError(
      'MONGODB_UNREACHABLE',
      `it is not known whether job '${id}' was stored: MongoDB did not answer. Dispatching again is safe with a key`,
      { cause: error },
    );
  };
}
