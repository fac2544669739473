import type { Clock } from '../domain/clock.js';
import { type EventName, OPERATIONS, type SchedulerEvents } from '../domain/events.js';
import type { WorkerLoad } from '../lifecycle/worker-load.js';
import { errorKind, type HealthState } from './health-state.js';
import { LabelLimiter, type Instruments } from './instruments.js';

export type EventHandlers = { readonly [E in EventName]?: (event: SchedulerEvents[E]) => void };

/** Metrics of events about schedules and the worker. None of these events occurs once per job. */
export function workerEventHandlers(metrics: Instruments, health: HealthState, clock: Clock): EventHandlers {
  return {
    'worker:claim': ({ found, claimed }) => {
      const lost = found - claimed;
      health.locks.add(claimed, lost);
      metrics.rounds.inc({ result: claimed > 0 ? 'won' : lost > 0 ? 'lost' : 'empty' });
      metrics.claimed.inc({ result: 'won' }, claimed);
      metrics.claimed.inc({ result: 'lost' }, lost);
    },
    'worker:renewed': ({ locks }) => metrics.renewed.inc(locks),
    'worker:cycle': ({ operation: loop, duration }) => {
      const now = clock.now();
      metrics.cycles.observe({ loop }, duration / 1000);
      metrics.goodCycle.set({ loop }, now.getTime() / 1000);
      if (OPERATIONS[loop].isLocal !== true) health.lastGoodCycle = { at: now, monotonic: clock.monotonic() };
    },
    'worker:state': ({ state }) => {
      health.runningSince = state === 'Running' ? clock.monotonic() : undefined;
    },
    'worker:trouble': ({ operation, error }) => {
      const kind = errorKind(operation, error);
      // Counted by `schedule:pushed`, which also counts a whole batch that failed for another reason.
      if (kind !== 'push') health.count(kind);
    },
    'schedule:due': ({ late }) => metrics.lateness.observe(Math.max(0, late) / 1000),
    'schedule:skipped': ({ count, reason }) => metrics.skips.inc({ reason }, count ?? 1),
    'schedule:decided': ({ won, lost, refused }) => {
      health.locks.add(won, lost);
      metrics.decisions.inc({ result: 'won' }, won);
      metrics.decisions.inc({ result: 'lost' }, lost);
      metrics.decisions.inc({ result: 'refused' }, refused);
    },
    'schedule:pushed': ({ pushed, failed }) => {
      health.pushes.add(pushed, failed);
      health.count('push', failed);
      metrics.pushes.inc({ result: 'ok' }, pushed);
      metrics.pushes.inc({ result: 'failed' }, failed);
    },
    'schedule:disabled': () => health.count('cron'),
    'schedule:unreadable': () => health.count('decode'),
  };
}

const OUTCOMES = [
  'completed',
  'retry',
  'failed',
  'cancelled',
  'skipped',
  'snoozed',
  'given_back',
  'lock_lost',
] as const;

type Counters = Record<(typeof OUTCOMES)[number], { inc(): void }>;

/** Metrics of job events. Each metric is looked up once per task type or queue, not once per job. */
export function jobEventHandlers(
  metrics: Instruments,
  health: HealthState,
  load: () => WorkerLoad,
): { handlers: EventHandlers; finishedIn: (queue: string) => number } {
  const types = new LabelLimiter(
    () => load().taskTypes,
    (task_type) => ({
      duration: metrics.duration.labels({ task_type }),
      recovered: metrics.recovered.labels({ task_type }),
      stuck: metrics.stuck.labels({ task_type }),
      ...outcomeCounters(metrics, task_type),
    }),
  );
  const queues = new LabelLimiter(
    () => load().queues,
    (queue) => ({
      wait: metrics.wait.labels({ queue }),
      finished: metrics.finished.labels({ queue }),
      count: 0,
    }),
  );
  const finish = (name: string): void => {
    const queue = queues.get(name);
    queue.finished.inc();
    queue.count++;
  };
  const handlers: EventHandlers = {
    'job:start': ({ queue, waited }) => queues.get(queue).wait.observe(waited / 1000),
    'job:complete': ({ taskType, queue, duration }) => {
      const type = types.get(taskType);
      type.completed.inc();
      type.duration.observe(duration / 1000);
      finish(queue);
    },
    'job:failed': ({ taskType, queue, duration, willRetry }) => {
      const type = types.get(taskType);
      type.duration.observe(duration / 1000);
      if (willRetry) type.retry.inc();
      else {
        type.failed.inc();
        finish(queue);
      }
    },
    'job:cancelled': ({ taskType }) => types.get(taskType).cancelled.inc(),
    'job:skipped': ({ taskType }) => types.get(taskType).skipped.inc(),
    'job:snoozed': ({ taskType }) => types.get(taskType).snoozed.inc(),
    'job:givenBack': ({ taskType }) => types.get(taskType).given_back.inc(),
    'job:stalled': ({ taskType }) => types.get(taskType).recovered.inc(),
    'job:lockLost': ({ taskType }) => {
      types.get(taskType).lock_lost.inc();
      metrics.lost.inc();
      health.count('lock');
    },
    'worker:stuck': ({ taskType }) => types.get(taskType).stuck.inc(),
  };
  return { handlers, finishedIn: (queue) => queues.get(queue).count };
}

function outcomeCounters({ jobs }: Instruments, task_type: string): Counters {
  const made = OUTCOMES.map((outcome) => [outcome, jobs.labels({ task_type, outcome })]);
  return Object.fromEntries(made) as Counters;
}
