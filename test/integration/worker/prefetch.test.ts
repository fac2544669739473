import assert from 'node:assert/strict';
import { useDatabase } from '../../support/database.js';
import { countEvents, signal } from '../../support/events.js';
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
});
