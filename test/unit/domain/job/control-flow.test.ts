import assert from 'node:assert/strict';
import { CancelJob, isCancelJob, isSnoozeJob, SnoozeJob } from '../../../../src/domain/job/control-flow.js';

const SOURCE = new URL('../../../../src/domain/job/control-flow.ts', import.meta.url).href;

describe('control-flow errors', () => {
  it('are recognized and distinguished from other errors', () => {
    assert.ok(isCancelJob(new CancelJob()) && !isSnoozeJob(new CancelJob()));
    assert.ok(isSnoozeJob(new SnoozeJob('1s')) && !isCancelJob(new SnoozeJob('1s')));
    const others = [new Error('CancelJob'), { name: 'CancelJob' }, null, undefined, 'CancelJob', 1, () => 1];
    for (const thrown of others) assert.ok(!isCancelJob(thrown) && !isSnoozeJob(thrown));
  });

  it('are recognized if they are subclasses', () => {
    class TooLate extends CancelJob {}
    assert.ok(isCancelJob(new TooLate('too late')));
  });

  it('are recognized if they are from another copy of the package', async () => {
    const other = (await import(`${SOURCE}?another-copy`)) as {
      CancelJob: typeof CancelJob;
      SnoozeJob: typeof SnoozeJob;
    };
    assert.notEqual(other.CancelJob, CancelJob, 'the module must be loaded again');
    const cancel: unknown = new other.CancelJob('why');
    const snooze: unknown = new other.SnoozeJob('10m');
    assert.equal(cancel instanceof CancelJob || snooze instanceof SnoozeJob, false);
    assert.equal(isCancelJob(cancel) && cancel.message, 'why');
    assert.equal(isSnoozeJob(snooze) && snooze.delay, 600_000);
  });

  it('reject an invalid delay when they are created', () => {
    assert.throws(() => new SnoozeJob('soon'), {
      code: 'INVALID_ARGUMENT',
      message: /^the delay of SnoozeJob must be milliseconds or a text/,
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
    }
  });
});
