import { type ResolvedHandlerOptions, resolveHandlerOptions } from '../config/handler-options.js';
import type { ResolvedOptions } from '../config/options.js';
import { inheritedEnvironment } from '../config/process-env.js';
import { ChronosError } from '../domain/errors.js';
import { assertTaskType } from '../domain/identifiers.js';
import type { HandlerRetries } from '../domain/job/backoff.js';
import type { Retention } from '../domain/job/job.js';
import { type EventChannel, eventHandler } from './built-in/event-channel.js';
import { shellHandler } from './built-in/shell.js';
import { urlHandler } from './built-in/url.js';
import { isHandlerClass, taskTypeOf, toHandlerFunction } from './handler-function.js';
import type { HandlerFunction } from '../domain/job/handler.js';
import { combineHooks, type HandlerHooks, runAfter } from './hooks.js';
import { applyMiddleware, assertMiddleware, type HandlerMiddleware } from './middleware.js';

/** What a definition adds to the task type with its name. */
export interface DefinedTask {
  readonly options: ResolvedHandlerOptions;
  readonly hooks: HandlerHooks;
  readonly defaults: TaskDefaults;
  /** The task type whose handler runs its jobs; undefined if the definition has its own handler. */
  readonly handledBy: string | undefined;
  /** False if this process must not run its jobs; they wait for another process. */
  readonly isServed: boolean;
  /** At most one of its jobs runs at a time. */
  readonly isSingleInstance: boolean;
}

/** Used when a definition is dispatched by name without these values. */
export interface TaskDefaults {
  readonly payload: unknown;
  readonly queue: string | null;
  readonly priority: number;
  readonly maxRunningTime: number | null;
  readonly expiresIn: number | null;
}

/** A handler with the options and hooks of the definition that runs it, if any. */
export interface RegisteredHandler {
  /** Middleware around the `before` hooks and the handler. */
  readonly run: HandlerFunction<unknown>;
  readonly options: ResolvedHandlerOptions;
  /** Undefined if there are none. */
  readonly hooks: HandlerHooks | undefined;
  readonly settings: TaskSettings;
}

/** How this process runs jobs of one task type. A job may override `timeout` and `retries`. Times in milliseconds. */
export interface TaskSettings {
  readonly lease: number;
  readonly timeout: number;
  readonly retries: HandlerRetries;
  /** Undefined: its jobs do not expire, unless they have an expiry of their own. */
  readonly expiresIn: number | undefined;
  /** Undefined: the Scheduler's retention applies. */
  readonly retention: Partial<Retention> | undefined;
  /** Each outcome is written alone, before its slot is free again. */
  readonly settlesImmediately: boolean;
}

interface Entry extends Pick<RegisteredHandler, 'run' | 'options'> {
  /** The function, class or object that was registered. */
  readonly source: unknown;
  /** The application may replace a built-in handler. */
  readonly builtIn: boolean;
}

/** The handlers of this process by task type. Maps, because names like `constructor` exist on every object. */
export class HandlerRegistry {
  readonly #entries = new Map<string, Entry>();
  readonly #defined = new Map<string, DefinedTask>();
  readonly #singleInstances = new Set<string>();
  readonly #resolved = new Map<string, RegisteredHandler>();
  readonly #defaults: TaskSettings;
  readonly #middleware: HandlerMiddleware[] = [];
  readonly #listeners = new Set<() => unknown>();
  #definitions: { freeze(name: string): void } | undefined;

  constructor(options: Pick<ResolvedOptions, 'lockTimeout' | 'timeout' | 'retries'>) {
    const { lockTimeout, timeout, retries } = options;
    this.#defaults = {
      ...{ lease: lockTimeout, timeout, retries, settlesImmediately: false },
      ...{ expiresIn: undefined, retention: undefined },
    };
  }

  /** The task types whose jobs this process runs. */
  get taskTypes(): string[] {
    const names = new Set([...this.#entries.keys(), ...this.#defined.keys()]);
    return [...names].filter(
      (name) => this.#defined.get(name)?.isServed !== false && this.get(name) !== undefined,
    );
  }

  /** The task types of which at most one job runs at a time. */
  get singleInstances(): ReadonlySet<string> {
    return this.#singleInstances;
  }

  /** True if the application registered a handler or a definition. */
  get isUsed(): boolean {
    return this.#defined.size > 0 || [...this.#entries.values()].some(({ builtIn }) => !builtIn);
  }

  /** Cached, because every job calls it several times. */
  get(taskType: string): RegisteredHandler | undefined {
    const cached = this.#resolved.get(taskType);
    if (cached !== undefined) return cached;
    const entry = this.#entries.get(this.#findHandlerName(taskType));
    if (entry === undefined) return undefined;
    const defined = this.#defined.get(taskType);
    const options = { ...entry.options, ...defined?.options };
    const settings: TaskSettings = {
      lease: options.lease ?? this.#defaults.lease,
      timeout: options.timeout ?? this.#defaults.timeout,
      retries: { ...this.#defaults.retries, ...entry.options.retries, ...defined?.options.retries },
      expiresIn: options.expiresIn,
      retention: options.retention,
      settlesImmediately: options.settle === 'immediate',
    };
    const hooks = combineHooks(entry.options, defined?.hooks);
    const run = applyMiddleware(runAfter(hooks?.before ?? [], entry.run), this.#middleware);
    const handler = { run, options, hooks, settings };
    this.#resolved.set(taskType, handler);
    return handler;
  }

  /** Adds middleware inside that of earlier calls. Attempts that have started are not affected. */
  use(middleware: HandlerMiddleware): void {
    assertMiddleware('use()', middleware);
    this.#middleware.push(middleware);
    this.#resolved.clear();
  }

  /** The Scheduler's options, overridden by those of the handler and the definition. */
  settingsFor(taskType: string): TaskSettings {
    return this.get(taskType)?.settings ?? this.#defaults;
  }

  /** Available even if this process has no handler for the task type. */
  defaultsOf(taskType: string): TaskDefaults | undefined {
    return this.#defined.get(taskType)?.defaults;
  }

  /** Calls the listener after each new handler or definition. Returns a function that unsubscribes. */
  onChange(listener: () => unknown): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** A definition takes effect when it is frozen, at the latest by the first dispatch by name. */
  attachDefinitions(definitions: { freeze(name: string): void }): void {
    this.#definitions = definitions;
  }

  /** Freezes the definition of this name, if there is one. */
  freezeDefinition(name: string): void {
    this.#definitions?.freeze(name);
  }

  registerBuiltIn(taskType: string, run: HandlerFunction<unknown>): void {
    this.#entries.set(taskType, { run, options: {}, source: run, builtIn: true });
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
    const runsAnother = (this.#defined.get(taskType)?.handledBy ?? taskType) !== taskType;
    const isDifferent = known !== undefined && !known.builtIn && known.source !== handler;
    if (runsAnother || isDifferent) throw handlerExists(taskType);
    this.#entries.set(taskType, {
      run: toHandlerFunction(taskType, handler),
      options: resolveHandlerOptions(taskType, options ?? {}),
      source: handler,
      builtIn: false,
    });
    this.#changed();
  }

  /** Adds a definition. Its handler may be registered before or after. */
  define(taskType: string, task: DefinedTask): void {
    const runsAnother = (task.handledBy ?? taskType) !== taskType;
    if (runsAnother && this.#entries.has(taskType)) throw handlerExists(taskType);
    this.#defined.set(taskType, task);
    if (task.isSingleInstance) this.#singleInstances.add(taskType);
    this.#changed();
  }

  #changed(): void {
    this.#resolved.clear();
    for (const listener of this.#listeners) listener();
  }

  /** Follows definitions that run another task type, which may be a definition too. Stops at a cycle. */
  #findHandlerName(taskType: string): string {
    const seen = new Set<string>();
    let name = taskType;
    for (;;) {
      const next = this.#defined.get(name)?.handledBy;
      if (next === undefined || seen.has(next)) return name;
      seen.add(next);
      name = next;
    }
  }
}

function handlerExists(taskType: string): ChronosError {
  return new ChronosError(
    'HANDLER_EXISTS',
    `a different handler is already registered for '${taskType}'. A task type has one handler: register it once and put what differs into the payload, or give classes with the same name different static taskTypes`,
  );
}

/** A registry with the built-in handlers and those of the option `taskHandlers`. */
export function createHandlerRegistry(options: ResolvedOptions, channel: EventChannel): HandlerRegistry {
  const registry = new HandlerRegistry(options);
  const { shellFiles: files, shellPayloadEnv: variables } = options;
  const environment = inheritedEnvironment(options.shellInheritEnv);
  registry.registerBuiltIn('shell', shellHandler({ files, variables, environment }));
  registry.registerBuiltIn('url', urlHandler({ hosts: options.urlHosts }));
  registry.registerBuiltIn('event', eventHandler(channel));
  for (const entry of Object.entries(options.taskHandlers)) registry.register(...entry);
  return registry;
}
