import assert from 'node:assert/strict';
import { assertJobId, assertLockName, assertTaskType } from '../../../src/domain/identifiers.js';

const assertions: Record<string, (value: unknown) => void> = { assertTaskType, assertJobId, assertLockName };

describe('identifiers', () => {
  for (const [name, assertValid] of Object.entries(assertions)) {
    describe(name, () => {
      it('accepts any text, also names with a meaning in JavaScript or MongoDB', () => {
        for (const value of [
          'emails',
          'send email',
          'ünïcode',
          'a.b',
          '$where',
          'constructor',
          '__proto__',
        ]) {
          assert.doesNotThrow(() => assertValid(value));
        }
      });

      it('rejects values that are not strings, so that no operator gets into a query', () => {
        for (const value of [
          { $ne: null },
          { toString: () => 'emails' },
          ['emails'],
          new String('emails'),
          null,
          undefined,
          7,
        ]) {
          assert.throws(() => assertValid(value), {
            code: 'INVALID_ARGUMENT',
            message: /must be a string, got /,
          });
        }
      });

      it('rejects empty, overlong and malformed text', () => {
        for (const value of ['', 'x'.repeat(1000), 'a\0b', 'a\ud800']) {
          assert.throws(() => assertValid(value), { code: 'INVALID_ARGUMENT' });
        }
      });
    });
  }

  it('of a task type must not contain @ + =, which separate the parts of ids', () => {
    for (const value of ['a@b', '+a', 'a=']) {
      assert.throws(() => assertTaskType(value), {
        code: 'INVALID_ARGUMENT',
        message: `a task type must not contain any of @ + =, got '${value}'`,
      });
      assert.doesNotThrow(() => assertJobId(value));
    }
  });

  it('of a job can be as long as the longest task type and key together', () => {
    const [taskType, key] = ['t'.repeat(200), 'k'.repeat(500)];
    assertTaskType(taskType);
    assert.doesNotThrow(() => assertJobId(`${taskType}=${key}`));
    assert.throws(() => assertTaskType(`${taskType}t`), { message: /at most 200 characters, got 201/ });
  });
});
