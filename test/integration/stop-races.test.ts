import assert from 'node:assert/strict';
import { createStore } from '../../src/store/store.js';
import { useDatabase } from '../support/database.js';
import { nextEvent, signal } from '../support/events.js';

describe('stop() while something else goes on', () => {
  const db = useDatabase();
  const locked = (): Promise<number> => db.collections.jobs.countDocuments({ lockToken: { $ne: null } });

  it('C12 a handler that comes to its end may still dispatch, on the connection that is there', async () => {
    const scheduler = db.scheduler();
    const go = signal();
    scheduler.registerHandler('first', async () => {
      await go.promise;
      return (await scheduler.dispatch('second')).id;
    });
    const started = nextEvent(scheduler, 'job:start');
    await scheduler.start();
    const first = await scheduler.dispatch('first');
    await started;
    const stopping = nextEvent(scheduler, 'worker:state', ({ state }) => state === 'Stopping');
    const stopped = scheduler.stop();
    await stopping;
    go.fire();
    assert.deepEqual(await stopped, { left: [] });
    const job = await db.collections.jobs.findOne({ _id: first.id });
    assert.equal(job?.status, 'COMPLETED');
    assert.equal(
      await db.collections.jobs.countDocuments({ _id: String(job.result), status: 'SCHEDULED' }),
      1,
    );
    assert.equal(scheduler.state, 'Stopped');
  });

  it('C12 J13 a pass under way claims nothing more, and what it claimed is finished or given back', async () => {
    const scheduler = db.scheduler({ concurrency: 2 });
    const started = nextEvent(scheduler, 'job:start');
    scheduler.registerHandler('short', () => new Promise((resolve) => setTimeout(resolve, 50)));
    await scheduler.dispatchMany(Array.from({ length: 100 }, () => ({ taskType: 'short' })));
    const pass = scheduler.run(100);
    await started;
    assert.deepEqual(await scheduler.stop(), { left: [] });
    const count = await pass;
    assert.ok(count < 100);
    assert.equal(await locked(), 0);
    assert.equal(await db.collections.jobs.countDocuments({ status: 'COMPLETED' }), count);
  });

  it('C12 J13 a pass beside a started worker never runs more handlers than there are slots', async () => {
    const scheduler = db.scheduler({ concurrency: 3 });
    let running = 0;
    let peak = 0;
    scheduler.registerHandler('short', async () => {
      peak = Math.max(peak, ++running);
      await new Promise(setImmediate);
      running--;
    });
    await scheduler.start();
    const results = await scheduler.dispatchMany(Array.from({ length: 60 }, () => ({ taskType: 'short' })));
    await Promise.all([scheduler.run(60), scheduler.run(60)]);
    for (const { id } of results) {
      const job = await scheduler.getJob(id ?? '');
      assert.deepEqual([job?.status, job?.fence], ['COMPLETED', 1]);
    }
    assert.equal(peak, 3);
  });

  it('a job that was claimed and given back unstarted does not count as having run', async () => {
    const scheduler = db.scheduler({ taskHandlers: { quick: () => 'ran' } });
    const { id } = await scheduler.dispatch('quick', null, { maxRunningTime: '1ms' });
    const now = new Date();
    const store = createStore(db.collections);
    const filter = { queues: ['default'], taskTypes: ['quick'], now, withoutSuspects: false, exclude: [] };
    await store.claimOne(filter, {
      token: 'token',
      workerId: 'w',
      lockedUntil: new Date(now.getTime() + 60_000),
    });
    await store.giveBack('token', [id], now);
    assert.equal(await scheduler.run(), 1);
    assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED');
  });
});
