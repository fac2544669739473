import assert from 'node:assert/strict';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { UncertainClaims } from '../../../src/worker/uncertain-claims.js';
import { aJob } from '../../support/factories/job.js';
import { ManualClock } from '../../support/manual-clock.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';

describe('UncertainClaims', () => {
  let clock: ManualClock;
  let claims: UncertainClaims;
  let calls: string[];
  let failing: boolean;

  beforeEach(async () => {
    clock = new ManualClock();
    calls = [];
    failing = false;
    const record = async (call: string): Promise<number> => {
      calls.push(`${clock.monotonic()}: ${call}`);
      if (failing) throw new Error('no answer');
      return 0;
    };
    claims = new UncertainClaims(clock, new EventBus('worker'), {
      release: (token, ids) => record(`${token} ${ids.join()}`),
      releaseByToken: (token) => record(token),
    });
    claims.start();
    await flushEventLoop();
  });

  afterEach(() => claims.stop());

  async function advance(ms: number): Promise<void> {
    await flushEventLoop();
    for (let left = ms; left > 0; left -= 250) {
      clock.advance(250);
      await flushEventLoop(1);
    }
  }

  it('releases a claim repeatedly until its lease has expired, because it may still take effect', async () => {
    claims.add({ token: 'token', ids: undefined, lease: 2500 });
    await advance(10_000);
    assert.deepEqual(calls, ['0: token', '1000: token', '2000: token', '3000: token']);
  });

  it('releases only the jobs of the claim when they are known', async () => {
    claims.add({ token: 'token', ids: ['a', 'b'], lease: 500 });
    await advance(2000);
    assert.deepEqual(calls, ['0: token a,b', '1000: token a,b']);
  });

  it('lists the jobs whose release could not be stored, until it is', async () => {
    failing = true;
    const job = aJob();
    await claims.release([{ job, token: 'token', lease: 10_000 }]);
    assert.deepEqual(claims.unreleased, [job]);
    failing = false;
    await advance(2000);
    assert.deepEqual(claims.unreleased, []);
  });

  it('drops no claim while the database is unreachable', async () => {
    failing = true;
    claims.add({ token: 'token', ids: undefined, lease: 1000 });
    await advance(20_000);
    failing = false;
    calls = [];
    await advance(10_000);
    assert.equal(calls.length, 1);
  });

  it('does nothing without uncertain claims', async () => {
    await advance(120_000);
    assert.deepEqual(calls, []);
  });
});
