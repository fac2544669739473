import type { DispatchOptions } from './config/dispatch-options.js';
import type { ResolvedOptions } from './config/options.js';
import {
  Dispatcher,
  type DispatcherParts,
  type DispatchRequest,
  type DispatchResult,
} from './dispatch/dispatcher.js';
import type { JobHandle } from './dispatch/job-handle.js';
import type { AdHoc } from './dispatch/typed-dispatch.js';
import { ChronosError } from './domain/errors.js';
import type { Lifetime } from './lifetime.js';
import type { Definitions } from './schedules/definitions.js';
import { isHandlerClass, taskTypeOf, type HandlerRegistry } from './worker/handler-registry.js';

export interface DispatchingParts {
  lifetime: Lifetime;
  options: ResolvedOptions;
  registry: HandlerRegistry;
  definitions: Definitions;
  cancel: DispatcherParts['cancel'];
}

/** Dispatches by task type or by class, with whatever connection there is, and registers handlers that come along. */
export class Dispatching {
  readonly #parts: DispatchingParts;

  constructor(parts: DispatchingParts) {
    this.#parts = parts;
  }

  async dispatch(
    target: unknown,
    payload: unknown,
    options: (DispatchOptions & AdHoc<unknown>) | undefined,
  ): Promise<JobHandle> {
    if (options !== undefined && (typeof options !== 'object' || options === null)) {
      throw new ChronosError('INVALID_ARGUMENT', `dispatch options must be an object, got ${typeof options}`);
    }
    const { registry } = this.#parts;
    const { handler, ...rest } = options ?? {};
    const byClass = isHandlerClass(target);
    const taskType = byClass ? taskTypeOf(target) : target;
    if (byClass) registry.register(taskType, target);
    if (handler !== undefined) registry.register(taskType, handler);
    return (await this.#dispatcher()).dispatch({ taskType: taskType as string, payload, options: rest });
  }

  async dispatchMany(
    requests: Iterable<DispatchRequest> | AsyncIterable<DispatchRequest>,
  ): Promise<DispatchResult[]> {
    return (await this.#dispatcher()).dispatchMany(requests);
  }

  async #dispatcher(): Promise<Dispatcher> {
    const { lifetime, options, registry, definitions, cancel } = this.#parts;
    const { store, clock, engine, refreshClock } = await lifetime.connect();
    await refreshClock();
    return new Dispatcher({
      store,
      clock,
      timezone: options.timezone,
      cancel,
      nudge: () => {
        engine.nudge();
      },
      registry,
      onDispatch: (taskType) => {
        definitions.freeze(taskType);
      },
      options,
    });
  }
}
