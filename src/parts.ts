import { hostname } from 'node:os';
import type { ResolvedOptions } from './config/options.js';
import { VERSION } from './config/version.js';
import type { Clock } from './domain/clock.js';
import type { LifecycleState } from './domain/events.js';
import { Heartbeat } from './maintenance/heartbeat.js';
import { Pruner } from './maintenance/pruner.js';
import { Sweeper } from './maintenance/sweeper.js';
import { DatabaseClock } from './runtime/database-clock.js';
import type { EventBus, Listener } from './runtime/event-bus.js';
import { random } from './runtime/random.js';
import { systemClock } from './runtime/system-clock.js';
import type { Definitions } from './schedules/definitions.js';
import { openScheduling, type Scheduling } from './schedules/scheduling.js';
import { connect, type Database } from './store/connection.js';
import { createStore, type Store } from './store/store.js';
import { explainOutage } from './store/unreachable.js';
import { WorkerEngine } from './worker/engine.js';
import type { HandlerRegistry } from './worker/handler-registry.js';
import { LocalRenewer } from './worker/local-renewer.js';
import { ThreadRenewer } from './worker/thread-renewer.js';
import { Watch } from './worker/watch.js';

/** Connections beside those that handlers can keep busy with their progress. */
const SPARE_CONNECTIONS = 5;
const MOST_CONNECTIONS = 50;

/** A process that only dispatches has no heartbeat to keep its clock true. Milliseconds. */
const STALE_CLOCK = 60_000;

/** Where these fail, owners elsewhere may be cut off too. */
const OUTAGE_SIGNS = new Set(['renew locks', 'settle']);

/** Everything a connected Scheduler consists of. Nothing runs yet. */
export interface Parts {
  database: Database;
  store: Store;
  clock: Clock;
  engine: WorkerEngine;
  sweeper: Sweeper;
  pruner: Pruner;
  heartbeat: Heartbeat;
  scheduling: Scheduling;
  watch: Watch;
  /** Measures the database's clock again when that was long ago. */
  refreshClock: () => Promise<void>;
  /** Takes the parts off the event bus, which outlives them. */
  detach: () => void;
}

export interface PartsRequest {
  options: ResolvedOptions;
  registry: HandlerRegistry;
  definitions: Definitions;
  events: EventBus;
  workerId: string;
  state: () => LifecycleState;
  signal: AbortSignal;
}

/** Connects, measures the database's clock, and puts the parts together. */
export async function openParts({
  options,
  registry,
  definitions,
  events,
  workerId,
  state,
  signal,
}: PartsRequest): Promise<Parts> {
  const clock = options.clock ?? new DatabaseClock();
  const measured = clock instanceof DatabaseClock ? clock : undefined;
  const database = await connect({
    uri: options.uri,
    poolSize: Math.min(MOST_CONNECTIONS, options.concurrency + SPARE_CONNECTIONS),
    timeout: options.connectTimeout,
    // Reaching the database takes real time, whatever clock the jobs go by.
    clock: systemClock,
    signal,
    onRetry: (error, failures, retryIn) => {
      events.emit('worker:trouble', { operation: 'reach MongoDB', error, failures, retryIn });
    },
  });
  const synchronise = async (): Promise<void> => measured?.synchronise(database.readServerTime);
  try {
    await synchronise().catch(explainOutage);
  } catch (error) {
    await database.close();
    throw error;
  }
  const store = createStore(database.collections);
  const taskTypes = (): readonly string[] => registry.taskTypes;
  const watch = new Watch({
    clock,
    events,
    store,
    queues: options.queues,
    taskTypes,
    pollInterval: options.pollInterval,
    isBusy: () => engine.isBusy,
    onNews: ({ schedules, dueAt, cancelled }) => {
      if (schedules) scheduling.materialiser.changed();
      if (dueAt !== undefined) engine.dueAt(dueAt);
      for (const jobId of cancelled) engine.heardOfCancel(jobId);
    },
    onGap: () => {
      engine.lookAround();
      scheduling.materialiser.changed();
    },
  });
  const patience = (): number => watch.patience;
  const engine = new WorkerEngine({
    store,
    clock,
    events,
    random,
    options,
    registry,
    workerId,
    renewer: measured === undefined ? new LocalRenewer(clock, store.renew) : new ThreadRenewer(options),
    anchor: () => measured?.anchor,
    patience,
    onSated: () => {
      watch.listen();
    },
  });
  const scheduling = openScheduling({
    ...{ store, clock, events, random, options, registry, definitions, engine, workerId, patience },
  });
  const startedAt = clock.now();
  const heartbeat = new Heartbeat({
    clock,
    events,
    store,
    interval: options.heartbeatInterval,
    synchronise,
    facts: () => ({
      _id: workerId,
      state: state(),
      host: hostname(),
      pid: process.pid,
      version: VERSION,
      queues: options.queues,
      taskTypes: taskTypes(),
      concurrency: options.concurrency,
      running: engine.running,
      startedAt,
      clockError: measured?.error ?? null,
    }),
  });
  // A new primary has a clock of its own. Without a measurement the old one is good enough until the next heartbeat.
  database.onPrimaryChange(() => void synchronise().catch(() => undefined));
  const sweeper = new Sweeper({ clock, events, random, workerId, store, options });
  const noticeOutage: Listener<'worker:trouble'> = ({ operation }) => {
    if (OUTAGE_SIGNS.has(operation)) sweeper.noticeOutage();
  };
  // What the sweep recovers may be for this process.
  const nudge = (): void => engine.nudge();
  events.on('worker:trouble', noticeOutage);
  events.on('job:stalled', nudge);
  registry.onChange(() => {
    nudge();
    watch.reopen();
  });
  return {
    database,
    store,
    clock,
    engine,
    sweeper,
    pruner: new Pruner({ clock, events, store, options, taskTypes, knowsHandlers: () => registry.isUsed }),
    heartbeat,
    scheduling,
    watch,
    refreshClock: async () => {
      if (measured !== undefined && measured.age > STALE_CLOCK) await synchronise().catch(explainOutage);
    },
    detach: () => {
      scheduling.detach();
      events.off('worker:trouble', noticeOutage);
      events.off('job:stalled', nudge);
      registry.onChange(() => undefined);
    },
  };
}
