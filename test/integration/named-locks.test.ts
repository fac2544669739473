import assert from 'node:assert/strict';
import { byHand } from '../support/by-hand.js';
import { useSharedDatabase } from '../support/shared-database.js';
import { signal } from '../support/events.js';
import { after } from '../support/instants.js';
import { turns } from '../support/turns.js';
import { until } from '../support/until.js';

describe('named locks', () => {
  const database = useSharedDatabase();

  it('Y7 a lock is held while the function runs, and only then', async () => {
    const { scheduler: one, clock } = byHand(database, { workerId: 'one', lockTimeout: '60s' });
    const other = database.scheduler({ clock, workerId: 'other' });
    const answer = await one.withLock('report', async ({ name, fence, signal }) => {
      assert.deepEqual([name, fence, signal.aborted], ['report', 1, false]);
      await assert.rejects(
        other.withLock('report', () => assert.fail('it is held')),
        {
          code: 'LOCK_HELD',
          message: /^the lock 'report' is held by one until 2026-01-01T00:01:00.000Z, unless it is renewed$/,
        },
      );
      return 'done';
    });
    assert.equal(answer, 'done');
    assert.equal(await other.withLock('report', () => 'free now'), 'free now');
    assert.equal(await other.withLock('another', () => 'independent'), 'independent');
  });

  it('Y7 the fence rises with every holder and never restarts', async () => {
    const { scheduler: one, clock } = byHand(database);
    const other = database.scheduler({ clock });
    const fences: number[] = [];
    for (const scheduler of [one, other, one, other]) {
      await scheduler.withLock('report', ({ fence }) => fences.push(fence));
    }
    await one.prune(0);
    await one.withLock('report', ({ fence }) => fences.push(fence));
    assert.deepEqual(fences, [1, 2, 3, 4, 5]);
  });

  it('Y7 a function that throws releases its lock', async () => {
    const { scheduler } = byHand(database);
    await assert.rejects(
      scheduler.withLock('report', () => Promise.reject(new Error('broken'))),
      /^Error: broken$/,
    );
    assert.equal(await scheduler.withLock('report', ({ fence }) => fence), 2);
  });

  it('Y7 who has lost the lock hears of it and does not release the lock of its successor', async () => {
    const { scheduler: one, clock } = byHand(database, { lockTimeout: '60s' });
    const successor = database.scheduler({ clock, workerId: 'successor', lockTimeout: '60s' });
    const { locks } = database.collections;
    const release = signal();
    let aborted: unknown;
    await one.withLock('report', async (lock) => {
      const lost = new Promise((resolve) => {
        lock.signal.addEventListener('abort', resolve);
      });
      // As if this process had been frozen: its lock expired, and somebody else took it.
      await locks.updateOne({ _id: 'report' }, { $set: { lockedUntil: after(-1) } });
      const held = signal();
      const succession = successor.withLock('report', async ({ fence }) => {
        assert.equal(fence, 2);
        held.fire();
        await release.promise;
      });
      await held.promise;
      clock.advance(20_000);
      await lost;
      aborted = lock.signal.reason;
      void succession;
    });
    assert.equal((aborted as { code: string }).code, 'LOCK_LOST');
    const held = await locks.findOne({ _id: 'report' });
    assert.equal(held?.lockedBy, 'successor');
    release.fire();
    await until('it is released', async () => (await locks.findOne({ _id: 'report' }))?.lockedBy === null);
  });

  it('Y7 a lock is renewed while it is held', async () => {
    const { scheduler, clock } = byHand(database, { lockTimeout: '60s' });
    const { locks } = database.collections;
    await scheduler.withLock('report', async ({ signal }) => {
      // Two lock times; the database is given the time it needs for each renewal.
      for (let third = 1; third <= 6; third++) {
        clock.advance(20_000);
        const renewed = new Date(clock.now().getTime() + 60_000);
        await until(
          `it is renewed after ${third * 20} s`,
          async () => (await locks.findOne({ _id: 'report' }))?.lockedUntil.getTime() === renewed.getTime(),
        );
        await turns();
      }
      assert.equal(signal.aborted, false);
    });
  });

  it('Y7 with wait it is taken as soon as it is free', async () => {
    const { scheduler: one, clock } = byHand(database);
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
    let fence: number | undefined;
    void second.then((value) => (fence = value));
    await until('the second has it', async () => {
      clock.advance(100);
      return fence === 2;
    });
  });

  it('Y7 many that wait for it get it one at a time', async () => {
    const { scheduler } = byHand(database);
    let inside = 0;
    let count = 0;
    const work = async (): Promise<void> => {
      assert.equal(++inside, 1);
      await turns(5);
      inside--;
      count++;
    };
    while (count < 8) {
      await Promise.allSettled(Array.from({ length: 8 - count }, () => scheduler.withLock('report', work)));
    }
    assert.equal((await database.collections.locks.findOne({ _id: 'report' }))?.fence, 8);
  });

  it('refuses names that are no text', async () => {
    const { scheduler } = byHand(database);
    for (const name of ['', null, { $ne: null }, ['a'], 7])
      await assert.rejects(
        scheduler.withLock(name as never, () => 1),
        { code: 'INVALID_ARGUMENT' },
      );
  });
});
