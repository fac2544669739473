import assert from 'node:assert/strict';
import { useDatabase } from '../../support/database.js';
import { countEvents, nextEvent, signal } from '../../support/events.js';
import { waitUntil } from '../../support/wait-until.js';

describe('prefetching', () => {
  const db = useDatabase();

  it('stops when handlers have become slow, and releases each prefetched job once [C4]', async () => {
    const scheduler = db.scheduler({ concurrency: 2, lockTimeout: '20s' });
    const go = signal();
    scheduler.registerHandler('quick', () => undefined);
    scheduler.registerHandler('long', () => go.promise);
    await scheduler.start();
    // Short handlers teach the worker to lock ahead.
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
      'nothing is locked ahead any more',
      async () => (await db.collections.jobs.countDocuments({ ...waiting, status: 'SCHEDULED' })) === 20,
    );
    // Two more rounds of what would lock them again: a nudge each, and the poll interval is short.
    const poked = nextEvent(scheduler, 'job:cancelled');
    const { id } = await scheduler.dispatch('quick', null, { delay: '1h' });
    await scheduler.cancel(id);
    await poked;
    const fences = await db.collections.jobs.distinct('fence', waiting);
    assert.ok(
      fences.every((fence) => fence <= 2),
      `locked and given back again and again: fences ${fences.join(', ')}`,
    );
    const done = countEvents(scheduler, 'job:complete', 22);
    go.fire();
    await done;
  });
});
