import assert from 'node:assert/strict';
import { DatabaseClock } from '../../../src/runtime/database-clock.js';
import { monotonic } from '../../../src/runtime/system-clock.js';

/** Less than any error that a test looks for, more than a busy machine takes away from this process. */
const TOLERANCE = 100;

/** Answers after the given milliseconds, spent busily: a timer would not be exact enough. */
function answers(...replies: [after: number, time: string][]): () => Promise<Date> {
  const left = replies.values();
  return async () => {
    const [after, time] = left.next().value ?? [0, ''];
    const end = monotonic() + after;
    while (monotonic() < end);
    return new Date(time);
  };
}

function near(clock: DatabaseClock, time: string, since: number): void {
  const passed = clock.now().getTime() - new Date(time).getTime();
  assert.ok(Math.abs(passed - (monotonic() - since)) < TOLERANCE, `off by ${passed} ms`);
}

describe('DatabaseClock', () => {
  it('is this machine’s time until it was measured', () => {
    const clock = new DatabaseClock();
    assert.ok(Math.abs(clock.now().getTime() - Date.now()) < TOLERANCE);
    assert.equal(clock.error, Infinity);
  });

  for (const [place, best] of [
    ['first', 0],
    ['second', 1],
    ['third', 2],
  ] as const) {
    it(`believes the answer with the shortest round trip (the ${place})`, async () => {
      const replies: [number, string][] = [
        [200, '2020-01-01T00:00:00Z'],
        [250, '2021-01-01T00:00:00Z'],
        [300, '2022-01-01T00:00:00Z'],
      ];
      replies[best] = [1, '2030-01-01T00:00:00Z'];
      const clock = new DatabaseClock();
      await clock.synchronise(answers(...replies));
      assert.equal(clock.now().getUTCFullYear(), 2030);
      assert.ok(clock.error >= 0.5 && clock.error < TOLERANCE);
    });
  }

  it('takes half the round trip for the way back', async () => {
    const clock = new DatabaseClock();
    const slow: [number, string] = [500, '2030-01-01T00:00:00Z'];
    const sent = monotonic();
    await clock.synchronise(answers([300, '2030-01-01T00:00:00Z'], slow, slow));
    near(clock, '2030-01-01T00:00:00Z', sent + 150);
    assert.ok(clock.error >= 150 && clock.error < 150 + TOLERANCE);
  });

  it('does not follow the wall clock of this machine', async () => {
    const clock = new DatabaseClock();
    const at: [number, string] = [0, '2030-01-01T00:00:00Z'];
    await clock.synchronise(answers(at, at, at));
    const measured = monotonic();
    const RealDate = Date;
    const JUMP = 365 * 86_400_000;
    class JumpedDate extends RealDate {
      constructor(...args: [] | [number]) {
        super(args.length === 0 ? RealDate.now() + JUMP : args[0]);
      }
      static override now(): number {
        return RealDate.now() + JUMP;
      }
    }
    globalThis.Date = JumpedDate as DateConstructor;
    try {
      near(clock, '2030-01-01T00:00:00Z', measured);
    } finally {
      globalThis.Date = RealDate;
    }
  });

  it('follows the database when that was set right', async () => {
    const clock = new DatabaseClock();
    const before: [number, string] = [0, '2030-01-01T00:00:00Z'];
    const after: [number, string] = [0, '2029-12-31T00:00:00Z'];
    await clock.synchronise(answers(before, before, before));
    await clock.synchronise(answers(after, after, after));
    near(clock, '2029-12-31T00:00:00Z', monotonic());
  });

  it('keeps what it knows when it cannot ask', async () => {
    const clock = new DatabaseClock();
    const at: [number, string] = [0, '2030-01-01T00:00:00Z'];
    await clock.synchronise(answers(at, at, at));
    const { error } = clock;
    await assert.rejects(clock.synchronise(() => Promise.reject(new Error('no answer'))));
    near(clock, '2030-01-01T00:00:00Z', monotonic());
    assert.equal(clock.error, error);
  });

  it('keeps what it knows when one answer was late and no better one came', async () => {
    const clock = new DatabaseClock();
    const at: [number, string] = [0, '2030-01-01T00:00:00Z'];
    await clock.synchronise(answers(at, at, at));
    const measured = monotonic();
    const late = answers([500, '2030-01-01T00:00:00Z']);
    let asked = 0;
    await assert.rejects(
      clock.synchronise(() => (asked++ === 0 ? late() : Promise.reject(new Error('no answer')))),
    );
    near(clock, '2030-01-01T00:00:00Z', measured);
  });

  it('takes over the measure of another thread', async () => {
    const [measured, follower] = [new DatabaseClock(), new DatabaseClock()];
    const at: [number, string] = [0, '2030-01-01T00:00:00Z'];
    await measured.synchronise(answers(at, at, at));
    follower.anchor = measured.anchor;
    near(follower, '2030-01-01T00:00:00Z', monotonic());
  });
});
