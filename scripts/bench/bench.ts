import { setTimeout as pause } from 'node:timers/promises';
import mongoose, { type mongo } from 'mongoose';
import { install } from '../../src/store/schema/install.js';
import { figure, type Figure, median, percentile } from './figures.js';
import { fillWithOthers } from './others.js';
import { measure, MeasuredProcess } from './processes.js';
import type { Report, Role, Work } from './roles.js';

/** Batch size of the loop that uses only the driver: the fastest of 200, 500, 1,000 and 2,000. */
const FLOOR_BATCH = 1000;

export interface BenchOptions {
  uri: string;
  /** How often each part is measured; the median is used. */
  runs: number;
  /** Multiplies every number of jobs. */
  scale: number;
  /** Ids of the parts to run. Default: all except those that take minutes. */
  only: readonly string[];
  log: (line: string) => void;
}

/** Runs the parts of the benchmark; each part gets this object. */
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

  async run(): Promise<Figure[]> {
    const { only, log } = this.#options;
    const figures: Figure[] = [];
    const parts = Object.entries(PARTS).filter(([id]) =>
      only.length === 0 ? !ON_REQUEST.includes(id) : only.includes(id),
    );
    for (const [index, [id, part]] of parts.entries()) {
      log(`${index + 1} of ${parts.length}: ${id}`);
      figures.push(...(await part(this)));
    }
    return figures;
  }

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
    this.#options.log(`   ${line}`);
  }

  db(uri: string): mongo.Db {
    return this.#connection.getClient().db(new URL(uri).pathname.slice(1));
  }

  /** Works in a new database and drops it afterwards. */
  async inFreshDatabase<T>(work: (uri: string) => Promise<T>): Promise<T> {
    const uri = new URL(this.#options.uri);
    uri.pathname = `/bench${++this.#databases}`;
    await install(uri.href);
    try {
      return await work(uri.href);
    } finally {
      await this.db(uri.href).dropDatabase();
    }
  }

  /** Enqueues jobs and lets one process run them. `in` is the enqueue rate in jobs per second. */
  async drained(total: number, role: Role, fill: 'enqueue' | 'insert'): Promise<{ in: number; out: Report }> {
    return this.inFreshDatabase(async (uri) => {
      const filled = await measure(uri, { name: fill, total, how: 'bulk' });
      const out = await measure(uri, role);
      await this.check(uri, total, [out]);
      return { in: perSecond(filled), out };
    });
  }

  /** Asserts that each job ran once: one start, one execution row, completed with fence 1. */
  async check(uri: string, total: number, reports: readonly Report[]): Promise<void> {
    const db = this.db(uri);
    const done = await db
      .collection('jobs')
      .countDocuments({ status: 'COMPLETED', taskType: 'noop', fence: 1 });
    const rows = await db.collection('executions').countDocuments({ outcome: 'completed' });
    const startedTwice = reports.reduce((sum, report) => sum + report.startedTwice, 0);
    if (done === total && rows === total && startedTwice === 0) return;
    throw new Error(
      `invalid run: of ${total} jobs, ${done} completed at the first claim, ${rows} have an execution row, and ${startedTwice} were started twice`,
    );
  }
}

type Part = (bench: Bench) => Promise<Figure[]>;

const PARTS: Record<string, Part> = {
  noop: async (bench) => {
    const total = bench.jobs(60_000);
    const results = await bench.times(async (run) => {
      const floor = await bench.drained(total, drain('noop'), 'insert');
      const chronos = await bench.drained(total, work('noop', 100, total), 'enqueue');
      const five = await bench.drained(total, work('noop', 5, total), 'enqueue');
      const rates = [floor, chronos, five].map(({ out }) => Math.round(perSecond(out)));
      bench.log(`run ${run}: ${rates[1]} jobs/s at concurrency 100, ${rates[2]} at 5, floor ${rates[0]}`);
      return { floor, chronos, five };
    });
    const floors = results.map(({ floor }) => perSecond(floor.out));
    return [
      figure({
        ...{ id: 'noop-100', what: `${total} no-op jobs, concurrency 100`, unit: 'jobs/s' },
        ...{ runs: results.map(({ chronos }) => perSecond(chronos.out)), floors, target: 0.85 },
      }),
      figure({
        ...{ id: 'noop-5', what: `${total} no-op jobs, concurrency 5`, unit: 'jobs/s' },
        ...{ runs: results.map(({ five }) => perSecond(five.out)), floors, target: 0.6 },
      }),
      figure({
        ...{ id: 'enqueue-bulk', what: `dispatchMany of ${total}`, unit: 'jobs/s' },
        runs: results.flatMap(({ chronos, five }) => [chronos.in, five.in]),
        floors: results.map(({ floor }) => floor.in),
      }),
      figure({
        ...{ id: 'memory', what: 'memory of a worker after its jobs', unit: 'MB', better: 'less' },
        runs: results.map(({ chronos }) => chronos.out.memory / 1e6),
        floors: results.map(({ floor }) => floor.out.memory / 1e6),
      }),
    ];
  },

  result: (bench) => worked(bench, 'result', 'jobs that return a result', 30_000),
  sleep: (bench) => worked(bench, 'sleep', 'jobs of 5 ms', 30_000),

  single: async (bench) => {
    const total = bench.jobs(500);
    const results = await bench.times(() =>
      bench.inFreshDatabase(async (uri) => ({
        floor: perSecond(await measure(uri, { name: 'insert', total, how: 'single' })),
        chronos: perSecond(await measure(uri, { name: 'enqueue', total, how: 'single' })),
      })),
    );
    return [
      figure({
        ...{ id: 'enqueue-single', what: `dispatch, one after another, ${total}`, unit: 'jobs/s' },
        runs: results.map(({ chronos }) => chronos),
        floors: results.map(({ floor }) => floor),
      }),
    ];
  },

  latency: async (bench) => {
    const count = bench.jobs(100);
    const results = await bench.times(async (run) => {
      // With this gap each job finds an idle worker.
      const apart = { count, gap: 60 };
      const floor = await latencies(bench, { name: 'floorAnswer', count }, { name: 'floorAsk', ...apart });
      const idle = await latencies(bench, { name: 'answer', count, load: 0 }, { name: 'ask', ...apart });
      const loaded = await latencies(
        bench,
        { name: 'answer', count, load: 100 },
        { name: 'ask', count, gap: 10 },
      );
      const [a, b, c] = [floor, idle, loaded].map((all) => median(all).toFixed(1));
      bench.log(`run ${run}: p50 ${b} ms idle, ${c} ms under load, floor ${a} ms`);
      return { floor, idle, loaded };
    });
    const what = 'time from dispatch to start in another process';
    const at = (fraction: number, of: 'floor' | 'idle' | 'loaded'): number[] =>
      results.map((result) => percentile(result[of], fraction));
    const row = (of: 'idle' | 'loaded', fraction: number, target?: number): Figure =>
      figure({
        id: `latency-${of}-p${fraction * 100}`,
        what: `${what}, ${of === 'idle' ? 'idle' : 'under load'}, p${fraction * 100}`,
        ...{ unit: 'ms', better: 'less', runs: at(fraction, of), floors: at(fraction, 'floor') },
        ...(target !== undefined && { target }),
      });
    return [
      row('idle', 0.5, 2),
      ...[0.95, 0.99].map((fraction) => row('idle', fraction)),
      ...[0.5, 0.95, 0.99].map((fraction) => row('loaded', fraction)),
    ];
  },

  many: async (bench) => {
    const total = bench.jobs(60_000);
    const results = await bench.times(async (run) => {
      const one = await together(bench, 1, total);
      const four = await together(bench, 4, total);
      const eight = await together(bench, 8, total);
      const rates = [one, four, eight].map(({ perSecond: rate }) => Math.round(rate));
      bench.log(`run ${run}: ${rates[0]} jobs/s by one process, ${rates[1]} by four, ${rates[2]} by eight`);
      return { one, four, eight };
    });
    return [
      figure({
        ...{ id: 'four', what: `${total} no-op jobs, four processes`, unit: 'jobs/s', target: 0.9 },
        runs: results.map(({ four }) => four.perSecond),
        floors: results.map(({ one }) => one.perSecond),
        against: 'one process',
      }),
      figure({
        ...{ id: 'eight', what: `${total} no-op jobs, eight processes`, unit: 'jobs/s' },
        runs: results.map(({ eight }) => eight.perSecond),
        floors: results.map(({ one }) => one.perSecond),
        against: 'one process',
      }),
      figure({
        ...{ id: 'lost', what: 'claims of eight processes that win nothing', unit: '%' },
        ...{ better: 'less', runs: results.map(({ eight }) => 100 * eight.lost), target: 20 },
      }),
    ];
  },

  beside: async (bench) => {
    const total = bench.jobs(20_000);
    const others = bench.jobs(1_000_000);
    const empty = await bench.times(async () =>
      perSecond((await bench.drained(total, work('noop', 100, total), 'enqueue')).out),
    );
    const full = await bench.inFreshDatabase(async (uri) => {
      await fillWithOthers(bench.db(uri), others, (line) => {
        bench.log(line);
      });
      return bench.times(async (run) => {
        await measure(uri, { name: 'enqueue', total, how: 'bulk' });
        const report = await measure(uri, work('noop', 100, total));
        const jobs = bench.db(uri).collection('jobs');
        await bench.check(uri, total * run, [report]);
        bench.log(
          `run ${run}: ${Math.round(perSecond(report))} jobs/s beside ${await jobs.estimatedDocumentCount()}`,
        );
        return perSecond(report);
      });
    });
    return [
      figure({
        id: 'beside',
        what: `the same with ${others} finished and ${others} future jobs stored`,
        ...{ unit: 'jobs/s', runs: full, floors: empty, against: 'an empty collection', target: 0.9 },
      }),
    ];
  },

  million: async (bench) => {
    const total = bench.jobs(1_000_000);
    const role = { ...work('noop', 100, total), skipsDuplicateCheck: true };
    const { memories } = (await bench.drained(total, role, 'enqueue')).out;
    const megabytes = memories.map((bytes) => Math.round(bytes / 1e6));
    return [
      figure({
        ...{ id: 'million', what: `memory of a worker after ${total} jobs`, unit: 'MB', better: 'less' },
        ...{ runs: megabytes.slice(-1), floors: megabytes.slice(0, 1), against: 'the first tenth of them' },
        ...{ target: 1.2, note: `after each tenth: ${megabytes.join(', ')}` },
      }),
    ];
  },

  idle: (bench) =>
    bench.inFreshDatabase(async (uri) => {
      const seconds = Math.max(5, bench.jobs(20));
      const admin = bench.db(uri).admin();
      const counted = async (): Promise<{ operations: number; hellos: number }> => {
        const { opcounters, metrics } = (await admin.serverStatus()) as unknown as {
          opcounters: Record<string, number>;
          metrics: { commands: { hello: { total: number } } };
        };
        const all = Object.values(opcounters).reduce((sum, count) => sum + count, 0);
        const hellos = Number(metrics.commands.hello.total);
        return { operations: all - hellos, hellos };
      };
      const rates = async (): Promise<{ operations: number; hellos: number }> => {
        const before = await counted();
        await pause(seconds * 1000);
        const after = await counted();
        return {
          operations: (after.operations - before.operations) / seconds,
          hellos: (after.hellos - before.hellos) / seconds,
        };
      };
      const baseline = await rates();
      const worker = await new MeasuredProcess(uri, { name: 'idle' }).loaded();
      worker.go();
      await worker.ready();
      // Do not measure the operations of the start.
      await pause(2000);
      const idle = await rates();
      await worker.stop();
      const hellos = (idle.hellos - baseline.hellos).toFixed(1);
      return [
        figure({
          ...{
            id: 'idle',
            what: 'database operations of an idle worker',
            unit: 'operations/s',
            better: 'less',
          },
          ...{ runs: [Math.max(0, idle.operations - baseline.operations)], target: 1 },
          note: `over ${seconds} s; in addition, the driver monitors the server with ${hellos} hello/s`,
        }),
      ];
    }),
};

export const PART_IDS = Object.keys(PARTS);

/** Parts that take minutes and rarely change: run only if named with --only. */
export const ON_REQUEST: readonly string[] = ['million'];

function drain(of: Work): Role {
  return { name: 'drain', work: of, batch: FLOOR_BATCH };
}

function work(of: Work, concurrency: number, total: number): Role {
  return { name: 'work', work: of, concurrency, total };
}

function perSecond({ done, milliseconds }: Report): number {
  return (1000 * done) / milliseconds;
}

async function worked(bench: Bench, of: Work, what: string, count: number): Promise<Figure[]> {
  const total = bench.jobs(count);
  const results = await bench.times(async (run) => {
    const floor = perSecond((await bench.drained(total, drain(of), 'insert')).out);
    const chronos = perSecond((await bench.drained(total, work(of, 100, total), 'insert')).out);
    bench.log(`run ${run}: ${Math.round(chronos)} jobs/s, floor ${Math.round(floor)}`);
    return { floor, chronos };
  });
  return [
    figure({
      ...{ id: of, what: `${total} ${what}, concurrency 100`, unit: 'jobs/s' },
      runs: results.map(({ chronos }) => chronos),
      floors: results.map(({ floor }) => floor),
    }),
  ];
}

async function latencies(bench: Bench, answer: Role, ask: Role): Promise<number[]> {
  return bench.inFreshDatabase(async (uri) => {
    const answering = await new MeasuredProcess(uri, answer).loaded();
    answering.go();
    await answering.ready();
    await measure(uri, ask);
    const report = await answering.report;
    if (report.startedTwice > 0)
      throw new Error(`invalid run: ${report.startedTwice} jobs were started twice`);
    return report.latencies;
  });
}

interface Shared {
  perSecond: number;
  /** The share of claims that found jobs but won none. */
  lost: number;
}

/** Several processes share the jobs; measured from their common start to the last job. */
async function together(bench: Bench, processes: number, total: number): Promise<Shared> {
  return bench.inFreshDatabase(async (uri) => {
    await measure(uri, { name: 'enqueue', total, how: 'bulk' });
    const role = work('noop', 100, Infinity);
    const workers = await Promise.all(
      Array.from({ length: processes }, () => new MeasuredProcess(uri, role).loaded()),
    );
    const since = performance.now();
    const over = new Promise<void>((resolve, reject) => {
      for (const worker of workers) {
        worker.onProgress(() => {
          if (workers.reduce((sum, { done }) => sum + done, 0) >= total) resolve();
        });
        worker.report.catch(reject);
        worker.go();
      }
    });
    await over;
    const milliseconds = performance.now() - since;
    const reports = await Promise.all(workers.map((worker) => worker.stop()));
    await bench.check(uri, total, reports);
    const [won, lost] = (['won', 'lost'] as const).map((kind) =>
      reports.reduce((sum, { claims }) => sum + claims[kind], 0),
    ) as [number, number];
    return { perSecond: (1000 * total) / milliseconds, lost: lost / (won + lost) };
  });
}
