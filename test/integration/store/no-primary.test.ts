import assert from 'node:assert/strict';
import { type EmbeddedMongod, startMongod } from '@chronos/mongod';
import mongoose from 'mongoose';
import { Scheduler } from '../../../src/index.js';
import { isResultUnknown } from '../../../src/store/mongo-errors.js';
import { SHORT_INTERVALS, useDatabase } from '../../support/database.js';
import { nextEvent, signal } from '../../support/events.js';
import { withFailPoint } from '../../support/fail-point.js';

describe('dispatchMany() that the server rejects', () => {
  const db = useDatabase();

  it('does not report jobs as stored [J22]', async () => {
    const scheduler = db.scheduler();
    const results = await withFailPoint(db, { commands: ['insert'], how: 'error' }, () =>
      scheduler.dispatchMany([{ taskType: 'a' }, { taskType: 'b' }]),
    );
    assert.ok(
      results.every((result) => 'error' in result),
      JSON.stringify(results),
    );
    assert.equal(await db.collections.jobs.countDocuments(), 0);
  });
});

/** With its own replica set, whose only member steps down, so that there is no primary for a while. */
describe('a replica set without a primary', () => {
  let mongod: EmbeddedMongod;
  let scheduler: Scheduler;

  beforeEach(async () => {
    mongod = await startMongod();
    scheduler = new Scheduler({ uri: mongod.uri, ...SHORT_INTERVALS, lockTimeout: '60s', logger: false });
  });

  afterEach(async () => {
    await scheduler.stop('2s');
    await mongod.stop();
  });

  /** No member can be elected for so many seconds. */
  async function stepDown(seconds: number): Promise<void> {
    const connection = await mongoose.createConnection(mongod.members[0]?.uri ?? '').asPromise();
    await connection.getClient().db('admin').command({ replSetStepDown: seconds, force: true });
    await connection.destroy();
  }

  it('delays the outcome of a handler until it can be written and never turns it into a failure [Y9]', async () => {
    const go = signal();
    scheduler.registerHandler('work', async () => {
      await go.promise;
      return 'done';
    });
    const started = nextEvent(scheduler, 'job:start');
    await scheduler.start();
    const { id } = await scheduler.dispatch('work');
    await started;
    await stepDown(20);
    const errors: Error[] = [];
    scheduler.on('worker:error', ({ operation, error }) => {
      if (operation === 'settle') errors.push(error);
    });
    const completed = nextEvent(scheduler, 'job:complete');
    const unstored = scheduler.dispatchMany([{ taskType: 'work' }]);
    go.fire();
    assert.equal((await completed).result, 'done');
    assert.ok(
      errors.length > 0 && errors.every(isResultUnknown),
      'the errors are retried, because the result of the write is unknown',
    );
    assert.deepEqual(
      [(await scheduler.getJob(id))?.status, (await scheduler.getExecutions(id)).length],
      ['COMPLETED', 1],
    );
    for (const result of await unstored) {
      const stored = result.id !== null && (await scheduler.getJob(result.id)) !== null;
      assert.ok(stored || 'error' in result, 'a job is reported as stored and does not exist');
    }
  }).timeout(60_000);
});
