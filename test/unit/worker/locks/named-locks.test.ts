import assert from 'node:assert/strict';
import { EventBus } from '../../../../src/runtime/event-bus.js';
import { OutageMonitor } from '../../../../src/runtime/outage-monitor.js';
import type { Lease } from '../../../../src/store/jobs/renew.js';
import type { LockDocument } from '../../../../src/store/schema/system-schemas.js';
import { InProcessRenewer } from '../../../../src/worker/locks/in-process-renewer.js';
import { LockManager } from '../../../../src/worker/locks/lock-manager.js';
import { type HeldLock, NamedLocks, type NamedLocksDeps } from '../../../../src/worker/locks/named-locks.js';
import { signal } from '../../../support/events.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { flushEventLoop } from '../../../support/flush-event-loop.js';

const LEASE = 6000;

describe('NamedLocks', () => {
  let clock: ManualClock;
  let renewal: LockManager;
  let locks: NamedLocks;
  let held: LockDocument | undefined;
  let fence: number;
  let calls: string[];
  let renew: (leases: readonly Lease[]) => Promise<Lease[]>;
  let failing: { acquire?: Error; release?: Error };
  /** Milliseconds that the reply to an acquire takes. */
  let latency: number;

  beforeEach(() => {
    clock = new ManualClock();
    held = undefined;
    fence = 0;
    calls = [];
    failing = {};
    latency = 0;
    renew = async () => [];
    const renewer = new InProcessRenewer(clock, (leases) => {
      calls.push(`renew ${leases.map(({ id, kind }) => `${kind} ${id}`).join()}`);
      return renew(leases);
    });
    // Behaves like the real store, for one lock.
    const store: NamedLocksDeps['store'] = {
      acquireLock: async (name, { token, workerId, lockedUntil }, now) => {
        calls.push('acquire');
        if (held !== undefined && held.lockedUntil > now) return null;
        held = { _id: name, fence: ++fence, lockToken: token, lockedBy: workerId, lockedUntil };
        clock.advance(latency);
        if (failing.acquire !== undefined) throw failing.acquire;
        return held;
      },
      releaseLock: async (_, token) => {
        calls.push('release');
        if (failing.release !== undefined) throw failing.release;
        if (held?.lockToken !== token) return false;
        held = undefined;
        return true;
      },
      findLock: async () => held ?? null,
    };
    const events = new EventBus('worker');
    const outages = new OutageMonitor(clock, LEASE);
    renewal = new LockManager({ clock, events, renewer, lockTimeout: LEASE, outages });
    locks = new NamedLocks({ clock, events, store, locks: renewal, workerId: 'me', lockTimeout: LEASE });
    return renewal.open();
  });

  afterEach(async () => {
    await locks.close();
    await renewal.close();
    assert.equal(clock.sleepers, 0);
  });

  async function advance(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 20) {
      clock.advance(20);
      await flushEventLoop(1);
    }
  }

  function heldByAnother(ms: number): void {
    const lockedUntil = new Date(clock.now().getTime() + ms);
    held = { _id: 'report', fence: ++fence, lockToken: 'theirs', lockedBy: 'another', lockedUntil };
  }

  it('runs the function while it holds the lock and returns its result', async () => {
    const result = await locks.withLock('report', async (lock) => {
      assert.deepEqual([held?.lockedBy, held?._id], ['me', 'report']);
      return [lock.name, lock.fence, lock.signal.aborted];
    });
    assert.deepEqual(result, ['report', 1, false]);
    assert.equal(held, undefined);
    assert.deepEqual(calls, ['acquire', 'release']);
  });

  it('gives every holder a higher fence', async () => {
    const fenceOf = (): Promise<number> => locks.withLock('report', ({ fence }) => fence);
    assert.deepEqual([await fenceOf(), await fenceOf(), await fenceOf()], [1, 2, 3]);
  });

  it('releases the lock when the function fails', async () => {
    const failed = locks.withLock('report', () => Promise.reject(new Error('boom')));
    await assert.rejects(failed, /boom/);
    assert.equal(held, undefined);
  });

  it('does not run the function when the lock may have expired before the reply came', async () => {
    latency = LEASE;
    await assert.rejects(
      locks.withLock('report', () => assert.fail('must not run')),
      { code: 'LOCK_LOST', message: /^the lock 'report' was lost/ },
    );
    assert.deepEqual(calls, ['acquire', 'release']);
  });

  it('renews the lock while the function runs', async () => {
    const { promise, fire } = signal();
    const done = locks.withLock('report', () => promise);
    await advance(7000);
    fire();
    await done;
    await advance(7000);
    assert.deepEqual(calls, ['acquire', ...Array<string>(3).fill('renew named report'), 'release']);
  });

  it('fails at once and names the holder when it should not wait', async () => {
    heldByAnother(60_000);
    await assert.rejects(
      locks.withLock('report', () => assert.fail('must not run')),
      { code: 'LOCK_HELD', message: /^the lock 'report' is held by another until 2026-01-01T00:01:00.000Z/ },
    );
    assert.deepEqual(calls, ['acquire']);
  });

  for (const free of [10, 500, 1400]) {
    it(`acquires a lock that becomes free after ${free} of 1500 ms`, async () => {
      heldByAnother(free);
      const done = locks.withLock('report', () => clock.monotonic(), { wait: 1500 });
      await flushEventLoop();
      await advance(1600);
      assert.ok((await done) <= 1500);
    });
  }

  it('waits as long as requested', async () => {
    heldByAnother(60_000);
    const failedAt = locks
      .withLock('report', () => assert.fail('must not run'), { wait: 1500 })
      .catch((error: unknown) => [(error as { code: string }).code, clock.monotonic()]);
    await flushEventLoop();
    await advance(1600);
    assert.deepEqual(await failedAt, ['LOCK_HELD', 1500]);
  });

  for (const [what, renewResult] of [
    ['was taken by another process', async (leases: readonly Lease[]) => [...leases]],
    ['cannot be renewed', () => Promise.reject(new Error('no answer'))],
  ] as const) {
    it(`aborts the signal when the lock ${what}`, async () => {
      renew = renewResult;
      let lock: HeldLock | undefined;
      const { promise, fire } = signal();
      const done = locks.withLock('report', (held) => ((lock = held), promise));
      await advance(5500);
      assert.equal(lock?.signal.aborted, true);
      assert.equal((lock.signal.reason as { code: string }).code, 'LOCK_LOST');
      fire();
      await done;
    });
  }

  it('aborts the signal when renewal ends while the function runs', async () => {
    let lock: HeldLock | undefined;
    const { promise, fire } = signal();
    const done = locks.withLock('report', (held) => ((lock = held), promise));
    await flushEventLoop();
    await locks.close();
    assert.equal(lock?.signal.aborted, true);
    fire();
    await done;
  });

  it('leaves nothing locked when the reply was lost', async () => {
    failing.acquire = new Error('reply lost');
    await assert.rejects(
      locks.withLock('report', () => 1),
      /reply lost/,
    );
    assert.equal(held, undefined);
  });

  it('rejects invalid names', async () => {
    for (const name of ['', 'chronos:mine', { $ne: 1 }, null]) {
      await assert.rejects(
        locks.withLock(name as string, () => 1),
        { code: 'INVALID_ARGUMENT' },
      );
    }
    assert.deepEqual(calls, []);
  });
});
