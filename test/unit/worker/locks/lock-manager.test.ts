import assert from 'node:assert/strict';
import { EventBus } from '../../../../src/runtime/event-bus.js';
import { OutageMonitor } from '../../../../src/runtime/outage-monitor.js';
import type { Lease } from '../../../../src/store/jobs/renew.js';
import { InProcessRenewer } from '../../../../src/worker/locks/in-process-renewer.js';
import {
  type HeldLease,
  type HoldRequest,
  LockManager,
  type LockLossReason,
} from '../../../../src/worker/locks/lock-manager.js';
import { recordEvents } from '../../../support/events.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { flushEventLoop } from '../../../support/flush-event-loop.js';

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
    const renewer = new InProcessRenewer(clock, (leases) => {
      renewals.push({ at: clock.monotonic(), ids: leases.map(({ id }) => id) });
      return renew(leases);
    });
    const outages = new OutageMonitor(clock, LEASE);
    locks = new LockManager({ clock, events, renewer, lockTimeout, outages });
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
    const onLost = (kind: LockLossReason): void => void lost.push(`${id} ${kind} at ${clock.monotonic()}`);
    const sentAt = clock.monotonic();
    const [held] = locks.hold([
      {
        kind: 'job',
        id,
        token: 'token',
        length: LEASE,
        sentAt,
        runsFor: Infinity,
        prefetched: false,
        onLost,
        ...fields,
      },
    ]);
    return held!;
  }

  async function pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 50) {
      clock.advance(50);
      await flushEventLoop(1);
    }
  }

  const times = (): number[] => renewals.map(({ at }) => at);

  it('renews its locks at a third of the lease', async () => {
    const a = hold('a');
    await pass(20_000);
    assert.deepEqual(times().slice(0, 3), [2000, 4000, 6000]);
    assert.equal(locks.isValid(a), true);
    assert.deepEqual(lost, []);
  });

  it('reports a lock that another worker has taken', async () => {
    renew = async (leases) => [...leases];
    const a = hold('a');
    await pass(2000);
    assert.deepEqual(lost, ['a taken at 2000']);
    assert.equal(locks.isValid(a), false);
    await pass(10_000);
    assert.equal(renewals.length, 1, 'what is lost is not renewed');
  });

  it('gives up a lock it could not renew, well before others may take it', async () => {
    renew = () => Promise.reject(new Error('no answer'));
    const trouble = recordEvents(events, 'worker:trouble');
    const a = hold('a');
    await pass(4750);
    assert.equal(locks.isValid(a), true);
    await pass(1000);
    assert.equal(lost.length, 1);
    const at = Number(/^a expired at (\d+)$/.exec(lost[0] ?? '')?.[1]);
    assert.ok(at >= 4800 && at <= 5400, `expired at ${at}`);
    assert.ok(trouble.length > 0, 'and says that it has trouble');
    assert.equal((trouble[0]?.event as { operation: string }).operation, 'renew locks');
  });

  it('detects by itself that a lock has expired', () => {
    const a = hold('a');
    clock.advance(4799);
    assert.equal(locks.isValid(a), true);
    clock.advance(1);
    assert.equal(locks.isValid(a), false);
  });

  it('counts the deadline from before the claim was sent', async () => {
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

  it('checks short leases often, however long the others are', async () => {
    await locks.close();
    await open(60_000);
    renew = () => Promise.reject(new Error('no answer'));
    await pass(500);
    hold('short', { length: 1000 });
    await pass(1000);
    assert.equal(lost.length, 1, 'overdue before its lock runs out');
  });

  it('renews short leases of prefetched jobs', async () => {
    await locks.close();
    await open(60_000);
    await pass(500);
    hold('short', { length: 1000, prefetched: true });
    await pass(5000);
    assert.deepEqual(lost, []);
  });

  it('distinguishes locks of the same job by their token', async () => {
    const old = hold('a', { token: 'old' });
    const current = hold('a', { token: 'new' });
    locks.release(old);
    assert.equal(locks.isValid(old), false);
    assert.equal(locks.isValid(current), true);
    await pass(2000);
    assert.deepEqual(renewals[0]?.ids, ['a']);
  });

  it('stops renewing released locks', async () => {
    const a = hold('a');
    locks.release(a);
    locks.release(a);
    await pass(10_000);
    assert.deepEqual(renewals, []);
    assert.deepEqual(lost, []);
  });

  it('renews prefetched jobs, and started ones until their time is over', async () => {
    const a = hold('a', { prefetched: true, runsFor: 2000 });
    await pass(3000);
    assert.deepEqual(times(), [2000]);
    locks.markStarted([a]);
    await pass(8000);
    assert.deepEqual(times(), [2000, 4000]);
    assert.match(lost.join(), /^a expired at /);
  });

  it('starts renewal once, and never after it was closed', async () => {
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

  it('can try again when renewal could not start', async () => {
    await locks.close();
    let tries = 0;
    const renewer = new InProcessRenewer(clock, async () => []);
    const start = renewer.start.bind(renewer);
    renewer.start = (report) => (++tries === 1 ? Promise.reject(new Error('no answer')) : start(report));
    const outages = new OutageMonitor(clock, LEASE);
    locks = new LockManager({ clock, events, renewer, lockTimeout: LEASE, outages });
    await assert.rejects(locks.open(), /no answer/);
    await locks.open();
    assert.equal(tries, 2);
  });
});
