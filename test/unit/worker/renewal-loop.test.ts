import assert from 'node:assert/strict';
import { EventBus } from '../../../src/runtime/event-bus.js';
import type { Lease } from '../../../src/store/renew.js';
import { RenewalLoop } from '../../../src/worker/renewal-loop.js';
import { renewalDueAt, type KeptLease } from '../../../src/worker/renewer.js';
import { recordEvents, signal } from '../../support/events.js';
import { ManualClock } from '../../support/manual-clock.js';
import { turns } from '../../support/turns.js';

function aLease(id: string, fields: Partial<KeptLease> = {}): KeptLease {
  return {
    kind: 'job',
    id,
    token: 'token',
    length: 6000,
    renewedAt: 0,
    renewUntil: Infinity,
    buffered: false,
    ...fields,
  };
}

describe('RenewalLoop', () => {
  let clock: ManualClock;
  let events: EventBus;
  let loop: RenewalLoop;
  let leases: Set<KeptLease>;
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
    await turns();
  });

  afterEach(async () => {
    await loop.stop();
    assert.equal(clock.sleepers, 0);
  });

  /** Lets the time pass in small steps; `beat` shows all the while that the main thread lives. */
  async function pass(ms: number, { beat = true } = {}): Promise<void> {
    for (let left = ms; left > 0; left -= 100) {
      clock.advance(100);
      if (beat) loop.beat();
      await turns(1);
    }
  }

  function keep(more: readonly KeptLease[]): void {
    for (const lease of more) {
      leases.add(lease);
      loop.expect(renewalDueAt(lease));
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

  it('finds leases that nobody tells of', async () => {
    loop.lookFor(1200);
    leases.add(aLease('a', { length: 1200 }));
    await pass(500);
    assert.deepEqual(times(), [300]);
  });

  it('renews along what is due soon', async () => {
    keep([aLease('a'), aLease('b', { renewedAt: 400 }), aLease('c', { renewedAt: 900 })]);
    await pass(3000);
    assert.deepEqual(
      calls.map(({ ids }) => ids),
      [['a', 'b'], ['c']],
    );
  });

  it('does not renew what was dropped', async () => {
    keep([aLease('a'), aLease('b')]);
    for (const lease of leases) if (lease.id === 'a') leases.delete(lease);
    await pass(2000);
    assert.deepEqual(calls[0]?.ids, ['b']);
  });

  it('reports what is gone, once, and lets go of it', async () => {
    answer = async (leases) => leases.filter(({ id }) => id === 'a');
    keep([aLease('a'), aLease('b')]);
    await pass(4500);
    assert.deepEqual(reports, ['renewed token/b at 2000', 'lost token/a', 'renewed token/b at 4000']);
    assert.deepEqual(calls[1]?.ids, ['b']);
  });

  it('counts from before the request was sent, however long the answer took', async () => {
    const { promise, fire } = signal<Lease[]>();
    answer = () => promise;
    keep([aLease('a')]);
    await pass(3500);
    answer = async () => [];
    fire([]);
    await turns();
    assert.deepEqual(reports, ['renewed token/a at 2000']);
    await pass(1000);
    assert.deepEqual(times(), [2000, 4000]);
  });

  it('renews at once what became due while an answer was on its way', async () => {
    const { promise, fire } = signal<Lease[]>();
    answer = () => promise;
    keep([aLease('a')]);
    await pass(4000);
    assert.deepEqual(times(), [2000]);
    answer = async () => [];
    fire([]);
    await turns();
    assert.deepEqual(times(), [2000, 4000]);
  });

  it('renews no more past the time of the handler', async () => {
    keep([aLease('a', { renewUntil: 5000 })]);
    await pass(12_000);
    assert.deepEqual(times(), [2000, 4000]);
  });

  it('renews the buffer only while the main thread shows that it lives', async () => {
    keep([aLease('waiting', { buffered: true }), aLease('running')]);
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

  it('tries again soon after a failure: a sixth of the shortest lease at the most', async () => {
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

  it('does not say that it works again when there was nothing left to renew', async () => {
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
