import assert from 'node:assert/strict';
import { Scheduler } from '../../../src/index.js';
import {
  manualScheduler,
  withoutRenewalThread,
  advanceUntilSettled,
} from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { countEvents, nextEvent, signal } from '../../support/events.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { withFailPoint, NO_STREAM } from '../../support/fail-point.js';
import { timeAfter } from '../../support/instants.js';
import { ManualClock } from '../../support/manual-clock.js';
import { nextMeasurement, recordMeasurements } from '../../support/measurements.js';

describe('the poll loop', () => {
  const database = useSharedDatabase();

  it('finds jobs of other processes at the poll interval, 5 s by default, without a change stream [C1]', async () => {
    const clock = new ManualClock();
    const worker = new Scheduler({ uri: database.uri, clock, logger: false });
    try {
      worker.registerHandler('work', () => undefined);
      /** Resolves when the next round has ended and the loop sleeps. */
      const nextRound = async (): Promise<void> => {
        await nextMeasurement(worker, 'round', ({ operation }) => operation === 'claim jobs');
        await flushEventLoop();
      };
      await withFailPoint(database, NO_STREAM, async () => {
        const first = nextRound();
        await worker.start();
        await first;
        // A poll that start() requested besides its first one is part of this round.
        const second = nextRound();
        clock.advance(5000);
        await second;

        // Dispatched by another scheduler: this worker finds it only by polling.
        const { id } = await database.scheduler({ clock }).dispatch('work');
        const rounds = recordMeasurements(worker, 'claim');
        const started = nextEvent(worker, 'job:start');
        clock.advance(4999);
        // A claim would take one round trip, so it would show within ten reads.
        for (let i = 0; i < 10; i++)
          assert.equal((await database.collections.jobs.findOne({ _id: id }))?.status, 'SCHEDULED');
        assert.deepEqual(rounds, []);
        clock.advance(1);
        await started;
      });
    } finally {
      await worker.stop();
    }
  });

  for (const concurrency of [1, 5, 20]) {
    it(`runs at most ${concurrency} handlers at once when concurrency is ${concurrency} [C1]`, async () => {
      const scheduler = database.scheduler({ ...withoutRenewalThread, concurrency });
      let running = 0;
      let peak = 0;
      const full = signal();
      scheduler.registerHandler('work', async () => {
        peak = Math.max(peak, ++running);
        if (running === concurrency) full.fire();
        // No handler ends before every slot is taken, so an extra handler would be counted.
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

  it('runs five handlers at once by default [C1]', async () => {
    const scheduler = new Scheduler({ uri: database.uri, ...withoutRenewalThread, logger: false });
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

  it('refills a free slot at once, not at the next poll [C1]', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread, pollInterval: '1h', concurrency: 2 });
    scheduler.registerHandler('work', () => new Promise(setImmediate));
    await scheduler.dispatchMany(Array.from({ length: 50 }, () => ({ taskType: 'work' })));
    const complete = countEvents(scheduler, 'job:complete', 50);
    await scheduler.start();
    await complete;
  });

  it('starts a job when it becomes due, not at the next poll [C1]', async () => {
    const { scheduler, clock } = manualScheduler(database, { pollInterval: '1h' });
    scheduler.registerHandler('work', () => undefined);
    await scheduler.start();
    await scheduler.dispatch('work', null, { delay: '2m' });
    const started = nextEvent(scheduler, 'job:start');
    clock.advance(119_999);
    // In steps of a millisecond, the next poll is hours away.
    await advanceUntilSettled(clock, started, 1);
    assert.ok(clock.now() >= timeAfter(120_000), clock.now().toISOString());
  });

  it('starts a failed job again at once when its retry has no delay, not at the next poll [C1]', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread, pollInterval: '1h' });
    scheduler.registerHandler('work', (_, job) => {
      if (job.attempt < 10) throw new Error('again');
    });
    await scheduler.start();
    const handles = await Promise.all(
      Array.from({ length: 10 }, () =>
        scheduler.dispatch('work', null, { retries: { max: 10, base: 0, cap: 0 } }),
      ),
    );
    for (const handle of handles) assert.equal((await handle.wait()).status, 'COMPLETED');
  });

  it('prefetches jobs as QUEUED, runs them as RUNNING and settles them like others [C4]', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread, concurrency: 2 });
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
    // Prefetched jobs start after they were locked.
    const prefetched = await jobs.countDocuments({ $expr: { $gt: ['$startedAt', '$queuedAt'] } });
    assert.ok(prefetched > 0);
    assert.ok(fences.has(1));
  });
});
