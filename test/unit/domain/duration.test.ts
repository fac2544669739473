import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { parseDuration, readDuration } from '../../../src/domain/duration.js';

const DAY = 86_400_000;

describe('duration', () => {
  it('accepts a number of milliseconds', () => {
    for (const ms of [0, 1, 0.5, 3000, 5 * 366 * DAY]) assert.equal(parseDuration(ms, 'timeout'), ms);
  });

  for (const [text, ms] of [
    ['250ms', 250],
    ['10s', 10_000],
    ['5m', 300_000],
    ['1h', 3_600_000],
    ['3d', 3 * DAY],
    ['2w', 14 * DAY],
    ['1.5h', 5_400_000],
    ['0s', 0],
    [' 10 m ', 600_000],
    ['3650d', 3650 * DAY],
  ] as const) {
    it(`reads '${text}' as ${ms} ms`, () => assert.equal(parseDuration(text, 'timeout'), ms));
  }

  const wrong: unknown[] = ['', '10', '10 minutes', '5M', '-1s', '1e3s', '.5s', 's', '1h30m', NaN];
  for (const value of [...wrong, null, undefined, true, {}, [], ['1s'], () => 1, Symbol('s'), 10n]) {
    it(`rejects ${inspect(value)}`, () => {
      assert.throws(() => parseDuration(value, 'the delay'), {
        name: 'ChronosError',
        code: 'INVALID_ARGUMENT',
        message: /^the delay must be milliseconds or a text like '250ms', '10s', '5m', '1h', '3d', got /,
      });
    });
  }

  it('rejects values that cannot be printed', () => {
    const withoutToString = Object.create(null) as object;
    const throwing = {
      toString() {
        throw new Error('no');
      },
    };
    for (const value of [withoutToString, throwing, [withoutToString]])
      assert.ok('error' in readDuration(value));
  });

  it('accepts at most a hundred years', () => {
    assert.deepEqual(readDuration('36600d'), { ms: 36_600 * DAY });
    for (const value of ['36601d', -1, Infinity, -Infinity]) {
      assert.match((readDuration(value) as { error: string }).error, /between 0 and a hundred years/);
    }
  });

  it('shows the value in the error', () => {
    assert.match((readDuration('10 parsecs') as { error: string }).error, /got '10 parsecs'$/);
    assert.match((readDuration(-5) as { error: string }).error, /got -5$/);
  });
});
