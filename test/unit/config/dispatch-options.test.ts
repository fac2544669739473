import assert from 'node:assert/strict';
import { resolveDispatchOptions } from '../../../src/config/dispatch-options.js';

const resolve = (options: unknown): unknown => resolveDispatchOptions(options, 'Europe/Berlin');

describe('resolveDispatchOptions', () => {
  it('fills in the defaults', () => {
    assert.deepEqual(resolve({}), { priority: 100, queue: 'default', hold: false });
  });

  it('reads all options', () => {
    const options = {
      delay: '10m',
      priority: 0,
      queue: 'mails',
      key: 'welcome:42',
      retries: { max: 1 },
      timeout: '1s',
      maxRunningTime: '1h',
      hold: true,
    };
    assert.deepEqual(resolve(options), {
      ...options,
      delay: 600_000,
      timeout: 1000,
      maxRunningTime: 3_600_000,
    });
  });

  it('rejects functions in retries, and says where they belong [B25]', () => {
    for (const name of ['delay', 'if']) {
      assert.throws(() => resolve({ retries: { [name]: () => 1 } }), {
        code: 'INVALID_ARGUMENT',
        message:
          `dispatch options.retries.${name} is a function and cannot be stored with a job or a schedule: set it in the ` +
          `options of the handler, registerHandler(taskType, handler, { retries: { ${name}: … } })`,
      });
    }
  });

  it('reads dates without a zone in the time zone of the application', () => {
    const expected = { at: new Date('2026-11-01T02:15:00Z'), priority: 100, queue: 'default', hold: false };
    assert.deepEqual(resolve({ at: '2026-11-01 03:15' }), expected);
    assert.deepEqual(resolve({ at: new Date('2026-11-01T02:15:00Z') }), expected);
  });

  it('rejects `at` together with `delay`', () => {
    assert.throws(() => resolve({ at: '2026-11-01', delay: 1 }), {
      message: /\.at and .*\.delay exclude each other/,
    });
  });

  it('reports all problems in one error', () => {
    const wrong = {
      prio: 1,
      priority: 1001,
      key: { $ne: 1 },
      queue: ['a'],
      at: 'soon',
      hold: 'yes',
      timeout: 0,
    };
    assert.throws(() => resolve(wrong), {
      code: 'INVALID_ARGUMENT',
      message: [
        '7 problems:',
        "  - dispatch options.prio is not an option (did you mean 'priority'?)",
        '  - dispatch options.priority must be a whole number from 0 to 1000, got 1001',
        '  - dispatch options.key must be a string, got object',
        '  - dispatch options.queue must be a string, got an array',
        "  - dispatch options.at must be a Date or a text like '2026-11-01 03:15' or '2026-11-01T03:15:00Z', got 'soon'",
        "  - dispatch options.hold must be true or false, got 'yes'",
        '  - dispatch options.timeout must be at least 1 ms, got 0',
      ].join('\n'),
    });
  });

  it('accepts delays of years', () => {
    assert.equal((resolve({ delay: '3650d' }) as { delay: number }).delay, 3650 * 86_400_000);
  });
});
