import assert from 'node:assert/strict';
import { aJob } from '../../support/factories/job.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { timeAfter, START } from '../../support/instants.js';

describe('hold() and unhold()', () => {
  const database = useSharedDatabase();

  it('make a job PENDING until it is unheld [C4]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('work', () => undefined);
    const { id } = await scheduler.dispatch('work');
    assert.deepEqual(await scheduler.hold(id, 'needs a check'), { result: 'changed', state: 'held' });
    assert.equal(await scheduler.run(), 0);
    const held = await scheduler.getJob(id);
    assert.deepEqual([held?.status, held?.held], ['PENDING', { reason: 'needs a check', at: START }]);
    assert.deepEqual(await scheduler.hold(id), { result: 'refused', state: 'held' });
    assert.deepEqual(await scheduler.unhold(id), { result: 'changed', state: 'waiting' });
    assert.equal(await scheduler.run(), 1);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.held, job?.fence], ['COMPLETED', null, 1]);
    assert.deepEqual(await scheduler.unhold(id), { result: 'refused', state: 'completed' });
  });

  it('let a job run that was dispatched on hold [C4]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('work', () => undefined);
    const { id } = await scheduler.dispatch('work', null, { hold: true });
    assert.equal((await scheduler.getJob(id))?.status, 'PENDING');
    assert.equal(await scheduler.run(), 0);
    await scheduler.unhold(id);
    assert.equal(await scheduler.run(), 1);
  });

  it('change only jobs that are waiting', async () => {
    const { scheduler } = manualScheduler(database);
    for (const [status, state] of [
      ['QUEUED', 'prefetched'],
      ['RUNNING', 'running'],
      ['FAILED', 'failed'],
    ] as const) {
      const job = aJob({ status });
      await database.collections.jobs.insertOne(job);
      assert.deepEqual(await scheduler.hold(job._id), { result: 'refused', state });
      assert.deepEqual(await database.collections.jobs.findOne({ _id: job._id }), job);
    }
    assert.deepEqual(await scheduler.hold('nobody'), { result: 'notFound', state: null });
    assert.deepEqual(await scheduler.unhold('nobody'), { result: 'notFound', state: null });
  });
});

describe('retrying a finished job', () => {
  const database = useSharedDatabase();

  for (const status of ['COMPLETED', 'FAILED', 'CANCELLED'] as const) {
    it(`runs a ${status} job again as if it were new, with a higher fence [C4]`, async () => {
      const { scheduler, clock } = manualScheduler(database);
      scheduler.registerHandler('work', (_, job) => job.attempt);
      const job = aJob({
        status,
        fence: 5,
        attempts: 3,
        crashes: 2,
        lostWhileQueued: 1,
        result: 'old',
        error: { name: 'Error', message: 'old', code: null, stack: null },
        progress: { value: 50, note: null, at: START },
        cancelRequested: { reason: 'old', at: START },
      });
      await database.collections.jobs.insertOne(job);
      clock.advance(1000);
      assert.deepEqual(await scheduler.retry(job._id), { result: 'changed', state: 'waiting' });
      const waiting = await scheduler.getJob(job._id);
      assert.deepEqual(
        [waiting?.status, waiting?.attempts, waiting?.crashes, waiting?.lostWhileQueued, waiting?.fence],
        ['SCHEDULED', 0, 0, 0, 6],
      );
      assert.deepEqual(
        [waiting?.nextRunAt, waiting?.finishedAt, waiting?.firstStartedAt, waiting?.cancelRequested],
        [timeAfter(1000), null, null, null],
      );
      assert.deepEqual([waiting?.result, waiting?.error, waiting?.progress], [null, null, null]);
      assert.equal(await scheduler.run(), 1);
      const done = await scheduler.getJob(job._id);
      assert.deepEqual([done?.status, done?.result, done?.fence], ['COMPLETED', 1, 7]);
    });
  }

  it('does nothing to a job that is not finished, and returns its state [C4]', async () => {
    const { scheduler } = manualScheduler(database);
    for (const [status, state] of [
      ['PENDING', 'held'],
      ['SCHEDULED', 'waiting'],
      ['QUEUED', 'prefetched'],
      ['RUNNING', 'running'],
    ] as const) {
      const job = aJob({ status });
      await database.collections.jobs.insertOne(job);
      assert.deepEqual(await scheduler.retry(job._id), { result: 'refused', state });
      assert.deepEqual(await database.collections.jobs.findOne({ _id: job._id }), job);
    }
    assert.deepEqual(await scheduler.retry('nobody'), { result: 'notFound', state: null });
  });
});
