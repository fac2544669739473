import assert from 'node:assert/strict';
import { createStore } from '../../../src/store/store.js';
import { useDatabase } from '../../support/database.js';
import { nextEvent } from '../../support/events.js';

describe('the sweeper', () => {
  const db = useDatabase();

  it('recovers jobs while another service fails [C9]', async () => {
    const scheduler = db.scheduler({ lockTimeout: '1s', pruneInterval: '1s' });
    const pruneFailed = nextEvent(scheduler, 'worker:error', ({ operation }) => operation === 'prune');
    // Without its index the pruner fails in every round. start() creates indexes, so it is dropped afterwards.
    await scheduler.start();
    await db.collections.jobs.dropIndex('finished');
    await pruneFailed;
    const { id } = await scheduler.dispatch('work');
    const stalled = nextEvent(scheduler, 'job:stalled');
    const now = new Date();
    const filter = {
      queues: ['default'],
      taskTypes: ['work'],
      now,
      withoutCrashSuspects: false,
      exclude: [],
    };
    await createStore(db.stored).claimOne(filter, { token: 't', workerId: 'gone', lockedUntil: now });
    assert.equal((await stalled).jobId, id);
  });
});
