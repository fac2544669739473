import { fileURLToPath } from 'node:url';
import { setTimeout as pause } from 'node:timers/promises';
import mongoose from 'mongoose';
import { groupBy } from '../../src/domain/group-by.js';
import { FINISHED_STATUSES } from '../../src/domain/job.js';
import { Scheduler } from '../../src/index.js';
import { install } from '../../src/store/install.js';
import { openCollections, type Collections } from '../../src/store/models.js';
import { History, type Change } from '../../test/support/history.js';
import { checkInvariants, type JournalEntry } from '../../test/support/invariants.js';
import { seeded } from '../../test/support/seeded.js';
import { checkSchedule, tableOf, type Planned } from './calendar.js';
import { Herd, type Deeds } from './herd.js';

export interface ChaosOptions {
  uri: string;
  processes: number;
  schedules: number;
  /** Of chaos; settling and checking come on top. */
  seconds: number;
  seed: number;
  log?: (line: string) => void;
}

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

const CONCURRENCY = 20;
const MAX_CRASHES = 3;
const SETTLE_MS = 90_000;
const DEFINITIONS = fileURLToPath(new URL('definitions.mjs', import.meta.url));

/**
 * Worker processes with the same definitions are killed, frozen and restarted at random; in the end what they left
 * behind is compared with the calendar and with the invariants of the design.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { uri, processes, schedules, seconds, seed, log = () => undefined } = options;
  const random = seeded(seed);
  const table = tableOf(schedules);
  await install(uri);
  const connection = await mongoose.createConnection(uri).asPromise();
  const collections = openCollections(connection);
  const history = await History.begin(collections);
  const herd = new Herd(processes, environment(uri, table), random);
  try {
    herd.fill();
    await until(
      'every schedule is stored',
      async () => (await countAll(collections.schedules)) === schedules,
    );
    log(`${schedules} schedules are stored; ${seconds} s of chaos`);
    await strikeFor(seconds, herd, processes, random, async (left) => {
      log(`${left} s left: ${await progress(collections, herd)}`);
    });
    await herd.calm();
    log(`calm: ${await progress(collections, herd)}`);
    await pauseAll(uri, table);
    const unsettled = await settle(collections);
    log(`settled: ${await progress(collections, herd)}`);
    const violations = [...unsettled, ...(await herd.stop())];
    return await check({ collections, history, herd, table, violations });
  } finally {
    await herd.destroy();
    await connection.destroy();
  }
}

function environment(uri: string, table: readonly Planned[]): Record<string, string> {
  return {
    MONGODB_URI: uri,
    HANDLERS: DEFINITIONS,
    CHAOS_TABLE: JSON.stringify(table),
    POLL_INTERVAL: '500',
    LOCK_TIMEOUT: '3s',
    CONCURRENCY: String(CONCURRENCY),
    SHUTDOWN_GRACE: '20s',
    LOG_LEVEL: 'warn',
  };
}

/** More processes are struck more often, so that each lives as long on average. */
async function strikeFor(
  seconds: number,
  herd: Herd,
  processes: number,
  random: () => number,
  tell: (left: number) => Promise<void>,
): Promise<void> {
  const end = performance.now() + seconds * 1000;
  let told = performance.now();
  for (let now = told; now < end; now = performance.now()) {
    if (now - told > 5000) {
      told = now;
      await tell(Math.ceil((end - now) / 1000));
    }
    await pause(Math.min(end - now, ((0.4 + 1.2 * random()) * 8000) / processes));
    herd.strike();
  }
}

/** No more occurrences; what was decided is still carried out. */
async function pauseAll(uri: string, table: readonly Planned[]): Promise<void> {
  const scheduler = new Scheduler({ uri });
  try {
    for (const { name } of table) await scheduler.pauseSchedule(name, { reason: 'the chaos is over' });
  } finally {
    await scheduler.stop();
  }
}

/** Until nothing is owed and every job is finished; returns what is left when that takes too long. */
async function settle({ schedules, jobs }: Collections): Promise<string[]> {
  const unfinished = { status: { $nin: [...FINISHED_STATUSES] } };
  const owing = { 'owed.0': { $exists: true } };
  try {
    await until(
      'everything is finished',
      async () => (await schedules.findOne(owing)) === null && (await jobs.findOne(unfinished)) === null,
    );
    return [];
  } catch {
    const left = await jobs.find(unfinished).limit(20).toArray();
    return left.map(({ _id, status }) => `12: job ${_id} is ${status} ${SETTLE_MS / 1000} s after the chaos`);
  }
}

interface Left {
  collections: Collections;
  history: History;
  herd: Herd;
  table: readonly Planned[];
  violations: readonly string[];
}

async function check({ collections, history, herd, table, violations }: Left): Promise<ChaosReport> {
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
      ...{ maxAttempts: 3, maxCrashes: MAX_CRASHES, concurrency: CONCURRENCY },
      ...{ clockTolerance: 250, killedWorkers: herd.killed },
    },
  );
  const starts = journal.filter(({ kind }) => kind === 'start');
  const started = new Set(starts.map(({ jobId }) => jobId));
  const byJournal = jobs
    .filter(({ _id, status }) => status === 'COMPLETED' && !started.has(_id))
    .map(({ _id }) => `6: job ${_id} is COMPLETED, and nobody has started it`);
  const failed = jobs.filter(({ status, crashes }) => status !== 'COMPLETED' && crashes < MAX_CRASHES);
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

async function progress({ jobs, skips, executions }: Collections, herd: Herd): Promise<string> {
  const [made, finished, skipped, crashed] = await Promise.all([
    countAll(jobs),
    jobs.countDocuments({ status: { $in: [...FINISHED_STATUSES] } }),
    countAll(skips),
    executions.countDocuments({ outcome: 'crashed' }),
  ]);
  const { kills, freezes, stops } = herd.deeds;
  return [
    `${herd.alive} processes, ${kills} killed, ${freezes} frozen, ${stops} stopped;`,
    `${made} jobs, ${finished} finished, ${crashed} crashes, ${skipped} skips`,
  ].join(' ');
}

function countAll(collection: { countDocuments: () => Promise<number> }): Promise<number> {
  return collection.countDocuments();
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + SETTLE_MS;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`after ${SETTLE_MS / 1000} s still not: ${what}`);
    await pause(100);
  }
}
