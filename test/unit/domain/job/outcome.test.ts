import assert from 'node:assert/strict';
import type { HandlerRetries } from '../../../../src/domain/job/backoff.js';
import {
  CancelJob,
  RetryAfter,
  SnoozeJob,
  UnrecoverableError,
} from '../../../../src/domain/job/control-flow.js';
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
    onRetryFunctionError: (name, error) => assert.fail(`${name}: ${error.message}`),
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

  describe('on UnrecoverableError', () => {
    const fatal = new UnrecoverableError('the account is closed');

    it('fails the job at the first attempt, with this error [B25]', () => {
      assert.deepEqual(resolve(threw(fatal)), { kind: 'failed', error: fatal });
    });

    it('retries if it is only the cause of the error [B25]', () => {
      assert.equal(resolve(threw(new Error('failed', { cause: fatal }))).kind, 'retry');
    });

    it('lets an abort decide: a handler may wrap whatever its aborted signal caused [B25]', () => {
      assert.deepEqual(resolve(threw(fatal), abort('shutdown')), { kind: 'released' });
      assert.deepEqual(resolve(threw(fatal), abort('lockLost')), { kind: 'released' });
      assert.equal(resolve(threw(fatal), abort('timeout')).kind, 'retry');
    });
  });

  describe('on RetryAfter', () => {
    const retry = new RetryAfter('10m');
    const policy = (): HandlerRetries => ({ max: 3, base: 1000, cap: 60_000, jitter: 'full' });

    it('retries after exactly that time, without jitter and beyond the cap [B25]', () => {
      const outcome = resolve(threw(retry), { policy });
      assert.deepEqual(outcome, { kind: 'retry', error: retry, nextRunAt: later(600_000) });
    });

    it('fails the job with this error at the last attempt [B25]', () => {
      const outcome = resolve(threw(retry), { policy, job: { attempts: 2, maxRunningTime: null } });
      assert.deepEqual(outcome, { kind: 'failed', error: retry });
    });

    it('fails the job if that time is after its maxRunningTime [B25]', () => {
      const job = { attempts: 0, maxRunningTime: 600_000, firstStartedAt: NOW };
      assert.equal(resolve(threw(retry), { job }).kind, 'failed');
    });

    it('does not ask the functions of retries [B25]', () => {
      const asked = (): never => assert.fail('asked');
      const outcome = resolve(threw(retry), { policy: () => ({ ...policy(), if: asked, delay: asked }) });
      assert.deepEqual(outcome, { kind: 'retry', error: retry, nextRunAt: later(600_000) });
    });

    it('lets an abort decide [B25]', () => {
      assert.deepEqual(resolve(threw(retry), abort('shutdown')), { kind: 'released' });
      const timedOut = resolve(threw(retry), abort('timeout'));
      assert.deepEqual(timedOut, { kind: 'retry', error: reason, nextRunAt: later(1000) });
    });
  });

  describe('with functions in retries', () => {
    /** The outcome of an error at the second attempt, and what was reported about the functions. */
    function resolveWith(
      functions: object,
      ending = threw(boom),
      changes: Partial<OutcomeInput> = {},
    ): { outcome: Outcome; reported: string[] } {
      const reported: string[] = [];
      const outcome = resolve(ending, {
        job: { attempts: 1, maxRunningTime: null },
        policy: () => ({ max: 3, base: 1000, cap: 60_000, jitter: 'none', ...functions }),
        onRetryFunctionError: (name, error) => reported.push(`${name}: ${error.message}`),
        ...changes,
      });
      return { outcome, reported };
    }

    it('waits for the time that delay returns, beyond the cap [B25]', () => {
      const seen: unknown[] = [];
      const delay = (...args: unknown[]): string => {
        seen.push(...args);
        return '1h';
      };
      const { outcome, reported } = resolveWith({ delay });
      assert.deepEqual(outcome, { kind: 'retry', error: boom, nextRunAt: later(3_600_000) });
      assert.deepEqual(seen, [2, boom]);
      assert.deepEqual(reported, []);
      assert.deepEqual(resolveWith({ delay: () => 0 }).outcome, {
        kind: 'retry',
        error: boom,
        nextRunAt: NOW,
      });
    });

    it('fails the job if `if` returns false, and retries if it returns true [B25]', () => {
      const onlyBoom = (error: Error): boolean => error.message === 'boom';
      assert.equal(resolveWith({ if: onlyBoom }).outcome.kind, 'retry');
      assert.deepEqual(resolveWith({ if: onlyBoom }, threw('other')).outcome.kind, 'failed');
    });

    it('asks about a timeout, too [B25]', () => {
      const seen: unknown[] = [];
      const isRetried = (error: Error): boolean => seen.push(error) < 0;
      const { outcome } = resolveWith({ if: isRetried }, stuck, abort('timeout'));
      assert.deepEqual([outcome.kind, seen], ['failed', [reason]]);
    });

    it('asks nothing at the last attempt, or if the job is released or can never succeed [B25]', () => {
      const asked = (): never => assert.fail('asked');
      const functions = { delay: asked, if: asked };
      const last = { job: { attempts: 2, maxRunningTime: null } };
      assert.equal(resolveWith(functions, threw(boom), last).outcome.kind, 'failed');
      assert.equal(resolveWith(functions, threw(boom), abort('shutdown')).outcome.kind, 'released');
      assert.equal(resolveWith(functions, stuck, abort('ranTooLong')).outcome.kind, 'failed');
      assert.equal(resolveWith(functions, threw(new UnrecoverableError('no'))).outcome.kind, 'failed');
    });

    for (const [title, delay, message] of [
      ['throws', () => assert.fail('no idea'), 'no idea'],
      ['returns no duration', () => 'soon', /must return a duration.*, got 'soon'/],
      ['returns nothing', () => undefined, /got undefined/],
      ['returns an infinite delay', () => Infinity, /got Infinity/],
      ['is async', async () => Promise.reject(new Error('later')), /got a promise/],
      ['is not a function, in a damaged document', 5, /is not a function/],
    ] as const) {
      it(`uses the computed backoff and reports it when delay ${title} [B25]`, () => {
        const { outcome, reported } = resolveWith({ delay });
        assert.deepEqual(outcome, { kind: 'retry', error: boom, nextRunAt: later(2000) });
        assert.equal(reported.length, 1);
        assert.match(reported[0] ?? '', new RegExp(`^retries.delay: .*${new RegExp(message).source}`));
      });
    }

    for (const [title, predicate, message] of [
      ['throws', () => assert.fail('no idea'), 'no idea'],
      ['returns something else', () => 0, /must return true or false, got 0/],
      ['returns nothing', () => undefined, /got undefined/],
      ['is async', async () => Promise.reject(new Error('later')), /got a promise/],
    ] as const) {
      it(`retries and reports it when \`if\` ${title} [B25]`, () => {
        const { outcome, reported } = resolveWith({ if: predicate });
        assert.equal(outcome.kind, 'retry');
        assert.equal(reported.length, 1);
        assert.match(reported[0] ?? '', new RegExp(`^retries.if: .*${new RegExp(message).source}`));
      });
    }
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
