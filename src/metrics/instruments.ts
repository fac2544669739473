import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** The values of a metric with one label. */
export type Figures = Iterable<readonly [label: string, value: number]>;

const DURATIONS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800, 3600];
const WAITS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 10, 30, 60, 300, 1800, 3600];
const CYCLES = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** The metrics that events update. `docs/metrics.md` is generated from their help texts. */
export function createInstruments(registry: Registry) {
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, ...labelNames: L[]): Counter<L> =>
    new Counter({ name: `chronos_${name}`, help, labelNames, registers });
  const histogram = <L extends string>(
    name: string,
    help: string,
    buckets: number[],
    ...labelNames: L[]
  ): Histogram<L> => new Histogram({ name: `chronos_${name}`, help, buckets, labelNames, registers });
  return {
    jobs: counter('jobs_total', 'Attempts by task type and outcome', 'task_type', 'outcome'),
    finished: counter(
      'queue_finished_jobs_total',
      'Jobs of a queue that completed or failed in this process',
      'queue',
    ),
    recovered: counter(
      'jobs_recovered_total',
      'Jobs of other workers that were recovered after their lock expired',
      'task_type',
    ),
    stuck: counter('stuck_handlers_total', 'Handlers that ignored their abort signal', 'task_type'),
    duration: histogram(
      'job_duration_seconds',
      'Duration of attempts that completed or failed',
      DURATIONS,
      'task_type',
    ),
    wait: histogram(
      'queue_wait_seconds',
      'Time from when a job was due to the start of its handler',
      WAITS,
      'queue',
    ),
    rounds: counter(
      'claim_rounds_total',
      'Claims: won, empty (nothing was due), or lost to other workers',
      'result',
    ),
    claimed: counter(
      'claimed_jobs_total',
      'Due jobs that were found: won, or lost to other workers',
      'result',
    ),
    renewed: counter('locks_renewed_total', 'Locks that were renewed'),
    lost: counter('locks_lost_total', 'Locks that were lost while the handler was running'),
    decisions: counter(
      'schedule_decisions_total',
      'Plans of schedules: won, lost to other workers, or refused by MongoDB',
      'result',
    ),
    pushes: counter('pushes_total', 'Jobs of due schedules: enqueued (ok), or failed', 'result'),
    skips: counter(
      'schedule_skips_total',
      'Skipped occurrences by reason; a long outage counts as one',
      'reason',
    ),
    lateness: histogram('schedule_lateness_seconds', 'Time from an occurrence to its job', WAITS),
    cycles: histogram('cycle_duration_seconds', 'Duration of successful rounds of a loop', CYCLES, 'loop'),
    goodCycle: new Gauge({
      name: 'chronos_last_good_cycle_timestamp_seconds',
      help: "When a loop last succeeded, by this machine's clock",
      labelNames: ['loop'],
      registers,
    }),
    errors: counter('errors_total', 'Errors by kind: connection, lock, decode, push, cron, other', 'kind'),
  };
}

export type Instruments = ReturnType<typeof createInstruments>;

/** A gauge that is read on every scrape. */
export function gauge(registry: Registry, name: string, help: string, read: () => number): void {
  new Gauge({
    name: `chronos_${name}`,
    help,
    registers: [registry],
    collect() {
      this.set(read());
    },
  });
}

/** A gauge with a label, read on every scrape. Labels that are not read any more disappear. */
export function gaugeBy(
  registry: Registry,
  name: string,
  help: string,
  label: string,
  read: () => Figures | Promise<Figures>,
): void {
  new Gauge({
    name: `chronos_${name}`,
    help,
    labelNames: [label],
    registers: [registry],
    async collect() {
      const figures = await read();
      this.reset();
      for (const [value, figure] of figures) this.set({ [label]: value }, figure);
    },
  });
}

const OTHER = 'other';

/**
 * One value per known name, and one (`other`) for all unknown names: stored data must not be able to create any number
 * of time series.
 */
export class LabelLimiter<T> {
  readonly #values = new Map<string, T>();
  readonly #create: (name: string) => T;
  readonly #knownNames: () => readonly string[];

  constructor(knownNames: () => readonly string[], create: (name: string) => T) {
    this.#knownNames = knownNames;
    this.#create = create;
  }

  get(name: string): T {
    return this.#values.get(name) ?? this.#getOrCreate(this.#knownNames().includes(name) ? name : OTHER);
  }

  #getOrCreate(name: string): T {
    const value = this.#values.get(name) ?? this.#create(name);
    this.#values.set(name, value);
    return value;
  }
}
