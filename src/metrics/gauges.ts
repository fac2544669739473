import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Gauge, type Registry } from 'prom-client';
import { VERSION } from '../config/version.js';
import type { Clock } from '../domain/clock.js';
import type { LifecycleState } from '../domain/events.js';
import type { WorkerLoad } from '../lifecycle/worker-load.js';
import type { Backlog, BacklogFigures } from './backlog.js';
import type { HealthState } from './health-state.js';

const STATES: readonly LifecycleState[] = ['Stopped', 'Starting', 'Running', 'Stopping', 'Error'];

/** One value per value of a label. */
type LabeledValues = readonly (readonly [label: string, value: number])[];

interface GaugeSources {
  scheduler: { readonly state: LifecycleState; readonly load: WorkerLoad };
  health: HealthState;
  lag: LoopLag;
  backlog: Backlog;
  uptime: () => number;
}

/** Metrics that are read on every scrape, because no event reports them. */
export function addGauges(registry: Registry, sources: GaugeSources): void {
  const { scheduler, health, lag, backlog, uptime } = sources;
  const registers = [registry];

  const gauge = (name: string, help: string, read: () => number): void => {
    new Gauge({
      ...{ name: `chronos_${name}`, help, registers },
      collect() {
        this.set(read());
      },
    });
  };
  /** Label values that are no longer read disappear. */
  const gaugeBy = (
    label: string,
    name: string,
    help: string,
    read: () => LabeledValues | Promise<LabeledValues>,
  ): void => {
    new Gauge({
      ...{ name: `chronos_${name}`, help, labelNames: [label], registers },
      async collect() {
        const values = await read();
        this.reset();
        for (const [labelValue, value] of values) this.set({ [label]: labelValue }, value);
      },
    });
  };
  const gaugeByQueue = (name: string, help: string, read: (figures: BacklogFigures) => number): void =>
    gaugeBy('queue', name, help, async () =>
      (await backlog.figures()).map((figures) => [figures.queue, read(figures)] as const),
    );

  gaugeBy('version', 'build_info', 'Always 1, with the version as label', () => [[VERSION, 1]]);
  gaugeBy('state', 'worker_state', '1 for the current state of the worker, else 0', () =>
    STATES.map((name) => [name, name === scheduler.state ? 1 : 0] as const),
  );
  gauge('uptime_seconds', 'Time since the worker became Running; 0 in other states', () => uptime() / 1000);
  gauge(
    'lock_success_ratio',
    'Share of claims and schedule plans that were not lost to other workers, since the start',
    () => health.locks.ratio,
  );
  gauge(
    'push_success_ratio',
    'Share of the jobs of due schedules that were enqueued, since the start',
    () => health.pushes.ratio,
  );
  gauge('slots', 'How many handlers can run at the same time', () => scheduler.load.concurrency);
  gauge('slots_running', 'Slots with a running handler', () => scheduler.load.running);
  gauge('jobs_buffered', 'Prefetched jobs that wait for a slot', () => scheduler.load.buffered);
  gauge('outcomes_unwritten', 'Outcomes that are not stored yet', () => scheduler.load.unsettled);
  gauge('draining', '1 while the worker claims no jobs because it is draining or drained, else 0', () =>
    scheduler.load.isDraining ? 1 : 0,
  );
  gauge('connected', '1 while the driver is connected to a server that accepts writes, else 0', () =>
    scheduler.load.connection?.isConnected === true ? 1 : 0,
  );
  gaugeBy(
    'use',
    'pool_connections',
    'Connections to MongoDB: open, and those of them that are in_use',
    () => {
      const { connection } = scheduler.load;
      return connection === null ? [] : Object.entries({ open: connection.open, in_use: connection.inUse });
    },
  );
  gauge(
    'pool_connections_max',
    'Maximum number of connections to each server',
    () => scheduler.load.connection?.max ?? 0,
  );
  gauge(
    'pool_waiting',
    'Operations that are waiting for a connection',
    () => scheduler.load.connection?.waiting ?? 0,
  );
  gaugeBy('stat', 'event_loop_lag_seconds', 'How long the event loop was blocked in the last seconds', () =>
    Object.entries(lag.read()).map(([stat, ms]) => [stat, ms / 1000] as const),
  );
  gaugeByQueue('queue_waiting_jobs', 'Due jobs that are not claimed, up to 10,000', ({ waiting }) => waiting);
  gaugeByQueue(
    'queue_oldest_waiting_seconds',
    'How long the oldest due job has been waiting',
    ({ age }) => age / 1000,
  );
  gaugeByQueue(
    'queue_drain_seconds',
    'Time this process alone would need for the due jobs, at its recent rate',
    ({ drain }) => drain / 1000,
  );
}

/** The interval of the measuring timer. Node's result includes it, so it is subtracted. */
const RESOLUTION_MS = 10;
/** A reading that comes later than this after the last reset starts a new measurement. */
const WINDOW_MS = 10_000;

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

  /** In milliseconds. */
  read(): Record<'mean' | 'p99' | 'max', number> {
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
