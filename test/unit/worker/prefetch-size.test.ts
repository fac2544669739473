import assert from 'node:assert/strict';
import { PrefetchSize } from '../../../src/worker/prefetch-size.js';

/** After many short handlers, and claims of which each came back to a buffer that had run dry. */
function starved({ handler, perSecond }: { handler: number; perSecond: number }): PrefetchSize {
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
    assert.equal(starved({ handler: 21, perSecond: 1000 }).target(0), 0);
    assert.equal(starved({ handler: 60_000, perSecond: 1000 }).target(0), 0);
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

  it('is limited to what starts in a fifth of a second, and to a thousand', () => {
    assert.equal(starved({ handler: 1, perSecond: 500 }).target(0), 100);
    assert.equal(starved({ handler: 1, perSecond: 100_000 }).target(0), 1000);
  });

  it('shrinks when fewer jobs are started', () => {
    const size = starved({ handler: 1, perSecond: 5000 });
    assert.equal(size.target(0), 1000);
    for (let i = 0; i < 20; i++) size.observeClaim(1, 10, false);
    assert.ok(size.target(0) <= 21, `still ${size.target(0)}`);
  });

  it('adapts when handlers become slow', () => {
    const size = starved({ handler: 1, perSecond: 1000 });
    assert.ok(size.target(0) > 0);
    for (let i = 0; i < 10; i++) size.observeHandler(1000);
    assert.equal(size.target(0), 0);
  });

  it('prefetches nothing while no handler starts, before any has ended', () => {
    const size = starved({ handler: 1, perSecond: 1000 });
    assert.ok(size.target(20) > 0);
    assert.equal(size.target(21), 0);
  });

  it('does not prefetch again at once after prefetched jobs had to be released', () => {
    const size = starved({ handler: 1, perSecond: 1000 });
    size.observeStall();
    assert.equal(size.target(0), 0);
    for (let i = 0; i < 50; i++) size.observeHandler(1);
    assert.ok(size.target(0) > 0);
  });
});
