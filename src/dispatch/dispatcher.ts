import { randomUUID } from 'node:crypto';
import { checkRequest } from '../config/call-options.js';
import { resolveDispatchOptions, type DispatchOptions } from '../config/dispatch-options.js';
import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError, toError } from '../domain/errors.js';
import { newJob, type JobDocument } from '../domain/job.js';
import { checkTaskType } from '../domain/names.js';
import { isTracing, traceSend } from '../runtime/tracing.js';
import { newJobId } from '../store/bson.js';
import type { BulkResult } from '../store/enqueue.js';
import { isUncertain } from '../store/faults.js';
import type { Store } from '../store/store.js';
import { applySchema } from '../worker/payload-schema.js';
import type { HandlerRegistry } from '../worker/handler-registry.js';
import { checkedPayload } from './checked-payload.js';
import { JobHandle, type HandleParts } from './job-handle.js';

const CHUNK = 1000;

/** One job of `dispatchMany`. */
export interface DispatchRequest {
  taskType: string;
  payload?: unknown;
  options?: DispatchOptions;
}

/** What became of a job of `dispatchMany`: stored, there already, or refused (`id` is null when it never had one). */
export type DispatchResult = BulkResult | { id: null; error: Error };

export interface DispatcherParts extends HandleParts {
  store: Pick<Store, 'enqueue' | 'enqueueMany' | 'move' | 'findJob'>;
  clock: Clock;
  registry: HandlerRegistry;
  /** Tells that a task type is dispatched: a definition of that name has to be complete then. */
  onDispatch: (taskType: string) => void;
  options: Pick<ResolvedOptions, 'timezone' | 'maxPayloadBytes'>;
}

/** Checks what is dispatched, completely and before anything is written, and stores it. */
export class Dispatcher {
  readonly #parts: DispatcherParts;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
  }

  async dispatch(request: DispatchRequest): Promise<JobHandle> {
    const { store, nudge } = this.#parts;
    const draft = await this.#prepare(request);
    const stored = isTracing() ? traceSend([draft], () => store.enqueue(draft)) : store.enqueue(draft);
    const { job, duplicate } = await stored.catch(explainUncertainty(draft._id));
    if (!duplicate) nudge();
    return new JobHandle(job._id, duplicate, this.#parts);
  }

  /** In chunks, one round trip each, so that memory stays flat; each job is reported on its own, in order. */
  async dispatchMany(
    requests: Iterable<DispatchRequest> | AsyncIterable<DispatchRequest>,
  ): Promise<DispatchResult[]> {
    const results: DispatchResult[] = [];
    let chunk: (JobDocument | Error)[] = [];
    if (typeof requests !== 'object' || !(Symbol.iterator in requests || Symbol.asyncIterator in requests)) {
      throw new ChronosError(
        'INVALID_ARGUMENT',
        'dispatchMany() takes a list of { taskType, payload, options }, or anything that can be iterated',
      );
    }
    for await (const request of requests) {
      chunk.push(await this.#prepare(request).catch(toError));
      if (chunk.length < CHUNK) continue;
      results.push(...(await this.#store(chunk)));
      chunk = [];
    }
    return results.concat(await this.#store(chunk));
  }

  async #store(chunk: readonly (JobDocument | Error)[]): Promise<DispatchResult[]> {
    const { store, nudge } = this.#parts;
    const good = chunk.filter((one): one is JobDocument => !(one instanceof Error));
    const stored =
      good.length === 0
        ? []
        : await traceSend(good, () => store.enqueueMany(good)).catch((thrown: unknown): DispatchResult[] => {
            const error = toError(thrown);
            return good.map(({ _id }) => ({ id: _id, error }));
          });
    nudge();
    const inOrder = stored.values();
    return chunk
      .map((one) => (one instanceof Error ? { id: null, error: one } : inOrder.next().value))
      .filter((one) => one !== undefined);
  }

  async #prepare(request: DispatchRequest): Promise<JobDocument> {
    checkRequest(request);
    const { taskType, options = {} } = request;
    checkTaskType(taskType);
    const { clock, options: limits, registry, onDispatch } = this.#parts;
    onDispatch(taskType);
    const { payload: usual = null, ...defined } = registry.defaultsOf(taskType) ?? {};
    const payload = request.payload === undefined ? usual : request.payload;
    const resolved = resolveDispatchOptions({ ...withoutNull(defined), ...options }, limits.timezone);
    const copy = checkedPayload(`the payload for '${taskType}'`, payload, limits.maxPayloadBytes);
    const schema = registry.get(taskType)?.options.schema;
    // The input is stored, not what the schema makes of it: it is checked again before execution.
    if (schema !== undefined) await applySchema(taskType, schema, copy);
    const now = clock.now();
    return newJob({
      _id: resolved.key === undefined ? newJobId() : `${taskType}#${resolved.key}`,
      taskType,
      queue: resolved.queue,
      priority: resolved.priority,
      payload: copy,
      nextRunAt: resolved.at ?? new Date(now.getTime() + (resolved.delay ?? 0)),
      createdAt: now,
      retries: resolved.retries ?? null,
      timeout: resolved.timeout ?? null,
      maxRunningTime: resolved.maxRunningTime ?? null,
      held: resolved.hold ? { reason: 'dispatched on hold', at: now } : null,
      nonce: randomUUID(),
    });
  }
}

function withoutNull(options: object): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== null));
}

function explainUncertainty(id: string): (error: unknown) => never {
  return (error) => {
    if (!isUncertain(error)) throw error;
    throw new ChronosError(
      'MONGODB_UNREACHABLE',
      `it is not known whether job '${id}' was stored: MongoDB did not answer. Dispatching again is safe with a key`,
      { cause: error },
    );
  };
}
