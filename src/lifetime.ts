import type { ResolvedOptions } from './config/options.js';
import type { Clock } from './domain/clock.js';
import { ChronosError, toError } from './domain/errors.js';
import type { LifecycleState } from './domain/events.js';
import { openParts, type Parts } from './parts.js';
import type { EventBus, Listener } from './runtime/event-bus.js';
import { LifeCycle } from './runtime/life-cycle.js';
import { systemClock } from './runtime/system-clock.js';
import { within } from './runtime/within.js';
import type { Definitions } from './schedules/definitions.js';
import { install } from './store/install.js';
import type { HandlerRegistry } from './worker/handler-registry.js';

/** How long `stop()` waits for a sweep, a pruning or a pass under way, once the jobs are done. */
const SERVICES_GRACE = 1000;

/** What `stop()` could not finish: handlers that ignore their signal, outcomes that could not be written. */
export interface StopReport {
  left: { id: string; taskType: string }[];
}

export interface LifetimeParts {
  options: ResolvedOptions;
  registry: HandlerRegistry;
  definitions: Definitions;
  events: EventBus;
  workerId: string;
}

/** The connection of a Scheduler, and the order in which everything starts and stops. */
export class Lifetime {
  readonly #given: LifetimeParts;
  readonly #life: LifeCycle;
  #parts: Promise<Parts> | undefined;
  #open: Parts | undefined;
  #connecting = new AbortController();
  #installed: Promise<void> | undefined;
  #starting: Promise<void> | undefined;
  #stopping: Promise<StopReport> | undefined;
  #report: StopReport = { left: [] };
  readonly #passes = new Set<Promise<unknown>>();

  constructor(given: LifetimeParts) {
    this.#given = given;
    this.#life = new LifeCycle(given.events);
  }

  get state(): LifecycleState {
    return this.#life.state;
  }

  /** The parts while there is a connection; asking makes none. */
  get open(): Parts | undefined {
    return this.#open;
  }

  /** The connection is made when it is first needed, and once. */
  connect(): Promise<Parts> {
    if (this.#parts !== undefined) return this.#parts;
    this.#connecting = new AbortController();
    const opened = openParts({ ...this.#given, state: () => this.state, signal: this.#connecting.signal });
    opened.then(
      (parts) => {
        if (this.#parts === opened) this.#open = parts;
      },
      () => {
        if (this.#parts === opened) this.#parts = undefined;
      },
    );
    this.#parts = opened;
    return opened;
  }

  /** Installs once, unless it failed. */
  ensureInstalled(): Promise<void> {
    if (this.#installed !== undefined) return this.#installed;
    const installed = install(this.#given.options.uri, this.#connecting.signal);
    installed.catch(() => (this.#installed = undefined));
    this.#installed = installed;
    return installed;
  }

  /** A pass under way: the connection is not closed under it. */
  async duringPass<T>(pass: Promise<T>): Promise<T> {
    this.#passes.add(pass);
    try {
      return await pass;
    } finally {
      this.#passes.delete(pass);
    }
  }

  start(): Promise<void> {
    if (this.state === 'Stopping') {
      return Promise.reject(
        new ChronosError('WRONG_STATE', 'the scheduler is stopping: await stop() before start()'),
      );
    }
    if (this.#starting !== undefined) return this.#starting;
    const starting = this.#start();
    starting.catch(() => {
      if (this.#starting === starting) this.#starting = undefined;
    });
    this.#starting = starting;
    return starting;
  }

  stop(budget: number): Promise<StopReport> {
    this.#stopping ??= this.#stop(budget).finally(() => (this.#stopping = undefined));
    return this.#stopping;
  }

  /** Starts, stops on SIGINT or SIGTERM, and resolves when stopped. */
  async forever(budget: number): Promise<StopReport> {
    const { events } = this.#given;
    let watch: Listener<'worker:state'> = () => undefined;
    const stopped = new Promise<void>((resolve) => {
      watch = ({ state }) => {
        if (state === 'Stopped') resolve();
      };
    });
    events.on('worker:state', watch);
    const stop = (): void => void this.stop(budget);
    process.on('SIGINT', stop).on('SIGTERM', stop);
    try {
      await this.start().catch((error: unknown) => {
        if (this.#stopping === undefined) throw error;
      });
      await stopped;
      return this.#report;
    } finally {
      process.off('SIGINT', stop).off('SIGTERM', stop);
      events.off('worker:state', watch);
    }
  }

  /** Runs `work` until it ends or is told to stop, by a signal or by `stop()`; then closes everything. */
  async daemon<T>(
    budget: number,
    work: (clock: Clock, signal: AbortSignal) => Promise<T>,
    ifStopped: T,
  ): Promise<T> {
    const stop = (): void => void this.stop(budget);
    process.on('SIGINT', stop).on('SIGTERM', stop);
    try {
      const { clock } = await this.connect();
      return await work(clock, this.#connecting.signal);
    } catch (error) {
      // Told to stop while it still connected.
      if (this.#connecting.signal.aborted) return ifStopped;
      throw error;
    } finally {
      process.off('SIGINT', stop).off('SIGTERM', stop);
      await this.stop(budget);
    }
  }

  async #start(): Promise<void> {
    this.#life.enter('Starting');
    try {
      this.#given.definitions.forWorker();
      const { engine, sweeper, pruner, heartbeat, scheduling, watch } = await this.connect();
      this.#assertStarting();
      // Its thread takes as long to start as all the rest; the engine waits for it.
      engine.locks.open().catch(() => undefined);
      await this.ensureInstalled();
      this.#assertStarting();
      await scheduling.registrar.registerAll();
      await scheduling.registrar.reportOrphans();
      this.#assertStarting();
      await engine.start();
      this.#assertStarting();
      for (const service of [heartbeat, sweeper, pruner, scheduling.materialiser, watch]) service.start();
      this.#life.enter('Running');
    } catch (thrown) {
      const error = toError(thrown);
      // Unless stop() was called meanwhile, which closes everything itself.
      if (this.state === 'Starting') await this.#close(0);
      if (this.state === 'Starting') this.#life.enter('Error', error);
      throw error;
    }
  }

  #assertStarting(): void {
    if (this.state !== 'Starting')
      throw new ChronosError('WRONG_STATE', 'the scheduler was stopped while it started');
  }

  async #stop(budget: number): Promise<StopReport> {
    // A listener may call this from within start(), before that has returned.
    if (this.state === 'Starting') await Promise.resolve();
    if (this.#parts === undefined && this.#starting === undefined) return { left: [] };
    this.#life.enter('Stopping');
    // A start in progress gives up waiting for the database, and then finds that it was stopped.
    this.#connecting.abort();
    await this.#starting?.catch(() => undefined);
    this.#report = await this.#close(budget);
    this.#starting = undefined;
    this.#life.enter('Stopped');
    return this.#report;
  }

  /** First no new claims, last the connection: handlers that come to their end may still use this scheduler. */
  async #close(budget: number): Promise<StopReport> {
    const parts = await this.#parts?.catch(() => undefined);
    if (parts === undefined) return { left: [] };
    const { engine, sweeper, pruner, heartbeat, scheduling, watch, database, detach } = parts;
    const stopping = [scheduling.materialiser, watch, sweeper, pruner].map((service) => service.stop());
    const services = Promise.all(stopping);
    const left = await engine.stop(budget);
    // Told by the engine that it was stopped, a pass ends after the statement it is at.
    await within(systemClock, SERVICES_GRACE, Promise.allSettled([services, ...this.#passes]));
    // The database may be gone; that others see this process go is the last that matters then.
    await heartbeat.farewell().catch(() => undefined);
    detach();
    this.#open = undefined;
    await database.close().catch(() => undefined);
    this.#parts = undefined;
    return { left: left.map(({ _id, taskType }) => ({ id: _id, taskType })) };
  }
}
