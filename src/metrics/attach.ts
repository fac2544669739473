import { Registry } from 'prom-client';
import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import type { EventName, LifecycleState } from '../domain/events.js';
import type { WorkerLoad } from '../lifecycle/worker-load.js';
import type { Listener } from '../runtime/event-bus.js';
import { type MeasurementName, onMeasurement } from '../runtime/measurements.js';
import { systemClock } from '../runtime/system-clock.js';
import type { QueueBacklog } from '../store/jobs/counts.js';
import { Backlog } from './backlog.js';
import { jobEventHandlers, measurementHandlers, workerEventHandlers } from './event-metrics.js';
import { addGauges, LoopLag } from './gauges.js';
import { type ErrorKind, HealthState } from './health-state.js';
import { createInstruments } from './instruments.js';

/** The part of a Scheduler that is measured. */
export interface Observed {
  readonly workerId: string;
  on<E extends EventName>(name: E, listener: Listener<E>): unknown;
  off<E extends EventName>(name: E, listener: Listener<E>): unknown;
  readonly state: LifecycleState;
  readonly load: WorkerLoad;
  backlog(): Promise<QueueBacklog[]>;
}

/** The options of `attachMetrics()`. */
export interface MetricsOptions {
  /** Labels of every metric, in addition to those that the scrape adds. Default none. */
  labels?: Record<string, string>;
  /** Source of the time. Default: this machine's clock. */
  clock?: Clock;
}

/** The health of a worker, for probes. Durations in milliseconds. */
export interface Health {
  state: LifecycleState;
  /** Time since the worker became Running; 0 in other states. */
  uptime: number;
  /** When a loop that uses the database last succeeded, by this machine's clock. */
  lastGoodCycle: Date | null;
  /** Time since `lastGoodCycle`. */
  sinceGoodCycle: number | null;
  /** The driver is connected to a server that accepts writes. */
  isConnected: boolean;
  /** It claims no jobs: it is draining or drained. */
  isDraining: boolean;
  /** The longest time that the event loop was blocked in the last seconds. */
  loopLag: number;
  /** Share of claims and schedule plans that were not lost to other workers, since the start. */
  lockSuccess: number;
  /** Share of the jobs of due schedules that were enqueued, since the start. */
  pushSuccess: number;
  /** Errors since the start, by kind. */
  errors: Readonly<Record<ErrorKind, number>>;
}

/** The metrics of one scheduler. */
export interface Metrics {
  /** The registry of prom-client. You can add your own metrics to it. */
  readonly registry: Registry;
  readonly contentType: string;
  /** All metrics in the Prometheus text format. Reads the database at most every 15 seconds. */
  text(): Promise<string>;
  /** Does not read the database. */
  health(): Health;
  /** Stops counting and measuring. */
  detach(): void;
}

const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/** Counts and measures what a scheduler does, in its own registry. */
export function attachMetrics(scheduler: Observed, options: MetricsOptions = {}): Metrics {
  const { clock = systemClock, labels = {} } = options;
  const registry = new Registry();
  registry.setDefaultLabels(parseLabels({ ...labels }));
  const instruments = createInstruments(registry);
  const health = new HealthState(instruments);
  if (scheduler.state === 'Running') health.runningSince = clock.monotonic();
  const jobs = jobEventHandlers(instruments, health, scheduler);
  const lag = new LoopLag(clock);
  const backlog = new Backlog({ clock, read: () => scheduler.backlog(), finishedIn: jobs.finishedIn });
  const uptime = (): number =>
    health.runningSince === undefined ? 0 : clock.monotonic() - health.runningSince;
  addGauges(registry, { scheduler, health, lag, backlog, uptime });

  // Each name has the right listener type; TypeScript loses that in a loop.
  const handlers = { ...jobs.handlers, ...workerEventHandlers(instruments, health, clock) } as Record<
    EventName,
    Listener<EventName>
  >;
  const names = Object.keys(handlers) as EventName[];
  for (const name of names) scheduler.on(name, handlers[name]);
  const measured = measurementHandlers(instruments, health, clock);
  const unsubscribe = (Object.keys(measured) as MeasurementName[]).map((name) =>
    onMeasurement(scheduler.workerId, name, measured[name] as (measurement: unknown) => void),
  );
  return {
    registry,
    contentType: registry.contentType,
    text: () => registry.metrics(),
    health: () => ({
      state: scheduler.state,
      uptime: uptime(),
      lastGoodCycle: health.lastGoodCycle?.at ?? null,
      sinceGoodCycle:
        health.lastGoodCycle === null ? null : clock.monotonic() - health.lastGoodCycle.monotonic,
      isConnected: scheduler.load.connection?.isConnected ?? false,
      isDraining: scheduler.load.isDraining,
      loopLag: lag.read().max,
      lockSuccess: health.locks.ratio,
      pushSuccess: health.pushes.ratio,
      errors: { ...health.errors },
    }),
    detach: () => {
      for (const name of names) scheduler.off(name, handlers[name]);
      for (const end of unsubscribe) end();
      lag.stop();
    },
  };
}

function parseLabels(labels: Record<string, unknown>): Record<string, string> {
  for (const [name, value] of Object.entries(labels)) {
    if (!LABEL_NAME.test(name) || typeof value !== 'string') {
      throw new ChronosError(
        'INVALID_ARGUMENT',
        `attachMetrics() labels: names must consist of letters, digits and _, and values must be strings; got ${JSON.stringify({ [name]: value })}`,
      );
    }
  }
  return labels as Record<string, string>;
}

export { ERROR_KINDS, errorKind, type ErrorKind } from './health-state.js';
