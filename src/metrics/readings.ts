import type { Registry } from 'prom-client';
import type { LifecycleState } from '../domain/events.js';
import type { WorkerLoad } from '../load.js';
import type { Backlog, BacklogFigures } from './backlog.js';
import { gauge, gaugeBy, type Figures } from './instruments.js';
import type { LoopLag } from './loop-lag.js';
import type { Tally } from './tally.js';

const STATES: readonly LifecycleState[] = ['Stopped', 'Starting', 'Running', 'Stopping', 'Error'];

export interface ReadingParts {
  load: () => WorkerLoad;
  tally: Tally;
  lag: LoopLag;
  backlog: Backlog;
  uptime: () => number;
  state: () => LifecycleState;
  version: string;
}

/** What is read when somebody scrapes, because no event tells of it. */
export function addReadings(registry: Registry, parts: ReadingParts): void {
  const { load, tally, lag, backlog, uptime, state, version } = parts;
  const connection = <T>(read: (of: NonNullable<WorkerLoad['connection']>) => T, otherwise: T): T => {
    const { connection: open } = load();
    return open === null ? otherwise : read(open);
  };
  const byQueue = async (read: (of: BacklogFigures) => number): Promise<Figures> =>
    (await backlog.figures()).map((one) => [one.queue, read(one)] as const);

  gaugeBy(registry, 'build_info', '1, with the version', 'version', () => [[version, 1]]);
  gaugeBy(registry, 'worker_state', '1 for the state the worker is in', 'state', () =>
    STATES.map((one) => [one, one === state() ? 1 : 0] as const),
  );
  gauge(registry, 'uptime_seconds', 'Since the worker is Running; 0 when it is not', () => uptime() / 1000);
  gauge(
    registry,
    'lock_success_ratio',
    'Claims and decisions that others did not win first, since the start',
    () => tally.locks.ratio,
  );
  gauge(
    registry,
    'push_success_ratio',
    'Jobs of schedules that could be put into their queue, since the start',
    () => tally.pushes.ratio,
  );
  gauge(registry, 'slots', 'How many handlers may run at once', () => load().concurrency);
  gauge(registry, 'slots_running', 'Slots whose handler runs', () => load().running);
  gauge(registry, 'jobs_buffered', 'Claimed jobs that wait for a slot', () => load().buffered);
  gauge(registry, 'outcomes_unwritten', 'Outcomes that are not in the database yet', () => load().unsettled);
  gauge(registry, 'connected', '1 while the driver knows a server to write to', () =>
    connection(({ isConnected }) => (isConnected ? 1 : 0), 0),
  );
  gaugeBy(registry, 'pool_connections', 'Connections to MongoDB: open, and of these in_use', 'use', () =>
    connection<Figures>(
      ({ open, inUse }) => [
        ['open', open],
        ['in_use', inUse],
      ],
      [],
    ),
  );
  gauge(registry, 'pool_connections_max', 'Most connections to each server', () =>
    connection(({ most }) => most, 0),
  );
  gauge(registry, 'pool_waiting', 'Operations that wait for a connection', () =>
    connection(({ waiting }) => waiting, 0),
  );
  gaugeBy(
    registry,
    'event_loop_lag_seconds',
    'How long the main thread was blocked in the last seconds',
    'stat',
    () => Object.entries(lag.read()).map(([stat, ms]: [string, number]) => [stat, ms / 1000] as const),
  );
  gaugeBy(registry, 'queue_waiting_jobs', 'Jobs that are due and not taken, up to 10,000', 'queue', () =>
    byQueue(({ waiting }) => waiting),
  );
  gaugeBy(registry, 'queue_oldest_waiting_seconds', 'How long the oldest of them has been due', 'queue', () =>
    byQueue(({ age }) => age / 1000),
  );
  gaugeBy(
    registry,
    'queue_drain_seconds',
    'How long this process alone would take for them at its last pace',
    'queue',
    () => byQueue(({ drain }) => drain / 1000),
  );
}
