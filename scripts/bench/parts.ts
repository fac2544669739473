import { setTimeout as pause } from 'node:timers/promises';
import { findBinary } from '@chronos/mongod';
import { type Bench, perSecond } from './bench.js';
import { figure, type Figure, median, percentile } from './figures.js';
import { insertOtherJobs } from './other-jobs.js';
import { measure, MeasuredProcess } from './processes.js';
import type { Role, Work } from './roles.js';

/** Batch size of the floor: the fastest of 200, 500, 1,000 and 2,000. */
const FLOOR_BATCH = 1000;

type Part = (bench: Bench) => Promise<Figure[]>;

const PARTS: Record<string, Part> = {
  noop: async (bench) => {
    const total = bench.jobs(60_000);
    const results = await bench.times(async (run) => {
      const floor = await bench.enqueueAndRun(total, drain('noop'), 'insert');
      const hundred = await bench.enqueueAndRun(total, work('noop', 100, total), 'enqueue');
      const five = await bench.enqueueAndRun(total, work('noop', 5, total), 'enqueue');
      const rates = [floor, hundred, five].map(({ ranPerSecond }) => Math.round(ranPerSecond));
      bench.log(`run ${run}: ${rates[1]} jobs/s at concurrency 100, ${rates[2]} at 5, floor ${rates[0]}`);
      return { floor, hundred, five };
    });
    const floors = results.map(({ floor }) => floor.ranPerSecond);
    return [
      figure({
        ...{ id: 'noop-100', what: `${total} no-op jobs, concurrency 100`, unit: 'jobs/s' },
        ...{ runs: results.map(({ hundred }) => hundred.ranPerSecond), floors, target: 0.85 },
      }),
      figure({
        ...{ id: 'noop-5', what: `${total} no-op jobs, concurrency 5`, unit: 'jobs/s' },
        ...{ runs: results.map(({ five }) => five.ranPerSecond), floors, target: 0.6 },
      }),
      figure({
        ...{ id: 'enqueue-bulk', what: `dispatchMany of ${total}`, unit: 'jobs/s' },
        runs: results.flatMap(({ hundred, five }) => [hundred.enqueuedPerSecond, five.enqueuedPerSecond]),
        floors: results.map(({ floor }) => floor.enqueuedPerSecond),
      }),
      figure({
        ...{ id: 'memory', what: 'memory of a worker after its jobs', unit: 'MB', better: 'less' },
        runs: results.map(({ hundred }) => hundred.memory / 1e6),
        floors: results.map(({ floor }) => floor.memory / 1e6),
      }),
    ];
  },

  result: (bench) => measureWork(bench, 'result', 'jobs that return a result', 30_000),
  sleep: (bench) => measureWork(bench, 'sleep', 'jobs of 5 ms', 30_000),

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
      const floor = await measureLatencies(
        bench,
        { name: 'floorReceive', count },
        { name: 'floorSend', ...apart },
      );
      const idle = await measureLatencies(
        bench,
        { name: 'receive', count, load: 0 },
        { name: 'send', ...apart },
      );
      const loaded = await measureLatencies(
        bench,
        { name: 'receive', count, load: 100 },
        { name: 'send', count, gap: 10 },
      );
      const p50 = (latencies: number[]): string => `${median(latencies).toFixed(1)} ms`;
      bench.log(`run ${run}: p50 ${p50(idle)} idle, ${p50(loaded)} under load, floor ${p50(floor)}`);
      return { floor, idle, loaded };
    });
    const what = 'time from dispatch to start in another process';
    const percentiles = (kind: 'floor' | 'idle' | 'loaded', fraction: number): number[] =>
      results.map((result) => percentile(result[kind], fraction));
    const row = (kind: 'idle' | 'loaded', fraction: number, target?: number): Figure =>
      figure({
        id: `latency-${kind}-p${fraction * 100}`,
        what: `${what}, ${kind === 'idle' ? 'idle' : 'under load'}, p${fraction * 100}`,
        ...{ unit: 'ms', better: 'less' },
        ...{ runs: percentiles(kind, fraction), floors: percentiles('floor', fraction) },
        ...(target !== undefined && { target }),
      });
    return [
      row('idle', 0.5, 2),
      ...[0.95, 0.99].map((fraction) => row('idle', fraction)),
      ...[0.5, 0.95, 0.99].map((fraction) => row('loaded', fraction)),
    ];
  },

  processes: async (bench) => {
    const total = bench.jobs(60_000);
    const results = await bench.times(async (run) => {
      const one = await measureProcesses(bench, 1, total);
      const four = await measureProcesses(bench, 4, total);
      const eight = await measureProcesses(bench, 8, total);
      const rates = [one, four, eight].map(({ perSecond: rate }) => Math.round(rate));
      bench.log(`run ${run}: ${rates[0]} jobs/s by one process, ${rates[1]} by four, ${rates[2]} by eight`);
      return { one, four, eight };
    });
    return [
      figure({
        ...{ id: 'processes-4', what: `${total} no-op jobs, four processes`, unit: 'jobs/s', target: 0.9 },
        runs: results.map(({ four }) => four.perSecond),
        floors: results.map(({ one }) => one.perSecond),
        against: 'one process',
      }),
      figure({
        ...{ id: 'processes-8', what: `${total} no-op jobs, eight processes`, unit: 'jobs/s' },
        runs: results.map(({ eight }) => eight.perSecond),
        floors: results.map(({ one }) => one.perSecond),
        against: 'one process',
      }),
      figure({
        ...{ id: 'lost-claims', what: 'claims of eight processes that find jobs but win none', unit: '%' },
        ...{ better: 'less', runs: results.map(({ eight }) => 100 * eight.lostShare), target: 20 },
      }),
    ];
  },

  large: async (bench) => {
    const total = bench.jobs(20_000);
    const others = bench.jobs(1_000_000);
    const small = await bench.times(
      async () => (await bench.enqueueAndRun(total, work('noop', 100, total), 'enqueue')).ranPerSecond,
    );
    const large = await bench.inFreshDatabase(async (uri) => {
      await insertOtherJobs(bench.collections(uri), others, (line) => {
        bench.log(line);
      });
      return bench.times(async (run) => {
        await measure(uri, { name: 'enqueue', total, how: 'bulk' });
        const report = await measure(uri, work('noop', 100, total));
        const { jobs } = bench.collections(uri);
        await bench.check(uri, total * run, [report]);
        const stored = await jobs.estimatedDocumentCount();
        bench.log(`run ${run}: ${Math.round(perSecond(report))} jobs/s with ${stored} jobs stored`);
        return perSecond(report);
      });
    });
    return [
      figure({
        id: 'large',
        what: `${total} no-op jobs, with ${others} finished and ${others} future jobs`,
        ...{ unit: 'jobs/s', runs: large, floors: small, against: 'an empty collection', target: 0.9 },
      }),
    ];
  },

  sharded: async (bench) => {
    if ((await findBinary('mongos')) === undefined) {
      bench.log('left out: there is no mongos (set MONGOS_BINARY)');
      return [];
    }
    return bench.onShardedCluster(async (cluster) => {
      const total = cluster.jobs(20_000);
      const role = work('noop', 100, total);
      const results = await cluster.times(async (run) => {
        const { ranPerSecond: unsharded } = await cluster.enqueueAndRun(total, role, 'enqueue');
        const { ranPerSecond: sharded } = await cluster.enqueueAndRun(total, role, 'enqueue', {
          shard: true,
        });
        cluster.log(`run ${run}: ${Math.round(sharded)} jobs/s sharded, ${Math.round(unsharded)} unsharded`);
        return { sharded, unsharded };
      });
      return [
        figure({
          ...{ id: 'sharded', what: `${total} no-op jobs on two shards, concurrency 100`, unit: 'jobs/s' },
          runs: results.map(({ sharded }) => sharded),
          floors: results.map(({ unsharded }) => unsharded),
          against: 'not sharded, same cluster',
        }),
      ];
    });
  },

  million: async (bench) => {
    const total = bench.jobs(1_000_000);
    const role = { ...work('noop', 100, total), skipsDuplicateCheck: true };
    const { memories } = await bench.enqueueAndRun(total, role, 'enqueue');
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
      const admin = bench.collections(uri).db.admin();
      const countOperations = async (): Promise<{ operations: number; hellos: number }> => {
        const { opcounters, metrics } = (await admin.serverStatus()) as unknown as {
          opcounters: Record<string, number>;
          metrics: { commands: { hello: { total: number } } };
        };
        const all = Object.values(opcounters).reduce((sum, count) => sum + count, 0);
        const hellos = Number(metrics.commands.hello.total);
        return { operations: all - hellos, hellos };
      };
      const measureRates = async (): Promise<{ operations: number; hellos: number }> => {
        const before = await countOperations();
        await pause(seconds * 1000);
        const after = await countOperations();
        return {
          operations: (after.operations - before.operations) / seconds,
          hellos: (after.hellos - before.hellos) / seconds,
        };
      };
      const baseline = await measureRates();
      const worker = await new MeasuredProcess(uri, { name: 'idle' }).loaded();
      worker.go();
      await worker.ready();
      // Do not measure the operations of the start.
      await pause(2000);
      const idle = await measureRates();
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

/** These take minutes and their figures rarely change: they run only if named with --only. */
export const ON_REQUEST: readonly string[] = ['million'];

/** Runs the parts with these ids. Default: all except those that take minutes. */
export async function runParts(bench: Bench, only: readonly string[]): Promise<Figure[]> {
  const parts = Object.entries(PARTS).filter(([id]) =>
    only.length === 0 ? !ON_REQUEST.includes(id) : only.includes(id),
  );
  const figures: Figure[] = [];
  for (const [index, [id, part]] of parts.entries()) {
    bench.log(`${index + 1} of ${parts.length}: ${id}`);
    figures.push(...(await part(bench)));
  }
  return figures;
}

function drain(of: Work): Role {
  return { name: 'drain', work: of, batch: FLOOR_BATCH };
}

function work(of: Work, concurrency: number, total: number): Role {
  return { name: 'work', work: of, concurrency, total };
}

async function measureWork(bench: Bench, of: Work, what: string, count: number): Promise<Figure[]> {
  const total = bench.jobs(count);
  const results = await bench.times(async (run) => {
    const { ranPerSecond: floor } = await bench.enqueueAndRun(total, drain(of), 'insert');
    const { ranPerSecond: chronos } = await bench.enqueueAndRun(total, work(of, 100, total), 'insert');
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

async function measureLatencies(bench: Bench, receiverRole: Role, senderRole: Role): Promise<number[]> {
  return bench.inFreshDatabase(async (uri) => {
    const receiver = await new MeasuredProcess(uri, receiverRole).loaded();
    receiver.go();
    await receiver.ready();
    await measure(uri, senderRole);
    const report = await receiver.report;
    if (report.startedTwice > 0)
      throw new Error(`invalid run: ${report.startedTwice} jobs were started twice`);
    return report.latencies;
  });
}

interface SharedThroughput {
  perSecond: number;
  /** The share of claims that found jobs but won none. */
  lostShare: number;
}

/** Several processes share the jobs; measured from their common start to the last job. */
async function measureProcesses(bench: Bench, processes: number, total: number): Promise<SharedThroughput> {
  return bench.inFreshDatabase(async (uri) => {
    await measure(uri, { name: 'enqueue', total, how: 'bulk' });
    const role = work('noop', 100, Infinity);
    const workers = await Promise.all(
      Array.from({ length: processes }, () => new MeasuredProcess(uri, role).loaded()),
    );
    const since = performance.now();
    const allDone = new Promise<void>((resolve, reject) => {
      for (const worker of workers) {
        worker.onProgress(() => {
          if (workers.reduce((sum, { done }) => sum + done, 0) >= total) resolve();
        });
        worker.report.catch(reject);
        worker.go();
      }
    });
    await allDone;
    const milliseconds = performance.now() - since;
    const reports = await Promise.all(workers.map((worker) => worker.stop()));
    await bench.check(uri, total, reports);
    const won = reports.reduce((sum, { claims }) => sum + claims.won, 0);
    const lost = reports.reduce((sum, { claims }) => sum + claims.lost, 0);
    return { perSecond: (1000 * total) / milliseconds, lostShare: lost / (won + lost) };
  });
}
