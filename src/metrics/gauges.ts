import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Registry } from 'prom-client';
import type { Clock } from '../domain/clock.js';
import type { LifecycleState } from '../domain/events.js';
import type { WorkerLoad } from '../lifecycle/worker-load.js';
import type { Backlog, BacklogFigures } from './backlog.js';
import type { HealthState } from './health-state.js';
import { type Figures, gauge, gaugeBy } from './instruments.js';

const STATES: readonly LifecycleState[] = ['Stopped', 'Starting', 'Running', 'Stopping', 'Error'];

export interface GaugeDeps {
  load: () => WorkerLoad;
  health: HealthState;
  lag: LoopLag;
  backlog: Backlog;
  uptime: () => number;
  state: () => LifecycleState;
  version: string;
}

/** Metrics that are read on a scrape, because no event reports them. */
export function addGauges(registry: Registry, deps: GaugeDeps): void {
  const { load, health, lag, backlog, uptime, state, version } = deps;
  const connection = <T>(read: (stats: NonNullable<WorkerLoad['connection']>) => T, fallback: T): T => {
    const { connection: stats } = load();
    return stats === null ? fallback : read(stats);
  };
  const byQueue = async (read: (figures: BacklogFigures) => number): Promise<Figures> =>
    (await backlog.figures()).map((figures) => [figures.queue, read(figures)] as const);

  gaugeBy(registry, 'build_info', 'Always 1, with the version as label', 'version', () => [[version, 1]]);
  gaugeBy(registry, 'worker_state', '1 for the current state of the worker, else 0', 'state', () =>
    STATES.map((name) => [name, name === state() ? 1 : 0] as const),
  );
  gauge(
    registry,
    'uptime_seconds',
    'Time since the worker is Running; 0 if it is not',
    () => uptime() / 1000,
  );
  gauge(
    registry,
    'lock_success_ratio',
    'Share of claims and plans of schedules not lost to other workers, since the start',
    () => health.locks.ratio,
  );
  gauge(
    registry,
    'push_success_ratio',
    'Share of the jobs of schedules that were enqueued, since the start',
    () => health.pushes.ratio,
  );
  gauge(registry, 'slots', 'How many handlers can run at the same time', () => load().concurrency);
  gauge(registry, 'slots_running', 'Slots with a running handler', () => load().running);
  gauge(registry, 'jobs_buffered', 'Prefetched jobs that wait for a slot', () => load().buffered);
  gauge(registry, 'outcomes_unwritten', 'Outcomes that are not written yet', () => load().unsettled);
  gauge(registry, 'connected', '1 while the driver is connected to a server that accepts writes', () =>
    connection(({ isConnected }) => (isConnected ? 1 : 0), 0),
  );
  gaugeBy(
    registry,
    'pool_connections',
    'Connections to MongoDB: open, and how many of these are in_use',
    'use',
    () =>
      connection<Figures>(
        ({ open, inUse }) => [
          ['open', open],
          ['in_use', inUse],
        ],
        [],
      ),
  );
  gauge(registry, 'pool_connections_max', 'Maximum number of connections to each server', () =>
    connection(({ max }) => max, 0),
  );
  gauge(registry, 'pool_waiting', 'Operations that are waiting for a connection', () =>
    connection(({ waiting }) => waiting, 0),
  );
  gaugeBy(
    registry,
    'event_loop_lag_seconds',
    'How long the event loop was blocked in the last seconds',
    'stat',
    () => Object.entries(lag.read()).map(([stat, ms]: [string, number]) => [stat, ms / 1000] as const),
  );
  gaugeBy(registry, 'queue_waiting_jobs', 'Due jobs that are not claimed, up to 10,000', 'queue', () =>
    byQueue(({ waiting }) => waiting),
  );
  gaugeBy(
    registry,
    'queue_oldest_waiting_seconds',
    'How long the oldest due job has been waiting',
    'queue',
    () => byQueue(({ age }) => age / 1000),
  );
  gaugeBy(
    registry,
    'queue_drain_seconds',
    'Time this process alone would need for the due jobs, at its recent rate',
    'queue',
    () => byQueue(({ drain }) => drain / 1000),
  );
}

/** The interval of the measuring timer. Node's result includes it, so it is subtracted. */
const RESOLUTION_MS = 10;
/** A reading that comes later than this after the last reset starts a new measurement. */
const WINDOW_MS = 10_000;

/** In milliseconds. */
export interface LoopLagStats {
  mean: number;
  p99: number;
  max: number;
}

/** Measures how long the event loop of this thread is blocked. */
export class LoopLag {
  readonly #clock: Clock;
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  #since: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock.monotonic();
    this.#delay.enable();
  }

  read(): LoopLagStats {
    const { mean, max } = this.#delay;
    // Nothing was measured yet.
    if (Number.isNaN(mean)) return { mean: 0, p99: 0, max: 0 };
    const stats = { mean: toLagMs(mean), p99: toLagMs(this.#delay.percentile(99)), max: toLagMs(max) };
    const now = this.#clock.monotonic();
    if (now - this.#since >= WINDOW_MS) {
      this.#since = now;
      this.#delay.reset();
    }
    return stats;
  }

  stop(): void {
    this.#delay.disable();
  }
}

function toLagMs(nanoseconds: number): number {
  return Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);
}
