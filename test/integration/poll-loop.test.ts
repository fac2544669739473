import assert from 'node:assert/strict';
import { Scheduler } from '../../src/index.js';
import { byHand, inProcess, passTime } from '../support/by-hand.js';
import { useSharedDatabase } from '../support/shared-database.js';
import { countEvents, nextEvent, recordEvents, signal } from '../support/events.js';
import { failing, NO_STREAM } from '../support/fail-point.js';
import { after } from '../support/instants.js';
import { ManualClock } from '../support/manual-clock.js';
import { until } from '../support/until.js';

describe('the poll loop', () => {
  const database = useSharedDatabase();

  it('C1 without a change stream finds jobs of other processes at the poll interval, 5 s by default', async () => {
    const clock = new ManualClock();
    const worker = new Scheduler({ uri: database.uri, clock });
    try {
      worker.registerHandler('work', () => undefined);
      const waited = await failing(database, NO_STREAM, async () => {
        await worker.start();
        const other = database.scheduler({ clock });
        // Dispatched elsewhere: nothing but the next poll tells this worker.
        const rounds = recordEvents(worker, 'worker:claim');
        const first = nextEvent(worker, 'job:start');
        await other.dispatch('work');
        await passTime(clock, first, 100);
        await until('it has looked for more', () => {
          const { claimed } = rounds.at(-1)!.event as { claimed: number };
          return Promise.resolve(claimed === 0);
        });
        const found = clock.now().getTime();
        const second = nextEvent(worker, 'job:start');
        await other.dispatch('work');
        await passTime(clock, second, 100);
        return clock.now().getTime() - found;
      });
      // A step of the clock, and what the database took meanwhile.
      assert.ok(waited >= 4900 && waited < 9500, `${waited} ms`);
    } finally {
      await worker.stop();
    }
  });

  for (const concurrency of [1, 5, 20]) {
    it(`C1 runs as many handlers at once as concurrency says, ${concurrency}, and no more`, async () => {
      const scheduler = database.scheduler({ ...inProcess, concurrency });
      let running = 0;
      let peak = 0;
      const full = signal();
      scheduler.registerHandler('work', async () => {
        peak = Math.max(peak, ++running);
        if (running === concurrency) full.fire();
        // Nobody leaves before every slot is taken; whoever comes on top of that would be counted.
        await full.promise;
        await new Promise(setImmediate);
        running--;
      });
      const count = concurrency * 4 + 3;
      await scheduler.dispatchMany(Array.from({ length: count }, () => ({ taskType: 'work' })));
      const complete = countEvents(scheduler, 'job:complete', count);
      await scheduler.start();
      await complete;
      assert.equal(peak, concurrency);
    });
  }

  it('C1 five at once by default', async () => {
    const scheduler = new Scheduler({ uri: database.uri, ...inProcess });
    try {
      const release = signal();
      let started = 0;
      const five = signal();
      scheduler.registerHandler('work', () => {
        if (++started === 5) five.fire();
        return release.promise;
      });
      await scheduler.dispatchMany(Array.from({ length: 12 }, () => ({ taskType: 'work' })));
      const complete = countEvents(scheduler, 'job:complete', 12);
      await scheduler.start();
      await five.promise;
      assert.equal(started, 5);
      assert.equal(await database.collections.jobs.countDocuments({ status: 'SCHEDULED' }), 7);
      release.fire();
      await complete;
    } finally {
      await scheduler.stop();
    }
  });

  it('C1 a slot that frees is refilled at once, not at the next poll', async () => {
    const scheduler = database.scheduler({ ...inProcess, pollInterval: '1h', concurrency: 2 });
    scheduler.registerHandler('work', () => new Promise(setImmediate));
    await scheduler.dispatchMany(Array.from({ length: 50 }, () => ({ taskType: 'work' })));
    const complete = countEvents(scheduler, 'job:complete', 50);
    await scheduler.start();
    await complete;
  });

  it('C1 a job that becomes due is started then, not at the next poll', async () => {
    const { scheduler, clock } = byHand(database, { pollInterval: '1h' });
    scheduler.registerHandler('work', () => undefined);
    await scheduler.start();
    await scheduler.dispatch('work', null, { delay: '2m' });
    await passTime(clock, nextEvent(scheduler, 'job:start'), 500);
    assert.ok(clock.now() >= after(120_000) && clock.now() < after(600_000), clock.now().toISOString());
  });

  it('C1 a failed attempt that is due again at once does not wait for the next poll', async () => {
    const scheduler = database.scheduler({ ...inProcess, pollInterval: '1h' });
    scheduler.registerHandler('work', (_, job) => {
      if (job.attempt < 10) throw new Error('again');
    });
    await scheduler.start();
    const handles = await Promise.all(
      Array.from({ length: 10 }, () =>
        scheduler.dispatch('work', null, { retries: { max: 10, base: 0, cap: 0 } }),
      ),
    );
    for (const handle of handles) assert.equal((await handle.wait({ timeout: '10s' })).status, 'COMPLETED');
  });

  it('C4 jobs taken into the buffer are QUEUED, then RUNNING, and settle like the others', async () => {
    const scheduler = database.scheduler({ ...inProcess, concurrency: 2 });
    const fences = new Set<number>();
    scheduler.registerHandler('work', () => undefined);
    scheduler.on('job:complete', ({ fence }) => fences.add(fence));
    await scheduler.dispatchMany(Array.from({ length: 1000 }, () => ({ taskType: 'work' })));
    const complete = countEvents(scheduler, 'job:complete', 1000);
    await scheduler.start();
    await complete;
    const { jobs, executions } = database.collections;
    assert.equal(await jobs.countDocuments({ status: 'COMPLETED', lockToken: null, attempts: 0 }), 1000);
    assert.equal(await executions.countDocuments(), 1000);
    // Some were buffered: their start came after they were locked.
    const buffered = await jobs.countDocuments({ $expr: { $gt: ['$startedAt', '$queuedAt'] } });
    assert.ok(buffered > 0);
    assert.ok(fences.has(1));
  });
});
