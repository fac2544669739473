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
    events = new EventBus('worker');
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
    const onLost = (lossReason: LockLossReason): void =>
      void lost.push(`${id} ${lossReason} at ${clock.monotonic()}`);
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

  async function advance(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 50) {
      clock.advance(50);
      await flushEventLoop(1);
    }
  }

  const times = (): number[] => renewals.map(({ at }) => at);

  it('renews its locks at a third of the lease', async () => {
    const a = hold('a');
    await advance(20_000);
    assert.deepEqual(times().slice(0, 3), [2000, 4000, 6000]);
    assert.equal(locks.isValid(a), true);
    assert.deepEqual(lost, []);
  });

  it('reports a lock that another worker has taken', async () => {
    renew = async (leases) => [...leases];
    const a = hold('a');
    await advance(2000);
    assert.deepEqual(lost, ['a taken at 2000']);
    assert.equal(locks.isValid(a), false);
    await advance(10_000);
    assert.equal(renewals.length, 1, 'a lost lock is not renewed');
  });

  it('gives up a lock that it could not renew, before other workers may take it', async () => {
    renew = () => Promise.reject(new Error('no answer'));
    const failures = recordEvents(events, 'worker:error');
    const a = hold('a');
    await advance(4750);
    assert.equal(locks.isValid(a), true);
    await advance(1000);
    assert.equal(lost.length, 1);
    const at = Number(/^a expired at (\d+)$/.exec(lost[0] ?? '')?.[1]);
    assert.ok(at >= 4800 && at <= 5400, `expired at ${at}`);
    assert.ok(failures.length > 0);
    assert.equal((failures[0]?.event as { operation: string }).operation, 'renew locks');
  });

  it('treats a lock as invalid after four fifths of its lease without a renewal', () => {
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
    await advance(1750);
    assert.equal(locks.isValid(a), true);
    await advance(50);
    assert.equal(locks.isValid(a), false);
    // The renewal that never ends would keep the loop from stopping.
    await open();
  });

  it('checks short leases often, however long the others are', async () => {
    await locks.close();
    await open(60_000);
    renew = () => Promise.reject(new Error('no answer'));
    await advance(500);
    hold('short', { length: 1000 });
    await advance(1000);
    assert.equal(lost.length, 1, 'given up before the lock expires');
  });

  it('renews short leases of prefetched jobs', async () => {
    await locks.close();
    await open(60_000);
    await advance(500);
    hold('short', { length: 1000, prefetched: true });
    await advance(5000);
    assert.deepEqual(lost, []);
  });

  it('distinguishes locks of the same job by their token', async () => {
    const old = hold('a', { token: 'old' });
    const current = hold('a', { token: 'new' });
    locks.release(old);
    assert.equal(locks.isValid(old), false);
    assert.equal(locks.isValid(current), true);
    await advance(2000);
    assert.deepEqual(renewals[0]?.ids, ['a']);
  });

  it('stops renewing released locks', async () => {
    const a = hold('a');
    locks.release(a);
    locks.release(a);
    await advance(10_000);
    assert.deepEqual(renewals, []);
    assert.deepEqual(lost, []);
  });

  it('renews locks of prefetched jobs, and of started ones until their time limit', async () => {
    const a = hold('a', { prefetched: true, runsFor: 2000 });
    await advance(3000);
    assert.deepEqual(times(), [2000]);
    locks.markStarted([a]);
    await advance(8000);
    assert.deepEqual(times(), [2000, 4000]);
    assert.match(lost.join(), /^a expired at /);
  });

  it('starts renewal once, and never after it was closed', async () => {
    await Promise.all([locks.open(), locks.open()]);
    hold('a');
    await advance(2000);
    assert.equal(renewals.length, 1);
    await locks.close();
    await locks.close();
    await assert.rejects(locks.open(), { code: 'WRONG_STATE' });
    await advance(4000);
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

  it('renews a job whose outcome is missing for a limited time, then reports it and lets the lock expire', async () => {
    await locks.close();
    await open(30_000);
    const errors = recordEvents(events, 'worker:error');
    const [first, second] = ['first', 'second'].map((id) => hold(id, { length: 30_000 }));
    hold('running', { length: 30_000 });
    await advance(20_000);
    for (const lease of [first!, second!]) locks.markEnded(lease);
    locks.release(second!);
    renewals = [];
    for (let at = 0; at < 60_000; at += 2500) await advance(2500);
    assert.deepEqual(
      renewals.map(({ ids }) => ids.join()),
      ['first,running', 'first,running', 'running', 'running', 'running', 'running'],
    );
    assert.deepEqual(lost, ['first expired at 65050'], 'the next check after four fifths of the lease');
    assert.deepEqual(
      errors.map(({ event }) => (event as { subject: string }).subject),
      ['first'],
    );
  });
});
