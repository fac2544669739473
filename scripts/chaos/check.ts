import { FINISHED_STATUSES } from '../../src/domain/job/job.js';
import { groupBy } from '../../src/domain/language.js';
import type { Collections } from '../../src/store/schema/collections.js';
import type { JobChange, JobHistory } from '../../test/support/job-history.js';
import { checkInvariants, type JournalEntry } from '../../test/support/invariants.js';
import { checkSchedule, type Planned } from './calendar.js';
import type { FaultCounts, ChaosWorkers } from './chaos-workers.js';
import { readExecution } from '../../src/store/jobs/stored-execution.js';
import { readJob } from '../../src/store/jobs/stored-job.js';

export interface ChaosReport {
  violations: string[];
  faults: FaultCounts;
  jobs: number;
  skips: Record<string, number>;
  completed: number;
  failed: number;
  /** Started handlers, including those after a crash. */
  starts: number;
  crashes: number;
  /** Plans that were lost to another process. */
  contended: number;
  /** Milliseconds from when a job was due to its first start. */
  latency: { p50: number; p99: number; max: number };
  problems: Map<string, number>;
}

const MAX_CRASHES = 3;

interface CheckInput {
  collections: Collections;
  history: JobHistory;
  workers: ChaosWorkers;
  table: readonly Planned[];
  /** Violations that were found earlier. */
  violations: readonly string[];
  concurrency: number;
}

/** Compares everything in the database with the calendar and the invariants. */
export async function check(input: CheckInput): Promise<ChaosReport> {
  const { collections, history, workers, table, violations, concurrency } = input;
  const { db } = collections;
  const [changes, jobs, executions, schedules, skips, journal, contention] = await Promise.all([
    history.read(),
    collections.jobs.find().map(readJob).toArray(),
    collections.executions.find().map(readExecution).toArray(),
    collections.schedules.find().toArray(),
    collections.skips.find().toArray(),
    db.collection('journal').find().toArray() as Promise<unknown[]> as Promise<JournalEntry[]>,
    db.collection<{ _id: string; lost: number }>('contention').find().toArray(),
  ]);
  const ends = endsOf(changes);
  const runs = jobs.map((job) => ({ ...job, endedAt: ends.get(job._id) ?? Infinity }));
  const bySchedule = groupBy(runs, ({ schedule }) => schedule);
  const skipsOf = groupBy(skips, ({ scheduleId }) => scheduleId);
  const stored = new Map(schedules.map((schedule) => [schedule._id, schedule]));
  const byCalendar = table.flatMap((planned) => {
    const { name } = planned;
    const schedule = stored.get(name);
    if (schedule === undefined) return [`1: schedule ${name} is gone`];
    return checkSchedule(planned, schedule, bySchedule.get(name) ?? [], skipsOf.get(name) ?? []);
  });
  const acknowledged = changes.filter(({ kind }) => kind === 'insert').map(({ jobId }) => jobId);
  const byInvariants = checkInvariants(
    { changes, jobs, executions, journal, acknowledged },
    {
      ...{ maxAttempts: 3, maxCrashes: MAX_CRASHES, concurrency },
      ...{ clockTolerance: 250, killedWorkers: workers.killed },
    },
  );
  const starts = journal.filter(({ kind }) => kind === 'start');
  const started = new Set(starts.map(({ jobId }) => jobId));
  const byJournal = jobs
    .filter(({ _id, status }) => status === 'COMPLETED' && !started.has(_id))
    .map(({ _id }) => `6: job ${_id} is COMPLETED, but was never started`);
  // A job may fail only after its process was killed while it ran, three times.
  const failed = jobs.filter(
    ({ status, crashes }) => status !== 'COMPLETED' && !(status === 'FAILED' && crashes >= MAX_CRASHES),
  );
  return {
    violations: [
      ...violations,
      ...byCalendar,
      ...byInvariants,
      ...byJournal,
      ...failed.map(
        ({ _id, status, error }) => `6: job ${_id} is ${status}: ${error?.message ?? 'no error'}`,
      ),
    ],
    faults: workers.faults,
    jobs: jobs.length,
    skips: skipsByReason(skips),
    completed: jobs.filter(({ status }) => status === 'COMPLETED').length,
    failed: jobs.filter(({ status }) => status === 'FAILED').length,
    starts: starts.length,
    crashes: jobs.reduce((sum, { crashes }) => sum + crashes, 0),
    contended: contention.reduce((sum, { lost }) => sum + lost, 0),
    latency: latencyOf(
      jobs.map(({ firstStartedAt, nextRunAt, scheduledFor }) => {
        return (firstStartedAt ?? nextRunAt).getTime() - (scheduledFor ?? nextRunAt).getTime();
      }),
    ),
    problems: workers.problems,
  };
}

/** When the end of each job was written, in milliseconds. */
function endsOf(changes: readonly JobChange[]): Map<string, number> {
  const finished: readonly unknown[] = FINISHED_STATUSES;
  return new Map(
    changes
      .filter(({ fields }) => finished.includes(fields.status))
      .map(({ jobId, at }) => [jobId, at.getTime()]),
  );
}

function skipsByReason(skips: readonly { reason: string; count: number | null }[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { reason, count } of skips) counts[reason] = (counts[reason] ?? 0) + (count ?? 0);
  return counts;
}

function latencyOf(milliseconds: readonly number[]): ChaosReport['latency'] {
  const sorted = milliseconds.toSorted((a, b) => a - b);
  const at = (fraction: number): number => sorted[Math.floor(fraction * (sorted.length - 1))] ?? 0;
  return { p50: at(0.5), p99: at(0.99), max: at(1) };
}
