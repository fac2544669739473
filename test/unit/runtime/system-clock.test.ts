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

  const stateOf = async (slept: Promise<void>): Promise<string> => {
    let state = 'asleep';
    void slept.then(() => (state = 'awake'));
    await flushEventLoop();
    return state;
  };

  it('splits sleeps that are too long for one timer', async () => {
    const slept = sleep(2 ** 31 + 5000);
    assert.deepEqual(
      timers.map(({ delay }) => delay),
      [2 ** 31 - 1],
    );
    timers[0]?.fire();
    assert.equal(await stateOf(slept), 'asleep', 'more timers follow the first one');
    assert.equal(timers.length, 2);
    assert.ok(timers.every(({ delay }) => delay <= 2 ** 31 - 1 && delay > 0));
  });

  it('sleeps for years', async () => {
    const slept = sleep(10 * 366 * 86_400_000);
    assert.equal(await stateOf(slept), 'asleep');
    assert.equal(timers[0]?.delay, 2 ** 31 - 1);
  });

  it('continues to sleep when a timer fires early', async () => {
    const slept = sleep(60_000);
    timers[0]?.fire();
    assert.equal(await stateOf(slept), 'asleep');
  });

  it('wakes as soon as its signal is aborted and leaves no timer or listener', async () => {
    const control = new AbortController();
    const slept = sleep(2 ** 40, control.signal);
    assert.equal(await stateOf(slept), 'asleep');
    control.abort();
    assert.equal(await stateOf(slept), 'awake');
    assert.ok(timers.every(({ cleared }) => cleared));
    assert.equal(getEventListeners(control.signal, 'abort').length, 0);
  });

  it('does not sleep for no time or with an aborted signal', async () => {
    const aborted = AbortSignal.abort();
    for (const slept of [sleep(0), sleep(-1), sleep(NaN), sleep(1000, aborted)]) await slept;
    assert.deepEqual(timers, []);
  });

  it('resolves after the requested time', async () => {
    Object.assign(globalThis, real);
    const startedAt = monotonic();
    await sleep(5);
    assert.ok(monotonic() - startedAt >= 5);
  });

  it('has a monotonic time that only rises', () => {
    const times = Array.from({ length: 100 }, () => monotonic());
    assert.deepEqual(
      times.toSorted((a, b) => a - b),
      times,
    );
  });

  it('shows the time of this machine', () => {
    const before = Date.now();
    const now = systemClock.now().getTime();
    const after = Date.now();
    assert.ok(before <= now && now <= after, `${before} ≤ ${now} ≤ ${after}`);
  });
});
