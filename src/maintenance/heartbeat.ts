import { hostname } from 'node:os';
import type { ResolvedOptions } from '../config/options.js';
import { VERSION } from '../config/version.js';
import type { Clock } from '../domain/clock.js';
import type { LifecycleState } from '../domain/events.js';
import type { HandlerRegistry } from '../handlers/handler-registry.js';
import type { DatabaseClock } from '../runtime/database-clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/periodic-service.js';
import type { SchedulerState } from '../runtime/scheduler-state.js';
import { SILENT_AFTER_MS, type WorkerDocument } from '../store/schema/system-schemas.js';
import type { Store } from '../store/store.js';
import type { WorkerEngine } from '../worker/engine.js';

/** A worker stays listed for a day after its last heartbeat. */
const LISTED_FOR_MS = 86_400_000;
const MAX_RETRY_MS = 2000;

interface HeartbeatDeps {
  clock: Clock;
  events: EventBus;
  store: Pick<Store, 'saveHeartbeat' | 'findLockOwners'>;
  options: Pick<ResolvedOptions, 'heartbeatInterval' | 'queues' | 'concurrency'>;
  registry: Pick<HandlerRegistry, 'taskTypes'>;
  workerId: string;
  engine: Pick<WorkerEngine, 'running' | 'queueSlots' | 'isDraining' | 'drain' | 'undrain'>;
  state: Pick<SchedulerState, 'current'>;
  /** Undefined if the application has its own clock. */
  databaseClock: Pick<DatabaseClock, 'synchronize' | 'error'> | undefined;
  /** What is worse than usual because of the client that the application passed. */
  warnings: readonly string[];
}

/** Updates the document of this worker and synchronizes its clock with the database. */
export class Heartbeat extends PeriodicService {
  readonly name = 'heartbeat';
  readonly #deps: HeartbeatDeps;
  readonly #startedAt: Date;
  #isListed = false;
  /** False in a process that only runs passes. */
  #isWorker = false;
  /** Passes in progress. */
  #passes = 0;
  /**
   * Stored with the next heartbeat. At first false: a request to an earlier process with the same id is void. Undefined
   * once it is stored: from then on, the stored request counts, which any process may change.
   */
  #ownRequest: boolean | undefined = false;

  constructor(deps: HeartbeatDeps) {
    super(deps.clock, deps.events);
    this.#deps = deps;
    this.#startedAt = deps.clock.now();
  }

  /** After an outage, other workers must soon see that this one is alive: otherwise they count crashes of its jobs. */
  protected override get maxRetryDelay(): number {
    return MAX_RETRY_MS;
  }

  override start(): void {
    const wasWorker = this.#isWorker;
    this.#isWorker = true;
    super.start();
    // It may be running for a pass, whose document lists no task types.
    if (!wasWorker) this.wake();
  }

  /**
   * Sends heartbeats while a pass runs, also in a process that was not started as a worker: if a lock of its jobs
   * expires, other processes must know whether it is alive.
   */
  async duringPass(pass: () => Promise<void>): Promise<void> {
    this.#passes++;
    try {
      if (!(await this.#isIdInUse())) super.start();
      await pass();
    } finally {
      this.#passes--;
      await this.#endPasses();
    }
  }

  async #endPasses(): Promise<void> {
    const isOver = (): boolean => this.#passes === 0 && !this.#isWorker;
    if (!isOver()) return;
    await this.stop();
    // If this fails, other processes notice the missing heartbeats.
    if (isOver()) await this.#saveStopped().catch(() => undefined);
  }

  /** `work` and a pass may have the same WORKER_ID. The document then stays that of the worker. */
  async #isIdInUse(): Promise<boolean> {
    const { store, workerId } = this.#deps;
    const other = (await store.findLockOwners([workerId])).get(workerId);
    if (other === undefined || other.startedAt.getTime() === this.#startedAt.getTime()) return false;
    const silentFor = this.clock.now().getTime() - other.heartbeatAt.getTime();
    return other.state === 'Running' && silentFor < SILENT_AFTER_MS;
  }

  async runOnce(): Promise<number> {
    const { databaseClock, state, options } = this.#deps;
    await databaseClock?.synchronize();
    // The document may already say that the worker has stopped.
    if (this.stopping) return options.heartbeatInterval;
    const isPass = !this.#isWorker && state.current !== 'Stopping';
    const isRequested = await this.#save(isPass ? 'Running' : state.current);
    if (isRequested !== undefined && isRequested !== this.#deps.engine.isDraining) {
      this.#setDraining(isRequested);
      // Stores what the worker does now.
      return 0;
    }
    return options.heartbeatInterval;
  }

  /** This process drains or undrains itself: overrides earlier requests of other processes. */
  announceDraining(isDraining: boolean): void {
    this.#ownRequest = isDraining;
    this.wake();
  }

  /** Stops and marks the worker as Stopped, or as ended by a critical fault. */
  async markStopped(): Promise<void> {
    await this.stop();
    await this.#saveStopped();
  }

  async #saveStopped(): Promise<void> {
    // A process that only dispatches sends no heartbeats and is not listed.
    if (!this.#isListed) return;
    await this.#save(this.#deps.state.current === 'Error' ? 'Error' : 'Stopped');
    this.#isListed = false;
  }

  #setDraining(isDraining: boolean): void {
    const { engine } = this.#deps;
    if (!isDraining) return engine.undrain();
    // Lists show sooner that nothing is running any more.
    const onDrained = (): void => this.wake();
    engine.drain().then(onDrained, onDrained);
  }

  /** Returns whether another process asks this one to drain; undefined while this process's own request is not stored. */
  async #save(state: LifecycleState): Promise<boolean | undefined> {
    const { store, options, registry, workerId, engine, databaseClock, warnings } = this.#deps;
    const heartbeatAt = this.clock.now();
    const ownRequest = this.#ownRequest;
    // Expires at once: a pass every minute would leave 1,440 ended processes in the list.
    const isEndedPass = !this.#isWorker && state === 'Stopped';
    const worker: Omit<WorkerDocument, 'drainRequested'> = {
      _id: workerId,
      state,
      host: hostname(),
      pid: process.pid,
      version: VERSION,
      // Nobody may count on a pass: it serves them only until it has ended.
      queues: this.#isWorker ? options.queues : [],
      taskTypes: this.#isWorker ? registry.taskTypes : [],
      concurrency: options.concurrency,
      running: engine.running,
      queueSlots: engine.queueSlots,
      isDraining: engine.isDraining,
      startedAt: this.#startedAt,
      clockError: databaseClock?.error ?? null,
      warnings,
      heartbeatAt,
      expiresAt: new Date(heartbeatAt.getTime() + (isEndedPass ? 0 : LISTED_FOR_MS)),
    };
    const stored = await store.saveHeartbeat(worker, ownRequest);
    this.#isListed = true;
    if (this.#ownRequest !== ownRequest) return undefined;
    this.#ownRequest = undefined;
    return stored;
  }
}
