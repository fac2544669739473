import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { findBinary, startShardedCluster, type ShardedCluster } from '@chronos/mongod';
import mongoose, { type Connection } from 'mongoose';
import { type JobContext, Scheduler, type SchedulerOptions } from '../../../src/index.js';
import type { CollectionName } from '../../../src/store/schema/collections.js';
import { collectionName, SHORT_INTERVALS } from '../../support/database.js';
import { runChronosInProcess } from '../../support/fake-terminal.js';
import { nextEvent } from '../../support/events.js';
import { withoutRenewalThread } from '../../support/manual-scheduler.js';
import { countMeasurements, nextMeasurement } from '../../support/measurements.js';

describe('a sharded cluster', () => {
  let cluster: ShardedCluster | undefined;
  let uri: string;
  let schedulers: Scheduler[];

  before(async function () {
    // Only mongod can be downloaded.
    if ((await findBinary('mongos')) === undefined) this.skip();
    cluster = await startShardedCluster();
  });

  after(() => cluster?.stop());

  beforeEach(() => {
    const fresh = new URL(cluster!.uri);
    fresh.pathname = `/chronos-${randomUUID().slice(0, 13)}`;
    [uri, schedulers] = [fresh.href, []];
  });

  afterEach(async () => {
    await Promise.all(schedulers.map((scheduler) => scheduler.stop('3s')));
  });

  function create(options: Partial<SchedulerOptions> = {}): Scheduler {
    const given = { ...SHORT_INTERVALS, ...withoutRenewalThread, logger: false, ...options } as const;
    const scheduler = new Scheduler({ uri, ...given });
    schedulers.push(scheduler);
    return scheduler;
  }

  it('is polled at the poll interval, because change streams are late there [B19] [C1]', async () => {
    const worker = create({ pollInterval: '200ms', taskHandlers: { work: () => undefined } });
    const streamOpened = nextMeasurement(worker, 'round', ({ operation }) => operation === 'watch changes');
    await worker.start();
    await streamOpened;
    const since = performance.now();
    await countMeasurements(worker, 'claim', 10);
    const elapsed = performance.now() - since;
    // 2 s at the poll interval, and 12 s at six times that.
    assert.ok(elapsed < 7000, `10 polls took ${elapsed} ms`);
    const started = nextEvent(worker, 'job:start');
    const { id } = await create().dispatch('work');
    assert.equal((await started).jobId, id);
  });

  describe('install({ shard: true })', () => {
    let connection: Connection;

    beforeEach(async () => {
      connection = await mongoose.createConnection(uri).asPromise();
    });

    afterEach(() => connection.destroy());

    /** The shard keys by collection, without the prefix. */
    async function shardKeys(): Promise<Record<string, unknown>> {
      const config = connection.getClient().db('config');
      const found = await config
        .collection<{ _id: string; key: object }>('collections')
        .find({ _id: { $regex: `^${connection.name}\\.`, $not: /\.system\./ }, unsplittable: { $ne: true } })
        .toArray();
      const prefix = `${connection.name}.${collectionName('' as CollectionName)}`;
      return Object.fromEntries(found.map(({ _id, key }) => [_id.slice(prefix.length), key]));
    }

    const HASHED = { jobs: { _id: 'hashed' }, executions: { _id: 'hashed' } };

    it('shards jobs and executions by hashed id, from several processes at once and repeatedly [B19]', async () => {
      await Promise.all(Array.from({ length: 4 }, () => create().install({ shard: true })));
      assert.deepEqual(await shardKeys(), HASHED);
      await create().install({ shard: true });
      await create().install();
      assert.deepEqual(await shardKeys(), HASHED);
    });

    it('shards collections that already contain jobs [B19]', async () => {
      const scheduler = create();
      await scheduler.install();
      const { id } = await scheduler.dispatch('work');
      await Promise.all([create().install({ shard: true }), create().install({ shard: true })]);
      assert.deepEqual(await shardKeys(), HASHED);
      assert.equal((await scheduler.getJob(id))?.taskType, 'work');
    });

    it('is also a command, and doctor then finds nothing to correct [B19] [B18]', async () => {
      const { code, stdout, stderr } = await runChronosInProcess(['install', '--shard', '--json'], {
        MONGODB_URI: uri,
      });
      assert.equal(code, 0, stderr);
      assert.deepEqual(JSON.parse(stdout), { installed: true, sharded: true });
      assert.deepEqual(await shardKeys(), HASHED);
      const findings = await create().operations.doctor();
      const problems = findings.filter(({ check, level }) => level !== 'ok' && check !== 'workersAlive');
      assert.deepEqual(problems, [], 'the index of the shard key is not superfluous');
      const streams = findings.find(({ check }) => check === 'changeStreams');
      assert.match(streams?.finding ?? '', /polling/);
    });

    it('rejects with NOT_INSTALLED if a collection is sharded by another key [B19]', async () => {
      await create().install();
      const shardCollection = `${connection.name}.${collectionName('jobs')}`;
      await connection
        .getClient()
        .db('admin')
        .command({ shardCollection, key: { _id: 1 } });
      await assert.rejects(create().install({ shard: true }), {
        code: 'NOT_INSTALLED',
        message: /chronos_jobs' is already sharded by a key other.*\{ _id: 1 \}.*reshardCollection/,
      });
      assert.deepEqual(await shardKeys(), { jobs: { _id: 1 } });
    });
  });

  it('runs jobs of several processes on all shards, each exactly once [B19]', async () => {
    await create().install({ shard: true });
    const starts = new Map<string, number>();
    const handler = (_: unknown, { id, attempt }: JobContext): void => {
      starts.set(id, (starts.get(id) ?? 0) + 1);
      if (attempt === 1) throw new Error('the first attempt fails');
    };
    const workers = [1, 2, 3].map(() =>
      create({ concurrency: 20, taskHandlers: { work: handler }, retries: { max: 2, delay: () => 0 } }),
    );
    await Promise.all(workers.map((worker) => worker.start()));
    const dispatcher = create();
    const single = await dispatcher.dispatch('work');
    const many = await dispatcher.dispatchMany(Array.from({ length: 300 }, () => ({ taskType: 'work' })));
    const ids = [single.id, ...many.map(({ id }) => id ?? '')];
    await Promise.all(ids.map((id) => dispatcher.job(id).wait()));
    assert.deepEqual(new Set(starts.values()), new Set([2]));
    assert.equal(starts.size, ids.length);
    const again = await dispatcher.dispatch('work', null, { key: 'once' });
    assert.deepEqual(await dispatcher.dispatch('work', null, { key: 'once' }).then(({ id }) => id), again.id);

    const stored = await Promise.all(cluster!.shards.map((shard) => countJobs(shard.uri)));
    assert.equal(
      stored.reduce((a, b) => a + b),
      ids.length + 1,
    );
    assert.ok(
      stored.every((count) => count > 50),
      `jobs per shard: ${stored.join(', ')}`,
    );
  });

  async function countJobs(shardUri: string): Promise<number> {
    const url = new URL(shardUri);
    url.pathname = new URL(uri).pathname;
    const connection = await mongoose.createConnection(url.href).asPromise();
    try {
      return await connection.collection(collectionName('jobs')).countDocuments();
    } finally {
      await connection.destroy();
    }
  }
});
