import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

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
    finished: counter('queue_finished_jobs_total', 'Jobs that completed or failed in this process', 'queue'),
    recovered: counter(
      'jobs_recovered_total',
      'Jobs that this process recovered after their lock expired',
      'task_type',
    ),
    stuck: counter('stuck_handlers_total', 'Handlers that ignored their abort signal', 'task_type'),
    hanging: new Gauge({
      name: 'chronos_task_type_hanging',
      help: '1 while handlers run and none has ended for many times the usual duration, else 0',
      labelNames: ['task_type'],
      registers,
    }),
    duration: histogram(
      'job_duration_seconds',
      'Duration of attempts that completed or failed',
      DURATIONS,
      'task_type',
    ),
    wait: histogram('queue_wait_seconds', 'Time between a job being due and its start', WAITS, 'queue'),
    rounds: counter(
      'claim_rounds_total',
      'Claims: won, empty (nothing due), or lost to other workers',
      'result',
    ),
    claimed: counter('claimed_jobs_total', 'Due jobs found: won, or lost to other workers', 'result'),
    renewed: counter('locks_renewed_total', 'Locks that were renewed'),
    lost: counter('locks_lost_total', 'Locks that were lost while the handler was running'),
    decisions: counter(
      'schedule_decisions_total',
      'Schedule plans: won, lost to other workers, or refused by MongoDB',
      'result',
    ),
    pushes: counter('pushes_total', 'Jobs of due schedules: enqueued (ok), or failed', 'result'),
    skips: counter(
      'schedule_skips_total',
      'Skipped occurrences by reason; a long outage counts as one',
      'reason',
    ),
    lateness: histogram('schedule_lateness_seconds', 'Time between an occurrence and its job', WAITS),
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
