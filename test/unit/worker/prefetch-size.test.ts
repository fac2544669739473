import assert from 'node:assert/strict';
import { PrefetchSize } from '../../../src/worker/prefetch-size.js';

/** Has seen many handlers of this duration, and every claim found no prefetched job left. */
function afterEmptyPrefetch({ handler, perSecond }: { handler: number; perSecond: number }): PrefetchSize {
  const size = new PrefetchSize();
  for (let i = 0; i < 200; i++) {
    size.observeHandler(handler);
    size.observeClaim(perSecond / 100, 10, true);
  }
  return size;
}

describe('PrefetchSize', () => {
  it('prefetches nothing before a handler has run', () => {
    const size = new PrefetchSize();
    assert.equal(size.target(0), 0);
    size.observeClaim(100, 10, true);
    assert.equal(size.target(0), 0);
  });

  it('prefetches nothing for slow handlers', () => {
    assert.equal(afterEmptyPrefetch({ handler: 21, perSecond: 1000 }).target(0), 0);
    assert.equal(afterEmptyPrefetch({ handler: 60_000, perSecond: 1000 }).target(0), 0);
  });

  it('doubles while prefetched jobs run out between claims, and otherwise stays', () => {
    const size = new PrefetchSize();
    size.observeHandler(1);
    size.observeClaim(10, 1, true);
    const first = size.target(0);
    assert.equal(first, 10);
    size.observeClaim(10, 1, true);
    assert.equal(size.target(0), 2 * first);
    size.observeClaim(10, 1, false);
    assert.equal(size.target(0), 2 * first);
  });

  it('is limited to the jobs that start in a fifth of a second, and to a thousand', () => {
    assert.equal(afterEmptyPrefetch({ handler: 1, perSecond: 500 }).target(0), 100);
    assert.equal(afterEmptyPrefetch({ handler: 1, perSecond: 100_000 }).target(0), 1000);
  });

  it('shrinks when fewer jobs are started', () => {
    const size = afterEmptyPrefetch({ handler: 1, perSecond: 5000 });
    assert.equal(size.target(0), 1000);
    for (let i = 0; i < 20; i++) size.observeClaim(1, 10, false);
    assert.ok(size.target(0) <= 21, `still ${size.target(0)}`);
  });

  it('adapts when handlers become slow', () => {
    const size = afterEmptyPrefetch({ handler: 1, perSecond: 1000 });
    assert.ok(size.target(0) > 0);
    for (let i = 0; i < 10; i++) size.observeHandler(1000);
    assert.equal(size.target(0), 0);
  });

  it('prefetches nothing when no handler has started for a while', () => {
    const size = afterEmptyPrefetch({ handler: 1, perSecond: 1000 });
    assert.ok(size.target(20) > 0);
    assert.equal(size.target(21), 0);
  });

  it('does not prefetch again at once after prefetched jobs had to be released', () => {
    const size = afterEmptyPrefetch({ handler: 1, perSecond: 1000 });
    size.observeStall();
    assert.equal(size.target(0), 0);
    for (let i = 0; i < 50; i++) size.observeHandler(1);
    assert.ok(size.target(0) > 0);
  });
});
