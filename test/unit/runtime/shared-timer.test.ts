import assert from 'node:assert/strict';
import { SharedTimer } from '../../../src/runtime/shared-timer.js';
import { ManualClock } from '../../support/manual-clock.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';

describe('SharedTimer', () => {
  let clock: ManualClock;
  let timer: SharedTimer;
  let fired: string[];

  beforeEach(() => {
    clock = new ManualClock();
    timer = new SharedTimer(clock);
    fired = [];
  });

  const set = (name: string, ms: number): ReturnType<SharedTimer['set']> =>
    timer.set(ms, () => fired.push(name));

  async function advance(ms: number): Promise<void> {
    clock.advance(ms);
    await flushEventLoop();
  }

  it('calls back in time with one sleep, in any order of calls', async () => {
    set('late', 300);
    set('early', 100);
    set('middle', 200);
    assert.equal(clock.sleepers, 1);
    await advance(99);
    assert.deepEqual(fired, []);
    await advance(1);
    assert.deepEqual(fired, ['early']);
    await advance(200);
    assert.deepEqual(fired, ['early', 'late', 'middle']);
    assert.equal(clock.sleepers, 0);
  });

  it('does not call back after clear(), and leaves no sleep', async () => {
    const [one, other] = [set('one', 100), set('other', 100)];
    timer.clear(one);
    assert.equal(clock.sleepers, 1);
    timer.clear(other);
    await flushEventLoop();
    assert.equal(clock.sleepers, 0);
    await advance(1000);
    assert.deepEqual(fired, []);
    set('again', 50);
    await advance(50);
    assert.deepEqual(fired, ['again']);
  });

  it('accepts calls from within a callback', async () => {
    timer.set(10, () => set('next', 10));
    await advance(10);
    await advance(10);
    assert.deepEqual(fired, ['next']);
  });
});
