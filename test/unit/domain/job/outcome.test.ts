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

function resolve(ending: HandlerEnding, changes: Partial<OutcomeInput> = {}): Outcome {
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

describe('resolveOutcome', () => {
  it('completes with the value that the handler returned', () => {
    assert.deepEqual(resolve(returned), { kind: 'completed', result: 'done' });
    assert.deepEqual(resolve({ kind: 'returned', value: undefined }), {
      kind: 'completed',
      result: undefined,
    });
    assert.deepEqual(resolve({ kind: 'returned', value: false }), { kind: 'completed', result: false });
  });

  describe('when the handler throws', () => {
    it('retries after the backoff while attempts are left', () => {
      assert.deepEqual(resolve(threw(boom)), { kind: 'retry', error: boom, nextRunAt: later(1000) });
      const second = resolve(threw(boom), { job: { attempts: 1, maxRunningTime: null } });
      assert.deepEqual(second, { kind: 'retry', error: boom, nextRunAt: later(2000) });
    });

    it('fails the job at the last attempt', () => {
      for (const attempts of [2, 3, 10]) {
        const outcome = resolve(threw(boom), { job: { attempts, maxRunningTime: null } });
        assert.deepEqual(outcome, { kind: 'failed', error: boom });
      }
      const once = resolve(threw(boom), { policy: () => ({ max: 1, base: 0, cap: 0, jitter: 'none' }) });
      assert.equal(once.kind, 'failed');
    });

    it('applies the jitter to the backoff', () => {
      const policy = { max: 3, base: 1000, cap: 60_000, jitter: 'full' } as const;
      const outcome = resolve(threw(boom), { policy: () => policy, random: () => 0.25 });
      assert.deepEqual(outcome, { kind: 'retry', error: boom, nextRunAt: later(250) });
    });

    it('retries also if the thrown value is not an Error', () => {
      for (const thrown of ['text', undefined, null, 7, { code: 1 }]) {
        const outcome = resolve(threw(thrown));
        assert.equal(outcome.kind, 'retry');
        assert.ok(outcome.error instanceof Error);
      }
    });
  });

  it('fails a rejected job immediately', () => {
    assert.deepEqual(resolve({ kind: 'rejected', error: boom }), { kind: 'failed', error: boom });
  });

  it('cancels on CancelJob, with its reason', () => {
    assert.deepEqual(resolve(threw(new CancelJob('not needed'))), {
      kind: 'cancelled',
      reason: 'not needed',
    });
    assert.deepEqual(resolve(threw(new CancelJob())), {
      kind: 'cancelled',
      reason: 'cancelled by its handler',
    });
  });

  it('snoozes on SnoozeJob, however many attempts there were', () => {
    const outcome = resolve(threw(new SnoozeJob('10m')), { job: { attempts: 99, maxRunningTime: null } });
    assert.deepEqual(outcome, { kind: 'snoozed', until: later(600_000) });
  });

  describe('after the signal was aborted, however the handler ended', () => {
    for (const ending of [returned, threw(boom), stuck]) {
      it(`by its timeout: the attempt failed (${ending.kind})`, () => {
        const outcome = resolve(ending, abort('timeout'));
        assert.deepEqual(outcome, { kind: 'retry', error: reason, nextRunAt: later(1000) });
        const last = resolve(ending, { ...abort('timeout'), job: { attempts: 2, maxRunningTime: null } });
        assert.deepEqual(last, { kind: 'failed', error: reason });
      });

      it(`by maxRunningTime: the job failed (${ending.kind})`, () => {
        assert.deepEqual(resolve(ending, abort('ranTooLong')), { kind: 'failed', error: reason });
      });

      it(`by a person: the job is cancelled with the reason (${ending.kind})`, () => {
        const outcome = resolve(ending, abort('cancelled'));
        assert.deepEqual(outcome, { kind: 'cancelled', reason: 'the reason' });
      });

      for (const kind of ['shutdown', 'lockLost'] as const) {
        it(`by ${kind}: the job is released and no attempt is counted (${ending.kind})`, () => {
          assert.deepEqual(resolve(ending, abort(kind)), { kind: 'released' });
        });
      }
    }

    it('CancelJob and SnoozeJob still apply', () => {
      for (const kind of ['timeout', 'shutdown', 'lockLost'] as const) {
        assert.equal(resolve(threw(new CancelJob()), abort(kind)).kind, 'cancelled');
        assert.equal(resolve(threw(new SnoozeJob(1)), abort(kind)).kind, 'snoozed');
      }
    });
  });

  describe('with a maxRunningTime', () => {
    const job = { attempts: 0, maxRunningTime: 5000, firstStartedAt: later(-4500) };

    it('fails the job if the next attempt would start after the limit', () => {
      assert.deepEqual(resolve(threw(boom), { job }), { kind: 'failed', error: boom });
    });

    it('retries if the next attempt starts before the limit', () => {
      const recent = { ...job, firstStartedAt: later(-1000) };
      assert.equal(resolve(threw(boom), { job: recent }).kind, 'retry');
    });
  });
});

describe('exceedsMaxRunningTime', () => {
  it('counts from the first start, over all attempts', () => {
    const job = { maxRunningTime: 5000, firstStartedAt: NOW };
    assert.equal(exceedsMaxRunningTime(job, later(4999)), false);
    assert.equal(exceedsMaxRunningTime(job, later(5000)), true);
  });

  it('is false without a limit, or before the first start', () => {
    assert.equal(exceedsMaxRunningTime({ maxRunningTime: null, firstStartedAt: NOW }, later(1e12)), false);
    assert.equal(exceedsMaxRunningTime({ maxRunningTime: 1 }, later(1e12)), false);
  });
});
