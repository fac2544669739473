import assert from 'node:assert/strict';
import { createStore } from '../../../src/store/store.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { useDatabase } from '../../support/database.js';
import { blocker, countEvents, nextEvent, recordEvents, signal } from '../../support/events.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { waitUntil } from '../../support/wait-until.js';
import { nextMeasurement } from '../../support/measurements.js';

describe('stop() during other work', () => {
  const db = useDatabase();
  const locked = (): Promise<number> => db.collections.jobs.countDocuments({ lockToken: { $ne: null } });

  it('lets a handler that is ending dispatch jobs on the open connection [C12]', async () => {
    const scheduler = db.scheduler();
    const { block, entered, release } = blocker();
    scheduler.registerHandler('first', async () => {
      await block();
      return (await scheduler.dispatch('second')).id;
    });
    await scheduler.start();
    const first = await scheduler.dispatch('first');
    await entered;
    const stopping = nextEvent(scheduler, 'worker:state', ({ state }) => state === 'Stopping');
    const stopped = scheduler.stop();
    await stopping;
    release();
    assert.deepEqual(await stopped, { left: [] });
    const job = await db.collections.jobs.findOne({ _id: first.id });
    assert.equal(job?.status, 'COMPLETED');
    assert.equal(
      await db.collections.jobs.countDocuments({ _id: String(job.result), status: 'SCHEDULED' }),
      1,
    );
    assert.equal(scheduler.state, 'Stopped');
  });

  it('makes a running pass claim nothing more and finish or release what it claimed [C12] [J13]', async () => {
    const scheduler = db.scheduler({ concurrency: 2 });
    const { block, entered, release } = blocker();
    scheduler.registerHandler('work', block);
    await scheduler.dispatchMany(Array.from({ length: 100 }, () => ({ taskType: 'work' })));
    const pass = scheduler.run(100);
    await entered;
    const stopped = scheduler.stop();
    release();
    assert.deepEqual(await stopped, { left: [] });
    const count = await pass;
    assert.ok(count < 100);
    assert.equal(await locked(), 0);
    assert.equal(await db.collections.jobs.countDocuments({ status: 'COMPLETED' }), count);
  });

  it('makes a pass that has not claimed yet claim nothing, without an error [C12] [J13]', async () => {
    const scheduler = db.scheduler({ taskHandlers: { work: () => 'ran' } });
    await scheduler.addSchedule({ id: 'due', taskType: 'work', cron: '@hourly' });
    const past = new Date(Date.now() - 3_600_000);
    await db.collections.schedules.updateOne({ _id: 'due' }, { $set: { nextRunAt: past } });
    const stopped = nextEvent(scheduler, 'schedule:due').then(() => scheduler.stop());
    const { entries, executed } = await scheduler.runOnce();
    await stopped;
    assert.deepEqual([entries.map(({ name }) => name), executed], [['due'], 0]);
    assert.equal(await db.collections.jobs.countDocuments({ status: 'SCHEDULED', lockToken: null }), 1);
  });

  it('never lets a pass next to a started worker run more handlers than there are slots [C12] [J13]', async () => {
    const scheduler = db.scheduler({ concurrency: 3 });
    let running = 0;
    let peak = 0;
    const full = signal();
    scheduler.registerHandler('short', async () => {
      peak = Math.max(peak, ++running);
      // The first handlers wait until every slot is in use.
      if (running === 3) full.fire();
      await full.promise;
      await new Promise(setImmediate);
      running--;
    });
    await scheduler.start();
    const all = countEvents(scheduler, 'job:complete', 60);
    await scheduler.dispatchMany(Array.from({ length: 60 }, () => ({ taskType: 'short' })));
    await Promise.all([scheduler.run(60), scheduler.run(60)]);
    await all;
    assert.equal(await db.collections.jobs.countDocuments({ status: 'COMPLETED', attempts: 0 }), 60);
    assert.equal(peak, 3);
  });

  it('leaves a job that was claimed and released as if it had never started: maxRunningTime has not begun', async () => {
    const scheduler = db.scheduler({ taskHandlers: { quick: () => 'ran' } });
    const { id } = await scheduler.dispatch('quick', null, { maxRunningTime: '1ms' });
    const now = new Date();
    const store = createStore(db.stored);
    const filter = {
      queues: ['default'],
      taskTypes: ['quick'],
      now,
      withoutCrashSuspects: false,
      exclude: [],
    };
    await store.claimOne(filter, {
      token: 'token',
      workerId: 'w',
      lockedUntil: new Date(now.getTime() + 60_000),
    });
    await store.release('token', [id], now);
    assert.equal(await scheduler.run(), 1);
    assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED');
  });

  it('does not start an inline run that waits for a slot [C12]', async () => {
    const { scheduler, clock } = manualScheduler(db, { concurrency: 1 });
    const { block, entered, release } = blocker();
    scheduler.registerHandler('slow', block);
    scheduler.schedule('inline', () => 'ran').everyMinute();
    await scheduler.dispatch('slow');
    const slow = scheduler.run();
    await entered;
    clock.advance(60_000);
    const planned = nextMeasurement(scheduler, 'plan');
    const pass = scheduler.runOnce();
    await planned;
    await flushEventLoop(20);
    const stopped = scheduler.stop();
    await flushEventLoop(20);
    release();
    assert.deepEqual(await stopped, { left: [] });
    await Promise.all([slow, pass]);
    assert.equal(await db.collections.jobs.countDocuments({ taskType: 'inline' }), 0);
    assert.equal(
      await db.collections.schedules.countDocuments({ 'pending.kind': 'run' }),
      1,
      'another process can run it',
    );
  });

  it('reports no error when a daemon is still installing [C12]', async () => {
    const scheduler = db.scheduler();
    const trouble = recordEvents(scheduler, 'worker:error');
    const daemon = scheduler.daemon({ interval: '1m' });
    await waitUntil('the daemon is connected', async () => scheduler.load.connection !== null);
    await scheduler.stop();
    assert.equal((await daemon).reason, 'stopped');
    assert.deepEqual(trouble, []);
  });
});

describe('run() and stop() at any time', () => {
  const db = useDatabase();

  for (const delay of [0, 50, 150, 300, 450, 700]) {
    it(`both end when stop() comes ${delay} ms into a pass, nothing stays locked and no crash is counted [C12]`, async () => {
      const scheduler = db.scheduler({ concurrency: 1 });
      scheduler.registerHandler('short', () => new Promise((resolve) => setTimeout(resolve, 30)));
      await scheduler.dispatchMany(Array.from({ length: 50 }, () => ({ taskType: 'short' })));
      const pass = scheduler.run(50).catch((error: unknown) => error);
      await new Promise((resolve) => setTimeout(resolve, delay));
      assert.deepEqual(await scheduler.stop(), { left: [] });
      await pass;
      assert.equal(await db.collections.jobs.countDocuments({ lockToken: { $ne: null } }), 0);
      assert.equal(await db.collections.jobs.countDocuments({ crashes: { $gt: 0 } }), 0);
    });
  }

  it('both end when a handler ignores its signal, and stop() returns its job [C12]', async () => {
    const scheduler = db.scheduler({ concurrency: 1 });
    scheduler.registerHandler('never', () => new Promise(() => undefined));
    await scheduler.dispatchMany([{ taskType: 'never' }, { taskType: 'never' }]);
    const started = nextEvent(scheduler, 'job:start');
    const pass = scheduler.run();
    const { jobId } = await started;
    assert.deepEqual(await scheduler.stop('1s'), { left: [{ id: jobId, taskType: 'never' }] });
    await pass;
  });

  it('release a named lock when its function ends because of the abort signal [Y7]', async () => {
    const scheduler = db.scheduler();
    const entered = signal();
    const aborted = signal();
    const held = scheduler.withLock('mine', async ({ signal: lost }) => {
      lost.addEventListener('abort', () => aborted.fire());
      entered.fire();
      await aborted.promise;
    });
    await entered.promise;
    await scheduler.stop();
    await held;
    assert.equal(await db.scheduler().withLock('mine', () => 'free'), 'free');
  });
});
