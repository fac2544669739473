import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { EventChannel } from './built-in/event-channel.js';
import { registerBuiltIns } from './built-in/register.js';
import { resolveWithLock, type DaemonOptions, type PassOptions } from './config/call-options.js';
import type { DispatchOptions } from './config/dispatch-options.js';
import type { HandlerOptions } from './config/handler-options.js';
import { resolveOptions, type ResolvedOptions, type SchedulerOptions } from './config/options.js';
import type { DispatchResult } from './dispatch/dispatcher.js';
import { Draft } from './dispatch/draft.js';
import type { JobHandle } from './dispatch/job-handle.js';
import type { AdHoc, AnyPayloads, DispatchArguments, DispatchRequest } from './dispatch/typed-dispatch.js';
import { Dispatching } from './dispatching.js';
import { parseDuration, type Duration } from './domain/duration.js';
import { ChronosError } from './domain/errors.js';
import type { EventName, LifecycleState } from './domain/events.js';
import type { Instant } from './domain/instant.js';
import type { JobDocument } from './domain/job.js';
import { JobApi, type JobApiParts } from './job-api.js';
import { loadOf, type WorkerLoad } from './load.js';
import { Lifetime, type StopReport } from './lifetime.js';
import type { PruneCounts } from './maintenance/pruner.js';
import { Operations, type OperationsParts } from './operations/operations.js';
import { runPassDaemon } from './pass-daemon.js';
import { collectDue, runBatch, runOnce, type PassReport } from './run-once.js';
import { EventBus, type Listener } from './runtime/event-bus.js';
import type { DaemonReport } from './schedules/daemon.js';
import { Definitions } from './schedules/definitions.js';
import type { StoredSchedules } from './schedules/stored-schedules.js';
import type { QueueBacklog } from './store/backlog.js';
import { install } from './store/install.js';
import type { Handler, HandlerClass } from './worker/handler.js';
import { HandlerRegistry, isHandlerClass, taskTypeOf } from './worker/handler-registry.js';
import type { HeldLock } from './worker/named-locks.js';

/** The whole of Chronos: register handlers, dispatch jobs, start and stop a worker. `new` never connects. */
export class Scheduler<P extends object = AnyPayloads> extends JobApi {
  readonly workerId: string;
  readonly channel = new EventChannel();
  readonly #options: ResolvedOptions;
  readonly #events = new EventBus();
  protected readonly registry = new HandlerRegistry();
  protected readonly definitions: Definitions;
  readonly #lifetime: Lifetime;
  readonly #dispatching: Dispatching;
  /** For those who operate a running system: lists, counts, explanations, checks, changes by filter. */
  readonly operations: Operations;

  constructor(options: SchedulerOptions) {
    super();
    this.#options = resolveOptions(options);
    this.workerId = this.#options.workerId ?? `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`;
    this.definitions = new Definitions({
      registry: this.registry,
      options: this.#options,
      draft: () => this.#draft() as Draft<string>,
      dispatch: (name, payload, more) => this.#dispatching.dispatch(name, payload, more),
    });
    registerBuiltIns(this.registry, this.#options, this.channel);
    this.#lifetime = new Lifetime({
      options: this.#options,
      registry: this.registry,
      definitions: this.definitions,
      events: this.#events,
      workerId: this.workerId,
    });
    this.#dispatching = new Dispatching({
      lifetime: this.#lifetime,
      options: this.#options,
      registry: this.registry,
      definitions: this.definitions,
      cancel: (jobId, reason) => this.cancel(jobId, reason ?? undefined),
    });
    this.operations = new Operations({
      options: this.#options,
      registry: this.registry,
      definitions: this.definitions,
      workerId: this.workerId,
      connect: () => this.#operationsParts(),
    });
    for (const [taskType, handler] of Object.entries(this.#options.taskHandlers))
      this.registry.register(taskType, handler);
  }

  get state(): LifecycleState {
    return this.#lifetime.state;
  }

  /** What this process has in hand at this moment. */
  get load(): WorkerLoad {
    return loadOf(this.#lifetime.open, this.#options, this.registry.taskTypes);
  }

  /** What is due in the queues of this worker and not taken. Makes no connection: without one, nothing is known. */
  async backlog(): Promise<QueueBacklog[]> {
    const parts = this.#lifetime.open;
    if (!parts?.database.isConnected()) return [];
    return parts.store.findBacklog(this.#options.queues, parts.clock);
  }

  on<E extends EventName>(event: E, listener: Listener<E>): this {
    this.#events.on(event, listener);
    return this;
  }

  once<E extends EventName>(event: E, listener: Listener<E>): this {
    this.#events.once(event, listener);
    return this;
  }

  off<E extends EventName>(event: E, listener: Listener<E>): this {
    this.#events.off(event, listener);
    return this;
  }

  /** Registers a function, class or object under a task type, or a class under its own name. Also while running. */
  registerHandler<T extends keyof P & string>(
    taskType: T,
    handler: Handler<P[T]>,
    options?: HandlerOptions,
  ): this;
  registerHandler<Q>(handlerClass: HandlerClass<Q>, options?: HandlerOptions): this;
  registerHandler(first: unknown, second?: unknown, third?: unknown): this {
    if (isHandlerClass(first)) this.registry.register(taskTypeOf(first), first, second);
    else this.registry.register(first, second, third);
    return this;
  }

  /** Stores a job; resolves once a majority has it. */
  dispatch<T extends keyof P & string>(taskType: T, ...rest: DispatchArguments<P[T]>): Promise<JobHandle>;
  dispatch<Q>(handlerClass: HandlerClass<Q>, payload?: Q, options?: DispatchOptions): Promise<JobHandle>;
  dispatch(
    target: unknown,
    payload?: unknown,
    options?: DispatchOptions & AdHoc<unknown>,
  ): Promise<JobHandle> {
    return this.#dispatching.dispatch(target, payload, options);
  }

  /** Stores many jobs, from anything that can be iterated, and reports on each in order. */
  async dispatchMany(
    requests: Iterable<DispatchRequest<P>> | AsyncIterable<DispatchRequest<P>>,
  ): Promise<DispatchResult[]> {
    return this.#dispatching.dispatchMany(requests);
  }

  /** Starts a draft: `scheduler.delay('1h').args({ … }).dispatch('emails')`. */
  delay(delay: Duration): Draft<(keyof P & string) | HandlerClass<never>> {
    return this.#draft().delay(delay);
  }

  at(when: Instant): Draft<(keyof P & string) | HandlerClass<never>> {
    return this.#draft().at(when);
  }

  args(payload: unknown): Draft<(keyof P & string) | HandlerClass<never>> {
    return this.#draft().args(payload);
  }

  /**
   * Removes finished jobs past their retention. With an age: finished jobs, jobs of task types nobody has a handler
   * for, and jobs whose lock expired, all older than that.
   */
  async prune(olderThan?: Duration): Promise<PruneCounts> {
    const age = olderThan === undefined ? undefined : parseDuration(olderThan, 'prune() olderThan');
    const { pruner } = await this.#lifetime.connect();
    return age === undefined ? pruner.pruneByRetention() : pruner.pruneOlderThan(age);
  }

  /** Runs `fn` while no other process runs one under the same name; throws LOCK_HELD when it is not free within `wait`. */
  async withLock<T>(
    name: string,
    fn: (lock: HeldLock) => T | Promise<T>,
    options: { wait?: Duration } = {},
  ): Promise<T> {
    const wait = resolveWithLock(options);
    if (typeof fn !== 'function') {
      throw new ChronosError('INVALID_ARGUMENT', `withLock() runs a function, got ${typeof fn}`);
    }
    const { engine } = await this.#lifetime.connect();
    return engine.namedLocks.withLock(name, fn, wait);
  }

  /** Creates collections, indexes and validators. `start()` does it too. */
  async install(): Promise<void> {
    await install(this.#options.uri);
  }

  /** One pass: recovers what is stale, enqueues what schedules owe, claims and executes up to `batch` due jobs, resolves to how many. */
  async run(batch = 32): Promise<number> {
    return runBatch(this.#lifetime, this.definitions, batch);
  }

  async runOnce(options: PassOptions = {}): Promise<PassReport> {
    return runOnce(this.#lifetime, this.#events, this.#options.timezone, options);
  }

  async daemon(options: DaemonOptions = {}): Promise<DaemonReport> {
    return runPassDaemon(this.#lifetime, this.#events, this.#options, options);
  }

  /** Connects, installs, and starts to work. Rejects when MongoDB stays out of reach; the state is Error then. */
  start(): Promise<void> {
    return this.#lifetime.start();
  }

  /** Starts, stops on SIGINT or SIGTERM, and resolves when stopped. */
  forever(): Promise<StopReport> {
    return this.#lifetime.forever(this.#options.shutdownGrace);
  }

  /**
   * Stops gracefully within the time given (default `shutdownGrace`). The name of a signal is ignored, so that
   * `process.on('SIGTERM', (signal) => scheduler.stop(signal))` does what was meant.
   */
  async stop(timeout?: Duration): Promise<StopReport> {
    const given = typeof timeout === 'string' && /^SIG[A-Z0-9]+$/.test(timeout) ? undefined : timeout;
    return this.#lifetime.stop(
      given === undefined ? this.#options.shutdownGrace : parseDuration(given, 'stop() timeout'),
    );
  }

  protected async connected(): Promise<JobApiParts> {
    const { store, clock, engine } = await this.#lifetime.connect();
    return { store, clock, engine, events: this.#events };
  }

  protected async stored(): Promise<StoredSchedules> {
    const { scheduling, refreshClock } = await this.#lifetime.connect();
    await refreshClock();
    return scheduling.stored;
  }

  async #operationsParts(): Promise<OperationsParts> {
    const { store, clock, engine, pruner, refreshClock } = await this.#lifetime.connect();
    await refreshClock();
    const collect = (): Promise<JobDocument[]> => this.#lifetime.duringPass(collectDue(this.#lifetime));
    return { store, clock, engine, pruner, events: this.#events, collect };
  }

  #draft(): Draft<(keyof P & string) | HandlerClass<never>> {
    return new Draft((target, payload, options) => this.#dispatching.dispatch(target, payload, options));
  }
}
