import assert from 'node:assert/strict';
import { mongo } from 'mongoose';
import { DEFAULT_PREFIX } from '../../../src/config/connection-options.js';
import { openCollections } from '../../../src/store/schema/collections.js';
import { createStore } from '../../../src/store/store.js';
import { aJob } from '../../support/factories/job.js';
import { timeAfter, START } from '../../support/instants.js';
import { useSharedDatabase } from '../../support/shared-database.js';

const WRITES = ['insert', 'update', 'findAndModify', 'delete'];
const GRANT = { token: 'token', workerId: 'me', lockedUntil: timeAfter(1) };
const LATER = timeAfter(5000);

/** Each of these would make acknowledged writes less durable, or reads stale. */
const WEAK_OPTIONS = { w: 1, journal: false, wtimeoutMS: 1, readPreference: 'secondaryPreferred' } as const;
const READS = ['find', 'aggregate', 'distinct', 'count'];

describe('write concern', () => {
  const database = useSharedDatabase();

  it('and read preference of the connection string do not matter', async () => {
    // There is no secondary: with this preference nothing could be read, and there would be no connection.
    const uri = new URL(database.uri);
    for (const [name, value] of Object.entries({ readPreference: 'secondary', w: '0', journal: 'false' }))
      uri.searchParams.set(name, value);
    const scheduler = database.scheduler({
      ...{ uri: uri.href, connectTimeout: '5s', taskHandlers: { work: () => 'done' } },
    });
    await scheduler.start();
    assert.equal((await (await scheduler.dispatch('work')).wait()).status, 'COMPLETED');
    const [finding] = (await scheduler.operations.doctor()).filter(({ check }) => check === 'writeConcern');
    assert.equal(finding?.level, 'ok');
  });

  it('is majority with journal for every write of the store, and reads go to the primary, whatever the client says', async () => {
    const client = new mongo.MongoClient(database.uri, { monitorCommands: true, ...WEAK_OPTIONS });
    const commands: mongo.CommandStartedEvent[] = [];
    client.on('commandStarted', (event) => commands.push(event));
    try {
      const { name } = database.connection;
      const store = createStore(openCollections({ client, database: name, prefix: DEFAULT_PREFIX }));
      const due = {
        queues: ['default'],
        taskTypes: ['work'],
        now: LATER,
        withoutCrashSuspects: false,
        exclude: [],
      };
      const settlement = { workerId: 'me', startedAt: START, finishedAt: LATER, token: 'token' };
      const row = { _id: 'x:1', jobId: 'x', taskType: 'work', queue: 'default', attempt: 1, fence: 1 };
      const times = { startedAt: START, finishedAt: LATER, duration: 1, expiresAt: LATER };

      await store.enqueue(aJob({ _id: 'one' }));
      await store.enqueueMany([aJob({ _id: 'two' }), aJob({ _id: 'three' })]);
      await store.claimOne(due, GRANT);
      await store.claimBatch('buffer', [aJob({ _id: 'two' })], GRANT, LATER);
      await store.markStarted([{ jobId: 'two', token: 'token', startedAt: LATER }]);
      await store.saveProgress('two', 'token', { value: 1, note: null, at: LATER });
      await store.renew([{ kind: 'job', id: 'two', token: 'token', length: 1 }], LATER);
      await store.settle([
        { ...settlement, jobId: 'one', outcome: { kind: 'completed', result: undefined } },
        { ...settlement, jobId: 'two', outcome: { kind: 'failed', error: new Error('broken') } },
      ]);
      await store.release('token', ['two'], LATER);
      await store.releaseByToken('token', LATER);
      await store.reschedule('two', LATER, LATER);
      await store.hold('three', null, LATER);
      await store.unhold('three', LATER);
      await store.cancel('three', null, LATER);
      await store.retry('three', LATER);
      await store.recover(
        aJob({ status: 'RUNNING' }),
        { transition: 'recover', nextRunAt: LATER, error: null },
        { sweptBy: 'me', ownerIsGone: true },
        LATER,
      );
      await store.logExecutions([
        { ...row, ...times, lockToken: 't', workerId: 'me', outcome: 'crashed', error: null, log: [] },
      ]);
      await store.acquireLock('report', GRANT, LATER);
      await store.renew([{ kind: 'named', id: 'report', token: 'token', length: 1 }], LATER);
      await store.releaseLock('report', 'token');
      const before = timeAfter(10_000);
      await store.prune({ kind: 'finished', status: 'COMPLETED', before, occurrencesBefore: before }, 10);
      await store.prune({ kind: 'orphans', knownTypes: [], before: LATER }, 10);
      await store.prune({ kind: 'expired', before: LATER }, 10);
    } finally {
      await client.close();
    }

    const writes = commands.filter(({ commandName }) => WRITES.includes(commandName));
    assert.ok(writes.length >= 20, String(writes.length));
    assert.deepEqual(new Set(writes.map(({ commandName }) => commandName)), new Set(WRITES));
    for (const { commandName, command } of writes) {
      assert.deepEqual({ ...command['writeConcern'] }, { w: 'majority', j: true }, commandName);
    }
    const reads = commands.filter(({ commandName }) => READS.includes(commandName));
    assert.ok(reads.length > 3, String(reads.length));
    for (const { commandName, command } of reads) {
      // The driver does not send the read preference `primary`.
      assert.equal(command['$readPreference'], undefined, commandName);
      assert.deepEqual({ ...command['readConcern'] }, { level: 'local' }, commandName);
    }
  });
});
