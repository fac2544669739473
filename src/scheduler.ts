import type { StandardSchemaV1 } from '@standard-schema/spec';
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { DispatchOptions } from './config/dispatch-options.js';
import type { HandlerOptions } from './config/handler-options.js';
import {
  type DaemonOptions,
  type InstallOptions,
  parseInstallOptions,
  type PassOptions,
  type PauseOptions,
  type RescheduleOptions,
  type ScheduleQueryOptions,
} from './config/method-options.js';
import { resolveOptions, type SchedulerOptions } from './config/options.js';
import type { Page, PageOptions } from './config/query-options.js';
import type { Duration } from './domain/duration.js';
import type { EventName, LifecycleState } from './domain/events.js';
import { assertJobId } from './domain/identifiers.js';
import type { Instant } from './domain/instant.js';
import { EventChannel } from './handlers/built-in/event-channel.js';
import { createHandlerRegistry } from './handlers/handler-registry.js';
import { assertMiddleware, type HandlerMiddleware } from './handlers/middleware.js';
import type { Handler, HandlerClass } from './domain/job/handler.js';
import type {
  AnyPayload,
  DefaultTasks,
  DispatchArguments,
  DispatchRequest,
  EntryOf,
  InputOf,
  OutputOf,
  ResultOf,
  Target,
  TaskName,
  UntypedName,
} from './jobs/task-types.js';
import type { DispatchMiddleware } from './jobs/dispatch-middleware.js';
import type { DispatchResult } from './jobs/dispatcher.js';
import { type DispatchFunction, Draft } from './jobs/draft.js';
import { type ConnectJobs, JobHandle } from './jobs/job-handle.js';
import type { ExecutionView, JobView } from './jobs/job-views.js';
import type { SchedulerDeps } from './lifecycle/components.js';
import { type DaemonReport, runDaemon } from './lifecycle/daemon.js';
import { SchedulerLifecycle, type StopReport } from './lifecycle/lifecycle.js';
import { type PassReport, runBatch, runOnce } from './lifecycle/pass.js';
import { currentBacklog, currentLoad, type WorkerLoad } from './lifecycle/worker-load.js';
import type { PruneCounts } from './maintenance/pruner.js';
import { Operations } from './operations/operations.js';
import { EventBus, type Listener } from './runtime/event-bus.js';
import { attachLogger } from './runtime/logger.js';
import { assertNotAgendaDefine, assertNotAgendaSchedule } from './schedules/definition/agenda-calls.js';
import { defineSchedule, defineTask, type ScheduleBuilder } from './schedules/definition/builder.js';
import { DefinitionRegistry } from './schedules/definition/definition-registry.js';
import type { Definition } from './schedules/definition/definition.js';
import { type BuiltIn, registerCommand } from './schedules/definition/handler-source.js';
import type { BackfillResult, TriggerResult } from './schedules/stored/manual-runs.js';
import type { NewSchedule, SchedulePatch, ScheduleUpsert } from './schedules/stored/schedule-input.js';
import type { SkipView, StoredSchedule, UpsertResult } from './schedules/stored/stored-schedules.js';
import type { JobChange } from './store/jobs/change.js';
import type { QueueBacklog } from './store/jobs/counts.js';
import { install } from './store/schema/install.js';
import type { HeldLock } from './worker/locks/named-locks.js';

/**
 * Registers handlers, dispatches jobs, manages schedules and runs a worker. `new` does not connect; the first method
 * that needs the database does.
 */
export class Scheduler<M extends object = DefaultTasks> {
  readonly workerId: string;
  /** The listeners that the built-in handler `event` calls. Separate from the Scheduler's own events. */
  readonly channel = new EventChannel();
  /** For people who operate a running system: lists, counts, explanations, checks, changes by filter. */
  readonly operations: Operations;
  readonly #deps: SchedulerDeps;
  readonly #lifecycle: SchedulerLifecycle;
  readonly #connectJobs: ConnectJobs = async () => (await this.#lifecycle.connect()).jobs;
  readonly #dispatch: DispatchFunction = async (target, payload, options) =>
    (await this.#lifecycle.connect()).dispatcher.dispatch(target, payload, options);

  constructor(input: SchedulerOptions) {
    const options = resolveOptions(input);
    const registry = createHandlerRegistry(options, this.channel);
    const definitions = new DefinitionRegistry(registry, options);
    this.workerId = options.workerId ?? `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`;
    const events = new EventBus(this.workerId);
    attachLogger(events, options.logger);
    this.#deps = {
      options,
      registry,
      definitions,
      events,
      workerId: this.workerId,
      connectJobs: this.#connectJobs,
      dispatchMiddleware: [],
    };
    this.#lifecycle = new SchedulerLifecycle(this.#deps);
    this.operations = new Operations(this.#lifecycle);
  }

  // Starting and stopping

  get state(): LifecycleState {
    return this.#lifecycle.state;
  }

  /** Connects, installs and starts the worker. Rejects if MongoDB stays unreachable; the state is then Error. */
  start(): Promise<void> {
    return this.#lifecycle.start();
  }

  /** Starts, and resolves when stopped: by `stop()`, SIGINT or SIGTERM. Rejects if a critical fault ends the worker. */
  forever(): Promise<StopReport> {
    return this.#lifecycle.forever();
  }

  /**
   * Stops gracefully within the timeout (default `shutdownGrace`), also while MongoDB does not reply. The name of a signal is ignored, so that
   * `process.on('SIGTERM', (signal) => scheduler.stop(signal))` works.
   */
  stop(timeout?: Duration): Promise<StopReport> {
    return this.#lifecycle.stop(timeout);
  }

  /** The same as `stop()`, for `await using scheduler = new Scheduler(…)`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /**
   * Stops claiming jobs and stays up: running jobs finish, prefetched ones are released, and locks are still renewed.
   * Heartbeat, recovery and due schedules continue. Resolves to true when nothing is running any more, or to false if
   * the worker is undrained before. A worker that is started again is not drained.
   */
  drain(): Promise<boolean> {
    return this.#lifecycle.drain();
  }

  /** Claims jobs again after `drain()`. */
  undrain(): void {
    this.#lifecycle.undrain();
  }

  /** Creates collections, indexes and validators. `start()` does this too, but never shards. */
  async install(options: InstallOptions = {}): Promise<void> {
    await install(this.#deps.options, {
      ...parseInstallOptions(options),
      onRetry: (error, failures, retryIn) =>
        this.#deps.events.reportError('install', error, { failures, retryIn }),
    });
  }

  /** Recovers expired locks, enqueues due schedules and executes up to `batch` due jobs. Resolves to how many it executed. */
  run(batch = 32): Promise<number> {
    return runBatch(this.#lifecycle, batch);
  }

  /**
   * One pass, for system cron: due definitions, in the order of their dependencies, run inline or are enqueued if they
   * have a queue; then up to `batch` due jobs are executed.
   */
  runOnce(options: PassOptions = {}): Promise<PassReport> {
    return runOnce(this.#lifecycle, options);
  }

  /** Runs a pass at every multiple of an interval, until `stop()`, SIGINT, SIGTERM or too many overruns in a row. */
  daemon(options: DaemonOptions = {}): Promise<DaemonReport> {
    return runDaemon(this.#lifecycle, options);
  }

  /** How busy this process is now. */
  get load(): WorkerLoad {
    return currentLoad(this.#lifecycle);
  }

  /** Due, unclaimed jobs in the queues of this worker. Empty without a connection: it does not connect. */
  backlog(): Promise<QueueBacklog[]> {
    return currentBacklog(this.#lifecycle);
  }

  // Events

  on<E extends EventName>(event: E, listener: Listener<E>): this {
    this.#deps.events.on(event, listener);
    return this;
  }

  once<E extends EventName>(event: E, listener: Listener<E>): this {
    this.#deps.events.once(event, listener);
    return this;
  }

  off<E extends EventName>(event: E, listener: Listener<E>): this {
    this.#deps.events.off(event, listener);
    return this;
  }

  // Handlers and new jobs

  /**
   * Adds middleware around every handler: tenant context, error trackers, metrics. The first one added is the outermost.
   * Applies to attempts that start afterwards.
   */
  use(middleware: HandlerMiddleware): this {
    this.#deps.registry.use(middleware);
    return this;
  }

  /** Adds middleware around every dispatch, the first one outermost. Jobs of schedules are not dispatched. */
  useDispatch(middleware: DispatchMiddleware): this {
    assertMiddleware('useDispatch()', middleware);
    this.#deps.dispatchMiddleware.push(middleware);
    return this;
  }

  /** Registers a function, class or object for a task type, or a class under its own name. Possible at any time. */
  registerHandler<Q>(handlerClass: HandlerClass<Q>, options?: HandlerOptions<Q>): this;
  registerHandler<S extends StandardSchemaV1>(
    taskType: UntypedName<M>,
    handler: Handler<StandardSchemaV1.InferOutput<S>>,
    options: HandlerOptions<StandardSchemaV1.InferOutput<S>> & { schema: S },
  ): this;
  registerHandler<T extends TaskName<M>>(
    taskType: T,
    handler: Handler<OutputOf<M[T]>, ResultOf<M[T]>>,
    options?: HandlerOptions<OutputOf<M[T]>> & {
      schema?: StandardSchemaV1<InputOf<M[T]>, OutputOf<M[T]>>;
    },
  ): this;
  registerHandler(target: unknown, ...rest: [unknown?, unknown?]): this {
    this.#deps.registry.register(target, ...rest);
    return this;
  }

  /** Registers a function for `define('command', name)`; its task type is `command:<name>`. */
  registerCommand<A = AnyPayload>(name: string, command: Handler<A>): this {
    registerCommand(this.#deps.registry, name, command);
    return this;
  }

  /** Stores a job. Resolves when a majority of the MongoDB servers has stored it. */
  dispatch<T extends Target<M>>(
    target: T,
    ...rest: DispatchArguments<EntryOf<M, T>>
  ): Promise<JobHandle<ResultOf<EntryOf<M, T>>>>;
  dispatch(target: unknown, ...rest: [payload?: unknown, options?: DispatchOptions]): Promise<JobHandle> {
    return this.#dispatch(target, ...rest);
  }

  /** Stores many jobs. Resolves to one result per request, in order. */
  async dispatchMany(
    requests: Iterable<DispatchRequest<M>> | AsyncIterable<DispatchRequest<M>>,
  ): Promise<DispatchResult[]> {
    return (await this.#lifecycle.connect()).dispatcher.dispatchMany(requests);
  }

  /** Starts a draft of a job that runs later: `scheduler.delay('1h').args({ … }).dispatch('emails')`. */
  delay(delay: Duration): Draft<M> {
    return new Draft<M>(this.#dispatch).delay(delay);
  }

  /** Starts a draft of a job that runs at an instant. */
  at(when: Instant): Draft<M> {
    return new Draft<M>(this.#dispatch).at(when);
  }

  /** Starts a draft of a job with this payload. */
  args<Q>(payload: Q): Draft<M, Q> {
    return new Draft<M>(this.#dispatch).args(payload);
  }

  // One job

  /** A handle to any job. Does not connect, and does not check that the job exists. */
  job<R = unknown>(jobId: string): JobHandle<R> {
    assertJobId(jobId);
    return new JobHandle<R>(jobId, false, this.#connectJobs);
  }

  async getJob(jobId: string): Promise<JobView | null> {
    return (await this.#lifecycle.connect()).jobs.get(jobId);
  }

  /** The last thousand attempts of a job that the execution log still has, oldest first. */
  async getExecutions(jobId: string): Promise<ExecutionView[]> {
    return (await this.#lifecycle.connect()).jobs.executions(jobId);
  }

  /** Cancels a waiting job, or asks the worker of a running job to cancel it; see the result. */
  async cancel(jobId: string, reason?: string): Promise<JobChange> {
    return (await this.#lifecycle.connect()).jobs.cancel(jobId, reason);
  }

  /** Runs a finished job again, as if it were new. */
  async retry(jobId: string): Promise<JobChange> {
    return (await this.#lifecycle.connect()).jobs.retry(jobId);
  }

  /** Prevents a waiting job from running until `unhold`. */
  async hold(jobId: string, reason?: string): Promise<JobChange> {
    return (await this.#lifecycle.connect()).jobs.hold(jobId, reason);
  }

  /** Lets a held job run when it is due. */
  async unhold(jobId: string): Promise<JobChange> {
    return (await this.#lifecycle.connect()).jobs.unhold(jobId);
  }

  /**
   * Deletes a finished job and the rows of its attempts; its key is free again. The job of a schedule is refused until
   * an hour after it finished, because it prevents a second job for the same occurrence.
   */
  async delete(jobId: string): Promise<JobChange> {
    return (await this.#lifecycle.connect()).jobs.delete(jobId);
  }

  /** Changes when a job is due, unless a worker has claimed it. */
  async reschedule(jobId: string, when: RescheduleOptions): Promise<JobChange> {
    return (await this.#lifecycle.connect()).jobs.reschedule(jobId, when);
  }

  /**
   * Removes finished jobs past their retention. With an age: finished jobs, jobs of task types without a handler and
   * jobs with an expired lock that are older.
   */
  async prune(olderThan?: Duration): Promise<PruneCounts> {
    return (await this.#lifecycle.connect()).pruner.prune(olderThan);
  }

  /** Runs `fn` while holding the named lock. Throws LOCK_HELD if another process holds it for longer than `wait`. */
  async withLock<T>(
    name: string,
    fn: (lock: HeldLock) => T | Promise<T>,
    options: { wait?: Duration } = {},
  ): Promise<T> {
    return (await this.#lifecycle.connect()).engine.namedLocks.withLock(name, fn, options);
  }

  // Schedules in code

  /**
   * Defines a schedule or a task to dispatch by name. The handler is a function, a class or the name of a task type; it
   * may be omitted if a handler is registered under the same name.
   */
  schedule<A = AnyPayload>(name: UntypedName<M>, handler?: Handler<A> | string): ScheduleBuilder<A>;
  schedule<T extends TaskName<M>>(
    name: T,
    handler?: Handler<OutputOf<M[T]>, ResultOf<M[T]>> | TaskName<M>,
  ): ScheduleBuilder<InputOf<M[T]>>;
  schedule<A>(name: string, handler?: unknown): ScheduleBuilder<A> {
    assertNotAgendaSchedule(name, handler);
    return defineSchedule<A>(this.#deps.definitions, this.#dispatch, name, handler);
  }

  /** Like `schedule`, for a built-in handler (`command`, `shell`, `url`, `event`, `closure`) or a task type; `named()` is optional. */
  define(builtIn: BuiltIn | UntypedName<M>, payload?: unknown): ScheduleBuilder<AnyPayload>;
  define<A = AnyPayload>(handler: Handler<A>, payload?: A): ScheduleBuilder<A>;
  define<T extends TaskName<M>>(taskType: T, payload?: InputOf<M[T]>): ScheduleBuilder<InputOf<M[T]>>;
  define<A>(...args: [handler: unknown, payload?: unknown]): ScheduleBuilder<A> {
    assertNotAgendaDefine(args);
    return defineTask<A>(this.#deps.definitions, this.#dispatch, ...args);
  }

  /** All definitions in code. This freezes them. */
  getDefinitions(): Definition[] {
    return this.#deps.definitions.all();
  }

  /** The names of the definitions, each after its dependencies. */
  getExecutionOrder(): string[] {
    return this.#deps.definitions.inOrder().map(({ name }) => name);
  }

  // Stored schedules

  /** Stores a schedule; any worker enqueues its occurrences. Resolves to its id. */
  async addSchedule(schedule: NewSchedule<M>): Promise<string> {
    return (await this.#lifecycle.connect()).storedSchedules.add(schedule);
  }

  /**
   * Stores the schedule with this id, or changes its definition: for programs that store their schedules whenever they
   * start. Settings that are left out get their defaults. A paused schedule stays paused, and an unchanged rule
   * continues where it was.
   */
  async upsertSchedule(schedule: ScheduleUpsert<M>): Promise<UpsertResult> {
    return (await this.#lifecycle.connect()).storedSchedules.upsert(schedule);
  }

  /** Changes a stored schedule; false if it does not exist. A changed rule applies from now on. */
  async updateSchedule(id: string, patch: SchedulePatch): Promise<boolean> {
    return (await this.#lifecycle.connect()).storedSchedules.update(id, patch);
  }

  /** False if it does not exist. Its jobs remain. */
  async removeSchedule(id: string): Promise<boolean> {
    return (await this.#lifecycle.connect()).storedSchedules.remove(id);
  }

  async getSchedule(id: string): Promise<StoredSchedule | null> {
    return (await this.#lifecycle.connect()).storedSchedules.get(id);
  }

  /** A page of schedules, ordered by id. */
  async listSchedules(query?: ScheduleQueryOptions): Promise<Page<StoredSchedule>> {
    return (await this.#lifecycle.connect()).storedSchedules.list(query);
  }

  /** Stops occurrences until `resumeSchedule`, also for schedules in code. False if it does not exist. */
  async pauseSchedule(id: string, options?: PauseOptions): Promise<boolean> {
    return (await this.#lifecycle.connect()).storedSchedules.pause(id, options);
  }

  /** Resumes from now; occurrences during the pause are recorded as skipped. */
  async resumeSchedule(id: string): Promise<boolean> {
    return (await this.#lifecycle.connect()).storedSchedules.resume(id);
  }

  /** Runs it once now, in addition to its occurrences and subject to its overlap policy. */
  async triggerSchedule(id: string): Promise<TriggerResult> {
    return (await this.#lifecycle.connect()).manualRuns.trigger(id);
  }

  /** Creates the missing jobs of past occurrences between two instants (inclusive). */
  async backfill(id: string, from: Instant, to: Instant): Promise<BackfillResult> {
    return (await this.#lifecycle.connect()).manualRuns.backfill(id, from, to);
  }

  /** A page of skipped occurrences, newest first. */
  async getSkips(id: string, query?: PageOptions): Promise<Page<SkipView>> {
    return (await this.#lifecycle.connect()).storedSchedules.skips(id, query);
  }
}

/** A Scheduler with any handler map. */
export type AnyScheduler = Scheduler<AnyPayload>;
