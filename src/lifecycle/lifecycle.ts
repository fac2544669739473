import { once } from 'node:events';
import { type Duration, parseDuration } from '../domain/duration.js';
import { ChronosError, toError } from '../domain/errors.js';
import type { LifecycleState } from '../domain/events.js';
import { SchedulerState } from '../runtime/scheduler-state.js';
import { systemClock } from '../runtime/system-clock.js';
import { waitAtMost } from '../runtime/waiting.js';
import { explainOutage } from '../store/mongo-errors.js';
import { install } from '../store/schema/install.js';
import { type Components, connectComponents, type SchedulerDeps } from './components.js';

/** How long `stop()` waits for services and passes after the jobs have ended. */
const SERVICES_GRACE_MS = 1000;

/** Jobs that `stop()` left behind: the handler ignored its signal, or the outcome could not be stored. */
export interface StopReport {
  left: { id: string; taskType: string }[];
}

/** Connects, starts and stops the components of one process in the right order, and tracks its state. */
export class SchedulerLifecycle {
  readonly deps: SchedulerDeps;
  readonly #state: SchedulerState;
  #connection: Promise<Components> | undefined;
  #components: Components | undefined;
  /** Aborted by `stop()`. Ends connecting, installing, `forever()` and a daemon. */
  #stopSignal = new AbortController();
  #installed: Promise<void> | undefined;
  #starting: Promise<void> | undefined;
  #stopping: Promise<StopReport> | undefined;
  #lastReport: StopReport = { left: [] };
  readonly #passes = new Set<Promise<unknown>>();

  constructor(deps: SchedulerDeps) {
    this.deps = deps;
    this.#state = new SchedulerState(deps.events);
  }

  get state(): LifecycleState {
    return this.#state.current;
  }

  /** Undefined without a connection: it does not connect. */
  get connected(): Components | undefined {
    return this.#components;
  }

  /** Connects on first use and returns the same components until `stop()`. Synchronizes the clock again if it is stale. */
  async connect(): Promise<Components> {
    this.#connection ??= this.#openConnection();
    const components = await this.#connection;
    await components.databaseClock?.refreshIfStale().catch(explainOutage);
    return components;
  }

  /** Creates collections and indexes once; the next call retries after a failure. */
  ensureInstalled(): Promise<void> {
    if (this.#installed !== undefined) return this.#installed;
    const installed = install(this.deps.options, this.#stopSignal.signal);
    installed.catch(() => (this.#installed = undefined));
    this.#installed = installed;
    return installed;
  }

  /** `stop()` closes the connection only after the pass has ended. */
  async trackPass<T>(pass: Promise<T>): Promise<T> {
    this.#passes.add(pass);
    try {
      return await pass;
    } finally {
      this.#passes.delete(pass);
    }
  }

  async start(): Promise<void> {
    if (this.state === 'Stopping') {
      throw new ChronosError('WRONG_STATE', 'the scheduler is stopping: await stop() before start()');
    }
    if (this.#starting !== undefined) return this.#starting;
    const starting = this.#start();
    starting.catch(() => {
      if (this.#starting === starting) this.#starting = undefined;
    });
    this.#starting = starting;
    return starting;
  }

  /** Claims nothing more until `undrain()`. Resolves to true when nothing is running any more, to false if undrained before. */
  async drain(): Promise<boolean> {
    const { engine, heartbeat } = this.#running('drain');
    const drained = engine.drain();
    heartbeat.announceDraining(true);
    try {
      return await drained;
    } finally {
      heartbeat.wake();
    }
  }

  undrain(): void {
    const { engine, heartbeat } = this.#running('undrain');
    engine.undrain();
    heartbeat.announceDraining(false);
  }

  #running(method: string): Components {
    if (this.state === 'Running' && this.#components !== undefined) return this.#components;
    const message = `${method}() needs a running worker, and this one is ${this.state}: call start() before`;
    throw new ChronosError('WRONG_STATE', message);
  }

  /** Ignores the name of a signal, so that `process.on('SIGTERM', (signal) => scheduler.stop(signal))` works. */
  async stop(timeout?: Duration): Promise<StopReport> {
    const isSignal = typeof timeout === 'string' && /^SIG[A-Z0-9]+$/.test(timeout);
    const budget =
      timeout === undefined || isSignal
        ? this.deps.options.shutdownGrace
        : parseDuration(timeout, 'stop() timeout');
    this.#stopping ??= this.#stop(budget).finally(() => (this.#stopping = undefined));
    return this.#stopping;
  }

  /** Starts, and resolves when stopped: by `stop()`, SIGINT or SIGTERM. */
  async forever(): Promise<StopReport> {
    return this.#stopOnSignals(async () => {
      await this.start().catch((error: unknown) => {
        if (this.#stopping === undefined) throw error;
      });
      const { signal } = this.#stopSignal;
      if (!signal.aborted) await once(signal, 'abort');
      return (await this.#stopping) ?? this.#lastReport;
    });
  }

  /** Connects, runs `work` and then stops. `stop()`, SIGINT and SIGTERM abort the signal of `work`. */
  async runUntilStopped<T>(
    work: (components: Components, signal: AbortSignal) => Promise<T>,
    ifStoppedEarly: T,
  ): Promise<T> {
    try {
      return await this.#stopOnSignals(async () => work(await this.connect(), this.#stopSignal.signal));
    } catch (error) {
      // stop() was called while it was connecting.
      if (this.#stopSignal.signal.aborted) return ifStoppedEarly;
      throw error;
    } finally {
      await this.stop();
    }
  }

  async #stopOnSignals<T>(work: () => Promise<T>): Promise<T> {
    const stop = (): void => void this.stop();
    process.on('SIGINT', stop).on('SIGTERM', stop);
    try {
      return await work();
    } finally {
      process.off('SIGINT', stop).off('SIGTERM', stop);
    }
  }

  #openConnection(): Promise<Components> {
    this.#stopSignal = new AbortController();
    const connection = connectComponents(this.deps, this.#state, this.#stopSignal.signal);
    connection.then(
      (components) => {
        if (this.#connection === connection) this.#components = components;
      },
      () => {
        if (this.#connection === connection) this.#connection = undefined;
      },
    );
    return connection;
  }

  async #start(): Promise<void> {
    this.#state.enter('Starting');
    try {
      this.deps.definitions.assertValidForWorker();
      const { engine, definitionSync, services, heartbeat } = await this.connect();
      this.#assertStarting();
      // Starts the renewal thread early, because that takes as long as all other steps. engine.start() waits for it.
      engine.prepare().catch(() => undefined);
      await this.ensureInstalled();
      this.#assertStarting();
      await definitionSync.registerAll();
      await definitionSync.reportOrphans();
      this.#assertStarting();
      await engine.start();
      this.#assertStarting();
      for (const service of [heartbeat, ...services]) service.start();
      this.#state.enter('Running');
    } catch (thrown) {
      const error = toError(thrown);
      // If stop() was called in the meantime, it closes everything itself.
      if (this.state === 'Starting') await this.#close(0);
      if (this.state === 'Starting') this.#state.enter('Error', error);
      throw error;
    }
  }

  #assertStarting(): void {
    if (this.state === 'Starting') return;
    throw new ChronosError('WRONG_STATE', 'the scheduler was stopped while it was starting');
  }

  async #stop(budget: number): Promise<StopReport> {
    // A listener may call stop() from within start(), before `#starting` is set.
    if (this.state === 'Starting') await Promise.resolve();
    if (this.#connection === undefined && this.#starting === undefined) return { left: [] };
    this.#state.enter('Stopping');
    this.#stopSignal.abort();
    await this.#starting?.catch(() => undefined);
    this.#lastReport = await this.#close(budget);
    this.#starting = undefined;
    this.#state.enter('Stopped');
    return this.#lastReport;
  }

  /** Claims end first and the connection closes last: handlers may use this scheduler until they end. */
  async #close(budget: number): Promise<StopReport> {
    const components = await this.#connection?.catch(() => undefined);
    if (components === undefined) return { left: [] };
    const { engine, services, waiter, heartbeat, database, unsubscribe } = components;
    const servicesStopped = Promise.all(services.map((service) => service.stop()));
    const left = await engine.stop(budget);
    // A pass sees that the engine is stopped and ends after its current statement. No handler waits for a job any more.
    const remaining = [servicesStopped, waiter.stop(), ...this.#passes];
    await waitAtMost(systemClock, SERVICES_GRACE_MS, Promise.allSettled(remaining));
    // If the database is unreachable, other workers notice the missing heartbeats.
    await heartbeat.markStopped().catch(() => undefined);
    unsubscribe();
    this.#components = undefined;
    await database.close().catch(() => undefined);
    this.#connection = undefined;
    return { left: left.map(({ _id, taskType }) => ({ id: _id, taskType })) };
  }
}
