// The same jobs with other schedulers, each at the best settings that its documentation names.
import { install, versionOf } from './install.js';
import { startPostgres } from './postgres.js';
import { perform, type WorkReport } from './processes.js';
import { startRedis } from './redis.js';
import type { Server } from './server-process.js';

export interface PeerOptions {
  /** Agenda works on this server, in a database of its own. */
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
  /** Of one run: fewer than asked for when the peer is slow. */
  jobs: number;
  /** The median of the runs. */
  jobsPerSecond: number;
  runs: number[];
  /** Over all runs. */
  twice: number;
  missed: number;
}

export type PeerResult = PeerFigures | { peer: string; skipped: string };

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
/** A run of a slow peer takes about so long. */
const RUN_SECONDS = 6;
const LONGEST_RUN_SECONDS = 8;
const FEWEST_JOBS = 1000;

export async function runPeers(options: PeerOptions): Promise<PeerResult[]> {
  const { log } = options;
  await install(log);
  const results: PeerResult[] = [];
  for (const { peers, start, missing } of groups(options.mongoUri)) {
    const server = await start();
    if (server === undefined) {
      for (const { name } of peers) {
        log(`${name} is skipped: ${missing}`);
        results.push({ peer: name, skipped: missing });
      }
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
  // Not a job for URL, which knows nothing of several hosts.
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
      missing: 'initdb and postgres are not on the machine (apt-get install postgresql)',
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
  const trial = await run(FEWEST_JOBS);
  const tooMany = options.jobs / trial.perSecond > LONGEST_RUN_SECONDS;
  const jobs = tooMany ? Math.max(FEWEST_JOBS, roundedDown(trial.perSecond * RUN_SECONDS)) : options.jobs;
  const reports = [];
  for (let index = 0; index < options.runs; index++) {
    const report = await run(jobs);
    const { perSecond, twice, missed } = report;
    const faults = twice + missed > 0 ? ` (${twice} started twice, ${missed} missed)` : '';
    log(`${peer.name}: ${jobs} jobs, ${Math.round(perSecond)} a second${faults}`);
    reports.push(report);
  }
  await perform({ peer: peer.module, task: 'clear', url, jobs: 0, concurrency });
  return {
    peer: peer.name,
    version: peer.packages.map((name) => versionOf(name)).join(' with backend '),
    settings: trial.settings,
    jobs,
    jobsPerSecond: median(reports.map(({ perSecond }) => perSecond)),
    runs: reports.map(({ perSecond }) => perSecond),
    twice: sum(reports.map(({ twice }) => twice)),
    missed: sum(reports.map(({ missed }) => missed)),
  };
}

function roundedDown(jobs: number): number {
  return Math.floor(jobs / 100) * 100;
}

function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? NaN) + (sorted[Math.floor(middle)] ?? NaN)) / 2;
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
