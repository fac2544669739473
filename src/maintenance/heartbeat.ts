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

/** How long a worker stays listed after its last heartbeat. */
const LISTED_FOR_MS = 86_400_000;

export interface HeartbeatDeps {
  clock: Clock;
  events: EventBus;
  store: Pick<Store, 'saveHeartbeat'>;
  options: Pick<ResolvedOptions, 'heartbeatInterval' | 'queues' | 'concurrency'>;
  registry: Pick<HandlerRegistry, 'taskTypes'>;
  workerId: string;
}

/** Keeps the document of this worker up to date, and its clock synchronized with the database. */
export class Heartbeat extends PeriodicService {
  readonly name = 'heartbeat';
  readonly #deps: HeartbeatDeps;
  readonly #engine: Pick<WorkerEngine, 'running'>;
  readonly #state: Pick<SchedulerState, 'current'>;
  /** Undefined if the application has its own clock. */
  readonly #databaseClock: Pick<DatabaseClock, 'synchronize' | 'error'> | undefined;
  readonly #startedAt: Date;
  #isListed = false;

  constructor(
    deps: HeartbeatDeps,
    engine: Pick<WorkerEngine, 'running'>,
    state: Pick<SchedulerState, 'current'>,
    databaseClock: Pick<DatabaseClock, 'synchronize' | 'error'> | undefined,
  ) {
    super(deps.clock, deps.events);
    this.#deps = deps;
    this.#engine = engine;
    this.#state = state;
    this.#databaseClock = databaseClock;
    this.#startedAt = deps.clock.now();
  }

  async runOnce(): Promise<number> {
    await this.#databaseClock?.synchronize();
    await this.#save(this.#state.current);
    return this.#deps.options.heartbeatInterval;
  }

  /** The last heartbeat of a process that stops cleanly. */
  async farewell(): Promise<void> {
    await this.stop();
    // A process that only dispatches is not listed.
    if (this.#isListed) await this.#save('Stopped');
  }

  async #save(state: LifecycleState): Promise<void> {
    const { store, options, registry, workerId } = this.#deps;
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
      running: this.#engine.running,
      startedAt: this.#startedAt,
      clockError: this.#databaseClock?.error ?? null,
      heartbeatAt,
      expiresAt: new Date(heartbeatAt.getTime() + LISTED_FOR_MS),
    });
    this.#isListed = true;
  }
}
