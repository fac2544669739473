import assert from 'node:assert/strict';
import type { DispatchRequest } from '../../../src/index.js';
import { useDatabase } from '../../support/database.js';
import { countEvents, nextEvent, signal } from '../../support/events.js';
import { advanceUntilSettled, manualScheduler } from '../../support/manual-scheduler.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { waitUntil } from '../../support/wait-until.js';
import { nextMeasurement } from '../../support/measurements.js';

describe('prefetching', () => {
  const db = useDatabase();

  it('stops when handlers have become slow, and releases each prefetched job once [C4]', async () => {
    const scheduler = db.scheduler({ concurrency: 2, lockTimeout: '20s' });
    const go = signal();
    scheduler.registerHandler('quick', () => undefined);
    scheduler.registerHandler('long', () => go.promise);
    await scheduler.start();
    // Short handlers make the worker prefetch.
    const trained = countEvents(scheduler, 'job:complete', 300);
    await scheduler.dispatchMany(Array.from({ length: 300 }, () => ({ taskType: 'quick' })));
    await trained;
    const long = countEvents(scheduler, 'job:start', 2);
    await scheduler.dispatchMany([
      ...Array.from({ length: 2 }, () => ({ taskType: 'long', options: { priority: 1 } })),
      ...Array.from({ length: 20 }, () => ({ taskType: 'quick', options: { priority: 2 } })),
    ]);
    await long;
    const waiting = { priority: 2 };
    await waitUntil(
      'no job is prefetched any more',
      async () => (await db.collections.jobs.countDocuments({ ...waiting, status: 'SCHEDULED' })) === 20,
    );
    let rounds = 0;
    await nextMeasurement(
      scheduler,
      'round',
      ({ operation }) => operation === 'claim jobs' && ++rounds === 2,
    );
    const fences = await db.collections.jobs.distinct('fence', waiting);
    assert.ok(
      fences.every((fence) => fence <= 2),
      `prefetched and released repeatedly: fences ${fences.join(', ')}`,
    );
    const done = countEvents(scheduler, 'job:complete', 22);
    go.fire();
    await done;
  });

  it('does not start a prefetched job whose lock may have expired, but releases it [C4] [C8]', async () => {
    const { scheduler, clock } = manualScheduler(db, { concurrency: 1, lockTimeout: '60s' });
    const go = signal();
    scheduler.registerHandler('quick', () => undefined);
    scheduler.registerHandler('long', () => go.promise);
    const jobs = (taskType: string, priority: number, count: number): DispatchRequest[] =>
      Array.from({ length: count }, () => ({ taskType, options: { priority } }));
    // Short handlers make the worker prefetch.
    await scheduler.dispatchMany([...jobs('quick', 1, 100), ...jobs('long', 2, 1), ...jobs('quick', 3, 30)]);
    const long = nextEvent(scheduler, 'job:start', ({ taskType }) => taskType === 'long');
    const completed = countEvents(scheduler, 'job:complete', 131);
    await scheduler.start();
    await advanceUntilSettled(clock, long, 1);
    const found = await db.collections.jobs.find({ status: 'QUEUED', priority: 3 }).toArray();
    const prefetched = found.map(({ _id }) => _id);
    assert.ok(prefetched.length > 0);
    // The process continues so late that other workers may soon recover its jobs, and its timers have not fired yet.
    clock.freeze(50_000);
    go.fire();
    await flushEventLoop();
    const fences = (await advanceUntilSettled(clock, completed, 100))
      .filter(({ jobId }) => prefetched.includes(jobId))
      .map(({ fence }) => fence);
    assert.equal(fences.length, prefetched.length);
    // Claimed, released, claimed again: 3. More if it then waited longer than prefetched jobs may, because this clock is fast.
    assert.ok(
      fences.every((fence) => fence >= 3),
      `a job started under the lock of its first claim: fences ${fences.join(', ')}`,
    );
  });
});
