import mongoose from 'mongoose';
import { startShardedCluster } from '@chronos/mongod';
import { DEFAULT_PREFIX } from '../../src/config/connection-options.js';
import { type Collections, openCollections } from '../../src/store/schema/collections.js';
import { install } from '../../src/store/schema/install.js';
import { measure } from './processes.js';
import type { Report, Role } from './roles.js';

export interface BenchOptions {
  uri: string;
  /** How often each part is measured; the median is used. */
  runs: number;
  /** Multiplies every number of jobs. */
  scale: number;
  log: (line: string) => void;
}

/** The rates of one run, and the memory of the process that ran the jobs. */
interface Throughput extends Pick<Report, 'memory' | 'memories'> {
  enqueuedPerSecond: number;
  ranPerSecond: number;
}

/** What all parts of the benchmark use: fresh databases, repeated measurements, and the check of every run. */
export class Bench {
  readonly #options: BenchOptions;
  readonly #connection: mongoose.Connection;
  #databases = 0;

  private constructor(options: BenchOptions, connection: mongoose.Connection) {
    this.#options = options;
    this.#connection = connection;
  }

  static async open(options: BenchOptions): Promise<Bench> {
    return new Bench(options, await mongoose.createConnection(options.uri).asPromise());
  }

  async close(): Promise<void> {
    await this.#connection.destroy();
  }

  /** A number of jobs, multiplied by `scale`. */
  jobs(count: number): number {
    return Math.max(1, Math.round(count * this.#options.scale));
  }

  /** Repeats a measurement and returns all results. */
  async times<T>(work: (run: number) => Promise<T>): Promise<T[]> {
    const results: T[] = [];
    for (let run = 1; run <= this.#options.runs; run++) results.push(await work(run));
    return results;
  }

  log(line: string): void {
    this.#options.log(line);
  }

  collections(uri: string): Collections {
    const database = new URL(uri).pathname.slice(1);
    return openCollections({ client: this.#connection.getClient(), database, prefix: DEFAULT_PREFIX });
  }

  /** Works on a cluster with two shards, which is stopped afterwards. */
  async onShardedCluster<T>(work: (bench: Bench) => Promise<T>): Promise<T> {
    const cluster = await startShardedCluster({ log: this.#options.log });
    try {
      const bench = await Bench.open({ ...this.#options, uri: cluster.uri });
      return await work(bench).finally(() => bench.close());
    } finally {
      await cluster.stop();
    }
  }

  /** Works in a new database and drops it afterwards. */
  async inFreshDatabase<T>(work: (uri: string) => Promise<T>, { shard = false } = {}): Promise<T> {
    const uri = new URL(this.#options.uri);
    uri.pathname = `/bench${++this.#databases}`;
    await install({ uri: uri.href, prefix: DEFAULT_PREFIX }, { shard });
    try {
      return await work(uri.href);
    } finally {
      await this.collections(uri.href).db.dropDatabase();
    }
  }

  /** Enqueues jobs in bulk, and lets one process run them. */
  async enqueueAndRun(
    total: number,
    role: Role,
    enqueue: 'enqueue' | 'insert',
    options: { shard?: boolean } = {},
  ): Promise<Throughput> {
    return this.inFreshDatabase(async (uri) => {
      const enqueued = await measure(uri, { name: enqueue, total, how: 'bulk' });
      const report = await measure(uri, role);
      await this.check(uri, total, [report]);
      return {
        ...{ enqueuedPerSecond: perSecond(enqueued), ranPerSecond: perSecond(report) },
        ...{ memory: report.memory, memories: report.memories },
      };
    }, options);
  }

  /** Asserts that each job ran once: one start, one execution row, completed with fence 1. */
  async check(uri: string, total: number, reports: readonly Report[]): Promise<void> {
    const { jobs, executions } = this.collections(uri);
    const done = await jobs.countDocuments({ status: 'COMPLETED', taskType: 'noop', fence: 1 });
    const rows = await executions.countDocuments({ outcome: 'completed' });
    const startedTwice = reports.reduce((sum, report) => sum + report.startedTwice, 0);
    if (done === total && rows === total && startedTwice === 0) return;
    throw new Error(
      `invalid run: of ${total} jobs, ${done} completed at the first claim, ${rows} have an execution row, and ${startedTwice} were started twice`,
    );
  }
}

/** Jobs per second. */
export function perSecond({ done, milliseconds }: Report): number {
  return (1000 * done) / milliseconds;
}
