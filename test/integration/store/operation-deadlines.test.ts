import assert from 'node:assert/strict';
import { mongo } from 'mongoose';
import { DEFAULT_PREFIX } from '../../../src/config/connection-options.js';
import { sharedDeadlines } from '../../../src/runtime/waiting.js';
import { isResultUnknown, OperationTimeoutError } from '../../../src/store/mongo-errors.js';
import { openCollections } from '../../../src/store/schema/collections.js';
import { createStore, type Store } from '../../../src/store/store.js';
import { loadSecondDriver, useClients } from '../../support/clients.js';
import { aWorker } from '../../support/factories/worker.js';
import { START, timeAfter } from '../../support/instants.js';
import { useSharedDatabase } from '../../support/shared-database.js';

const SLOW_APP = 'slow-application';
const BLOCKED_COMMANDS = [
  ...['insert', 'update', 'delete', 'findAndModify', 'find', 'aggregate', 'count', 'distinct'],
  ...['listCollections', 'listIndexes', 'createIndexes', 'buildInfo'],
];

/** Operations that use every method of the driver that the store uses. */
const OPERATIONS: Record<string, (store: Store) => Promise<unknown>> = {
  insertOne: (store) =>
    store.addAudit({
      ...{ _id: 'a', at: START, who: 'me', action: 'test', target: null, filter: null },
      ...{ counts: null, requestId: null, expiresAt: timeAfter(1) },
    }),
  insertMany: (store) => store.logExecutions([{ _id: 'x:1', error: null, log: [] } as never]),
  bulkWrite: (store) => store.markStarted([{ jobId: 'a', token: 't', startedAt: START }]),
  updateOne: (store) => store.releaseLock('a', 't'),
  updateMany: (store) => store.release('t', ['a'], START),
  replaceOne: (store) => store.saveHeartbeat(aWorker()),
  findOneAndUpdate: (store) =>
    store.acquireLock('a', { token: 't', workerId: 'me', lockedUntil: START }, START),
  deleteOne: (store) => store.deleteSchedule('a'),
  find: (store) => store.findCancelRequests(['a']),
  findOne: (store) => store.findJob('a'),
  aggregate: (store) => store.countByQueue('running', 1, START),
  countDocuments: (store) => store.countDue('default', START, 1),
  estimatedDocumentCount: (store) => store.estimateJobs(),
  distinct: (store) => store.findLiveTaskTypes(START),
  listCollections: (store) => store.inspectCollections(),
  command: (store) => store.inspectServer(),
};

describe('operations on a client without timeouts', () => {
  const database = useSharedDatabase();
  const clients = useClients();

  afterEach(() => database.admin({ configureFailPoint: 'failCommand', mode: 'off' }));

  function storeOn(client: mongo.MongoClient, timeout: number): Store {
    const signal = sharedDeadlines(timeout, new OperationTimeoutError(`no reply within ${timeout} ms`));
    const { name } = database.connection;
    return createStore(openCollections({ client, database: name, prefix: DEFAULT_PREFIX, signal }));
  }

  /** From now on, the server does not reply to the clients of this test for a long time. */
  async function block(): Promise<void> {
    const data = {
      failCommands: BLOCKED_COMMANDS,
      appName: SLOW_APP,
      blockConnection: true,
      blockTimeMS: 2000,
    };
    await database.admin({ configureFailPoint: 'failCommand', mode: 'alwaysOn', data });
  }

  /** The operations that end in time with an error that says that the result is unknown. */
  async function endingInTime(store: Store): Promise<string[]> {
    const startedAt = performance.now();
    const ended = await Promise.all(
      Object.entries(OPERATIONS).map(async ([name, operation]) => {
        const error = await operation(store).then(
          () => 'it succeeded',
          (thrown: unknown) => thrown,
        );
        const took = performance.now() - startedAt;
        return isResultUnknown(error) && took < 1800 ? name : `${name}: ${String(error)} after ${took} ms`;
      }),
    );
    return ended;
  }

  for (const [which, driver] of Object.entries({ 'our own': mongo, another: loadSecondDriver() })) {
    it(`end in time while the server does not reply, with ${which} copy of the driver`, async () => {
      const client = clients.open(database.uri, { appName: SLOW_APP, maxPoolSize: 50 }, driver);
      const store = storeOn(client, 300);
      await store.findJob('a');
      await block();
      assert.deepEqual(await endingInTime(store), Object.keys(OPERATIONS));
      await database.admin({ configureFailPoint: 'failCommand', mode: 'off' });
      assert.equal(await store.findJob('a'), null, 'the client still works');
    });
  }

  it('end in time while all connections of the application are busy', async () => {
    const client = clients.open(database.uri, { appName: SLOW_APP, maxPoolSize: 1 });
    const store = storeOn(client, 300);
    await store.findJob('a');
    await block();
    const busy = client.db(database.connection.name).collection('orders').findOne();
    assert.deepEqual(await endingInTime(store), Object.keys(OPERATIONS));
    await busy;
  });

  it('know duplicates and missing indexes by the errors of another copy of the driver', async () => {
    const driver = loadSecondDriver();
    assert.notEqual(driver.MongoServerError, mongo.MongoServerError);
    const client = clients.open(database.uri, {}, driver);
    const scheduler = database.scheduler({ client });
    const [first, second] = [
      await scheduler.dispatch('work', null, { key: 'a' }),
      await scheduler.dispatch('work', null, { key: 'a' }),
    ];
    assert.deepEqual([first.duplicate, second.duplicate], [false, true]);
    const many = await scheduler.dispatchMany([
      { taskType: 'work', options: { key: 'a' } },
      { taskType: 'work' },
    ]);
    assert.deepEqual(
      many.map((one) => 'duplicate' in one && one.duplicate),
      [true, false],
    );
    await scheduler.withLock('a', () =>
      assert.rejects(
        scheduler.withLock('a', () => undefined, { wait: 0 }),
        { code: 'LOCK_HELD' },
      ),
    );
    await database.collections.jobs.dropIndex('pending');
    try {
      await assert.rejects(scheduler.operations.listJobs({ state: 'held' }), { code: 'NOT_INSTALLED' });
    } finally {
      await scheduler.install();
    }
  });
});
