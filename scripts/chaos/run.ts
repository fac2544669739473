import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import mongoose from 'mongoose';
import { FINISHED_STATUSES } from '../../src/domain/job/job.js';
import { Scheduler } from '../../src/index.js';
import { DEFAULT_PREFIX } from '../../src/config/connection-options.js';
import type { Collections } from '../../src/store/schema/collections.js';
import { install } from '../../src/store/schema/install.js';
import { collectionsOf } from '../../test/support/database.js';
import { JobHistory } from '../../test/support/job-history.js';
import { seededRandom } from '../../test/support/seeded-random.js';
import { waitUntil } from '../../test/support/wait-until.js';
import { type Planned, planSchedules } from './calendar.js';
import { type ChaosReport, check } from './check.js';
import { ChaosWorkers } from './chaos-workers.js';
import { toJobId } from '../../src/store/jobs/stored-job.js';

export interface ChaosOptions {
  uri: string;
  processes: number;
  schedules: number;
  /** Duration of the faults, without the time for settling and checking. */
  seconds: number;
  seed: number;
  log?: (line: string) => void;
}

const CONCURRENCY = 20;
/** How long the start may take, and how long everything may take to finish after the faults. */
const SETTLE_MS = 180_000;
const DEFINITIONS = fileURLToPath(new URL('definitions.mjs', import.meta.url));

/**
 * Kills, freezes and restarts worker processes with the same definitions at random, then compares the database with the
 * calendar and with the invariants of the design.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { uri, processes, schedules, seconds, seed, log = () => undefined } = options;
  const random = seededRandom(seed);
  const table = planSchedules(schedules);
  await install({ uri, prefix: DEFAULT_PREFIX });
  const connection = await mongoose.createConnection(uri).asPromise();
  const collections = collectionsOf(connection);
  const history = await JobHistory.begin(collections);
  const workers = new ChaosWorkers(processes, environment(uri, table), random);
  try {
    workers.fill();
    const allStored = async (): Promise<boolean> => {
      const [problem] = workers.problems.keys();
      if (problem !== undefined) throw new Error(`the workers do not start: ${problem}`);
      return (await collections.schedules.countDocuments()) === schedules;
    };
    await waitUntil('every schedule is stored', allStored, SETTLE_MS);
    log(`${schedules} schedules are stored; ${seconds} s of chaos`);
    await injectFaultsFor(seconds, workers, processes, random, async (left) => {
      log(`${left} s left: ${await progress(collections, workers)}`);
    });
    await workers.endFaults();
    log(`faults ended: ${await progress(collections, workers)}`);
    await pauseAll(uri, table);
    const unsettled = await settle(collections);
    log(`settled: ${await progress(collections, workers)}`);
    const violations = [...unsettled, ...(await workers.stop())];
    return await check({ collections, history, workers, table, violations, concurrency: CONCURRENCY });
  } finally {
    await workers.destroy();
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

/** The rate of faults grows with the number of processes, so that each process lives equally long on average. */
async function injectFaultsFor(
  seconds: number,
  workers: ChaosWorkers,
  processes: number,
  random: () => number,
  report: (secondsLeft: number) => Promise<void>,
): Promise<void> {
  const end = performance.now() + seconds * 1000;
  let reportedAt = performance.now();
  for (let now = reportedAt; now < end; now = performance.now()) {
    if (now - reportedAt > 5000) {
      reportedAt = now;
      await report(Math.ceil((end - now) / 1000));
    }
    await pause(Math.min(end - now, ((0.4 + 1.2 * random()) * 8000) / processes));
    workers.injectFault();
  }
}

/** Stops new occurrences; pending ones still become jobs. */
async function pauseAll(uri: string, table: readonly Planned[]): Promise<void> {
  const scheduler = new Scheduler({ uri, logger: false });
  try {
    for (const { name } of table) await scheduler.pauseSchedule(name, { reason: 'the chaos is over' });
  } finally {
    await scheduler.stop();
  }
}

/** Waits until nothing is pending and every job is finished; returns what is unfinished if that takes too long. */
async function settle({ schedules, jobs }: Collections): Promise<string[]> {
  const unfinished = { status: { $nin: [...FINISHED_STATUSES] } };
  const withPending = { 'pending.0': { $exists: true } };
  const isSettled = async (): Promise<boolean> =>
    (await schedules.findOne(withPending)) === null && (await jobs.findOne(unfinished)) === null;
  try {
    await waitUntil('nothing is pending and every job is finished', isSettled, SETTLE_MS);
    return [];
  } catch {
    const left = await jobs.find(unfinished).limit(20).toArray();
    return left.map(
      ({ _id, status }) => `12: job ${toJobId(_id)} is ${status} ${SETTLE_MS / 1000} s after the chaos`,
    );
  }
}

async function progress({ jobs, skips, executions }: Collections, workers: ChaosWorkers): Promise<string> {
  const [created, finished, skipped, crashed] = await Promise.all([
    jobs.countDocuments(),
    jobs.countDocuments({ status: { $in: [...FINISHED_STATUSES] } }),
    skips.countDocuments(),
    executions.countDocuments({ outcome: 'crashed' }),
  ]);
  const { kills, freezes, stops } = workers.faults;
  return [
    `${workers.alive} processes, ${kills} killed, ${freezes} frozen, ${stops} stopped;`,
    `${created} jobs, ${finished} finished, ${crashed} crashes, ${skipped} skips`,
  ].join(' ');
}
