// The same jobs with other schedulers, each with the best settings from its documentation.
import { install, versionOf } from './install.js';
import { startPostgres } from './postgres.js';
import { perform, type WorkReport } from './processes.js';
import { startRedis } from './redis.js';
import type { Server } from './server-process.js';

export interface PeerOptions {
  /** Agenda uses this server, with its own database. */
  mongoUri: string;
  jobs: number;
  concurrency: number;
  runs: number;
  log: (line: string) => void;
}

export interface PeerFigures {
  peer: string;
  version: string;
  settings: string;
  /** Jobs per run: fewer than requested if the peer is slow. */
  jobs: number;
  /** Jobs per second of each run. */
  runs: number[];
}

interface Peer {
  name: string;
  module: string;
  packages: string[];
}

interface Group {
  peers: Peer[];
  start: () => Promise<Server | undefined>;
  missing: string;
}

const DATABASE = 'chronos_bench_agenda';
/** A peer that needs longer than this gets fewer jobs … */
const MAX_RUN_SECONDS = 8;
/** … as many as it runs in about this time … */
const REDUCED_RUN_SECONDS = 6;
/** … but at least this many. */
const MIN_JOBS = 1000;

/** Measures every peer whose server is installed; logs which ones are skipped. */
export async function runPeers(options: PeerOptions): Promise<PeerFigures[]> {
  const { log } = options;
  await install(log);
  const results: PeerFigures[] = [];
  for (const { peers, start, missing } of groups(options.mongoUri)) {
    const server = await start();
    if (server === undefined) {
      for (const { name } of peers) log(`${name} is skipped: ${missing}`);
      continue;
    }
    try {
      for (const peer of peers) results.push(await measure(peer, server.url, options));
    } finally {
      await server.stop();
    }
  }
  return results;
}

function groups(mongoUri: string): Group[] {
  // Not with URL, which does not support several hosts.
  const mongo = mongoUri.replace(/^([^/]+\/\/[^/?]+)(\/[^?]*)?/, `$1/${DATABASE}`);
  return [
    {
      peers: [{ name: 'Agenda', module: 'agenda', packages: ['agenda', '@agendajs/mongo-backend'] }],
      start: () => Promise.resolve({ url: mongo, stop: () => Promise.resolve() }),
      missing: 'no MongoDB',
    },
    {
      peers: [{ name: 'BullMQ', module: 'bullmq', packages: ['bullmq'] }],
      start: startRedis,
      missing: 'redis-server is not on the PATH (apt-get install redis-server)',
    },
    {
      peers: [
        { name: 'pg-boss', module: 'pg-boss', packages: ['pg-boss'] },
        { name: 'graphile-worker', module: 'graphile-worker', packages: ['graphile-worker'] },
      ],
      start: startPostgres,
      missing: 'initdb and postgres are not installed (apt-get install postgresql)',
    },
  ];
}

async function measure(peer: Peer, url: string, options: PeerOptions): Promise<PeerFigures> {
  const { concurrency, log } = options;
  const run = async (jobs: number): Promise<WorkReport & { perSecond: number }> => {
    const task = { peer: peer.module, url, jobs, concurrency };
    await perform({ ...task, task: 'fill' });
    const report = await perform({ ...task, task: 'work' });
    return { ...report, perSecond: ((jobs - report.missed) / report.milliseconds) * 1000 };
  };
  const trial = await run(MIN_JOBS);
  const isSlow = options.jobs / trial.perSecond > MAX_RUN_SECONDS;
  const jobs = isSlow ? Math.max(MIN_JOBS, roundDown(trial.perSecond * REDUCED_RUN_SECONDS)) : options.jobs;
  const runs: number[] = [];
  for (let index = 0; index < options.runs; index++) {
    const { perSecond, startedTwice, missed } = await run(jobs);
    const problems =
      startedTwice + missed > 0 ? ` (${startedTwice} started twice, ${missed} not completed)` : '';
    log(`${peer.name}: ${jobs} jobs, ${Math.round(perSecond)} per second${problems}`);
    runs.push(perSecond);
  }
  await perform({ peer: peer.module, task: 'clear', url, jobs: 0, concurrency });
  return {
    peer: peer.name,
    version: peer.packages.map((name) => versionOf(name)).join(' with backend '),
    settings: trial.settings,
    jobs,
    runs,
  };
}

function roundDown(jobs: number): number {
  return Math.floor(jobs / 100) * 100;
}
