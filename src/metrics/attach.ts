import { Registry } from 'prom-client';
import { VERSION } from '../config/version.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import type { EventName, LifecycleState } from '../domain/events.js';
import type { WorkerLoad } from '../load.js';
import type { Listener } from '../runtime/event-bus.js';
import { systemClock } from '../runtime/system-clock.js';
import type { QueueBacklog } from '../store/backlog.js';
import { Backlog } from './backlog.js';
import type { ErrorKind } from './error-kind.js';
import { createInstruments } from './instruments.js';
import { jobReactions } from './job-reactions.js';
import { LoopLag } from './loop-lag.js';
import { addReadings } from './readings.js';
import { otherReactions } from './reactions.js';
import { Tally } from './tally.js';

/** What is needed of a Scheduler. */
export interface Observed {
  on<E extends EventName>(name: E, listener: Listener<E>): unknown;
  off<E extends EventName>(name: E, listener: Listener<E>): unknown;
  readonly state: LifecycleState;
  readonly load: WorkerLoad;
  backlog(): Promise<QueueBacklog[]>;
}

export interface MetricsOptions {
  /** Labels for every metric, beside those that the scrape adds. Default none. */
  labels?: Record<string, string>;
  /** Where the time comes from. Default: this machine. */
  clock?: Clock;
}

/** How a worker is, for probes. Durations in milliseconds. */
export interface Health {
  state: LifecycleState;
  /** Since it is Running; 0 when it is not. */
  uptime: number;
  /** When a loop last went well that asks the database, by this machine's clock, and how long ago that is. */
  lastGoodCycle: Date | null;
  sinceGoodCycle: number | null;
  /** Whether the driver knows a server to write to. */
  isConnected: boolean;
  /** The longest time this thread was blocked in the last seconds. */
  loopLag: number;
  /** Share of claims and decisions about schedules that others did not win first, since the start. */
  lockSuccess: number;
  pushSuccess: number;
  /** Since the start. */
  errors: Readonly<Record<ErrorKind, number>>;
}

export interface Metrics {
  /** prom-client's; add your own metrics if you like. */
  readonly registry: Registry;
  readonly contentType: string;
  /** Everything, in the text format of Prometheus. Asks the database at most every 15 seconds. */
  text(): Promise<string>;
  /** Asks the database nothing. */
  health(): Health;
  /** Stops counting. */
  detach(): void;
}

const LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/** Counts and measures what a scheduler does, in a registry of its own. */
export function attachMetrics(scheduler: Observed, options: MetricsOptions = {}): Metrics {
  const { clock = systemClock, labels = {} } = options;
  const registry = new Registry();
  registry.setDefaultLabels(checkedLabels({ ...labels }));
  const load = (): WorkerLoad => scheduler.load;
  const instruments = createInstruments(registry);
  const tally = new Tally(instruments);
  if (scheduler.state === 'Running') tally.runningSince = clock.monotonic();
  const jobs = jobReactions(instruments, tally, load);
  const lag = new LoopLag(clock);
  const backlog = new Backlog({
    clock,
    read: () => scheduler.backlog(),
    finishedIn: jobs.finishedIn,
  });
  const uptime = (): number =>
    tally.runningSince === undefined ? 0 : clock.monotonic() - tally.runningSince;
  addReadings(registry, {
    load,
    tally,
    lag,
    backlog,
    uptime,
    state: () => scheduler.state,
    version: VERSION,
  });

  // The table pairs each name with the listener of its own event; the compiler cannot follow that through a loop.
  const reactions = { ...jobs.reactions, ...otherReactions(instruments, tally, clock) } as Record<
    EventName,
    Listener<EventName>
  >;
  const names = Object.keys(reactions) as EventName[];
  for (const name of names) scheduler.on(name, reactions[name]);
  return {
    registry,
    contentType: registry.contentType,
    text: () => registry.metrics(),
    health: () => ({
      state: scheduler.state,
      uptime: uptime(),
      lastGoodCycle: tally.lastGoodCycle?.at ?? null,
      sinceGoodCycle: tally.lastGoodCycle === null ? null : clock.monotonic() - tally.lastGoodCycle.monotonic,
      isConnected: load().connection?.isConnected ?? false,
      loopLag: lag.read().max,
      lockSuccess: tally.locks.ratio,
      pushSuccess: tally.pushes.ratio,
      errors: { ...tally.errors },
    }),
    detach: () => {
      for (const name of names) scheduler.off(name, reactions[name]);
      lag.stop();
    },
  };
}

function checkedLabels(labels: Record<string, unknown>): Record<string, string> {
  for (const [name, value] of Object.entries(labels)) {
    if (!LABEL.test(name) || typeof value !== 'string') {
      throw new ChronosError(
        'INVALID_ARGUMENT',
        `attachMetrics() labels are texts by a name of letters, digits and _, got ${JSON.stringify({ [name]: value })}`,
      );
    }
  }
  return labels as Record<string, string>;
}
