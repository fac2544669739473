import { once } from 'node:events';
import { type Duration, parseDuration } from '../domain/duration.js';
import { ChronosError, toError } from '../domain/errors.js';
import type { LifecycleState, Operation } from '../domain/events.js';
import { retry } from '../runtime/retry.js';
import { SchedulerState } from '../runtime/scheduler-state.js';
import { systemClock } from '../runtime/system-clock.js';
import { whenSettled } from '../runtime/waiting.js';
import { CONNECT_BACKOFF } from '../store/connection.js';
import { explainDriverError, explainOutage, isUnreachable } from '../store/mongo-errors.js';
import { install } from '../store/schema/install.js';
import { type Components, connectComponents, type SchedulerDeps } from './components.js';

/** How long `stop()` waits for services and passes after the jobs have ended. */
const SERVICES_GRACE_MS = 1000;
/** The part of its time that `stop()` keeps for closing everything, at most: handlers have the rest. */
const MAX_CLOSE_MS = 1000;
/** Each of the last steps of `stop()` gets this long, even if its time is over. */
const MIN_STEP_MS = 100;
/** How long closing may take after a start that failed. */
const CLOSE_FAILED_START_MS = 5000;

/**
 * Jobs that `stop()` left behind: the handler ignored its signal, or the outcome or the release of the job could not be
 * stored. Their locks expire.
 */
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
  /** Set by a critical fault, until the next start. */
  #failure: { readonly error: Error; readonly closed: Promise<unknown> } | undefined;
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

  /** Connects on first use and returns the same components until `stop()`. If that was long ago, synchronizes the clock and checks the installation again. */
  async connect(): Promise<Components> {
    this.#connection ??= this.#openConnection();
    const components = await this.#connection;
    const { databaseClock, store } = components;
    // Workers check at their heartbeats; this is for processes that only dispatch.
    if (databaseClock?.isStale === true)
      await Promise.all([databaseClock.synchronize(), store.assertSupported()]).catch(explainOutage);
    return components;
  }

  /** Creates collections and indexes once; the next call retries after a failure. */
  ensureInstalled(): Promise<void> {
    if (this.#installed !== undefined) return this.#installed;
    const { options, events } = this.deps;
    const installed = install(options, {
      signal: this.#stopSignal.signal,
      onRetry: (error, failures, retryIn) => events.reportError('install', error, { failures, retryIn }),
    });
    installed.catch(() => {
      if (this.#installed === installed) this.#installed = undefined;
    });
    this.#installed = installed;
    return installed;
  }

  /**
   * Connects and runs `pass`. `stop()` closes the connection only after it has ended. If `pass` fails because of
   * `stop()`, for example while it connects or installs, that is not an error.
   */
  async runPass(pass: (components: Components) => Promise<void>): Promise<void> {
    const connecting = this.connect();
    const { signal } = this.#stopSignal;
    const running = connecting
      .then((components) => (signal.aborted ? undefined : pass(components)))
      .catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
    this.#passes.add(running);
    try {
      await running;
    } finally {
      this.#passes.delete(running);
    }
  }

  async start(): Promise<void> {
    if (this.state === 'Stopping') {
      throw new ChronosError('WRONG_STATE', 'the scheduler is stopping: await stop() before start()');
    }
    if (this.#starting !== undefined) return this.#starting;
    const starting = this.#failure === undefined ? this.#start() : this.#startAfterFailure(this.#failure);
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
      const report = (await this.#stopping) ?? this.#lastReport;
      if (this.#failure === undefined) return report;
      await this.#failure.closed;
      throw this.#failure.error;
    });
  }

  /** Connects, runs `work` and then stops. `stop()`, SIGINT and SIGTERM abort the signal of `work`. */
  async runUntilStopped<T extends object>(
    work: (components: Components, signal: AbortSignal) => Promise<T>,
    ifStoppedEarly: T,
  ): Promise<T & StopReport> {
    this.#lastReport = { left: [] };
    let result = ifStoppedEarly;
    try {
      result = await this.#stopOnSignals(async () => work(await this.connect(), this.#stopSignal.signal));
    } catch (error) {
      // stop() was called while it was connecting.
      if (!this.#stopSignal.signal.aborted) throw error;
    } finally {
      await this.stop();
    }
    return { ...result, ...this.#lastReport };
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
    if (this.#stopSignal.signal.aborted) {
      this.#stopSignal = new AbortController();
      // It may be an installation that stop() aborted and that has not ended yet.
      this.#installed = undefined;
    }
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
    const { options, definitions } = this.deps;
    let signal: AbortSignal | undefined;
    // stop() may end while a step of this start hangs, and start() may be called again before the step ends.
    const isCurrent = (): boolean => this.state === 'Starting' && signal?.aborted !== true;
    try {
      definitions.assertValidForWorker();
      const end = systemClock.monotonic() + options.connectTimeout;
      const connecting = this.connect();
      ({ signal } = this.#stopSignal);
      const step = async (operation: Operation, work: () => Promise<unknown>): Promise<void> => {
        assertStarting(isCurrent());
        await this.#retryStep(operation, work, { end, signal: this.#stopSignal.signal, isCurrent });
        assertStarting(isCurrent());
      };
      const { engine, definitionSync, services, heartbeat, faults } = await connecting;
      assertStarting(isCurrent());
      faults.onFault((fault) => this.#fail(fault));
      // Starts the renewal thread early, because that takes as long as all other steps. engine.start() waits for it.
      engine.prepare().catch(() => undefined);
      await step('install', () => this.ensureInstalled());
      await step('register schedules', async () => {
        await definitionSync.registerAll();
        await definitionSync.reportOrphans();
      });
      await step('renew locks', () => engine.start());
      for (const service of [heartbeat, ...services]) service.start();
      this.#state.enter('Running');
    } catch (thrown) {
      const error = toError(thrown);
      // If stop() was called in the meantime, it closes everything itself.
      if (isCurrent()) {
        await this.#close(CLOSE_FAILED_START_MS);
        if (this.state === 'Starting') this.#state.enter('Error', error);
      }
      throw error;
    }
  }

  /** Repeats a step of start() after errors that pass, until the time for connecting is over. Rejects with a code. */
  async #retryStep(
    operation: Operation,
    work: () => Promise<unknown>,
    { end, signal, isCurrent }: { end: number; signal: AbortSignal; isCurrent: () => boolean },
  ): Promise<void> {
    await retry(work, {
      ...CONNECT_BACKOFF,
      clock: systemClock,
      signal,
      shouldRetry: (error, _, retryIn) =>
        isCurrent() && isUnreachable(error) && systemClock.monotonic() + retryIn < end,
      onRetry: (error, failures, retryIn) =>
        this.deps.events.reportError(operation, error, { failures, retryIn }),
    }).catch(explainDriverError);
  }

  /** Ends the worker as `stop()` does; its state stays Error until `start()` or `stop()` is called. */
  #fail(error: Error): void {
    if (this.state !== 'Running') return;
    this.#state.enter('Error', error);
    this.#starting = undefined;
    // The next start installs again what is gone.
    this.#installed = undefined;
    this.#stopSignal.abort();
    const closed = this.#close(this.deps.options.shutdownGrace).then(
      (report) => (this.#lastReport = report),
      () => undefined,
    );
    this.#failure = { error, closed };
  }

  async #startAfterFailure({ closed }: { closed: Promise<unknown> }): Promise<void> {
    await closed;
    this.#failure = undefined;
    await this.#start();
  }

  async #stop(budget: number): Promise<StopReport> {
    const end = systemClock.monotonic() + budget;
    const timeLeft = (): number => Math.max(0, end - systemClock.monotonic());
    const isStarting = this.state === 'Starting';
    // A listener may call stop() from within start(), before `#starting` is set.
    if (isStarting) await Promise.resolve();
    const failure = this.#failure;
    if (failure !== undefined) await whenSettled(timeLeft(), failure.closed);
    if (this.#connection === undefined && this.#starting === undefined) {
      // A start that failed, or a critical fault, has closed everything.
      if (this.state === 'Error') this.#state.enter('Stopped');
      return failure === undefined ? { left: [] } : this.#lastReport;
    }
    this.#state.enter('Stopping');
    this.#stopSignal.abort();
    // Not all of its steps can be aborted. A late one finds that it was stopped.
    if (isStarting && this.#starting !== undefined) await whenSettled(timeLeft() / 2, this.#starting);
    this.#lastReport = await this.#close(isStarting ? timeLeft() : budget);
    this.#starting = undefined;
    this.#state.enter('Stopped');
    return this.#lastReport;
  }

  /** Claims end first and the connection closes last: handlers may use this scheduler until they end. */
  async #close(budget: number): Promise<StopReport> {
    const end = systemClock.monotonic() + budget;
    const timeLeft = (): number => Math.max(MIN_STEP_MS, end - systemClock.monotonic());
    const inTime = (work: Promise<unknown>, ms = Infinity): Promise<void> =>
      whenSettled(Math.min(ms, timeLeft()), work);

    const isConnected = this.#components !== undefined;
    const connection = this.#connection;
    if (!isConnected && connection !== undefined) await inTime(connection, budget / 2);
    const components = this.#components;
    if (components === undefined) {
      this.#connection = undefined;
      connection?.then(disconnect).catch(() => undefined);
      return { left: [] };
    }
    const { engine, services, waiter, heartbeat, database, unsubscribe } = components;
    const servicesStopped = Promise.allSettled(services.map((service) => service.stop()));
    const reserve = Math.min(MAX_CLOSE_MS, budget / 8);
    await engine.stop(isConnected ? budget : timeLeft(), reserve);
    const left = await engine.close(Math.max(MIN_STEP_MS, end - systemClock.monotonic() - reserve / 2));
    // A pass sees that the engine is stopped and ends after its current statement. No handler waits for a job any more.
    const remaining = [servicesStopped, waiter.stop(), ...this.#passes];
    await inTime(Promise.allSettled(remaining), SERVICES_GRACE_MS);
    // If the database is unreachable, other workers notice the missing heartbeats.
    await inTime(heartbeat.markStopped());
    unsubscribe();
    this.#components = undefined;
    await inTime(database.close());
    this.#connection = undefined;
    return { left: left.map(({ _id, taskType }) => ({ id: _id, taskType })) };
  }
}

/** After a connection that came too late. */
async function disconnect({ database, unsubscribe }: Components): Promise<void> {
  unsubscribe();
  await database.close();
}

function assertStarting(isStarting: boolean): void {
  if (!isStarting) throw new ChronosError('WRONG_STATE', 'the scheduler was stopped while it was starting');
}
