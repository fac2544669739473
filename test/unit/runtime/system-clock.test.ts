import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { monotonic, sleep, systemClock } from '../../../src/runtime/system-clock.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';

interface Timer {
  delay: number;
  fire: () => void;
  cleared: boolean;
}

describe('the system clock', () => {
  const real = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout };
  let timers: Timer[];

  beforeEach(() => {
    timers = [];
    const fake = (fire: () => void, delay: number): Timer => {
      const timer = { fire, delay, cleared: false };
      timers.push(timer);
      return timer;
    };
    const clear = (timer: Timer): void => void (timer.cleared = true);
    Object.assign(globalThis, { setTimeout: fake, clearTimeout: clear });
  });

  afterEach(() => {
    Object.assign(globalThis, real);
  });

  const state = async (slept: Promise<void>): Promise<string> => {
    let done = 'asleep';
    void slept.then(() => (done = 'awake'));
    await flushEventLoop();
    return done;
  };

  it('splits sleeps that are too long for one timer', async () => {
    const slept = sleep(2 ** 31 + 5000);
    assert.deepEqual(
      timers.map(({ delay }) => delay),
      [2 ** 31 - 1],
    );
    timers[0]?.fire();
    assert.equal(await state(slept), 'asleep', 'the time is not over because one timer is');
    assert.equal(timers.length, 2);
    assert.ok(timers.every(({ delay }) => delay <= 2 ** 31 - 1 && delay > 0));
  });

  it('sleeps for years', async () => {
    const slept = sleep(10 * 366 * 86_400_000);
    assert.equal(await state(slept), 'asleep');
    assert.equal(timers[0]?.delay, 2 ** 31 - 1);
  });

  it('continues to sleep when a timer fires early', async () => {
    const slept = sleep(60_000);
    timers[0]?.fire();
    assert.equal(await state(slept), 'asleep');
  });

  it('wakes as soon as its signal is aborted and leaves no timer or listener', async () => {
    const control = new AbortController();
    const slept = sleep(2 ** 40, control.signal);
    assert.equal(await state(slept), 'asleep');
    control.abort();
    assert.equal(await state(slept), 'awake');
    assert.ok(timers.every(({ cleared }) => cleared));
    assert.equal(getEventListeners(control.signal, 'abort').length, 0);
  });

  it('does not sleep when there is no need', async () => {
    const aborted = AbortSignal.abort();
    for (const slept of [sleep(0), sleep(-1), sleep(NaN), sleep(1000, aborted)]) await slept;
    assert.deepEqual(timers, []);
  });

  it('resolves after the requested time', async () => {
    Object.assign(globalThis, real);
    const began = monotonic();
    await sleep(5);
    assert.ok(monotonic() - began >= 5);
  });

  it('has a monotonic time that only rises', () => {
    const times = Array.from({ length: 100 }, () => monotonic());
    assert.deepEqual(
      times.toSorted((a, b) => a - b),
      times,
    );
    assert.ok(Math.abs(systemClock.now().getTime() - Date.now()) < 1000);
  });
});
