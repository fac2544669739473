import assert from 'node:assert/strict';
import { CancelJob, SnoozeJob } from '../../../../src/domain/job/control-flow.js';
import {
  type AbortKind,
  type HandlerEnding,
  resolveOutcome,
  type OutcomeInput,
  type Outcome,
  exceedsMaxRunningTime,
} from '../../../../src/domain/job/outcome.js';

const NOW = new Date('2026-01-01T00:00:00Z');
const later = (ms: number): Date => new Date(NOW.getTime() + ms);
const boom = new Error('boom');
const reason = new Error('the reason');

function judged(ending: HandlerEnding, changes: Partial<OutcomeInput> = {}): Outcome {
  return resolveOutcome({
    ending,
    abort: undefined,
    job: { attempts: 0, maxRunningTime: null },
    policy: () => ({ max: 3, base: 1000, cap: 60_000, jitter: 'none' }),
    now: NOW,
    random: () => 0.5,
    ...changes,
  });
}

const threw = (thrown: unknown): HandlerEnding => ({ kind: 'threw', thrown });
const returned: HandlerEnding = { kind: 'returned', value: 'done' };
const stuck: HandlerEnding = { kind: 'stuck' };
const abort = (kind: AbortKind): Pick<OutcomeInput, 'abort'> => ({ abort: { kind, error: reason } });

describe('judge', () => {
  it('completes with what the handler returned', () => {
    assert.deepEqual(judged(returned), { kind: 'completed', result: 'done' });
    assert.deepEqual(judged({ kind: 'returned', value: undefined }), {
      kind: 'completed',
      result: undefined,
    });
    assert.deepEqual(judged({ kind: 'returned', value: false }), { kind: 'completed', result: false });
  });

  describe('a throw', () => {
    it('is tried again after its backoff while attempts are left', () => {
      assert.deepEqual(judged(threw(boom)), { kind: 'retry', error: boom, nextRunAt: later(1000) });
      const second = judged(threw(boom), { job: { attempts: 1, maxRunningTime: null } });
      assert.deepEqual(second, { kind: 'retry', error: boom, nextRunAt: later(2000) });
    });

    it('fails for good at the last attempt', () => {
      for (const attempts of [2, 3, 10]) {
        const outcome = judged(threw(boom), { job: { attempts, maxRunningTime: null } });
        assert.deepEqual(outcome, { kind: 'failed', error: boom });
      }
      const once = judged(threw(boom), { policy: () => ({ max: 1, base: 0, cap: 0, jitter: 'none' }) });
      assert.equal(once.kind, 'failed');
    });

    it('uses chance for its jitter', () => {
      const policy = { max: 3, base: 1000, cap: 60_000, jitter: 'full' } as const;
      const outcome = judged(threw(boom), { policy: () => policy, random: () => 0.25 });
      assert.deepEqual(outcome, { kind: 'retry', error: boom, nextRunAt: later(250) });
    });

    it('counts the same when it is no error', () => {
      for (const thrown of ['text', undefined, null, 7, { code: 1 }]) {
        const outcome = judged(threw(thrown));
        assert.equal(outcome.kind, 'retry');
        assert.ok(outcome.error instanceof Error);
      }
    });
  });

  it('fails at once what can never succeed', () => {
    assert.deepEqual(judged({ kind: 'rejected', error: boom }), { kind: 'failed', error: boom });
  });

  it('cancels on CancelJob, with its reason', () => {
    assert.deepEqual(judged(threw(new CancelJob('not needed'))), { kind: 'cancelled', reason: 'not needed' });
    assert.deepEqual(judged(threw(new CancelJob())), {
      kind: 'cancelled',
      reason: 'cancelled by its handler',
    });
  });

  it('snoozes on SnoozeJob, however many attempts there were', () => {
    const outcome = judged(threw(new SnoozeJob('10m')), { job: { attempts: 99, maxRunningTime: null } });
    assert.deepEqual(outcome, { kind: 'snoozed', until: later(600_000) });
  });

  describe('once the signal was aborted, however the handler ended', () => {
    for (const ending of [returned, threw(boom), stuck]) {
      it(`by its timeout: a failed attempt (${ending.kind})`, () => {
        const outcome = judged(ending, abort('timeout'));
        assert.deepEqual(outcome, { kind: 'retry', error: reason, nextRunAt: later(1000) });
        const last = judged(ending, { ...abort('timeout'), job: { attempts: 2, maxRunningTime: null } });
        assert.deepEqual(last, { kind: 'failed', error: reason });
      });

      it(`by maxRunningTime: failed for good (${ending.kind})`, () => {
        assert.deepEqual(judged(ending, abort('ranTooLong')), { kind: 'failed', error: reason });
      });

      it(`by a person: cancelled with the reason (${ending.kind})`, () => {
        const outcome = judged(ending, abort('cancelled'));
        assert.deepEqual(outcome, { kind: 'cancelled', reason: 'the reason' });
      });

      for (const kind of ['shutdown', 'lockLost'] as const) {
        it(`by ${kind}: given back, nothing counted (${ending.kind})`, () => {
          assert.deepEqual(judged(ending, abort(kind)), { kind: 'givenBack' });
        });
      }
    }

    it('a handler that cancels or snoozes itself still has its way', () => {
      for (const kind of ['timeout', 'shutdown', 'lockLost'] as const) {
        assert.equal(judged(threw(new CancelJob()), abort(kind)).kind, 'cancelled');
        assert.equal(judged(threw(new SnoozeJob(1)), abort(kind)).kind, 'snoozed');
      }
    });
  });

  describe('with a maxRunningTime', () => {
    const job = { attempts: 0, maxRunningTime: 5000, firstStartedAt: later(-4500) };

    it('plans no attempt past the limit', () => {
      assert.deepEqual(judged(threw(boom), { job }), { kind: 'failed', error: boom });
    });

    it('plans one that begins before it', () => {
      const young = { ...job, firstStartedAt: later(-1000) };
      assert.equal(judged(threw(boom), { job: young }).kind, 'retry');
    });
  });
});

describe('runsTooLong', () => {
  it('compares with the first start, over all attempts', () => {
    const job = { maxRunningTime: 5000, firstStartedAt: NOW };
    assert.equal(exceedsMaxRunningTime(job, later(4999)), false);
    assert.equal(exceedsMaxRunningTime(job, later(5000)), true);
  });

  it('is false without a limit, or before the first start', () => {
    assert.equal(exceedsMaxRunningTime({ maxRunningTime: null, firstStartedAt: NOW }, later(1e12)), false);
    assert.equal(exceedsMaxRunningTime({ maxRunningTime: 1 }, later(1e12)), false);
  });
});
