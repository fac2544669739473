import assert from 'node:assert/strict';
import { EventBus } from '../../../../src/runtime/event-bus.js';
import type { Lease } from '../../../../src/store/jobs/renew.js';
import { type TrackedLease, renewalDueAt, RenewalLoop } from '../../../../src/worker/locks/lock-renewer.js';
import { recordEvents, signal } from '../../../support/events.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { flushEventLoop } from '../../../support/flush-event-loop.js';

function aLease(id: string, fields: Partial<TrackedLease> = {}): TrackedLease {
  return {
    kind: 'job',
    id,
    token: 'token',
    length: 6000,
    renewedAt: 0,
    renewUntil: Infinity,
    prefetched: false,
    ...fields,
  };
}

describe('RenewalLoop', () => {
  let clock: ManualClock;
  let events: EventBus;
  let loop: RenewalLoop;
  let leases: Set<TrackedLease>;
  let calls: { at: number; ids: string[]; now: Date }[];
  let reports: string[];
  let renewResult: (leases: readonly Lease[]) => Promise<Lease[]>;

  beforeEach(async () => {
    clock = new ManualClock();
    events = new EventBus('worker');
    calls = [];
    reports = [];
    renewResult = async () => [];
    const renew = (leases: readonly Lease[], now: Date): Promise<Lease[]> => {
      calls.push({ at: clock.monotonic(), ids: leases.map(({ id }) => id), now });
      return renewResult(leases);
    };
    const names = (of: readonly Lease[]): string => of.map(({ token, id }) => `${token}/${id}`).join();
    leases = new Set();
    loop = new RenewalLoop({
      ...{ clock, events, renew, leases: () => leases },
      report: {
        renewed: (renewed, sentAt) => void reports.push(`renewed ${names(renewed)} at ${sentAt}`),
        lost: (lost) => {
          reports.push(`lost ${names(lost)}`);
          for (const lease of lost) leases.delete(lease);
        },
      },
    });
    loop.start();
    await flushEventLoop();
  });

  afterEach(async () => {
    await loop.stop();
    assert.equal(clock.sleepers, 0);
  });

  /** Advances in small steps, each with a heartbeat of the main thread unless that is switched off. */
  async function advance(ms: number, { heartbeat = true } = {}): Promise<void> {
    for (let left = ms; left > 0; left -= 100) {
      clock.advance(100);
      if (heartbeat) loop.heartbeat();
      await flushEventLoop(1);
    }
  }

  function track(added: readonly TrackedLease[]): void {
    for (const lease of added) {
      leases.add(lease);
      loop.renewBy(renewalDueAt(lease));
    }
  }

  const times = (): number[] => calls.map(({ at }) => at);

  it('renews at a third of the lease, with the time of the database', async () => {
    track([aLease('a')]);
    await advance(6500);
    assert.deepEqual(times(), [2000, 4000, 6000]);
    assert.deepEqual(calls[0]?.now, new Date('2026-01-01T00:00:02Z'));
    assert.deepEqual(reports.slice(0, 2), ['renewed token/a at 2000', 'renewed token/a at 4000']);
  });

  it('wakes up for a lease that is due earlier', async () => {
    track([aLease('slow', { length: 60_000 })]);
    await advance(1000);
    track([aLease('quick', { length: 600, renewedAt: 1000 })]);
    await advance(300);
    assert.deepEqual(calls, [{ at: 1200, ids: ['quick'], now: new Date('2026-01-01T00:00:01.2Z') }]);
  });

  it('finds new leases that were not announced', async () => {
    loop.expectLeasesOf(1200);
    leases.add(aLease('a', { length: 1200 }));
    await advance(500);
    assert.deepEqual(times(), [300]);
  });

  it('also renews leases that are due soon', async () => {
    track([aLease('a'), aLease('b', { renewedAt: 400 }), aLease('c', { renewedAt: 900 })]);
    await advance(3000);
    assert.deepEqual(
      calls.map(({ ids }) => ids),
      [['a', 'b'], ['c']],
    );
  });

  it('does not renew a dropped lease', async () => {
    track([aLease('a'), aLease('b')]);
    for (const lease of leases) if (lease.id === 'a') leases.delete(lease);
    await advance(2000);
    assert.deepEqual(calls[0]?.ids, ['b']);
  });

  it('reports a lost lease once and drops it', async () => {
    renewResult = async (leases) => leases.filter(({ id }) => id === 'a');
    track([aLease('a'), aLease('b')]);
    await advance(4500);
    assert.deepEqual(reports, ['renewed token/b at 2000', 'lost token/a', 'renewed token/b at 4000']);
    assert.deepEqual(calls[1]?.ids, ['b']);
  });

  it('counts from before the request was sent, however long the reply takes', async () => {
    const { promise, fire } = signal<Lease[]>();
    renewResult = () => promise;
    track([aLease('a')]);
    await advance(3500);
    renewResult = async () => [];
    fire([]);
    await flushEventLoop();
    assert.deepEqual(reports, ['renewed token/a at 2000']);
    await advance(1000);
    assert.deepEqual(times(), [2000, 4000]);
  });

  it('renews a lease at once that became due while it waited for a reply', async () => {
    const { promise, fire } = signal<Lease[]>();
    renewResult = () => promise;
    track([aLease('a')]);
    await advance(4000);
    assert.deepEqual(times(), [2000]);
    renewResult = async () => [];
    fire([]);
    await flushEventLoop();
    assert.deepEqual(times(), [2000, 4000]);
  });

  it('does not renew a lease after the time limit of its handler', async () => {
    track([aLease('a', { renewUntil: 5000 })]);
    await advance(12_000);
    assert.deepEqual(times(), [2000, 4000]);
  });

  it('renews prefetched jobs only while the main thread sends heartbeats', async () => {
    track([aLease('waiting', { prefetched: true }), aLease('running')]);
    await advance(2000);
    assert.deepEqual(calls[0]?.ids, ['waiting', 'running']);
    await advance(4000, { heartbeat: false });
    assert.deepEqual(
      calls.slice(1).map(({ ids }) => ids),
      [['running'], ['running']],
    );
    await advance(600);
    assert.deepEqual(calls.at(-1)?.ids, ['waiting'], 'a late heartbeat counts');
  });

  it('retries soon after a failure, after at most a sixth of the shortest lease', async () => {
    const failures = recordEvents(events, 'worker:error');
    renewResult = () => Promise.reject(new Error('no answer'));
    track([aLease('a'), aLease('b', { length: 60_000 })]);
    await advance(5000);
    const delays = failures.map(({ event }) => (event as { retryIn: number }).retryIn);
    assert.deepEqual(delays.slice(0, 4), [250, 500, 1000, 1000]);
    renewResult = async () => [];
    await advance(1000);
    assert.match(reports[0] ?? '', /^renewed token\/a/);
  });

  it('does not report a recovery when nothing was left to renew', async () => {
    const recovered = recordEvents(events, 'worker:recovered');
    renewResult = () => Promise.reject(new Error('no answer'));
    track([aLease('a')]);
    await advance(2500);
    leases.clear();
    await advance(5000);
    assert.deepEqual(recovered, []);
    renewResult = async () => [];
    track([aLease('b', { renewedAt: clock.monotonic() })]);
    await advance(2000);
    assert.match(reports[0] ?? '', /^renewed token\/b/, 'a new lease is renewed in time');
    assert.equal(recovered.length, 1);
  });
});
