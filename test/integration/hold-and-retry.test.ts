import assert from 'node:assert/strict';
import { aJob } from '../support/a-job.js';
import { byHand } from '../support/by-hand.js';
import { useSharedDatabase } from '../support/shared-database.js';
import { after, START } from '../support/instants.js';

describe('hold and unhold', () => {
  const database = useSharedDatabase();

  it('C4 a held job is PENDING and does not run; put back, it does', async () => {
    const { scheduler } = byHand(database);
    scheduler.registerHandler('work', () => undefined);
    const { id } = await scheduler.dispatch('work');
    assert.deepEqual(await scheduler.hold(id, 'look into it'), { changed: true });
    assert.equal(await scheduler.run(), 0);
    const held = await scheduler.getJob(id);
    assert.deepEqual([held?.status, held?.held], ['PENDING', { reason: 'look into it', at: START }]);
    assert.deepEqual(await scheduler.hold(id), { changed: false, status: 'PENDING' });
    assert.deepEqual(await scheduler.unhold(id), { changed: true });
    assert.equal(await scheduler.run(), 1);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.held, job?.fence], ['COMPLETED', null, 1]);
    assert.deepEqual(await scheduler.unhold(id), { changed: false, status: 'COMPLETED' });
  });

  it('C4 a job can be dispatched on hold', async () => {
    const { scheduler } = byHand(database);
    scheduler.registerHandler('work', () => undefined);
    const { id } = await scheduler.dispatch('work', null, { hold: true });
    assert.equal((await scheduler.getJob(id))?.status, 'PENDING');
    assert.equal(await scheduler.run(), 0);
    await scheduler.unhold(id);
    assert.equal(await scheduler.run(), 1);
  });

  it('only a waiting job can be held', async () => {
    const { scheduler } = byHand(database);
    for (const status of ['QUEUED', 'RUNNING', 'FAILED'] as const) {
      const job = aJob({ status });
      await database.collections.jobs.insertOne(job);
      assert.deepEqual(await scheduler.hold(job._id), { changed: false, status });
      assert.deepEqual(await database.collections.jobs.findOne({ _id: job._id }), job);
    }
    assert.deepEqual(await scheduler.hold('nobody'), { changed: false, status: null });
    assert.deepEqual(await scheduler.unhold('nobody'), { changed: false, status: null });
  });
});

describe('retry', () => {
  const database = useSharedDatabase();

  for (const status of ['COMPLETED', 'FAILED', 'CANCELLED'] as const) {
    it(`C4 a ${status} job runs again as if it were new, under a new fence`, async () => {
      const { scheduler, clock } = byHand(database);
      scheduler.registerHandler('work', (_, job) => job.attempt);
      const job = aJob({
        status,
        fence: 5,
        attempts: 3,
        crashes: 2,
        abandoned: 1,
        result: 'old',
        error: { name: 'Error', message: 'old', code: null, stack: null },
        progress: { value: 50, note: null, at: START },
        cancelRequested: { reason: 'old', at: START },
      });
      await database.collections.jobs.insertOne(job);
      clock.advance(1000);
      assert.deepEqual(await scheduler.retry(job._id), { retried: true });
      const waiting = await scheduler.getJob(job._id);
      assert.deepEqual(
        [waiting?.status, waiting?.attempts, waiting?.crashes, waiting?.abandoned, waiting?.fence],
        ['SCHEDULED', 0, 0, 0, 6],
      );
      assert.deepEqual(
        [waiting?.nextRunAt, waiting?.finishedAt, waiting?.firstStartedAt, waiting?.cancelRequested],
        [after(1000), null, null, null],
      );
      assert.deepEqual([waiting?.result, waiting?.error, waiting?.progress], [null, null, null]);
      assert.equal(await scheduler.run(), 1);
      const done = await scheduler.getJob(job._id);
      assert.deepEqual([done?.status, done?.result, done?.fence], ['COMPLETED', 1, 7]);
    });
  }

  it('C4 of a job that is not finished is refused, and the answer says what it is', async () => {
    const { scheduler } = byHand(database);
    for (const status of ['PENDING', 'SCHEDULED', 'QUEUED', 'RUNNING'] as const) {
      const job = aJob({ status });
      await database.collections.jobs.insertOne(job);
      assert.deepEqual(await scheduler.retry(job._id), { retried: false, status });
      assert.deepEqual(await database.collections.jobs.findOne({ _id: job._id }), job);
    }
    assert.deepEqual(await scheduler.retry('nobody'), { retried: false, status: null });
  });
});
