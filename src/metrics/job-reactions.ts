import type { WorkerLoad } from '../load.js';
import { Bounded } from './bounded.js';
import type { Instruments } from './instruments.js';
import type { Reactions } from './reactions.js';
import type { Tally } from './tally.js';

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

/** What events about jobs count. Each metric is looked up once per task type or queue, not once per job. */
export function jobReactions(
  to: Instruments,
  tally: Tally,
  load: () => WorkerLoad,
): { reactions: Reactions; finishedIn: (queue: string) => number } {
  const types = new Bounded(
    () => load().taskTypes,
    (task_type) => ({
      duration: to.duration.labels({ task_type }),
      recovered: to.recovered.labels({ task_type }),
      stuck: to.stuck.labels({ task_type }),
      ...countersOf(to, task_type),
    }),
  );
  const queues = new Bounded(
    () => load().queues,
    (queue) => ({ wait: to.wait.labels({ queue }), finished: to.finished.labels({ queue }), count: 0 }),
  );
  const finish = (name: string): void => {
    const queue = queues.get(name);
    queue.finished.inc();
    queue.count++;
  };
  const reactions: Reactions = {
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
      to.lost.inc();
      tally.count('lock');
    },
    'worker:stuck': ({ taskType }) => types.get(taskType).stuck.inc(),
  };
  return { reactions, finishedIn: (queue) => queues.get(queue).count };
}

function countersOf({ jobs }: Instruments, task_type: string): Counters {
  const made = OUTCOMES.map((outcome) => [outcome, jobs.labels({ task_type, outcome })]);
  return Object.fromEntries(made) as Counters;
}
