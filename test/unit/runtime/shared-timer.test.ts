import assert from 'node:assert/strict';
import { SharedTimer } from '../../../src/runtime/shared-timer.js';
import { ManualClock } from '../../support/manual-clock.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';

describe('SharedTimer', () => {
  let clock: ManualClock;
  let deadlines: SharedTimer;
  let passed: string[];

  beforeEach(() => {
    clock = new ManualClock();
    deadlines = new SharedTimer(clock);
    passed = [];
  });

  const set = (name: string, ms: number): ReturnType<SharedTimer['set']> =>
    deadlines.set(ms, () => passed.push(name));

  async function pass(ms: number): Promise<void> {
    clock.advance(ms);
    await flushEventLoop();
  }

  it('calls back in time with one timer, in any order of calls', async () => {
    set('late', 300);
    set('early', 100);
    set('middle', 200);
    assert.equal(clock.sleepers, 1);
    await pass(99);
    assert.deepEqual(passed, []);
    await pass(1);
    assert.deepEqual(passed, ['early']);
    await pass(200);
    assert.deepEqual(passed, ['early', 'late', 'middle']);
    assert.equal(clock.sleepers, 0);
  });

  it('does not call back after cancel, and leaves no timer', async () => {
    const [one, other] = [set('one', 100), set('other', 100)];
    deadlines.clear(one);
    assert.equal(clock.sleepers, 1);
    deadlines.clear(other);
    await flushEventLoop();
    assert.equal(clock.sleepers, 0);
    await pass(1000);
    assert.deepEqual(passed, []);
    set('again', 50);
    await pass(50);
    assert.deepEqual(passed, ['again']);
  });

  it('accepts calls from within a callback', async () => {
    deadlines.set(10, () => set('next', 10));
    await pass(10);
    await pass(10);
    assert.deepEqual(passed, ['next']);
  });
});
