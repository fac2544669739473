import type { Clock } from '../domain/clock.js';
import { type EventName, OPERATIONS, type SchedulerEvents } from '../domain/events.js';
import type { WorkerLoad } from '../lifecycle/worker-load.js';
import type { MeasurementName, Measurements } from '../runtime/measurements.js';
import { errorKind, type HealthState } from './health-state.js';
import type { Instruments } from './instruments.js';

export type MeasurementHandlers = {
  readonly [M in MeasurementName]: (measurement: Measurements[M]) => void;
};

export type EventHandlers = { readonly [E in EventName]?: (event: SchedulerEvents[E]) => void };

/** Metrics of what a worker measures about itself. */
export function measurementHandlers(
  metrics: Instruments,
  health: HealthState,
  clock: Clock,
): MeasurementHandlers {
  return {
    claim: ({ found, claimed }) => {
      const lost = found - claimed;
      health.locks.add(claimed, lost);
      metrics.rounds.inc({ result: claimed > 0 ? 'won' : lost > 0 ? 'lost' : 'empty' });
      metrics.claimed.inc({ result: 'won' }, claimed);
      metrics.claimed.inc({ result: 'lost' }, lost);
    },
    renewal: ({ locks }) => metrics.renewed.inc(locks),
    round: ({ operation: loop, duration }) => {
      const now = clock.now();
      metrics.cycles.observe({ loop }, duration / 1000);
      metrics.goodCycle.set({ loop }, now.getTime() / 1000);
      if (OPERATIONS[loop].isLocal !== true) health.lastGoodCycle = { at: now, monotonic: clock.monotonic() };
    },
    plan: ({ stored, conflicts, rejected }) => {
      health.locks.add(stored, conflicts);
      metrics.decisions.inc({ result: 'won' }, stored);
      metrics.decisions.inc({ result: 'lost' }, conflicts);
      metrics.decisions.inc({ result: 'refused' }, rejected);
    },
    enqueue: ({ inserted, failed }) => {
      health.pushes.add(inserted, failed);
      health.count('push', failed);
      metrics.pushes.inc({ result: 'ok' }, inserted);
      metrics.pushes.inc({ result: 'failed' }, failed);
    },
  };
}

/** Metrics of events about schedules and the worker. None of these events occurs once per job. */
export function workerEventHandlers(metrics: Instruments, health: HealthState, clock: Clock): EventHandlers {
  return {
    'worker:state': ({ state }) => {
      health.runningSince = state === 'Running' ? clock.monotonic() : undefined;
    },
    'worker:error': ({ operation, error }) => {
      const kind = errorKind(operation, error);
      // Failed inserts are counted by the measurement `enqueue`, which also covers batches that failed as a whole.
      if (kind !== 'push') health.count(kind);
    },
    'schedule:due': ({ late }) => metrics.lateness.observe(Math.max(0, late) / 1000),
    'schedule:skipped': ({ count, reason }) => metrics.skips.inc({ reason }, count ?? 1),
    'schedule:disabled': () => health.count('cron'),
    'schedule:invalid': () => health.count('decode'),
    'job:invalid': () => health.count('decode'),
  };
}

/** Metrics of job events. Each metric is looked up once per task type or queue, not once per job. */
export function jobEventHandlers(
  metrics: Instruments,
  health: HealthState,
  scheduler: { readonly load: WorkerLoad },
): { handlers: EventHandlers; finishedIn: (queue: string) => number } {
  const forType = cachePerName(
    () => scheduler.load.taskTypes,
    (task_type) => {
      const attempts = (outcome: string) => metrics.jobs.labels({ task_type, outcome });
      return {
        duration: metrics.duration.labels({ task_type }),
        recovered: metrics.recovered.labels({ task_type }),
        stuck: metrics.stuck.labels({ task_type }),
        hanging: metrics.hanging.labels({ task_type }),
        completed: attempts('completed'),
        retried: attempts('retry'),
        failed: attempts('failed'),
        cancelled: attempts('cancelled'),
        skipped: attempts('skipped'),
        expired: attempts('expired'),
        snoozed: attempts('snoozed'),
        released: attempts('released'),
        lockLost: attempts('lock_lost'),
      };
    },
  );
  const forQueue = cachePerName(
    () => scheduler.load.queues,
    (queue) => ({
      wait: metrics.wait.labels({ queue }),
      finished: metrics.finished.labels({ queue }),
      count: 0,
    }),
  );
  const countFinished = (name: string): void => {
    const queue = forQueue(name);
    queue.finished.inc();
    queue.count++;
  };
  const handlers: EventHandlers = {
    'job:start': ({ queue, waited }) => forQueue(queue).wait.observe(waited / 1000),
    'job:complete': ({ taskType, queue, duration }) => {
      const type = forType(taskType);
      type.completed.inc();
      type.duration.observe(duration / 1000);
      countFinished(queue);
    },
    'job:failed': ({ taskType, queue, duration, willRetry }) => {
      const type = forType(taskType);
      type.duration.observe(duration / 1000);
      if (willRetry) type.retried.inc();
      else {
        type.failed.inc();
        countFinished(queue);
      }
    },
    'job:cancelled': ({ taskType }) => forType(taskType).cancelled.inc(),
    'job:skipped': ({ taskType }) => forType(taskType).skipped.inc(),
    'job:expired': ({ taskType }) => forType(taskType).expired.inc(),
    'job:snoozed': ({ taskType }) => forType(taskType).snoozed.inc(),
    'job:released': ({ taskType }) => forType(taskType).released.inc(),
    'job:stalled': ({ taskType }) => forType(taskType).recovered.inc(),
    'job:lockLost': ({ taskType }) => {
      forType(taskType).lockLost.inc();
      metrics.lost.inc();
      health.count('lock');
    },
    'job:stuck': ({ taskType }) => forType(taskType).stuck.inc(),
    'type:hanging': ({ taskType }) => forType(taskType).hanging.set(1),
    'type:recovered': ({ taskType }) => forType(taskType).hanging.set(0),
  };
  return { handlers, finishedIn: (queue) => forQueue(queue).count };
}

/**
 * Creates one value per known name, and one (`other`) for all unknown names: stored data must not be able to create an
 * unlimited number of time series.
 */
function cachePerName<T>(
  knownNames: () => readonly string[],
  create: (name: string) => T,
): (name: string) => T {
  const values = new Map<string, T>();
  const getOrCreate = (name: string): T => {
    const value = values.get(name) ?? create(name);
    values.set(name, value);
    return value;
  };
  return (name) => values.get(name) ?? getOrCreate(knownNames().includes(name) ? name : 'other');
}
