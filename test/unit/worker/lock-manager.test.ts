import assert from 'node:assert/strict';
import { EventBus } from '../../../src/runtime/event-bus.js';
import type { Lease } from '../../../src/store/renew.js';
import { LocalRenewer } from '../../../src/worker/local-renewer.js';
import {
  LockManager,
  type HeldLease,
  type HoldRequest,
  type LossKind,
} from '../../../src/worker/lock-manager.js';
import { recordEvents } from '../../support/events.js';
import { ManualClock } from '../../support/manual-clock.js';
import { turns } from '../../support/turns.js';

const LEASE = 6000;

describe('LockManager', () => {
  let clock: ManualClock;
  let events: EventBus;
  let locks: LockManager;
  let renewals: { at: number; ids: string[] }[];
  let renew: (leases: readonly Lease[]) => Promise<Lease[]>;
  let lost: string[];

  function open(lockTimeout = LEASE): Promise<void> {
    clock = new ManualClock();
    events = new EventBus();
    const renewer = new LocalRenewer(clock, (leases) => {
      renewals.push({ at: clock.monotonic(), ids: leases.map(({ id }) => id) });
      return renew(leases);
    });
    const anchor = (): undefined => undefined;
    locks = new LockManager({ clock, events, renewer, lockTimeout, anchor });
    return locks.open();
  }

  beforeEach(() => {
    renewals = [];
    lost = [];
    renew = async () => [];
    return open();
  });

  afterEach(async () => {
    await locks.close();
    assert.equal(clock.sleepers, 0);
  });

  function hold(id: string, fields: Partial<HoldRequest> = {}): HeldLease {
    const onLost = (kind: LossKind): void => void lost.push(`${id} ${kind} at ${clock.monotonic()}`);
    const sentAt = clock.monotonic();
    const [held] = locks.hold([
      {
        kind: 'job',
        id,
        token: 'token',
        length: LEASE,
        sentAt,
        runsFor: Infinity,
        buffered: false,
        onLost,
        ...fields,
      },
    ]);
    return held!;
  }

  async function pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 50) {
      clock.advance(50);
      await turns(1);
    }
  }

  const times = (): number[] => renewals.map(({ at }) => at);

  it('keeps what it holds, at a third of the lease', async () => {
    const a = hold('a');
    await pass(20_000);
    assert.deepEqual(times().slice(0, 3), [2000, 4000, 6000]);
    assert.equal(locks.isValid(a), true);
    assert.deepEqual(lost, []);
  });

  it('says when a lock is somebody else’s', async () => {
    renew = async (leases) => [...leases];
    const a = hold('a');
    await pass(2000);
    assert.deepEqual(lost, ['a gone at 2000']);
    assert.equal(locks.isValid(a), false);
    await pass(10_000);
    assert.equal(renewals.length, 1, 'what is lost is not renewed');
  });

  it('gives a lock up that it could not renew, well before others may take it', async () => {
    renew = () => Promise.reject(new Error('no answer'));
    const trouble = recordEvents(events, 'worker:trouble');
    const a = hold('a');
    await pass(4750);
    assert.equal(locks.isValid(a), true);
    await pass(1000);
    assert.equal(lost.length, 1);
    const at = Number(/^a overdue at (\d+)$/.exec(lost[0] ?? '')?.[1]);
    assert.ok(at >= 4800 && at <= 5400, `overdue at ${at}`);
    assert.ok(trouble.length > 0, 'and says that it has trouble');
    assert.equal((trouble[0]?.event as { operation: string }).operation, 'renew locks');
  });

  it('knows by itself that a lock is overdue, before anything was reported', () => {
    const a = hold('a');
    clock.advance(4799);
    assert.equal(locks.isValid(a), true);
    clock.advance(1);
    assert.equal(locks.isValid(a), false);
  });

  it('counts its deadline from before the request that took the lock was sent', async () => {
    renew = () => new Promise(() => undefined);
    clock.advance(3000);
    const a = hold('a', { sentAt: 0 });
    await pass(1750);
    assert.equal(locks.isValid(a), true);
    await pass(50);
    assert.equal(locks.isValid(a), false);
    // The renewal that never ends would keep the loop from stopping.
    await open();
  });

  it('watches short leases closely, however long the others are', async () => {
    await locks.close();
    await open(60_000);
    renew = () => Promise.reject(new Error('no answer'));
    await pass(500);
    hold('short', { length: 1000 });
    await pass(1000);
    assert.equal(lost.length, 1, 'overdue before its lock runs out');
  });

  it('keeps a short lease in the buffer too', async () => {
    await locks.close();
    await open(60_000);
    await pass(500);
    hold('short', { length: 1000, buffered: true });
    await pass(5000);
    assert.deepEqual(lost, []);
  });

  it('tells locks on the same job apart by their token', async () => {
    const old = hold('a', { token: 'old' });
    const current = hold('a', { token: 'new' });
    locks.release(old);
    assert.equal(locks.isValid(old), false);
    assert.equal(locks.isValid(current), true);
    await pass(2000);
    assert.deepEqual(renewals[0]?.ids, ['a']);
  });

  it('lets go of what is released', async () => {
    const a = hold('a');
    locks.release(a);
    locks.release(a);
    await pass(10_000);
    assert.deepEqual(renewals, []);
    assert.deepEqual(lost, []);
  });

  it('keeps the buffer alive, and a job that started from it until its time is over', async () => {
    const a = hold('a', { buffered: true, runsFor: 2000 });
    await pass(3000);
    assert.deepEqual(times(), [2000]);
    locks.begin([a]);
    await pass(8000);
    assert.deepEqual(times(), [2000, 4000]);
    assert.match(lost.join(), /^a overdue at /);
  });

  it('starts renewal once, and never again after it was closed: nobody would end it', async () => {
    await Promise.all([locks.open(), locks.open()]);
    hold('a');
    await pass(2000);
    assert.equal(renewals.length, 1);
    await locks.close();
    await locks.close();
    await assert.rejects(locks.open(), { code: 'WRONG_STATE' });
    await pass(4000);
    assert.equal(renewals.length, 1);
  });

  it('is open to another try when renewal could not start', async () => {
    await locks.close();
    let tries = 0;
    const renewer = new LocalRenewer(clock, async () => []);
    const start = renewer.start.bind(renewer);
    renewer.start = (report) => (++tries === 1 ? Promise.reject(new Error('no answer')) : start(report));
    const anchor = (): undefined => undefined;
    locks = new LockManager({ clock, events, renewer, lockTimeout: LEASE, anchor });
    await assert.rejects(locks.open(), /no answer/);
    await locks.open();
    assert.equal(tries, 2);
  });
});
