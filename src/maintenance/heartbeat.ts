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
import type { Store } from '../store/store.js';
import type { WorkerEngine } from '../worker/engine.js';

/** A worker stays listed for a day after its last heartbeat. */
const LISTED_FOR_MS = 86_400_000;

interface HeartbeatDeps {
  clock: Clock;
  events: EventBus;
  store: Pick<Store, 'saveHeartbeat'>;
  options: Pick<ResolvedOptions, 'heartbeatInterval' | 'queues' | 'concurrency'>;
  registry: Pick<HandlerRegistry, 'taskTypes'>;
  workerId: string;
  engine: Pick<WorkerEngine, 'running'>;
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

  constructor(deps: HeartbeatDeps) {
    super(deps.clock, deps.events);
    this.#deps = deps;
    this.#startedAt = deps.clock.now();
  }

  async runOnce(): Promise<number> {
    const { databaseClock, state, options } = this.#deps;
    await databaseClock?.synchronize();
    await this.#save(state.current);
    return options.heartbeatInterval;
  }

  /** Stops and marks the worker as Stopped. */
  async markStopped(): Promise<void> {
    await this.stop();
    // A process that only dispatches sends no heartbeats and is not listed.
    if (this.#isListed) await this.#save('Stopped');
  }

  async #save(state: LifecycleState): Promise<void> {
    const { store, options, registry, workerId, engine, databaseClock, warnings } = this.#deps;
    const heartbeatAt = this.clock.now();
    await store.saveHeartbeat({
      _id: workerId,
      state,
      host: hostname(),
      pid: process.pid,
      version: VERSION,
      queues: options.queues,
      taskTypes: registry.taskTypes,
      concurrency: options.concurrency,
      running: engine.running,
      startedAt: this.#startedAt,
      clockError: databaseClock?.error ?? null,
      warnings,
      heartbeatAt,
      expiresAt: new Date(heartbeatAt.getTime() + LISTED_FOR_MS),
    });
    this.#isListed = true;
  }
}
