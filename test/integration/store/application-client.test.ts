import assert from 'node:assert/strict';
import { lookup } from 'node:dns';
import type { mongo } from 'mongoose';
import mongoose from 'mongoose';
import { Scheduler } from '../../../src/index.js';
import { useClients } from '../../support/clients.js';
import { SHORT_INTERVALS, useDatabase } from '../../support/database.js';
import { nextEvent, recordEvents, signal } from '../../support/events.js';
import { nextMeasurement } from '../../support/measurements.js';
import { ROLES, SecuredDatabase } from '../../support/secured-database.js';

const EVENTS = ['topologyDescriptionChanged', 'connectionCreated', 'connectionCheckedOut'] as const;

describe('a client of the application', () => {
  const database = useDatabase();
  const clients = useClients();

  it('runs jobs, and stop() leaves it open and without listeners', async () => {
    const client = clients.open(database.uri);
    await client.connect();
    const listeners = EVENTS.map((event) => client.listenerCount(event));
    const scheduler = database.scheduler({ client, taskHandlers: { work: () => 'done' } });
    await scheduler.start();
    const { status, result } = await (await scheduler.dispatch('work')).wait();
    assert.deepEqual([status, result], ['COMPLETED', 'done']);
    await scheduler.stop();
    assert.equal((await client.db().command({ ping: 1 }))['ok'], 1);
    assert.deepEqual(
      EVENTS.map((event) => client.listenerCount(event)),
      listeners,
    );
    // The same scheduler can start again on it.
    await scheduler.start();
    assert.equal((await (await scheduler.dispatch('work')).wait()).status, 'COMPLETED');
  });

  it('is connected by Chronos if it is not yet, and also stays open after a start that failed', async () => {
    const client = clients.open(database.uri);
    await database.collections.jobs.drop();
    await database.connection
      .collection(database.collections.jobs.collectionName)
      .insertOne({ title: 'clerk' });
    await assert.rejects(database.scheduler({ client }).start(), { code: 'COLLECTION_TAKEN' });
    assert.equal((await client.db().command({ ping: 1 }))['ok'], 1);
  });

  for (const [kind, values] of Object.entries({
    'unpromoted values': { promoteValues: false, promoteLongs: false, promoteBuffers: true },
    'raw replies': { raw: true, bsonRegExp: true },
    'big integers': { useBigInt64: true },
  })) {
    it(`does not weaken or break anything with weak concerns and ${kind}`, async () => {
      const client = clients.open(database.uri, {
        ...values,
        ...{ w: 1, journal: false, readConcernLevel: 'available', ignoreUndefined: true, retryReads: false },
        ...{ readPreference: 'secondaryPreferred', serializeFunctions: true, forceServerObjectId: true },
      });
      const scheduler = database.scheduler({ client, retries: { base: '1ms' } });
      const errors = recordEvents(scheduler, 'worker:error', 'listener:error');
      const payload = { small: 1, large: 2 ** 40, text: 'a', list: [1.5, null], at: new Date(0) };
      const seen: unknown[] = [];
      let failures = 1;
      scheduler.registerHandler('work', (given: unknown) => {
        seen.push(given);
        if (failures-- > 0) throw new Error('once');
        return { sum: 3, long: 2 ** 40 };
      });
      await scheduler.start();
      const { status, result, attempts, fence } = await (await scheduler.dispatch('work', payload)).wait();
      assert.deepEqual(seen, [payload, payload]);
      assert.deepEqual([status, result, attempts], ['COMPLETED', { sum: 3, long: 2 ** 40 }, 1]);
      assert.equal(fence, 2, 'two claims');
      const due = nextEvent(scheduler, 'schedule:due');
      await scheduler.addSchedule({ id: 'often', taskType: 'work', every: '1s', payload });
      assert.equal((await due).scheduleId, 'often');
      const { stored, totals } = await scheduler.operations.status();
      assert.ok(stored >= 1 && totals.completed.count >= 1);
      const found = (await scheduler.operations.doctor()).filter(({ level }) => level !== 'ok');
      assert.deepEqual(
        found.map(({ check }) => check),
        ['workerConnections'],
      );
      assert.match(found[0]?.finding ?? '', /retryReads turned off/);
      assert.deepEqual(errors, []);
    });
  }

  it('renews locks in a thread of its own, with the credentials of the client', async () => {
    const secured = await SecuredDatabase.start();
    const schedulers: Scheduler[] = [];
    try {
      const user = new URL(
        await secured.addUser('worker', [
          ...(ROLES['chronosWorker'] ?? []),
          ...(ROLES['chronosInstaller'] ?? []),
        ]),
      );
      await secured.recordWrites();
      const auth = { username: user.username, password: user.password };
      user.username = '';
      user.password = '';
      user.searchParams.delete('authSource');
      const client = clients.open(user.href, { auth, authSource: 'admin', appName: 'shop' });
      const scheduler = new Scheduler({ client, ...SHORT_INTERVALS, lockTimeout: '2s' });
      schedulers.push(scheduler);
      const renewed = nextMeasurement(scheduler, 'renewal');
      scheduler.registerHandler('long', () => renewed);
      await scheduler.start();
      const job = (await scheduler.dispatch('long')).wait();
      await renewed;
      // Only the connections that Chronos opens have its name: of all writes, those are the renewals.
      const own = { appName: 'chronos', user: 'worker@admin', op: 'update' };
      assert.notEqual(await secured.superuser.collection('system.profile').findOne(own), null);
      assert.equal((await job).status, 'COMPLETED');
      assert.deepEqual((await scheduler.operations.listWorkers()).items[0]?.warnings, []);
    } finally {
      await Promise.all(schedulers.map((scheduler) => scheduler.stop()));
      await secured.stop();
    }
  });

  it('renews locks itself if the options contain a function, and doctor says so', async () => {
    const client = clients.open(database.uri, { lookup, maxPoolSize: 5 });
    const scheduler = database.scheduler({ client, lockTimeout: '1s', heartbeatInterval: '100ms' });
    const renewed = nextMeasurement(scheduler, 'renewal');
    scheduler.registerHandler('long', () => renewed);
    await scheduler.start();
    assert.equal((await (await scheduler.dispatch('long')).wait()).status, 'COMPLETED');
    const reader = database.scheduler();
    const findings = await reader.operations.doctor();
    const { level, finding, advice } = findings.find(({ check }) => check === 'workerConnections') ?? {};
    assert.equal(level, 'warning');
    assert.ok(finding?.includes(scheduler.workerId));
    assert.match(finding ?? '', /renewed by its main thread .*: lookup\).* can lose its lock/);
    assert.match(finding ?? '', /maxPoolSize of 5/);
    assert.match(advice ?? '', /set uri/);
  });

  it('uses the option database, or the database of its connection string, but not the default of the driver', async () => {
    const { name } = database.connection;
    const nameless = database.uri.replace(`/${name}`, '/');
    const client = clients.open(nameless);
    await assert.rejects(database.scheduler({ client }).dispatch('work'), {
      code: 'INVALID_OPTIONS',
      message: /options\.database is missing/,
    });
    const { id } = await database.scheduler({ client, database: name }).dispatch('work');
    for (const options of [
      { client: clients.open(database.uri) },
      { uri: nameless, database: name },
      { uri: database.uri.replace(name, 'elsewhere'), database: name },
    ])
      assert.notEqual(await database.scheduler(options).getJob(id), null);
  });

  it('is rejected when it was closed, and is not opened again', async () => {
    const client = clients.open(database.uri);
    await client.connect();
    await client.close();
    await assert.rejects(database.scheduler({ client }).dispatch('work'), {
      code: 'WRONG_STATE',
      message: /was closed/,
    });
  });

  it('is rejected at the connection if it comes from a later version of the driver, or is limited to the Stable API', async () => {
    const client = clients.open(database.uri);
    const later = Object.create(client, {
      options: { value: { ...client.options, metadata: Promise.resolve({ driver: { version: '8.1.0' } }) } },
    }) as mongo.MongoClient;
    await assert.rejects(database.scheduler({ client: later }).dispatch('work'), {
      code: 'INVALID_OPTIONS',
      message: /version 7 of the package mongodb, got version 8\.1\.0: .* set uri/,
    });
    const strict = clients.open(database.uri, { serverApi: { version: '1', strict: true } });
    await assert.rejects(database.scheduler({ client: strict }).dispatch('work'), {
      code: 'INVALID_OPTIONS',
      message: /serverApi\.strict/,
    });
  });

  it('that finds no server fails after connectTimeout', async () => {
    const client = clients.open('mongodb://127.0.0.1:1/app', { serverSelectionTimeoutMS: 60_000 });
    const startedAt = performance.now();
    await assert.rejects(database.scheduler({ client, connectTimeout: '500ms' }).dispatch('work'), {
      code: 'MONGODB_UNREACHABLE',
    });
    assert.ok(performance.now() - startedAt < 10_000);
  });
});

describe('a mongoose connection of the application', () => {
  const database = useDatabase();
  let connection: mongoose.Connection;

  beforeEach(() => {
    // Not connected yet.
    connection = mongoose.createConnection(database.uri);
  });

  afterEach(() => connection.destroy());

  it('can be shared with models of the same names, which Chronos leaves alone', async () => {
    const Job = connection.model('Job', new mongoose.Schema({ title: String }), 'jobs');
    const scheduler = database.scheduler({ connection });
    const ran = signal<string>();
    scheduler.registerHandler('hire', async ({ title }: { title: string }) => {
      await Job.create({ title });
      ran.fire(title);
    });
    await scheduler.start();
    assert.equal((await (await scheduler.dispatch('hire', { title: 'clerk' })).wait()).status, 'COMPLETED');
    assert.equal(await ran.promise, 'clerk');
    await scheduler.stop();
    assert.deepEqual(connection.modelNames(), ['Job']);
    assert.equal(connection.readyState, 1);
    assert.deepEqual(
      (await Job.find().lean()).map(({ title }) => title),
      ['clerk'],
    );
    assert.deepEqual(await database.connection.collection('jobs').indexes(), [
      { v: 2, key: { _id: 1 }, name: '_id_' },
    ]);
  });

  it('uses the database of the connection, also of one from useDb()', async () => {
    const other = connection.useDb(`${database.connection.name}-2`);
    const scheduler = database.scheduler({ connection: other });
    const { id } = await scheduler.dispatch('work');
    assert.equal(await database.scheduler().getJob(id), null);
    assert.notEqual(await database.scheduler({ database: other.name }).getJob(id), null);
    await other.asPromise();
    await connection.useDb(other.name).dropDatabase();
  });

  it('is rejected if it was never opened, or fails to open', async () => {
    const unopened = mongoose.createConnection();
    const first = database.scheduler({ connection: unopened });
    await assert.rejects(first.dispatch('work'), { code: 'WRONG_STATE', message: /never opened/ });
    const failing = mongoose.createConnection('mongodb://127.0.0.1:1/app', { serverSelectionTimeoutMS: 100 });
    failing.on('error', () => undefined);
    const second = database.scheduler({ connection: failing, connectTimeout: '1s' });
    await assert.rejects(second.dispatch('work'), { code: 'MONGODB_UNREACHABLE' });
    await failing.destroy();
  });
});
