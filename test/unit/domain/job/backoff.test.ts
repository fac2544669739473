import assert from 'node:assert/strict';
import { backoffDelay, type RetryPolicy } from '../../../../src/domain/job/backoff.js';

const policy: RetryPolicy = { max: 10, base: 1000, cap: 60_000, jitter: 'none' };
const delays = (changes: Partial<RetryPolicy>, random = 0.5, attempts = 8): number[] =>
  Array.from({ length: attempts }, (_, i) => backoffDelay({ ...policy, ...changes }, i + 1, () => random));

describe('backoff', () => {
  it('waits min(cap, base × 2^(attempt-1)) without jitter [J8]', () => {
    assert.deepEqual(delays({}), [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
    assert.deepEqual(delays({ base: 3, cap: 10 }, 0, 4), [3, 6, 10, 10]);
  });

  it('waits a random part of that with full jitter [J8]', () => {
    assert.deepEqual(delays({ jitter: 'full' }, 0, 3), [0, 0, 0]);
    assert.deepEqual(delays({ jitter: 'full' }, 0.25, 3), [250, 500, 1000]);
    assert.deepEqual(delays({ jitter: 'full' }, 0.999, 8).at(-1), 59_940);
  });

  it('uses randomness only with jitter', () => {
    const never = (): number => assert.fail('random() was called');
    assert.equal(backoffDelay(policy, 1, never), 1000);
  });

  it('stays at the cap however many attempts there were', () => {
    assert.equal(
      backoffDelay(policy, 1000, () => 0),
      60_000,
    );
    assert.equal(
      backoffDelay(policy, 5000, () => 0),
      60_000,
    );
  });

  it('can be zero', () => {
    assert.deepEqual(delays({ base: 0 }, 0.5, 3), [0, 0, 0]);
    assert.equal(
      backoffDelay({ ...policy, base: 0 }, 1000, () => 0),
      0,
    );
  });
});
