import assert from 'node:assert/strict';
import { DEFAULT_PREFIX } from '../../../src/config/connection-options.js';
import { systemClock } from '../../../src/runtime/system-clock.js';
import { connect, type Database } from '../../../src/store/connection.js';
import { isResultUnknown } from '../../../src/store/mongo-errors.js';
import { createStore } from '../../../src/store/store.js';
import { aJob } from '../../support/factories/job.js';
import { OpenSockets } from '../../support/hung-sockets.js';
import { START } from '../../support/instants.js';
import { rejectionOf } from '../../support/rejection.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { waitUntil } from '../../support/wait-until.js';

describe('our own client, when the driver writes to a socket that is closing', () => {
  const shared = useSharedDatabase();
  let sockets: OpenSockets;
  let database: Database;

  beforeEach(async () => {
    sockets = new OpenSockets(Number(new URL(shared.uri).port));
    const source = { uri: shared.uri, prefix: DEFAULT_PREFIX };
    database = await connect({
      source,
      poolSize: 3,
      socketTimeout: 300,
      timeout: 10_000,
      clock: systemClock,
    });
  });

  afterEach(async () => {
    sockets.close();
    await database.close();
  });

  const noneInUse = (): Promise<boolean> => Promise.resolve(database.poolStats().inUse === 0);

  it('ends each operation in time, with an unknown result', async () => {
    const store = createStore(database.collections);
    const operations = {
      write: () => store.release('token', ['a'], START),
      read: () => store.findJob('a'),
      cursor: () => store.findCancelRequests(['a']),
      command: () => database.readServerTime(),
    };
    for (const [name, operation] of Object.entries(operations)) {
      await operation();
      sockets.destroyAll();
      const error = await rejectionOf(operation());
      assert.ok(isResultUnknown(error), `${name}: ${String(error)}`);
      await waitUntil(`no connection is in use after ${name}`, noneInUse);
    }
    assert.equal(await store.findJob('a'), null, 'the client still works');
  });

  it('ends a getMore in time, and closes its connection', async () => {
    await shared.collections.jobs.insertMany([aJob({ _id: 'a' }), aJob({ _id: 'b' }), aJob({ _id: 'c' })]);
    const cursor = database.collections.jobs.find({}, { batchSize: 1 });
    await cursor.next();
    sockets.destroyAll();
    const error = await rejectionOf(cursor.next());
    assert.ok(isResultUnknown(error), String(error));
    await waitUntil('no connection is in use', noneInUse);
  });
});
