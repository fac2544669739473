import { type ResolvedHandlerOptions, resolveHandlerOptions } from '../config/handler-options.js';
import type { ResolvedOptions } from '../config/options.js';
import { inheritedEnvironment } from '../config/process-env.js';
import { ChronosError } from '../domain/errors.js';
import { assertTaskType } from '../domain/identifiers.js';
import type { RetryPolicy } from '../domain/job/backoff.js';
import { type EventChannel, eventHandler } from './built-in/event-channel.js';
import { shellHandler } from './built-in/shell.js';
import { urlHandler } from './built-in/url.js';
import { isHandlerClass, taskTypeOf, toHandlerFunction } from './handler-function.js';
import type { HandlerFunction } from './handler.js';
import type { HandlerHooks } from './hooks.js';

/** What a definition adds to the task type of its name. */
export interface DefinedTask {
  readonly options: ResolvedHandlerOptions;
  readonly hooks: HandlerHooks;
  readonly defaults: TaskDefaults;
  /** The task type whose handler it runs; undefined when it has a handler of its own. */
  readonly handledBy: string | undefined;
  /** False if this process must not run its jobs; they wait for another process. */
  readonly isServed: boolean;
}

/** Values for a dispatch by a definition's name that leaves them out. */
export interface TaskDefaults {
  readonly payload: unknown;
  readonly queue: string | null;
  readonly priority: number;
  readonly maxRunningTime: number | null;
}

export interface RegisteredHandler {
  readonly run: HandlerFunction<unknown>;
  readonly options: ResolvedHandlerOptions;
  readonly hooks?: HandlerHooks;
  readonly defaults?: TaskDefaults;
}

/** How this process runs jobs of one task type. A job may override `timeout` and `retries`. Times in milliseconds. */
export interface TaskSettings {
  readonly lease: number;
  readonly timeout: number;
  readonly retries: RetryPolicy;
  /** Each outcome is written alone, before its slot is free again. */
  readonly settlesImmediately: boolean;
}

interface Entry extends RegisteredHandler {
  /** The function, class or object that was registered. */
  readonly source: unknown;
  /** Comes with Chronos; the application may register its own handler under the same name. */
  readonly builtIn: boolean;
}

/** The handlers of this process by task type. Maps, because names like `constructor` exist on every object. */
export class HandlerRegistry {
  readonly #entries = new Map<string, Entry>();
  readonly #defined = new Map<string, DefinedTask>();
  readonly #resolved = new Map<string, Resolved>();
  readonly #defaults: TaskSettings;
  readonly #listeners = new Set<() => void>();
  #definitions: { freeze(name: string): void } | undefined;

  /** `options`: the settings of task types that do not set their own. */
  constructor({
    lockTimeout,
    timeout,
    retries,
  }: Pick<ResolvedOptions, 'lockTimeout' | 'timeout' | 'retries'>) {
    this.#defaults = { lease: lockTimeout, timeout, retries, settlesImmediately: false };
  }

  /** The task types whose jobs this process runs. */
  get taskTypes(): string[] {
    const own = [...this.#entries.keys()].filter(
      (taskType) => this.#defined.get(taskType)?.isServed !== false,
    );
    const borrowed = [...this.#defined].filter(
      ([name, { isServed }]) =>
        isServed && !this.#entries.has(name) && this.#entries.has(this.#findHandlerName(name)),
    );
    return [...own, ...borrowed.map(([name]) => name)];
  }

  /** True if the application registered or defined something, besides the built-in handlers. */
  get isUsed(): boolean {
    return this.#defined.size > 0 || [...this.#entries.values()].some(({ builtIn }) => !builtIn);
  }

  get(taskType: string): RegisteredHandler | undefined {
    return this.#resolve(taskType)?.handler;
  }

  /** The Scheduler's options, overridden by those of the handler and the definition. */
  settingsFor(taskType: string): TaskSettings {
    return this.#resolve(taskType)?.settings ?? this.#defaults;
  }

  /** Known even if this process has no handler for the task type. */
  defaultsOf(taskType: string): TaskDefaults | undefined {
    return this.#defined.get(taskType)?.defaults;
  }

  /** Calls the listener after each new handler or definition. Returns a function that unsubscribes. */
  onChange(listener: () => void): () => void {
    const subscription = (): void => {
      listener();
    };
    this.#listeners.add(subscription);
    return () => {
      this.#listeners.delete(subscription);
    };
  }

  /** Definitions take effect when they are frozen; the first dispatch by name freezes one. */
  attachDefinitions(definitions: { freeze(name: string): void }): void {
    this.#definitions = definitions;
  }

  /** Freezes the definition of this name, if there is one. */
  freezeDefinition(name: string): void {
    this.#definitions?.freeze(name);
  }

  registerBuiltIn(taskType: string, run: HandlerFunction<unknown>): void {
    if (this.#entries.has(taskType)) return;
    this.#entries.set(taskType, { run, options: {}, source: run, builtIn: true });
    this.#resolved.clear();
  }

  /** `(taskType, handler, options)`, or `(handlerClass, options)`: then the name of the class is the task type. */
  register(target: unknown, ...rest: [unknown?, unknown?]): void {
    if (isHandlerClass(target)) this.#register(taskTypeOf(target), target, rest[0]);
    else this.#register(target, ...rest);
  }

  /** Registering the same handler again may change its options. A different handler for the same task type is an error. */
  #register(taskType: unknown, handler?: unknown, options?: unknown): void {
    assertTaskType(taskType);
    const known = this.#entries.get(taskType);
    if (known !== undefined && known.source === handler && options === undefined) return;
    const borrowed = this.#defined.get(taskType)?.handledBy;
    if (borrowed !== undefined && borrowed !== taskType) throw handlerExists(taskType);
    if (known !== undefined && !known.builtIn && known.source !== handler) throw handlerExists(taskType);
    const entry = {
      run: toHandlerFunction(taskType, handler),
      options: resolveHandlerOptions(taskType, options ?? {}),
      source: handler,
      builtIn: false,
    };
    this.#entries.set(taskType, entry);
    this.#changed();
  }

  /** Adds a definition. Its handler may be registered before or after. */
  define(taskType: string, task: DefinedTask): void {
    if (task.handledBy !== undefined && task.handledBy !== taskType && this.#entries.has(taskType)) {
      throw handlerExists(taskType);
    }
    this.#defined.set(taskType, task);
    this.#changed();
  }

  #changed(): void {
    this.#resolved.clear();
    for (const listener of this.#listeners) listener();
  }

  /** Cached, because every job asks several times. */
  #resolve(taskType: string): Resolved | undefined {
    const cached = this.#resolved.get(taskType);
    if (cached !== undefined) return cached;
    const entry = this.#entries.get(this.#findHandlerName(taskType));
    if (entry === undefined) return undefined;
    const handler = combine(entry, this.#defined.get(taskType));
    const resolved = { handler, settings: toSettings(handler.options, this.#defaults) };
    this.#resolved.set(taskType, resolved);
    return resolved;
  }

  /** Follows definitions that run another task type, which may be a definition too. Ends if they form a circle. */
  #findHandlerName(taskType: string): string {
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
}

interface Resolved {
  readonly handler: RegisteredHandler;
  readonly settings: TaskSettings;
}

function combine(entry: Entry, defined: DefinedTask | undefined): RegisteredHandler {
  if (defined === undefined) return entry;
  const { hooks, defaults, options } = defined;
  return { run: entry.run, hooks, defaults, options: { ...entry.options, ...options } };
}

function toSettings(options: ResolvedHandlerOptions, defaults: TaskSettings): TaskSettings {
  return {
    lease: options.lease ?? defaults.lease,
    timeout: options.timeout ?? defaults.timeout,
    retries: { ...defaults.retries, ...options.retries },
    settlesImmediately: options.settle === 'immediate',
  };
}

function handlerExists(taskType: string): ChronosError {
  return new ChronosError(
    'HANDLER_EXISTS',
    `a different handler is already registered for '${taskType}'. All jobs of a task type run the same handler: register it once and put what differs into the payload; give classes that share a name different static taskTypes`,
  );
}

/** A registry with the handlers of the options and the built-in ones, which the application may replace. */
export function createHandlerRegistry(options: ResolvedOptions, channel: EventChannel): HandlerRegistry {
  const registry = new HandlerRegistry(options);
  const environment = inheritedEnvironment();
  registry.registerBuiltIn('shell', shellHandler({ files: options.shellFiles, environment }));
  registry.registerBuiltIn('url', urlHandler({ hosts: options.urlHosts }));
  registry.registerBuiltIn('event', eventHandler(channel));
  for (const [taskType, handler] of Object.entries(options.taskHandlers))
    registry.register(taskType, handler);
  return registry;
}
