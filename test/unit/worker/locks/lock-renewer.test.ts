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
  let answer: (leases: readonly Lease[]) => Promise<Lease[]>;

  beforeEach(async () => {
    clock = new ManualClock();
    events = new EventBus();
    calls = [];
    reports = [];
    answer = async () => [];
    const renew = (leases: readonly Lease[], now: Date): Promise<Lease[]> => {
      calls.push({ at: clock.monotonic(), ids: leases.map(({ id }) => id), now });
      return answer(leases);
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

  /** Lets the time pass in small steps; `beat` shows all the while that the main thread lives. */
  async function pass(ms: number, { beat = true } = {}): Promise<void> {
    for (let left = ms; left > 0; left -= 100) {
      clock.advance(100);
      if (beat) loop.heartbeat();
      await flushEventLoop(1);
    }
  }

  function keep(more: readonly TrackedLease[]): void {
    for (const lease of more) {
      leases.add(lease);
      loop.renewBy(renewalDueAt(lease));
    }
  }

  const times = (): number[] => calls.map(({ at }) => at);

  it('renews at a third of the lease, with the time of the database', async () => {
    keep([aLease('a')]);
    await pass(6500);
    assert.deepEqual(times(), [2000, 4000, 6000]);
    assert.deepEqual(calls[0]?.now, new Date('2026-01-01T00:00:02Z'));
    assert.deepEqual(reports.slice(0, 2), ['renewed token/a at 2000', 'renewed token/a at 4000']);
  });

  it('wakes up for a lease that is due earlier', async () => {
    keep([aLease('slow', { length: 60_000 })]);
    await pass(1000);
    keep([aLease('quick', { length: 600, renewedAt: 1000 })]);
    await pass(300);
    assert.deepEqual(calls, [{ at: 1200, ids: ['quick'], now: new Date('2026-01-01T00:00:01.2Z') }]);
  });

  it('finds new leases without being told', async () => {
    loop.expectLeasesOf(1200);
    leases.add(aLease('a', { length: 1200 }));
    await pass(500);
    assert.deepEqual(times(), [300]);
  });

  it('also renews leases that are due soon', async () => {
    keep([aLease('a'), aLease('b', { renewedAt: 400 }), aLease('c', { renewedAt: 900 })]);
    await pass(3000);
    assert.deepEqual(
      calls.map(({ ids }) => ids),
      [['a', 'b'], ['c']],
    );
  });

  it('does not renew a dropped lease', async () => {
    keep([aLease('a'), aLease('b')]);
    for (const lease of leases) if (lease.id === 'a') leases.delete(lease);
    await pass(2000);
    assert.deepEqual(calls[0]?.ids, ['b']);
  });

  it('reports a lost lease once and drops it', async () => {
    answer = async (leases) => leases.filter(({ id }) => id === 'a');
    keep([aLease('a'), aLease('b')]);
    await pass(4500);
    assert.deepEqual(reports, ['renewed token/b at 2000', 'lost token/a', 'renewed token/b at 4000']);
    assert.deepEqual(calls[1]?.ids, ['b']);
  });

  it('counts from before the request was sent, however long the reply takes', async () => {
    const { promise, fire } = signal<Lease[]>();
    answer = () => promise;
    keep([aLease('a')]);
    await pass(3500);
    answer = async () => [];
    fire([]);
    await flushEventLoop();
    assert.deepEqual(reports, ['renewed token/a at 2000']);
    await pass(1000);
    assert.deepEqual(times(), [2000, 4000]);
  });

  it('renews a lease at once that became due while it waited for a reply', async () => {
    const { promise, fire } = signal<Lease[]>();
    answer = () => promise;
    keep([aLease('a')]);
    await pass(4000);
    assert.deepEqual(times(), [2000]);
    answer = async () => [];
    fire([]);
    await flushEventLoop();
    assert.deepEqual(times(), [2000, 4000]);
  });

  it('does not renew a lease after the time limit of its handler', async () => {
    keep([aLease('a', { renewUntil: 5000 })]);
    await pass(12_000);
    assert.deepEqual(times(), [2000, 4000]);
  });

  it('renews prefetched jobs only while the main thread sends heartbeats', async () => {
    keep([aLease('waiting', { prefetched: true }), aLease('running')]);
    await pass(2000);
    assert.deepEqual(calls[0]?.ids, ['waiting', 'running']);
    await pass(4000, { beat: false });
    assert.deepEqual(
      calls.slice(1).map(({ ids }) => ids),
      [['running'], ['running']],
    );
    await pass(600);
    assert.deepEqual(calls.at(-1)?.ids, ['waiting'], 'a beat that comes late is heard');
  });

  it('retries soon after a failure, after at most a sixth of the shortest lease', async () => {
    const trouble = recordEvents(events, 'worker:trouble');
    answer = () => Promise.reject(new Error('no answer'));
    keep([aLease('a'), aLease('b', { length: 60_000 })]);
    await pass(5000);
    const waits = trouble.map(({ event }) => (event as { retryIn: number }).retryIn);
    assert.deepEqual(waits.slice(0, 4), [250, 500, 1000, 1000]);
    answer = async () => [];
    await pass(1000);
    assert.match(reports[0] ?? '', /^renewed token\/a/);
  });

  it('does not report a recovery when nothing was left to renew', async () => {
    const recovered = recordEvents(events, 'worker:recovered');
    answer = () => Promise.reject(new Error('no answer'));
    keep([aLease('a')]);
    await pass(2500);
    leases.clear();
    await pass(5000);
    assert.deepEqual(recovered, []);
    answer = async () => [];
    keep([aLease('b', { renewedAt: clock.monotonic() })]);
    await pass(2000);
    assert.match(reports[0] ?? '', /^renewed token\/b/, 'and a new lease is renewed in time all the same');
    assert.equal(recovered.length, 1);
  });
});
