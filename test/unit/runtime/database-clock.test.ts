import assert from 'node:assert/strict';
import { AnchoredClock, DatabaseClock } from '../../../src/runtime/database-clock.js';
import { monotonic } from '../../../src/runtime/system-clock.js';

/** Less than any error that a test expects, more than a busy machine delays this process. */
const TOLERANCE = 100;
const NEW_YEAR = '2030-01-01T00:00:00Z';
const IMMEDIATE: Reply = [0, NEW_YEAR];

type Reply = [after: number, time: string];

/** A clock of a server that gives these replies, and then none. */
function clockWith(...replies: Reply[]): DatabaseClock {
  const remaining = replies.values();
  return new DatabaseClock({
    async readServerTime() {
      const { value, done } = remaining.next();
      if (done === true) throw new Error('no answer');
      const [after, time] = value;
      // Busy waiting: a timer would not be exact enough.
      const end = monotonic() + after;
      while (monotonic() < end);
      return new Date(time);
    },
  });
}

function assertNear(clock: AnchoredClock, time: string, since: number): void {
  const passed = clock.now().getTime() - new Date(time).getTime();
  assert.ok(Math.abs(passed - (monotonic() - since)) < TOLERANCE, `off by ${passed} ms`);
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
  it('is the time of this machine until it is measured', () => {
    const clock = clockWith();
    assert.ok(Math.abs(clock.now().getTime() - Date.now()) < TOLERANCE);
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
      replies[best] = [1, NEW_YEAR];
      const clock = clockWith(...replies);
      await clock.synchronize();
      assert.equal(clock.now().getUTCFullYear(), 2030);
      assert.ok(clock.error >= 0.5 && clock.error < TOLERANCE);
    });
  }

  it('assumes that the reply took half of the round trip', async () => {
    const clock = clockWith([300, NEW_YEAR], [500, NEW_YEAR], [500, NEW_YEAR]);
    const sentAt = monotonic();
    await clock.synchronize();
    assertNear(clock, NEW_YEAR, sentAt + 150);
    assert.ok(clock.error >= 150 && clock.error < 150 + TOLERANCE);
  });

  it('does not follow the wall clock of this machine', async () => {
    const clock = clockWith(IMMEDIATE, IMMEDIATE, IMMEDIATE);
    await clock.synchronize();
    const measuredAt = monotonic();
    await withJumpedDate(365 * 86_400_000, () => assertNear(clock, NEW_YEAR, measuredAt));
  });

  it('follows the database when that is corrected', async () => {
    const corrected: Reply = [0, '2029-12-31T00:00:00Z'];
    const clock = clockWith(IMMEDIATE, IMMEDIATE, IMMEDIATE, corrected, corrected, corrected);
    await clock.synchronize();
    await clock.synchronize();
    assertNear(clock, '2029-12-31T00:00:00Z', monotonic());
  });

  it('keeps the last measurement when the server does not reply', async () => {
    const clock = clockWith(IMMEDIATE, IMMEDIATE, IMMEDIATE);
    await clock.synchronize();
    const { error } = clock;
    await assert.rejects(clock.synchronize(), /no answer/);
    assertNear(clock, NEW_YEAR, monotonic());
    assert.equal(clock.error, error);
  });

  it('keeps the last measurement when one reply was late and no better one came', async () => {
    const clock = clockWith(IMMEDIATE, IMMEDIATE, IMMEDIATE, [500, NEW_YEAR]);
    await clock.synchronize();
    const measuredAt = monotonic();
    await assert.rejects(clock.synchronize(), /no answer/);
    assertNear(clock, NEW_YEAR, measuredAt);
  });

  it('measures again only when the measurement is stale, also by the wall clock', async () => {
    const clock = clockWith(IMMEDIATE, IMMEDIATE, IMMEDIATE);
    await clock.synchronize();
    await clock.refreshIfStale();
    await withJumpedDate(61_000, () => assert.rejects(clock.refreshIfStale(), /no answer/));
  });
});

describe('AnchoredClock', () => {
  it('takes over the measurement of another thread', async () => {
    const [measured, follower] = [clockWith(IMMEDIATE, IMMEDIATE, IMMEDIATE), new AnchoredClock()];
    await measured.synchronize();
    follower.anchor = measured.anchor;
    assertNear(follower, NEW_YEAR, monotonic());
  });
});
