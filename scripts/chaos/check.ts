import { groupBy } from '../../src/domain/group-by.js';
import { FINISHED_STATUSES } from '../../src/domain/job.js';
import type { Collections } from '../../src/store/models.js';
import type { Change, History } from '../../test/support/history.js';
import { checkInvariants, type JournalEntry } from '../../test/support/invariants.js';
import { checkSchedule, type Planned } from './calendar.js';
import type { Deeds, Herd } from './herd.js';

export interface ChaosReport {
  violations: string[];
  deeds: Deeds;
  /** Occurrences by what became of them. */
  jobs: number;
  skips: Record<string, number>;
  completed: number;
  failed: number;
  /** Handlers that started, again after a crash included. */
  starts: number;
  crashes: number;
  /** Decisions that another process was first with. */
  contended: number;
  /** Milliseconds from when a job was due to its first start. */
  latency: { p50: number; p99: number; most: number };
  complaints: Map<string, number>;
}

const MAX_CRASHES = 3;

/** What the chaos left behind, and what was found wrong before. */
interface Left {
  collections: Collections;
  history: History;
  herd: Herd;
  table: readonly Planned[];
  violations: readonly string[];
  concurrency: number;
}

/** Holds everything that is left against the calendar and the invariants. */
export async function check(left: Left): Promise<ChaosReport> {
  const { collections, history, herd, table, violations, concurrency } = left;
  const { db } = collections.jobs;
  const [changes, jobs, executions, schedules, skips, journal, contention] = await Promise.all([
    history.read(),
    collections.jobs.find().toArray(),
    collections.executions.find().toArray(),
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
      ...{ clockTolerance: 250, killedWorkers: herd.killed },
    },
  );
  const starts = journal.filter(({ kind }) => kind === 'start');
  const started = new Set(starts.map(({ jobId }) => jobId));
  const byJournal = jobs
    .filter(({ _id, status }) => status === 'COMPLETED' && !started.has(_id))
    .map(({ _id }) => `6: job ${_id} is COMPLETED, and nobody has started it`);
  // One that was running whenever its process was killed is given up; nothing else may fail.
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
    deeds: herd.deeds,
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
    complaints: herd.complaints,
  };
}

/** When the server wrote that a job is finished, in milliseconds. */
function endsOf(changes: readonly Change[]): Map<string, number> {
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
  return { p50: at(0.5), p99: at(0.99), most: at(1) };
}
