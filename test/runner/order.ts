/** Long files start first, so that the last files to run are short. */
export const START_FIRST: readonly string[] = [
  'test/integration/process/one-pass.test.ts',
  'test/integration/schedules/enqueue/single-instance.test.ts',
  'test/integration/package.test.ts',
  'test/integration/worker/many-workers.test.ts',
  'test/integration/worker/worker-crash.test.ts',
  'test/integration/schedules/enqueue/enqueuer-races.test.ts',
  'test/integration/process/worker-process.test.ts',
  'test/integration/runtime/database-clock.test.ts',
  'test/integration/worker/database-outage.test.ts',
  'test/integration/cli/processes.test.ts',
  'test/integration/worker/locks/missing-outcomes.test.ts',
  'test/integration/worker/poll-loop.test.ts',
  'test/integration/store/no-primary.test.ts',
  'test/integration/worker/failover.test.ts',
  'test/integration/store/sharded-cluster.test.ts',
  'test/integration/schedules/enqueue/many-processes.test.ts',
  'test/unit/domain/calendar/rule-properties.test.ts',
];

/** Files that measure durations: they run at the end, one after the other. */
export const RUN_ALONE: readonly string[] = [
  'test/integration/worker/connection-cuts.test.ts',
  'test/integration/scripts/bench.test.ts',
];
