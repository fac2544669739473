import assert from 'node:assert/strict';
import { checkJobId, checkKey, checkLockName, checkTaskType } from '../../../src/domain/names.js';

const checks = { checkTaskType, checkKey, checkJobId, checkLockName } as Record<
  string,
  (value: unknown) => void
>;

describe('names', () => {
  for (const [name, check] of Object.entries(checks)) {
    describe(name, () => {
      it('accepts ordinary names, whatever they mean to JavaScript or MongoDB', () => {
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

      it('refuses objects, so that no operator gets into a query', () => {
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

      it('refuses empty, endless and malformed text', () => {
        for (const value of ['', 'x'.repeat(1000), 'a\0b', 'a\ud800']) {
          assert.throws(() => check(value), { code: 'INVALID_ARGUMENT' });
        }
      });
    });
  }

  it('reserves @ ! # in task types, because ids are built with them', () => {
    for (const value of ['a@b', '!a', 'a#']) {
      assert.throws(() => checkTaskType(value), {
        code: 'INVALID_ARGUMENT',
        message: `a task type must not contain any of @ ! #, got '${value}'`,
      });
      assert.doesNotThrow(() => checkKey(value));
      assert.doesNotThrow(() => checkJobId(value));
    }
  });

  it('accepts as an id whatever a task type and a key can make', () => {
    const [taskType, key] = ['t'.repeat(200), 'k'.repeat(500)];
    checkTaskType(taskType);
    checkKey(key);
    assert.doesNotThrow(() => checkJobId(`${taskType}#${key}`));
    assert.throws(() => checkTaskType(`${taskType}t`), { message: /at most 200 characters, got 201/ });
    assert.throws(() => checkKey(`${key}k`), { message: /at most 500 characters, got 501/ });
  });
});
