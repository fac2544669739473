import assert from 'node:assert/strict';
import { assertJobId, assertLockName, assertTaskType } from '../../../src/domain/identifiers.js';

const checks = {
  checkTaskType: assertTaskType,
  checkJobId: assertJobId,
  checkLockName: assertLockName,
} as Record<string, (value: unknown) => void>;

describe('identifiers', () => {
  for (const [name, check] of Object.entries(checks)) {
    describe(name, () => {
      it('accept ordinary names, whatever they mean to JavaScript or MongoDB', () => {
        for (const value of [
          'emails',
          'send email',
          'ünïcode',
          'a.b',
          '$where',
          'constructor',
          '__proto__',
        ]) {
          assert.doesNotThrow(() => check(value));
        }
      });

      it('reject objects, so that no operator gets into a query', () => {
        const text = new String('emails');
        for (const value of [
          { $ne: null },
          { toString: () => 'emails' },
          ['emails'],
          text,
          null,
          undefined,
          7,
        ]) {
          assert.throws(() => check(value), { code: 'INVALID_ARGUMENT', message: /must be a string, got / });
        }
      });

      it('reject empty, overlong and malformed text', () => {
        for (const value of ['', 'x'.repeat(1000), 'a\0b', 'a\ud800']) {
          assert.throws(() => check(value), { code: 'INVALID_ARGUMENT' });
        }
      });
    });
  }

  it('reserve @ ! # in task types, because ids contain them', () => {
    for (const value of ['a@b', '!a', 'a#']) {
      assert.throws(() => assertTaskType(value), {
        code: 'INVALID_ARGUMENT',
        message: `a task type must not contain any of @ ! #, got '${value}'`,
      });
      assert.doesNotThrow(() => assertJobId(value));
    }
  });

  it('accept as an id everything that a task type and a key can form', () => {
    const [taskType, key] = ['t'.repeat(200), 'k'.repeat(500)];
    assertTaskType(taskType);
    assert.doesNotThrow(() => assertJobId(`${taskType}#${key}`));
    assert.throws(() => assertTaskType(`${taskType}t`), { message: /at most 200 characters, got 201/ });
  });
});
