import { resolveHandlerOptions, type ResolvedHandlerOptions } from '../config/handler-options.js';
import { ChronosError } from '../domain/errors.js';
import { checkTaskType } from '../domain/names.js';
import type { Around } from './around.js';
import type { HandlerFunction } from './handler.js';

/** What a definition adds to the task type that has its name. */
export interface DefinedTask {
  readonly options: ResolvedHandlerOptions;
  readonly around: Around;
  /** What a dispatch by this name leaves open. */
  readonly defaults: TaskDefaults;
  /** The task type whose handler it runs; undefined when it has its own name. */
  readonly handledBy: string | undefined;
  /** False where its jobs are not meant to run: they wait for a process elsewhere. */
  readonly isServed: boolean;
}

export interface TaskDefaults {
  readonly payload: unknown;
  readonly queue: string | null;
  readonly priority: number;
  readonly maxRunningTime: number | null;
}

export interface RegisteredHandler {
  readonly run: HandlerFunction<unknown>;
  readonly options: ResolvedHandlerOptions;
  readonly around?: Around;
  readonly defaults?: TaskDefaults;
}

interface Entry extends RegisteredHandler {
  readonly source: unknown;
  /** Comes with Chronos: a handler of the same name takes its place. */
  readonly builtIn: boolean;
}

/** The handlers of this process by task type. A Map: names like `constructor` are nothing special in it. */
export class HandlerRegistry {
  readonly #entries = new Map<string, Entry>();
  readonly #defined = new Map<string, DefinedTask>();
  /** What `get` has put together; every job asks several times. */
  readonly #resolved = new Map<string, RegisteredHandler | undefined>();
  #onChange: () => void = () => undefined;

  get taskTypes(): string[] {
    const own = [...this.#entries.keys()].filter(
      (taskType) => this.#defined.get(taskType)?.isServed !== false,
    );
    const borrowed = [...this.#defined].filter(
      ([name, { isServed }]) =>
        isServed && !this.#entries.has(name) && this.#entries.has(this.#handlerOf(name)),
    );
    return [...own, ...borrowed.map(([name]) => name)];
  }

  /** Whether the application has handlers here, besides the built-in ones. */
  get isUsed(): boolean {
    return this.#defined.size > 0 || [...this.#entries.values()].some(({ builtIn }) => !builtIn);
  }

  /** Calls back after each new handler. */
  onChange(callback: () => void): void {
    this.#onChange = callback;
  }

  get(taskType: string): RegisteredHandler | undefined {
    if (!this.#resolved.has(taskType)) this.#resolved.set(taskType, this.#resolve(taskType));
    return this.#resolved.get(taskType);
  }

  #resolve(taskType: string): RegisteredHandler | undefined {
    const defined = this.#defined.get(taskType);
    const entry = this.#entries.get(this.#handlerOf(taskType));
    if (entry === undefined || defined === undefined) return entry;
    const { around, defaults, options } = defined;
    return { run: entry.run, around, defaults, options: { ...entry.options, ...options } };
  }

  /** Whether or not this process has a handler for it. */
  defaultsOf(taskType: string): TaskDefaults | undefined {
    return this.#defined.get(taskType)?.defaults;
  }

  #changed(): void {
    this.#resolved.clear();
    this.#onChange();
  }

  /** Adds what a definition says; its handler may be registered before or after. */
  define(taskType: string, task: DefinedTask): void {
    if (task.handledBy !== undefined && task.handledBy !== taskType && this.#entries.has(taskType)) {
      throw taken(taskType);
    }
    this.#defined.set(taskType, task);
    this.#changed();
  }

  /** The task type whose handler runs jobs of this one: a definition may run another, which may be a definition too. */
  #handlerOf(taskType: string): string {
    const seen = new Set<string>();
    let name = taskType;
    for (
      let next = this.#defined.get(name)?.handledBy;
      next !== undefined && !seen.has(next);
      next = this.#defined.get(name)?.handledBy
    ) {
      seen.add(next);
      name = next;
    }
    return name;
  }

  registerBuiltIn(taskType: string, run: HandlerFunction<unknown>): void {
    if (this.#entries.has(taskType)) return;
    this.#entries.set(taskType, { run, options: {}, source: run, builtIn: true });
    this.#resolved.clear();
  }

  /** Registering the same handler twice is fine, its options may change; another one under a taken name is an error. */
  register(taskType: unknown, handler: unknown, options?: unknown): void {
    checkTaskType(taskType);
    const known = this.#entries.get(taskType);
    if (known !== undefined && known.source === handler && options === undefined) return;
    const borrowed = this.#defined.get(taskType)?.handledBy;
    if (borrowed !== undefined && borrowed !== taskType) throw taken(taskType);
    if (known !== undefined && !known.builtIn && known.source !== handler) throw taken(taskType);
    const entry = {
      run: toFunction(taskType, handler),
      options: resolveHandlerOptions(taskType, options ?? {}),
      source: handler,
      builtIn: false,
    };
    this.#entries.set(taskType, entry);
    this.#changed();
  }
}

function taken(taskType: string): ChronosError {
  return new ChronosError(
    'HANDLER_EXISTS',
    `a different handler is registered for '${taskType}' already. All jobs of a task type run the same one: register it once and pass what differs as payload; tell two classes of one name apart by a static taskType`,
  );
}

/** The task type of a class: its static `taskType`, else its name. */
export function taskTypeOf(handlerClass: unknown): string {
  const { taskType, name } = handlerClass as { taskType?: unknown; name?: unknown };
  const type = taskType ?? name;
  if (typeof type !== 'string' || type === '') {
    throw new ChronosError(
      'HANDLER_INVALID',
      'a handler class needs a name or a static taskType; this one has neither',
    );
  }
  return type;
}

/** Looked for in this order: a function, a static `handle`, an instance's `handle`, an instance's `execute`. */
function toFunction(taskType: string, handler: unknown): HandlerFunction<unknown> {
  if (typeof handler === 'function' && !isHandlerClass(handler)) {
    if (!isClassSyntax(handler)) return handler as HandlerFunction<unknown>;
  } else if (hasMethod(handler, 'handle')) {
    // A class with a static `handle`, or an object: called on it, so that `this` is what its author expects.
    return (payload, job) => handler.handle(payload, job);
  } else if (typeof handler === 'function') {
    return fromInstances(handler as new () => unknown);
  }
  throw new ChronosError(
    'HANDLER_INVALID',
    `the handler for '${taskType}' must be a function, a class with handle(payload, job) (static or not) or execute(job), or an object with handle(payload, job)`,
  );
}

function fromInstances(handlerClass: new () => unknown): HandlerFunction<unknown> {
  return async (payload, job) => {
    const instance = new handlerClass();
    if (hasMethod(instance, 'handle')) return instance.handle(payload, job);
    if (hasMethod(instance, 'execute') && (await instance.execute(job)) !== false) return undefined;
    throw new ChronosError('JOB_RETURNED_FALSE', `execute() of '${job.taskType}' returned false`);
  };
}

/** True for what `dispatch` and `registerHandler` take as a class instead of a name. */
export function isHandlerClass(value: unknown): boolean {
  if (typeof value !== 'function') return false;
  const prototype: unknown = value.prototype;
  return hasMethod(value, 'handle') || hasMethod(prototype, 'handle') || hasMethod(prototype, 'execute');
}

function isClassSyntax(value: object): boolean {
  return /^class\b/.test(Function.prototype.toString.call(value));
}

function hasMethod<M extends string>(
  value: unknown,
  method: M,
): value is Record<M, (...args: unknown[]) => unknown> {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    typeof (value as Record<string, unknown>)[method] === 'function'
  );
}
