import assert from 'node:assert/strict';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { DoubtfulClaims } from '../../../src/worker/doubtful-claims.js';
import { ManualClock } from '../../support/manual-clock.js';
import { turns } from '../../support/turns.js';

describe('DoubtfulClaims', () => {
  let clock: ManualClock;
  let doubtful: DoubtfulClaims;
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
    doubtful = new DoubtfulClaims(clock, new EventBus(), {
      giveBack: (token, ids) => note(`${token} ${ids.join()}`),
      giveBackByToken: (token) => note(token),
    });
    doubtful.start();
    await turns();
  });

  afterEach(() => doubtful.stop());

  async function pass(ms: number): Promise<void> {
    await turns();
    for (let left = ms; left > 0; left -= 250) {
      clock.advance(250);
      await turns(1);
    }
  }

  it('gives a claim back again and again until its lock has run out: it may still be on its way', async () => {
    doubtful.add({ token: 'token', ids: undefined, lease: 2500 });
    await pass(10_000);
    assert.deepEqual(calls, ['0: token', '1000: token', '2000: token', '3000: token']);
  });

  it('gives back only the jobs that are in doubt, where they are known', async () => {
    doubtful.add({ token: 'token', ids: ['a', 'b'], lease: 500 });
    await pass(2000);
    assert.deepEqual(calls, ['0: token a,b', '1000: token a,b']);
  });

  it('drops no claim because the database is away', async () => {
    failing = true;
    doubtful.add({ token: 'token', ids: undefined, lease: 1000 });
    await pass(20_000);
    failing = false;
    calls = [];
    await pass(10_000);
    assert.equal(calls.length, 1);
  });

  it('is silent without doubts', async () => {
    await pass(120_000);
    assert.deepEqual(calls, []);
  });
});
