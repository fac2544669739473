import assert from 'node:assert/strict';
import {
  CancelJob,
  delayOf,
  isCancelJob,
  isRetryAfter,
  isSnoozeJob,
  isUnrecoverable,
  RetryAfter,
  SnoozeJob,
  UnrecoverableChronosError,
  UnrecoverableError,
} from '../../../../src/domain/job/control-flow.js';

const SOURCE = new URL('../../../../src/domain/job/control-flow.ts', import.meta.url).href;

describe('control-flow errors', () => {
  it('are recognized and distinguished from other errors', () => {
    assert.ok(isCancelJob(new CancelJob()) && !isSnoozeJob(new CancelJob()));
    assert.ok(isSnoozeJob(new SnoozeJob('1s')) && !isCancelJob(new SnoozeJob('1s')));
    const others = [new Error('CancelJob'), { name: 'CancelJob' }, null, undefined, 'CancelJob', 1, () => 1];
    for (const thrown of others) {
      for (const isOne of [isCancelJob, isSnoozeJob, isRetryAfter, isUnrecoverable])
        assert.equal(isOne(thrown), false);
    }
  });

  it('are errors with the given message and cause [B25]', () => {
    const cause = new Error('HTTP 429');
    const retry = new RetryAfter('30s', 'rate limited', { cause });
    assert.deepEqual(
      [retry.name, retry.message, retry.cause, retry.delay],
      ['RetryAfter', 'rate limited', cause, 30_000],
    );
    assert.equal(new RetryAfter(1500).message, 'failed, to be retried after 1500 ms');
    const fatal = new UnrecoverableError('the account is closed', { cause });
    assert.deepEqual(
      [fatal.name, fatal.message, fatal.cause],
      ['UnrecoverableError', 'the account is closed', cause],
    );
    assert.ok(retry instanceof Error && fatal instanceof Error);
  });

  it('are recognized by what is thrown, not by its cause [B25]', () => {
    assert.ok(isUnrecoverable(new UnrecoverableError('no')));
    assert.ok(isUnrecoverable(new UnrecoverableChronosError('INVALID_PAYLOAD', 'no')));
    assert.equal(isUnrecoverable(new Error('failed', { cause: new UnrecoverableError('no') })), false);
    assert.equal(isRetryAfter(new Error('failed', { cause: new RetryAfter(1) })), false);
  });

  it('have a delay of 0 if it is not a duration any more', () => {
    for (const delay of [Infinity, -1, NaN, 'soon', undefined])
      assert.equal(delayOf(Object.assign(new RetryAfter('1s'), { delay })), 0);
    assert.equal(delayOf(new RetryAfter('2m')), 120_000);
  });

  it('are recognized if they are subclasses', () => {
    class TooLate extends CancelJob {}
    assert.ok(isCancelJob(new TooLate('too late')));
    class Closed extends UnrecoverableError {
      override readonly name = 'Closed';
    }
    assert.ok(isUnrecoverable(new Closed('closed')));
    class RateLimited extends RetryAfter {}
    assert.ok(isRetryAfter(new RateLimited('1s')));
  });

  it('are recognized if they are from another copy of the package', async () => {
    const other = (await import(`${SOURCE}?another-copy`)) as {
      CancelJob: typeof CancelJob;
      SnoozeJob: typeof SnoozeJob;
      RetryAfter: typeof RetryAfter;
      UnrecoverableError: typeof UnrecoverableError;
    };
    assert.notEqual(other.CancelJob, CancelJob, 'the module must be loaded again');
    const cancel: unknown = new other.CancelJob('why');
    const snooze: unknown = new other.SnoozeJob('10m');
    assert.equal(cancel instanceof CancelJob || snooze instanceof SnoozeJob, false);
    assert.equal(isCancelJob(cancel) && cancel.message, 'why');
    assert.equal(isSnoozeJob(snooze) && snooze.delay, 600_000);
    const retry: unknown = new other.RetryAfter('10m');
    assert.equal(isRetryAfter(retry) && retry.delay, 600_000);
    const fatal: unknown = new other.UnrecoverableError('no');
    assert.equal(fatal instanceof UnrecoverableError, false);
    assert.ok(isUnrecoverable(fatal));
  });

  it('reject an invalid delay when they are created', () => {
    assert.throws(() => new SnoozeJob('soon'), {
      code: 'INVALID_ARGUMENT',
      message: /^the delay of SnoozeJob must be milliseconds or a text/,
    });
    assert.throws(() => new RetryAfter(-1), {
      code: 'INVALID_ARGUMENT',
      message: /^the delay of RetryAfter/,
    });
  });

  it('are distinguished from objects that throw when they are read', () => {
    const throwError = (): never => {
      throw new Error('no');
    };
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    for (const thrown of [new Proxy({}, { has: throwError, get: throwError }), proxy]) {
      assert.equal(isCancelJob(thrown), false);
      assert.equal(isSnoozeJob(thrown), false);
      assert.equal(isRetryAfter(thrown), false);
      assert.equal(isUnrecoverable(thrown), false);
    }
  });
});
