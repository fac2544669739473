import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** What a metric of one label can be, in the order of its labels. */
export type Figures = Iterable<readonly [label: string, value: number]>;

const DURATIONS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800, 3600];
const WAITS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 10, 30, 60, 300, 1800, 3600];
const CYCLES = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Everything that events count and measure; `docs/metrics.md` is generated from what is said here. */
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
    jobs: counter('jobs_total', 'Attempts by task type and what they came to', 'task_type', 'outcome'),
    finished: counter('queue_finished_jobs_total', 'Jobs of a queue that completed or failed here', 'queue'),
    recovered: counter(
      'jobs_recovered_total',
      'Jobs whose lock expired, taken from their worker',
      'task_type',
    ),
    stuck: counter('stuck_handlers_total', 'Handlers that ignored their aborted signal', 'task_type'),
    duration: histogram('job_duration_seconds', 'Attempts that completed or failed', DURATIONS, 'task_type'),
    wait: histogram(
      'queue_wait_seconds',
      'From when a job was due to the start of its handler',
      WAITS,
      'queue',
    ),
    rounds: counter(
      'claim_rounds_total',
      'Rounds of claims: won, empty (nothing was due), or lost',
      'result',
    ),
    claimed: counter('claimed_jobs_total', 'Due jobs that were found: won, or lost to others', 'result'),
    renewed: counter('locks_renewed_total', 'Locks that were prolonged'),
    lost: counter('locks_lost_total', 'Locks that were lost while their handler ran'),
    decisions: counter(
      'schedule_decisions_total',
      'Decisions about schedules: won, lost to others, or refused by the server',
      'result',
    ),
    pushes: counter(
      'pushes_total',
      'Jobs of schedules that were due: put into their queue (ok), or failed',
      'result',
    ),
    skips: counter(
      'schedule_skips_total',
      'Occurrences that became no job, by reason; long outages count as one',
      'reason',
    ),
    lateness: histogram('schedule_lateness_seconds', 'From an occurrence to its job', WAITS),
    cycles: histogram('cycle_duration_seconds', 'Rounds of a loop that went well', CYCLES, 'loop'),
    goodCycle: new Gauge({
      name: 'chronos_last_good_cycle_timestamp_seconds',
      help: 'When a loop last went well, by the clock of this machine',
      labelNames: ['loop'],
      registers,
    }),
    errors: counter('errors_total', 'Trouble by kind: connection, lock, decode, push, cron, other', 'kind'),
  };
}

export type Instruments = ReturnType<typeof createInstruments>;

/** A gauge that is read when somebody scrapes. */
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

/** One with a label. What is not read this time is not shown any more. */
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
