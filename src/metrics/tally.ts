import type { Clock } from '../domain/clock.js';
import type { EventName, LifecycleState, SchedulerEvents } from '../domain/events.js';
import type { WorkerLoad } from '../load.js';
import { Bounded } from './bounded.js';
import { ERROR_KINDS, errorKind, type ErrorKind } from './error-kind.js';
import type { Instruments } from './instruments.js';

/** Looks at what this process remembers, and asks the database nothing: that it goes well says little. */
const LOCAL_LOOP = 'watch locks';

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

type Reactions = { readonly [E in EventName]?: (event: SchedulerEvents[E]) => void };

/** Won and lost, ever. */
export interface Score {
  won: number;
  lost: number;
}

/** Counts what the events of a scheduler tell. Each metric is looked up once per label, not once per job. */
export class Tally {
  readonly locks: Score = { won: 0, lost: 0 };
  readonly pushes: Score = { won: 0, lost: 0 };
  readonly errors: Record<ErrorKind, number>;
  /** Monotonic time since when it is Running. */
  runningSince: number | undefined;
  lastGoodCycle: Date | null = null;
  readonly reactions: Reactions;
  /** Jobs of a queue that were finished here, ever. */
  readonly finishedIn: (queue: string) => number;

  constructor(to: Instruments, clock: Clock, load: () => WorkerLoad, state: LifecycleState) {
    const typesOf = (): readonly string[] => load().taskTypes;
    const types = new Bounded(typesOf, (task_type) => ({
      duration: to.duration.labels({ task_type }),
      recovered: to.recovered.labels({ task_type }),
      stuck: to.stuck.labels({ task_type }),
      ...outcomesOf(to, task_type),
    }));
    const queues = new Bounded(
      () => load().queues,
      (queue) => ({ wait: to.wait.labels({ queue }), finished: to.finished.labels({ queue }), count: 0 }),
    );
    const loops = new Map<
      string,
      { duration: { observe(v: number): void }; good: { set(v: number): void } }
    >();
    const finish = (name: string): void => {
      const queue = queues.get(name);
      queue.finished.inc();
      queue.count++;
    };
    const fault = (kind: ErrorKind): void => {
      this.errors[kind]++;
      to.errors.inc({ kind });
    };
    this.finishedIn = (name) => queues.get(name).count;
    this.errors = Object.fromEntries(ERROR_KINDS.map((kind) => [kind, 0])) as Record<ErrorKind, number>;
    for (const kind of ERROR_KINDS) to.errors.inc({ kind }, 0);
    if (state === 'Running') this.runningSince = clock.monotonic();

    this.reactions = {
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
        fault('lock');
      },
      'worker:stuck': ({ taskType }) => types.get(taskType).stuck.inc(),
      'worker:claim': ({ found, claimed }) => {
        to.rounds.inc({ result: claimed > 0 ? 'won' : found > 0 ? 'lost' : 'empty' });
        score(this.locks, claimed, found - claimed);
        to.claimed.inc({ result: 'won' }, claimed);
        to.claimed.inc({ result: 'lost' }, found - claimed);
      },
      'worker:renewed': ({ locks }) => to.renewed.inc(locks),
      'worker:cycle': ({ operation, duration }) => {
        const loop = loops.get(operation) ?? {
          duration: to.cycles.labels({ loop: operation }),
          good: to.goodCycle.labels({ loop: operation }),
        };
        loops.set(operation, loop);
        const now = clock.now();
        loop.duration.observe(duration / 1000);
        loop.good.set(now.getTime() / 1000);
        if (operation !== LOCAL_LOOP) this.lastGoodCycle = now;
      },
      'worker:state': ({ state: entered }) => {
        this.runningSince = entered === 'Running' ? clock.monotonic() : undefined;
      },
      'worker:trouble': ({ operation, error }) => fault(errorKind(operation, error)),
      'schedule:due': ({ late }) => to.lateness.observe(Math.max(0, late) / 1000),
      'schedule:skipped': ({ count, reason }) => to.skips.inc({ reason }, count ?? 1),
      'schedule:decided': ({ won, lost, refused }) => {
        score(this.locks, won, lost);
        to.decisions.inc({ result: 'won' }, won);
        to.decisions.inc({ result: 'lost' }, lost);
        to.decisions.inc({ result: 'refused' }, refused);
      },
      'schedule:pushed': ({ pushed, failed }) => {
        score(this.pushes, pushed, failed);
        to.pushes.inc({ result: 'ok' }, pushed);
        to.pushes.inc({ result: 'failed' }, failed);
      },
      'schedule:disabled': () => fault('cron'),
      'schedule:unreadable': () => fault('decode'),
    };
  }
}

/** Of all that was tried; 1 when nothing was. */
export function ratio({ won, lost }: Score): number {
  return won + lost === 0 ? 1 : won / (won + lost);
}

function score(to: Score, won: number, lost: number): void {
  to.won += won;
  to.lost += lost;
}

function outcomesOf(to: Instruments, task_type: string): Record<(typeof OUTCOMES)[number], { inc(): void }> {
  const made = OUTCOMES.map((outcome) => [outcome, to.jobs.labels({ task_type, outcome })]);
  return Object.fromEntries(made) as Record<(typeof OUTCOMES)[number], { inc(): void }>;
}
