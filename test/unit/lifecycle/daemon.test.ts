import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Clock } from '../../../src/index.js';
import { type TickOptions, runTicks } from '../../../src/lifecycle/daemon.js';
import { ManualClock } from '../../support/manual-clock.js';
import { seededRandom } from '../../support/seeded-random.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';

const MINUTE = 60_000;
const START = Date.parse('2026-03-28T11:59:07.123Z');

/** A clock on which a sleep ends immediately and moves the time forward; timers may be early or late. */
class SimulatedClock implements Clock {
  readonly sleeps: number[] = [];
  #now = START;
  #monotonic = 0;
  readonly #timerError: (ms: number) => number;

  constructor(timerError: (ms: number) => number = () => 0) {
    this.#timerError = timerError;
  }

  now(): Date {
    return new Date(this.#now);
  }

  monotonic(): number {
    return this.#monotonic;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms <= 0 || signal?.aborted === true) return;
    this.sleeps.push(ms);
    this.advance(ms + this.#timerError(ms));
  }

  advance(ms: number): void {
    this.#now += ms;
    this.#monotonic += ms;
  }

  /** Corrects the wall clock without any time passing. */
  adjust(ms: number): void {
    this.#now += ms;
  }
}

interface Observed {
  report: Awaited<ReturnType<typeof runTicks>>;
  starts: number[];
  ends: number[];
  overruns: Parameters<TickOptions['onOverrun']>[0][];
}

/** Runs a number of ticks; `work` returns the duration of each. */
async function observe(
  clock: SimulatedClock,
  ticks: number,
  work: (tick: number) => number = () => 0,
  options: Partial<TickOptions> = {},
): Promise<Observed> {
  const stopping = new AbortController();
  const observed: Omit<Observed, 'report'> = { starts: [], ends: [], overruns: [] };
  const report = await runTicks({
    clock,
    interval: MINUTE,
    maxOverruns: Infinity,
    signal: stopping.signal,
    onFailure: () => assert.fail('unexpected failure'),
    onRecovery: () => assert.fail('nothing failed'),
    onOverrun: (overrun) => observed.overruns.push(overrun),
    tick: async () => {
      observed.starts.push(clock.now().getTime());
      clock.advance(work(observed.starts.length));
      observed.ends.push(clock.now().getTime());
      if (observed.starts.length === ticks) stopping.abort();
      return { hadOutage: false };
    },
    ...options,
  });
  return { report, ...observed };
}

/** The first tick immediately, the others at the following full minutes. */
function everyMinuteFrom(start: number, ticks: number): number[] {
  const first = Math.ceil(start / MINUTE) * MINUTE;
  return [start, ...Array.from({ length: ticks - 1 }, (_, index) => first + index * MINUTE)];
}

describe('runTicks()', () => {
  it('ticks immediately and then at every full minute, 10,000 times, without drift [Y2]', async () => {
    const { starts, report } = await observe(new SimulatedClock(), 10_000);
    assert.deepEqual(starts, everyMinuteFrom(START, 10_000));
    assert.deepEqual(report, { ticks: 10_000, overruns: 0, reason: 'stopped' });
  });

  it('does not drift, however much of the interval each of 10,000 ticks takes [Y2]', async () => {
    const random = seededRandom(1);
    const { starts, overruns } = await observe(new SimulatedClock(), 10_000, (tick) =>
      Math.floor(random() * (tick === 1 ? 1000 : MINUTE - 1)),
    );
    assert.deepEqual(starts, everyMinuteFrom(START, 10_000));
    assert.deepEqual(overruns, []);
  });

  it('never ticks early or twice when timers fire early [Y2]', async () => {
    const random = seededRandom(2);
    const early = new SimulatedClock((ms) => -Math.floor(random() * Math.min(ms, 40)));
    const { starts } = await observe(early, 10_000, () => Math.floor(random() * 500));
    assert.deepEqual(starts, everyMinuteFrom(START, 10_000));
  });

  it('does not accumulate the delays of late timers [Y2]', async () => {
    const random = seededRandom(3);
    const late = new SimulatedClock(() => Math.floor(random() * 90));
    const { starts } = await observe(late, 10_000, () => Math.floor(random() * 500));
    const targets = everyMinuteFrom(START, 10_000);
    const errors = starts.map((start, index) => start - targets[index]!);
    assert.ok(Math.min(...errors) === 0 && Math.max(...errors) < 90, String(Math.max(...errors)));
  });

  it('never sleeps longer than the interval when nothing overruns [Y2]', async () => {
    const clock = new SimulatedClock();
    await observe(clock, 10_000, () => 10);
    assert.ok(Math.max(...clock.sleeps) <= MINUTE, String(Math.max(...clock.sleeps)));
  });

  it('returns to full minutes when many of 10,000 ticks overrun, some by several intervals [Y2]', async () => {
    const random = seededRandom(4);
    const duration = (): number =>
      Math.floor(random() < 0.3 ? MINUTE * (1 + 3 * random()) : (MINUTE / 2) * random());
    const { starts, ends, overruns, report } = await observe(new SimulatedClock(), 10_000, duration);
    let expected = 0;
    for (let index = 1; index < starts.length; index++) {
      const due = (Math.floor(starts[index - 1]! / MINUTE) + 1) * MINUTE;
      const isMissed = ends[index - 1]! >= due;
      if (ends[index - 1]! - starts[index - 1]! >= MINUTE) expected++;
      assert.equal(starts[index], isMissed ? ends[index - 1] : due, `tick ${index + 1}`);
    }
    assert.equal(overruns.length, expected);
    assert.equal(report.overruns, expected);
    assert.ok(expected > 2000, String(expected));
  });

  it('waits exactly until the next minute, whatever the durations and timer errors are [Y2]', async () => {
    const tickDurations = fc.array(fc.nat(3 * MINUTE), { minLength: 5, maxLength: 60 });
    const timerErrors = fc.array(fc.integer({ min: -300, max: 300 }), { minLength: 1, maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(tickDurations, timerErrors, async (durations, errors) => {
        let timers = 0;
        const clock = new SimulatedClock((ms) => Math.max(-ms + 1, errors[timers++ % errors.length]!));
        const { starts, ends } = await observe(clock, durations.length, (tick) => durations[tick - 1]!);
        for (let index = 1; index < starts.length; index++) {
          const due = (Math.floor(starts[index - 1]! / MINUTE) + 1) * MINUTE;
          const late = starts[index]! - Math.max(due, ends[index - 1]!);
          // Never early, and late only by the error of the timer, if it had to wait at all.
          assert.ok(late >= 0 && late <= (ends[index - 1]! < due ? 300 : 0), `tick ${index + 1}: ${late}`);
        }
      }),
      { numRuns: 200, seed: 5 },
    );
  });

  it('ticks once per minute when the clock is corrected backwards [Y2]', async () => {
    const clock = new SimulatedClock();
    const { starts } = await observe(clock, 4, (tick) => {
      if (tick === 2) clock.adjust(-2000);
      return 50;
    });
    const minutes = starts.map((start) => Math.floor(start / MINUTE));
    assert.deepEqual(
      minutes.slice(1).map((minute) => minute - minutes[1]!),
      [0, 1, 2],
    );
  });

  it('follows a manual clock [Y2]', async () => {
    const clock = new ManualClock('2026-01-01T00:00:30Z');
    const stopping = new AbortController();
    const starts: string[] = [];
    const daemon = runTicks({
      clock,
      interval: MINUTE,
      maxOverruns: Infinity,
      signal: stopping.signal,
      onOverrun: () => assert.fail('unexpected overrun'),
      onFailure: () => assert.fail('unexpected failure'),
      onRecovery: () => assert.fail('nothing failed'),
      tick: async () => {
        starts.push(clock.now().toISOString().slice(14, 19));
        return { hadOutage: false };
      },
    });
    await flushEventLoop();
    for (const ms of [29_999, 1, 59_999, 1]) {
      clock.advance(ms);
      await flushEventLoop();
    }
    assert.deepEqual(starts, ['00:30', '01:00', '02:00']);
    stopping.abort();
    assert.equal((await daemon).reason, 'stopped');
    assert.equal(clock.sleepers, 0);
  });
});

describe('runTicks() with overruns', () => {
  /** Starts on a full minute; the durations are in minutes. */
  async function observeTicks(durations: number[], options: Partial<TickOptions> = {}): Promise<Observed> {
    const clock = new SimulatedClock();
    clock.advance(MINUTE - (START % MINUTE));
    return observe(clock, durations.length, (tick) => durations[tick - 1]! * MINUTE, options);
  }

  it('reports each overrun: which tick, how late, how many in a row [Y2]', async () => {
    const { overruns, report } = await observeTicks([0.5, 1.25, 1, 0.5, 0.5]);
    assert.deepEqual(overruns, [
      { tick: 2, late: MINUTE / 4, inARow: 1 },
      // It started a quarter late and took a whole interval, so it is an overrun too.
      { tick: 3, late: MINUTE / 4, inARow: 2 },
    ]);
    assert.deepEqual(report, { ticks: 5, overruns: 2, reason: 'stopped' });
  });

  it('drops missed ticks: one tick follows immediately, the next at the full minute [Y2]', async () => {
    const { starts, overruns } = await observeTicks([0, 5.5, 0, 0]);
    const [first = 0, ...others] = starts.map((start) => start / MINUTE);
    assert.deepEqual(
      others.map((start) => start - first),
      [1, 6.5, 7],
    );
    assert.equal(overruns.length, 1);
  });

  it('resets the count of overruns in a row after a tick without one [Y2]', async () => {
    const { overruns, report } = await observeTicks([2, 2, 0, 2, 2, 0, 2, 2, 0]);
    assert.deepEqual(
      overruns.map(({ inARow }) => inARow),
      [1, 2, 1, 2, 1, 2],
    );
    assert.equal(report.overruns, 6);
  });

  it('ends after maxOverruns in a row and not earlier [Y2]', async () => {
    const durations = [2, 2, 0, 2, 2, 0, 2, 2, 2, 0];
    const { report, overruns, starts } = await observeTicks(durations, { maxOverruns: 3 });
    assert.deepEqual(report, { ticks: 9, overruns: 7, reason: 'overruns' });
    assert.equal(overruns.at(-1)?.inARow, 3);
    assert.equal(starts.length, 9);
  });

  it('does not count a short tick that started just before the full minute [Y2]', async () => {
    const clock = new SimulatedClock();
    clock.advance(MINUTE - (START % MINUTE) - 500);
    const { report, starts } = await observe(clock, 3, () => 1000, { maxOverruns: 1 });
    assert.deepEqual(report, { ticks: 3, overruns: 0, reason: 'stopped' }, `ticks at ${starts.join(', ')}`);
  });

  it('counts no failed tick and no tick with an outage, and reports failures and recovery [Y2]', async () => {
    const reported: unknown[] = [];
    const clock = new SimulatedClock();
    clock.advance(MINUTE - (START % MINUTE));
    const stopping = new AbortController();
    // An overrun, two ticks that fail after a long wait, one that succeeds after a long wait, and an overrun.
    const steps = [2, 'throws', 'throws', 'outage', 2] as const;
    const report = await runTicks({
      ...{ clock, interval: MINUTE, maxOverruns: 3, signal: stopping.signal },
      tick: async () => {
        const step = steps[reported.length];
        clock.advance(2 * MINUTE);
        if (step === undefined) stopping.abort();
        if (step === 'throws') throw new Error('unreachable');
        if (step === 'outage') reported.push('outage');
        return { hadOutage: step === 'outage' };
      },
      onFailure: (_, failure) => reported.push(failure),
      onRecovery: (failures) => assert.equal(failures, 2),
      onOverrun: ({ inARow }) => reported.push(inARow),
    });
    assert.deepEqual(reported, [1, { failures: 1, retryIn: 0 }, { failures: 2, retryIn: 0 }, 'outage', 2]);
    assert.deepEqual(report, { ticks: 6, overruns: 2, reason: 'stopped' });
  });

  it('never ends by default [Y2]', async () => {
    const { report } = await observe(new SimulatedClock(), 1000, () => 3 * MINUTE);
    assert.deepEqual(report, { ticks: 1000, overruns: 999, reason: 'stopped' });
  });
});

describe('runTicks() when stopped', () => {
  it('ends immediately during a sleep and leaves no timer [Y2]', async () => {
    const clock = new ManualClock();
    const stopping = new AbortController();
    let ticks = 0;
    const daemon = runTicks({
      ...{ clock, interval: MINUTE, maxOverruns: 1, signal: stopping.signal },
      onFailure: () => assert.fail('unexpected failure'),
      onRecovery: () => assert.fail('nothing failed'),
      onOverrun: () => assert.fail('unexpected overrun'),
      tick: async () => {
        ticks++;
        return { hadOutage: false };
      },
    });
    await flushEventLoop();
    stopping.abort();
    assert.deepEqual(await daemon, { ticks, overruns: 0, reason: 'stopped' });
    assert.deepEqual([ticks, clock.sleepers], [1, 0]);
  });

  it('waits for the current tick and does not count it as an overrun [Y2]', async () => {
    const { report, overruns } = await observe(new SimulatedClock(), 1, () => 10 * MINUTE, {
      maxOverruns: 1,
    });
    assert.deepEqual(report, { ticks: 1, overruns: 0, reason: 'stopped' });
    assert.deepEqual(overruns, []);
  });

  it('does not tick at all if it is already stopped [Y2]', async () => {
    const { report } = await observe(new SimulatedClock(), 1, () => 0, { signal: AbortSignal.abort() });
    assert.deepEqual(report, { ticks: 0, overruns: 0, reason: 'stopped' });
  });
});
