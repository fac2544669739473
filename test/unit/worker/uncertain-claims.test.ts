import assert from 'node:assert/strict';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { UncertainClaims } from '../../../src/worker/uncertain-claims.js';
import { ManualClock } from '../../support/manual-clock.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';

describe('UncertainClaims', () => {
  let clock: ManualClock;
  let doubtful: UncertainClaims;
  let calls: string[];
  let failing: boolean;

  beforeEach(async () => {
    clock = new ManualClock();
    calls = [];
    failing = false;
    const note = async (call: string): Promise<number> => {
      calls.push(`${clock.monotonic()}: ${call}`);
      if (failing) throw new Error('no answer');
      return 0;
    };
    doubtful = new UncertainClaims(clock, new EventBus(), {
      release: (token, ids) => note(`${token} ${ids.join()}`),
      releaseByToken: (token) => note(token),
    });
    doubtful.start();
    await flushEventLoop();
  });

  afterEach(() => doubtful.stop());

  async function pass(ms: number): Promise<void> {
    await flushEventLoop();
    for (let left = ms; left > 0; left -= 250) {
      clock.advance(250);
      await flushEventLoop(1);
    }
  }

  it('releases a claim repeatedly until its lease has expired, because it may still arrive', async () => {
    doubtful.add({ token: 'token', ids: undefined, lease: 2500 });
    await pass(10_000);
    assert.deepEqual(calls, ['0: token', '1000: token', '2000: token', '3000: token']);
  });

  it('releases only the jobs in question when they are known', async () => {
    doubtful.add({ token: 'token', ids: ['a', 'b'], lease: 500 });
    await pass(2000);
    assert.deepEqual(calls, ['0: token a,b', '1000: token a,b']);
  });

  it('drops no claim while the database is unreachable', async () => {
    failing = true;
    doubtful.add({ token: 'token', ids: undefined, lease: 1000 });
    await pass(20_000);
    failing = false;
    calls = [];
    await pass(10_000);
    assert.equal(calls.length, 1);
  });

  it('does nothing without uncertain claims', async () => {
    await pass(120_000);
    assert.deepEqual(calls, []);
  });
});
