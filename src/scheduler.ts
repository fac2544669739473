import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { EventChannel } from './built-in/event-channel.js';
import { registerBuiltIns } from './built-in/register.js';
import {
  readDaemonOptions,
  resolveWithLock,
  type DaemonOptions,
  type PassOptions,
} from './config/call-options.js';
import type { DispatchOptions } from './config/dispatch-options.js';
import type { HandlerOptions } from './config/handler-options.js';
import { resolveOptions, type ResolvedOptions, type SchedulerOptions } from './config/options.js';
import { cancelJob } from './dispatch/cancel-job.js';
import { Dispatcher, type DispatchResult } from './dispatch/dispatcher.js';
import { Draft } from './dispatch/draft.js';
import type { JobHandle } from './dispatch/job-handle.js';
import { viewOf, type JobView } from './dispatch/job-view.js';
import type { Clock } from './domain/clock.js';
import { parseDuration, type Duration } from './domain/duration.js';
import { ChronosError, toError, withoutCredentials } from './domain/errors.js';
import type { EventName, LifecycleState } from './domain/events.js';
import type { ExecutionDocument } from './domain/execution.js';
import type { Instant } from './domain/instant.js';
import type { JobDocument } from './domain/job.js';
import { checkJobId, checkReason } from './domain/names.js';
import { loadOf, type WorkerLoad } from './load.js';
import { Lifetime, type StopReport } from './lifetime.js';
import type { PruneCounts } from './maintenance/pruner.js';
import { Operations, type OperationsParts } from './operations/operations.js';
import { collectDue, runOnce, type PassReport } from './run-once.js';
import { EventBus, type Listener } from './runtime/event-bus.js';
import { ScheduleApi } from './schedule-api.js';
import { runDaemon, type DaemonReport } from './schedules/daemon.js';
import { Definitions } from './schedules/definitions.js';
import type { StoredSchedules } from './schedules/stored-schedules.js';
import type { QueueBacklog } from './store/backlog.js';
import type { CancelAnswer } from './store/cancel.js';
import type { HoldAnswer } from './store/hold.js';
import { install } from './store/install.js';
import type { RetryAnswer } from './store/retry.js';
import type { Handler, HandlerClass } from './worker/handler.js';
import { HandlerRegistry, isHandlerClass, taskTypeOf } from './worker/handler-registry.js';
import type { HeldLock } from './worker/named-locks.js';

// Without a handler map, payloads are whatever the handlers take them for.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type AnyPayloads = Record<string, any>;

/** The payload may be left out where the handler map says it may be undefined. */
export type DispatchArguments<P> = undefined extends P
  ? [payload?: P, options?: DispatchOptions & AdHoc<P>]
  : [payload: P, options?: DispatchOptions & AdHoc<P>];

/** One job of `dispatchMany`, with the payload that the handler map has for its task type. */
export type DispatchRequest<P extends object = AnyPayloads> = {
  [T in keyof P & string]: { taskType: T; options?: DispatchOptions } & (undefined extends P[T]
    ? { payload?: P[T] }
    : { payload: P[T] });
}[keyof P & string];

export interface AdHoc<P> {
  /**
   * Registers a handler along with the job. Functions cannot be stored: the job runs in this process, or in
   * another that registers the same name; when this process is gone before, it waits for such a one.
   */
  handler?: Handler<P>;
}

/** The whole of Chronos: register handlers, dispatch jobs, start and stop a worker. `new` never connects. */
export class Scheduler<P extends object = AnyPayloads> extends ScheduleApi {
  readonly workerId: string;
  readonly channel = new EventChannel();
  readonly #options: ResolvedOptions;
  readonly #events = new EventBus();
  protected readonly registry = new HandlerRegistry();
  protected readonly definitions: Definitions;
  readonly #lifetime: Lifetime;
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
      dispatch: (name, payload, more) => this.#dispatch(name, payload, more),
    });
    registerBuiltIns(this.registry, this.#options, this.channel);
    this.#lifetime = new Lifetime({
      options: this.#options,
      registry: this.registry,
      definitions: this.definitions,
      events: this.#events,
      workerId: this.workerId,
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
    return this.#dispatch(target, payload, options);
  }

  /** Stores many jobs, from anything that can be iterated, and reports on each in order. */
  async dispatchMany(
    requests: Iterable<DispatchRequest<P>> | AsyncIterable<DispatchRequest<P>>,
  ): Promise<DispatchResult[]> {
    return (await this.#dispatcher()).dispatchMany(requests);
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

  async getJob(jobId: string): Promise<JobView | null> {
    checkJobId(jobId);
    const job = await (await this.#lifetime.connect()).store.findJob(jobId);
    return job === null ? null : viewOf(job);
  }

  /** The last thousand attempts of a job, oldest first, as long as the execution log keeps them. */
  async getExecutions(jobId: string): Promise<ExecutionDocument[]> {
    checkJobId(jobId);
    return (await this.#lifetime.connect()).store.findExecutions(jobId);
  }

  /** Cancels a job that waits; asks the worker of one that runs. The answer says which. */
  async cancel(jobId: string, reason?: string): Promise<CancelAnswer> {
    checkJobId(jobId);
    checkReason(reason);
    const { store, clock, engine } = await this.#lifetime.connect();
    return cancelJob({ store, clock, engine, events: this.#events }, jobId, reason ?? null);
  }

  /** Runs a finished job again, as if it were new. */
  async retry(jobId: string): Promise<RetryAnswer> {
    checkJobId(jobId);
    const { store, clock, engine } = await this.#lifetime.connect();
    const answer = await store.retry(jobId, clock.now());
    engine.nudge();
    return answer;
  }

  /** Takes a waiting job out of play until `unhold`. */
  async hold(jobId: string, reason?: string): Promise<HoldAnswer> {
    checkJobId(jobId);
    checkReason(reason);
    const { store, clock } = await this.#lifetime.connect();
    return store.hold(jobId, reason ?? null, clock.now());
  }

  async unhold(jobId: string): Promise<HoldAnswer> {
    checkJobId(jobId);
    const { store, engine } = await this.#lifetime.connect();
    const answer = await store.unhold(jobId);
    engine.nudge();
    return answer;
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
    if (!Number.isInteger(batch) || batch < 1) {
      throw new ChronosError(
        'INVALID_ARGUMENT',
        `run() batch must be a whole number from 1, got ${String(batch)}`,
      );
    }
    this.definitions.forWorker();
    return this.#lifetime.duringPass(this.#run(batch));
  }

  async runOnce(options: PassOptions = {}): Promise<PassReport> {
    return runOnce(this.#lifetime, this.#events, this.#options.timezone, options);
  }

  async daemon(options: DaemonOptions = {}): Promise<DaemonReport> {
    const { interval, maxOverruns, batch } = readDaemonOptions(options);
    const run = (clock: Clock, signal: AbortSignal): Promise<DaemonReport> =>
      runDaemon({
        ...{ clock, interval, maxOverruns, signal },
        tick: () => this.#tick(batch),
        onOverrun: (overrun) => {
          this.#events.emit('daemon:overrun', overrun);
        },
      });
    const stopped: DaemonReport = { ticks: 0, overruns: 0, reason: 'stopped' };
    return this.#lifetime.daemon(this.#options.shutdownGrace, run, stopped);
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

  async #run(batch: number): Promise<number> {
    const { engine, sweeper } = await this.#lifetime.connect();
    await this.#lifetime.ensureInstalled();
    await sweeper.runOnce();
    await collectDue(this.#lifetime);
    return engine.runPass(batch);
  }

  /** A pass that fails as a whole is reported; the next tick tries again. */
  async #tick(batch: number): Promise<void> {
    try {
      await runOnce(this.#lifetime, this.#events, this.#options.timezone, { batch }, true);
    } catch (thrown) {
      const error = withoutCredentials(toError(thrown));
      this.#events.emit('worker:trouble', { operation: 'run a pass', error, failures: 1, retryIn: 0 });
    }
  }

  async #dispatcher(): Promise<Dispatcher> {
    const { store, clock, engine, refreshClock } = await this.#lifetime.connect();
    await refreshClock();
    const { timezone } = this.#options;
    const cancel = (jobId: string, reason: string | null): Promise<CancelAnswer> =>
      this.cancel(jobId, reason ?? undefined);
    const nudge = (): void => {
      engine.nudge();
    };
    return new Dispatcher({
      store,
      clock,
      timezone,
      cancel,
      nudge,
      registry: this.registry,
      onDispatch: (taskType) => {
        this.definitions.freeze(taskType);
      },
      options: this.#options,
    });
  }

  async #dispatch(
    target: unknown,
    payload: unknown,
    options: (DispatchOptions & AdHoc<unknown>) | undefined,
  ): Promise<JobHandle> {
    if (options !== undefined && (typeof options !== 'object' || options === null)) {
      throw new ChronosError('INVALID_ARGUMENT', `dispatch options must be an object, got ${typeof options}`);
    }
    const { handler, ...rest } = options ?? {};
    const byClass = isHandlerClass(target);
    const taskType = byClass ? taskTypeOf(target) : target;
    if (byClass) this.registry.register(taskType, target);
    if (handler !== undefined) this.registry.register(taskType, handler);
    return (await this.#dispatcher()).dispatch({ taskType: taskType as string, payload, options: rest });
  }

  #draft(): Draft<(keyof P & string) | HandlerClass<never>> {
    return new Draft((target, payload, options) => this.#dispatch(target, payload, options));
  }
}
