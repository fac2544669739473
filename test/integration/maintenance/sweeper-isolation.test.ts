import assert from 'node:assert/strict';
import { createStore } from '../../../src/store/store.js';
import { useDatabase } from '../../support/database.js';
import { nextEvent } from '../../support/events.js';

describe('a service that fails', () => {
  const db = useDatabase();

  it('does not stop the sweep from recovering jobs [C9]', async () => {
    const scheduler = db.scheduler({ lockTimeout: '1s', pruneInterval: '1s' });
    const trouble = nextEvent(scheduler, 'worker:trouble', ({ operation }) => operation === 'prune');
    // Without its index the pruner fails at every round. start() would build it again, so it goes right after.
    await scheduler.start();
    await db.collections.jobs.dropIndex('finished');
    await trouble;
    const { id } = await scheduler.dispatch('unknown-here');
    const stalled = nextEvent(scheduler, 'job:stalled');
    const now = new Date();
    const filter = {
      queues: ['default'],
      taskTypes: ['unknown-here'],
      now,
      withoutCrashSuspects: false,
      exclude: [],
    };
    await createStore(db.collections).claimOne(filter, { token: 't', workerId: 'gone', lockedUntil: now });
    assert.equal((await stalled).jobId, id);
  });

  it('does not end the process when a handler ignores the promise of reportProgress()', async () => {
    const scheduler = db.scheduler();
    let unhandled: unknown;
    const note = (reason: unknown): void => {
      unhandled = reason;
    };
    process.on('unhandledRejection', note);
    try {
      scheduler.registerHandler('careless', (_, job) => {
        void job.reportProgress(0 / 0);
        return 'done';
      });
      await scheduler.dispatch('careless');
      assert.equal(await scheduler.run(), 1);
      await new Promise(setImmediate);
      assert.equal(unhandled, undefined);
    } finally {
      process.off('unhandledRejection', note);
    }
  });
});
