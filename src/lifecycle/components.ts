import type { ResolvedOptions } from '../config/options.js';
import type { HandlerRegistry } from '../handlers/handler-registry.js';
import type { DispatchMiddleware } from '../jobs/dispatch-middleware.js';
import { Dispatcher } from '../jobs/dispatcher.js';
import { JobActions } from '../jobs/job-actions.js';
import type { ConnectJobs } from '../jobs/job-handle.js';
import { JobWaiter } from '../jobs/job-waiter.js';
import { FaultMonitor } from '../maintenance/fault-monitor.js';
import { HangMonitor } from '../maintenance/hang-monitor.js';
import { Heartbeat } from '../maintenance/heartbeat.js';
import { Pruner } from '../maintenance/pruner.js';
import { Sweeper } from '../maintenance/sweeper.js';
import { DatabaseClock } from '../runtime/database-clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { Service } from '../runtime/periodic-service.js';
import type { SchedulerState } from '../runtime/scheduler-state.js';
import { OutageMonitor } from '../runtime/outage-monitor.js';
import { retry } from '../runtime/retry.js';
import { random, systemClock } from '../runtime/system-clock.js';
import type { DefinitionRegistry } from '../schedules/definition/definition-registry.js';
import { DefinitionSync } from '../schedules/enqueue/definition-sync.js';
import { MalformedSchedules } from '../schedules/enqueue/malformed-schedules.js';
import { PlanExecutor } from '../schedules/enqueue/plan-executor.js';
import { PlanningLock } from '../schedules/enqueue/planning-lock.js';
import { ScheduleEnqueuer } from '../schedules/enqueue/schedule-enqueuer.js';
import { SchedulePlanner } from '../schedules/enqueue/schedule-planner.js';
import { DefinitionPass } from '../schedules/pass/definition-pass.js';
import { ManualRuns } from '../schedules/stored/manual-runs.js';
import { StoredSchedules } from '../schedules/stored/stored-schedules.js';
import { connect, CONNECT_BACKOFF, type Database } from '../store/connection.js';
import { explainOutage, isResultUnknown } from '../store/mongo-errors.js';
import { createStore } from '../store/store.js';
import { ChangeListener } from '../worker/change-listener.js';
import { WorkerEngine } from '../worker/engine.js';
import { InvalidJobs } from '../worker/invalid-jobs.js';
import { InProcessRenewer } from '../worker/locks/in-process-renewer.js';
import type { Renewer } from '../worker/locks/lock-renewer.js';
import { ThreadedRenewer } from '../worker/locks/threaded-renewer.js';

/** In addition to one per slot, which a handler uses when it reports progress. */
const SPARE_CONNECTIONS = 5;
const MAX_CONNECTIONS = 50;

/** The parts of a Scheduler that need no connection. */
export interface SchedulerDeps {
  options: ResolvedOptions;
  registry: HandlerRegistry;
  definitions: DefinitionRegistry;
  events: EventBus;
  workerId: string;
  connectJobs: ConnectJobs;
  dispatchMiddleware: DispatchMiddleware[];
}

/** Everything a connected Scheduler consists of. */
export type Components = Awaited<ReturnType<typeof connectComponents>>;

/** Connects and constructs everything that needs a connection. Nothing runs yet. */
export async function connectComponents(
  schedulerDeps: SchedulerDeps,
  state: SchedulerState,
  signal: AbortSignal,
) {
  const { options, events } = schedulerDeps;
  const { database, databaseClock, clock, store, usesMongos } = await openDatabase(schedulerDeps, signal);
  const outages = new OutageMonitor(clock, options.lockTimeout);
  const invalidJobs = new InvalidJobs({ ...schedulerDeps, store, clock });
  const deps = { ...schedulerDeps, store, clock, random, outages, invalidJobs, usesMongos };

  const changes = new ChangeListener(deps);
  const { renewer, warnings } = createRenewer(options, database, databaseClock);
  const engine = new WorkerEngine({ ...deps, renewer, changes });

  const waiter = new JobWaiter({ ...deps, changes });
  const jobs = new JobActions({ ...deps, engine, waiter });
  const dispatcher = new Dispatcher({ ...deps, engine });

  const planner = new SchedulePlanner(deps);
  const executor = new PlanExecutor({ ...deps, jobs, engine });
  const malformed = new MalformedSchedules(deps);
  const definitionSync = new DefinitionSync({ ...deps, malformed });
  const planningLock = new PlanningLock(deps);
  const enqueuer = new ScheduleEnqueuer({
    ...{ ...deps, planner, executor, definitionSync, malformed, planningLock, changes },
  });
  const storedSchedules = new StoredSchedules({ ...deps, enqueuer });
  const manualRuns = new ManualRuns({ ...deps, planner, executor, enqueuer });
  const definitionPass = new DefinitionPass({ ...deps, planner, executor, engine });

  const sweeper = new Sweeper({ ...deps, engine });
  const pruner = new Pruner(deps);
  const faults = new FaultMonitor(deps);
  const hangs = new HangMonitor({ ...deps, engine });
  const heartbeat = new Heartbeat({ ...deps, engine, state, databaseClock, warnings });

  changes.subscribe(enqueuer);
  // The event bus outlives the connection.
  const unsubscribe = events.onJobEnd((jobId, taskType) => {
    engine.jobEnded(taskType);
    enqueuer.runEnded(jobId, taskType);
  });
  // In the order they start. The heartbeat is separate because it runs until the connection closes.
  const services: readonly Service[] = [sweeper, pruner, enqueuer, changes, faults, hangs];
  return {
    ...{ ...deps, database, databaseClock, engine, waiter, jobs, dispatcher },
    ...{ definitionSync, enqueuer, storedSchedules, manualRuns, definitionPass },
    ...{ sweeper, pruner, faults, heartbeat, services, unsubscribe },
  };
}

/** In a thread if possible. The warnings say what is worse than usual in this process, for `doctor`. */
function createRenewer(
  { clock = systemClock, lockTimeout, connectTimeout }: ResolvedOptions,
  { threadSource, renewalCollections, warnings }: Database,
  databaseClock: DatabaseClock | undefined,
): { renewer: Renewer; warnings: readonly string[] } {
  if (databaseClock !== undefined && !('reason' in threadSource)) {
    const options = { source: threadSource, lockTimeout, connectTimeout };
    return { renewer: new ThreadedRenewer(databaseClock, options), warnings };
  }
  const { renew } = createStore(renewalCollections(lockTimeout));
  if (databaseClock === undefined) return { renewer: new InProcessRenewer(clock, renew), warnings };
  const reason = 'reason' in threadSource ? threadSource.reason : '';
  const warning = `locks are renewed by its main thread (${reason}): a handler that blocks the event loop can lose its lock, and its job runs again`;
  return { renewer: new InProcessRenewer(databaseClock, renew), warnings: [warning, ...warnings] };
}

/** Connects, measures the clock and checks the installation. Retries outages until the time for connecting is over. */
async function openDatabase({ options, events }: SchedulerDeps, signal: AbortSignal) {
  // Connecting takes real time, even if the application has its own clock.
  const end = systemClock.monotonic() + options.connectTimeout;
  const onRetry = (error: unknown, failures: number, retryIn: number): void =>
    events.reportError('connect', error, { failures, retryIn });
  const open = async () => {
    const database = await connect({
      source: options,
      poolSize: Math.min(MAX_CONNECTIONS, options.concurrency + SPARE_CONNECTIONS),
      timeout: end - systemClock.monotonic(),
      clock: systemClock,
      signal,
      onRetry,
    });
    try {
      const databaseClock = options.clock === undefined ? await measureClock(database) : undefined;
      const clock = options.clock ?? databaseClock ?? systemClock;
      const store = createStore(database.collections);
      const [, usesMongos] = await Promise.all([store.assertSupported(), store.usesMongos()]);
      return { database, databaseClock, clock, store, usesMongos };
    } catch (error) {
      await database.close();
      throw error;
    }
  };
  return retry(open, {
    ...CONNECT_BACKOFF,
    clock: systemClock,
    signal,
    shouldRetry: (error, _, retryIn) =>
      isResultUnknown(error) && !signal.aborted && systemClock.monotonic() + retryIn < end,
    onRetry,
  }).catch(explainOutage);
}

async function measureClock(database: Database): Promise<DatabaseClock> {
  const clock = new DatabaseClock(database);
  // A new primary has its own clock. If the measurement fails, the next heartbeat repeats it.
  database.onPrimaryChange(() => void clock.synchronize().catch(() => undefined));
  await clock.synchronize();
  return clock;
}
