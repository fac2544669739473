import assert from 'node:assert/strict';
import { AnchoredClock, DatabaseClock } from '../../../src/runtime/database-clock.js';

const NEW_YEAR = '2030-01-01T00:00:00Z';
const IMMEDIATE: Reply = [0, NEW_YEAR];

type Reply = [roundTrip: number, time: string];

/** Monotonic milliseconds that have passed in this test. */
let elapsed: number;

/** Call inside a `describe`: monotonic time passes only when a test adds to `elapsed`. */
function useManualMonotonicTime(): void {
  beforeEach(() => {
    const start = performance.now();
    elapsed = 0;
    performance.now = () => start + elapsed;
  });
  afterEach(() => {
    Reflect.deleteProperty(performance, 'now');
  });
}

/** The clock of a server that sends these replies, and then none. */
function clockWith(...replies: Reply[]): DatabaseClock {
  const remaining = replies.values();
  return new DatabaseClock({
    async readServerTime() {
      const { value, done } = remaining.next();
      if (done === true) throw new Error('no answer');
      const [roundTrip, time] = value;
      elapsed += roundTrip;
      return new Date(time);
    },
  });
}

/** Within a millisecond: monotonic times are fractions, dates are not. */
function assertShows(clock: AnchoredClock, time: string, plus = 0): void {
  const shown = clock.now().getTime() - new Date(time).getTime();
  assert.ok(Math.abs(shown - plus) <= 1, `shows ${shown} ms more, expected ${plus} ms`);
}

function assertError(clock: DatabaseClock, expected: number): void {
  assert.ok(Math.abs(clock.error - expected) < 0.001, `error ${clock.error}, expected ${expected}`);
}

/** Runs `work` with a wall clock that is off by `jump` milliseconds. */
async function withJumpedDate(jump: number, work: () => unknown): Promise<void> {
  const RealDate = Date;
  class JumpedDate extends RealDate {
    constructor(...args: [] | [number]) {
      super(args.length === 0 ? RealDate.now() + jump : args[0]);
    }
    static override now(): number {
      return RealDate.now() + jump;
    }
  }
  globalThis.Date = JumpedDate as DateConstructor;
  try {
    await work();
  } finally {
    globalThis.Date = RealDate;
  }
}

describe('DatabaseClock', () => {
  useManualMonotonicTime();

  it('is the time of this machine until it is measured', () => {
    const before = Date.now();
    const clock = clockWith();
    const after = Date.now();
    const now = clock.now().getTime();
    assert.ok(before <= now && now <= after, `${before} ≤ ${now} ≤ ${after}`);
    assert.equal(clock.error, Infinity);
  });

  for (const [place, best] of [
    ['first', 0],
    ['second', 1],
    ['third', 2],
  ] as const) {
    it(`uses the reply with the shortest round trip (${place})`, async () => {
      const replies: Reply[] = [
        [200, '2020-01-01T00:00:00Z'],
        [250, '2021-01-01T00:00:00Z'],
        [300, '2022-01-01T00:00:00Z'],
      ];
      replies[best] = [100, NEW_YEAR];
      const clock = clockWith(...replies);
      await clock.synchronize();
      assert.equal(clock.now().getUTCFullYear(), 2030);
      assertError(clock, 50);
    });
  }

  it('assumes that the reply took half of the round trip', async () => {
    const clock = clockWith([300, NEW_YEAR], [500, NEW_YEAR], [500, NEW_YEAR]);
    await clock.synchronize();
    assertShows(clock, NEW_YEAR, elapsed - 150);
    assertError(clock, 150);
  });

  it('does not follow the wall clock of this machine', async () => {
    const clock = clockWith(IMMEDIATE, IMMEDIATE, IMMEDIATE);
    await clock.synchronize();
    elapsed += 5000;
    await withJumpedDate(365 * 86_400_000, () => assertShows(clock, NEW_YEAR, 5000));
  });

  it('follows the database when that is corrected', async () => {
    const corrected: Reply = [0, '2029-12-31T00:00:00Z'];
    const clock = clockWith(IMMEDIATE, IMMEDIATE, IMMEDIATE, corrected, corrected, corrected);
    await clock.synchronize();
    await clock.synchronize();
    assertShows(clock, '2029-12-31T00:00:00Z');
  });

  it('keeps the last measurement when the server does not reply', async () => {
    const clock = clockWith(IMMEDIATE, IMMEDIATE, IMMEDIATE);
    await clock.synchronize();
    const { error } = clock;
    await assert.rejects(clock.synchronize(), /no answer/);
    assertShows(clock, NEW_YEAR);
    assert.equal(clock.error, error);
  });

  it('keeps the last measurement when one reply was late and no better one came', async () => {
    const clock = clockWith(IMMEDIATE, IMMEDIATE, IMMEDIATE, [500, NEW_YEAR]);
    await clock.synchronize();
    await assert.rejects(clock.synchronize(), /no answer/);
    assertShows(clock, NEW_YEAR, 500);
  });

  it('is stale a minute after its measurement, by the monotonic or the wall clock', async () => {
    const clock = clockWith(IMMEDIATE, IMMEDIATE, IMMEDIATE);
    await clock.synchronize();
    assert.equal(clock.isStale, false);
    await withJumpedDate(61_000, () => Promise.resolve(assert.equal(clock.isStale, true)));
    assert.equal(clock.isStale, false);
    elapsed += 61_000;
    assert.equal(clock.isStale, true);
  });
});

describe('AnchoredClock', () => {
  useManualMonotonicTime();

  it('takes over the measurement of another thread', async () => {
    const [measured, follower] = [clockWith(IMMEDIATE, IMMEDIATE, IMMEDIATE), new AnchoredClock()];
    await measured.synchronize();
    follower.anchor = measured.anchor;
    assertShows(follower, NEW_YEAR);
  });
});
