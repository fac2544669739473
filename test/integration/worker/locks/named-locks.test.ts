import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ChronosError } from '../../../../src/index.js';
import { advanceUntilSettled, manualScheduler } from '../../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../../support/shared-database.js';
import { signal } from '../../../support/events.js';
import { timeAfter } from '../../../support/instants.js';
import { flushEventLoop } from '../../../support/flush-event-loop.js';
import { waitUntil } from '../../../support/wait-until.js';

describe('withLock', () => {
  const database = useSharedDatabase();

  it('holds the lock while the function runs, and only then [Y7]', async () => {
    const { scheduler: one, clock } = manualScheduler(database, { workerId: 'one', lockTimeout: '60s' });
    const other = database.scheduler({ clock, workerId: 'other' });
    const result = await one.withLock('report', async ({ name, fence, signal }) => {
      assert.deepEqual([name, fence, signal.aborted], ['report', 1, false]);
      await assert.rejects(
        other.withLock('report', () => assert.fail('the lock is held')),
        {
          code: 'LOCK_HELD',
          message: /^the lock 'report' is held by one until 2026-01-01T00:01:00.000Z, unless it is renewed$/,
        },
      );
      return 'done';
    });
    assert.equal(result, 'done');
    assert.equal(await other.withLock('report', () => 'free now'), 'free now');
    assert.equal(await other.withLock('another', () => 'independent'), 'independent');
  });

  it('increases the fence with every holder and never resets it [Y7]', async () => {
    const { scheduler: one, clock } = manualScheduler(database);
    const other = database.scheduler({ clock });
    const fences: number[] = [];
    for (const scheduler of [one, other, one, other]) {
      await scheduler.withLock('report', ({ fence }) => fences.push(fence));
    }
    await one.prune(0);
    await one.withLock('report', ({ fence }) => fences.push(fence));
    assert.deepEqual(fences, [1, 2, 3, 4, 5]);
  });

  it('releases the lock when the function throws [Y7]', async () => {
    const { scheduler } = manualScheduler(database);
    await assert.rejects(
      scheduler.withLock('report', () => Promise.reject(new Error('broken'))),
      /^Error: broken$/,
    );
    assert.equal(await scheduler.withLock('report', ({ fence }) => fence), 2);
  });

  it('aborts a holder that lost the lock and leaves the lock of its successor alone [Y7]', async () => {
    const { scheduler: one, clock } = manualScheduler(database, { lockTimeout: '60s' });
    const successor = database.scheduler({ clock, workerId: 'successor', lockTimeout: '60s' });
    const { locks } = database.collections;
    const release = signal();
    let reason: ChronosError | undefined;
    let released: Promise<void> | undefined;
    await one.withLock('report', async (lock) => {
      const lost = once(lock.signal, 'abort');
      // As if this process had been frozen: its lock expired, and another one acquired it.
      await locks.updateOne({ _id: 'report' }, { $set: { lockedUntil: timeAfter(-1) } });
      const held = signal();
      released = successor.withLock('report', async ({ fence }) => {
        assert.equal(fence, 2);
        held.fire();
        await release.promise;
      });
      await held.promise;
      clock.advance(20_000);
      await lost;
      reason = lock.signal.reason as ChronosError;
    });
    assert.equal(reason?.code, 'LOCK_LOST');
    assert.equal((await locks.findOne({ _id: 'report' }))?.lockedBy, 'successor');
    release.fire();
    await released;
    assert.equal((await locks.findOne({ _id: 'report' }))?.lockedBy, null);
  });

  it('renews the lock while it is held [Y7]', async () => {
    const { scheduler, clock } = manualScheduler(database, { lockTimeout: '60s' });
    const { locks } = database.collections;
    await scheduler.withLock('report', async ({ signal }) => {
      // Two lock times, in steps of a third, each after the previous renewal is stored.
      for (let third = 1; third <= 6; third++) {
        clock.advance(20_000);
        const renewed = new Date(clock.now().getTime() + 60_000);
        await waitUntil(
          `the lock is renewed after ${third * 20} s`,
          async () => (await locks.findOne({ _id: 'report' }))?.lockedUntil.getTime() === renewed.getTime(),
        );
        await flushEventLoop();
      }
      assert.equal(signal.aborted, false);
    });
  });

  it('with wait acquires the lock when it is released [Y7]', async () => {
    const { scheduler: one, clock } = manualScheduler(database);
    const other = database.scheduler({ clock });
    const release = signal();
    const held = signal();
    const first = one.withLock('report', () => {
      held.fire();
      return release.promise;
    });
    await held.promise;
    const second = other.withLock('report', ({ fence }) => fence, { wait: '10s' });
    release.fire();
    await first;
    assert.equal(await advanceUntilSettled(clock, second, 100), 2);
  });

  it('is held by one of many concurrent callers at a time [Y7]', async () => {
    const { scheduler } = manualScheduler(database);
    let holders = 0;
    let peak = 0;
    let count = 0;
    const work = async (): Promise<void> => {
      peak = Math.max(peak, ++holders);
      await flushEventLoop(5);
      holders--;
      count++;
    };
    while (count < 8) {
      await Promise.allSettled(Array.from({ length: 8 - count }, () => scheduler.withLock('report', work)));
    }
    assert.equal(peak, 1);
    assert.equal((await database.collections.locks.findOne({ _id: 'report' }))?.fence, 8);
  });

  it('rejects names that are not strings', async () => {
    const { scheduler } = manualScheduler(database);
    for (const name of ['', null, { $ne: null }, ['a'], 7])
      await assert.rejects(
        scheduler.withLock(name as never, () => 1),
        { code: 'INVALID_ARGUMENT' },
      );
  });
});
