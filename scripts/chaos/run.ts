import { fileURLToPath } from 'node:url';
import { setTimeout as pause } from 'node:timers/promises';
import mongoose from 'mongoose';
import { FINISHED_STATUSES } from '../../src/domain/job.js';
import { Scheduler } from '../../src/index.js';
import { install } from '../../src/store/install.js';
import { openCollections, type Collections } from '../../src/store/models.js';
import { History } from '../../test/support/history.js';
import { seeded } from '../../test/support/seeded.js';
import { tableOf, type Planned } from './calendar.js';
import { check, type ChaosReport } from './check.js';
import { Herd } from './herd.js';

export interface ChaosOptions {
  uri: string;
  processes: number;
  schedules: number;
  /** Of chaos; settling and checking come on top. */
  seconds: number;
  seed: number;
  log?: (line: string) => void;
}

const CONCURRENCY = 20;
const SETTLE_MS = 180_000;
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
    await until('every schedule is stored', async () => {
      const [complaint] = herd.complaints.keys();
      if (complaint !== undefined) throw new Error(`the workers do not start: ${complaint}`);
      return (await countAll(collections.schedules)) === schedules;
    });
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
    return await check({ collections, history, herd, table, violations, concurrency: CONCURRENCY });
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
