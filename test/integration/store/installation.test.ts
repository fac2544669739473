import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { collectionName, useDatabase } from '../../support/database.js';
import { runChronosInProcess } from '../../support/fake-terminal.js';

interface Installation {
  _id: string;
  layoutVersion: number;
  packageVersion: string;
  installedAt: Date;
}

const NEWER = { _id: 'layout', layoutVersion: 1000, packageVersion: '9.1.0', installedAt: new Date() };
const REFUSED = {
  code: 'NEWER_INSTALLATION',
  message:
    /installed by chronos-worker 9\.1\.0 with layout version 1000.*supports layout versions up to \d+.*Update this process/,
};

describe('the installed version', () => {
  const database = useDatabase();

  const installation = () => database.connection.collection<Installation>(`chronos_installation`);
  const installNewer = () => installation().replaceOne({ _id: 'layout' }, NEWER, { upsert: true });

  it('is stored by install, also by several processes at once, and not written again [B19]', async () => {
    await database.connection.dropDatabase();
    await Promise.all(Array.from({ length: 4 }, () => database.scheduler().install()));
    const [stored, ...others] = await installation().find().toArray();
    assert.equal(others.length, 0);
    assert.ok(Number.isInteger(stored?.layoutVersion));
    assert.match(stored?.packageVersion ?? '', /^\d+\.\d+\.\d+/);
    await database.scheduler().start();
    assert.deepEqual(await installation().find().toArray(), [stored]);
  });

  it('is not stored if collections should be sharded without a sharded cluster [B19]', async () => {
    await database.connection.dropDatabase();
    await assert.rejects(database.scheduler().install({ shard: true }), {
      code: 'INVALID_ARGUMENT',
      message: /shard needs a connection to mongos.*got one to a replica set.*without shard/,
    });
    const { code, stderr } = await runChronosInProcess(['install', '--shard'], { MONGODB_URI: database.uri });
    assert.equal(code, 2);
    assert.match(stderr, /mongos/);
    assert.deepEqual(await database.connection.db?.listCollections().toArray(), []);
    const wrong = { shards: 2 } as unknown as { shard: boolean };
    await assert.rejects(database.scheduler().install(wrong), { code: 'INVALID_ARGUMENT' });
  });

  it('replaces that of an older installation [B19]', async () => {
    const current = await installation().findOne();
    await installation().updateOne({}, { $set: { layoutVersion: 0, packageVersion: '0.0.1' } });
    const find = async () =>
      (await database.scheduler().operations.doctor()).find(({ check }) => check === 'installation');
    assert.equal((await find())?.level, 'error');
    await database.scheduler().install();
    const stored = await installation().findOne();
    assert.equal(stored?.layoutVersion, current?.layoutVersion);
    assert.equal(stored?.packageVersion, current?.packageVersion);
    assert.equal((await find())?.level, 'ok');
  });

  it('keeps an older process from installing, starting and dispatching [B19]', async () => {
    await installNewer();
    await database.connection.db?.command({ collMod: collectionName('jobs'), validator: {} });
    await assert.rejects(database.scheduler().install(), REFUSED);
    const worker = database.scheduler({ taskHandlers: { work: () => undefined } });
    await assert.rejects(worker.start(), REFUSED);
    assert.equal(worker.state, 'Error');
    await assert.rejects(database.scheduler().dispatch('work'), REFUSED);
    await assert.rejects(database.scheduler().runOnce(), REFUSED);

    const { jobs, workers, audit } = database.collections;
    for (const collection of [jobs, workers, audit]) assert.equal(await collection.countDocuments(), 0);
    const [jobsNow] =
      (await database.connection.db?.listCollections({ name: jobs.collectionName }).toArray()) ?? [];
    assert.equal((jobsNow as { options?: { validator?: object } }).options?.validator, undefined);
    assert.deepEqual(await installation().find().toArray(), [NEWER]);
  });

  it('keeps commands of an older version from writing [B19]', async () => {
    await installNewer();
    for (const command of [['install'], ['dispatch', 'work'], ['schedules', 'pause', 'x']]) {
      const { code, stderr } = await runChronosInProcess(command, { MONGODB_URI: database.uri });
      assert.equal(code, 2, stderr);
      assert.match(stderr, REFUSED.message);
    }
    assert.equal(await database.collections.audit.countDocuments(), 0);
  });

  it('is checked again by every pass of a process [B19]', async () => {
    const scheduler = database.scheduler({ taskHandlers: { work: () => undefined } });
    await scheduler.run();
    await installNewer();
    await assert.rejects(scheduler.run(), REFUSED);
    await assert.rejects(scheduler.runOnce(), REFUSED);
  });

  it('is checked again by a process that only dispatches [B19]', async () => {
    const scheduler = database.scheduler();
    await scheduler.dispatch('work');
    await installNewer();
    mock.timers.enable({ apis: ['Date'], now: Date.now() + 120_000 });
    try {
      await assert.rejects(scheduler.dispatch('work'), REFUSED);
    } finally {
      mock.timers.reset();
    }
    assert.equal(await database.collections.jobs.countDocuments(), 1);
  });
});
