import assert from 'node:assert/strict';
import { BufferSize } from '../../../src/worker/buffer-size.js';

/** After many short handlers, and claims of which each came back to a buffer that had run dry. */
function starved({ handler, perSecond }: { handler: number; perSecond: number }): BufferSize {
  const size = new BufferSize();
  for (let i = 0; i < 200; i++) {
    size.observeHandler(handler);
    size.observeClaim(perSecond / 100, 10, true);
  }
  return size;
}

describe('BufferSize', () => {
  it('locks nothing ahead before it has seen a handler', () => {
    const size = new BufferSize();
    assert.equal(size.target(0), 0);
    size.observeClaim(100, 10, true);
    assert.equal(size.target(0), 0);
  });

  it('locks nothing ahead for handlers that take their time', () => {
    assert.equal(starved({ handler: 21, perSecond: 1000 }).target(0), 0);
    assert.equal(starved({ handler: 60_000, perSecond: 1000 }).target(0), 0);
  });

  it('doubles while the buffer runs dry between claims, and stays when it does not', () => {
    const size = new BufferSize();
    size.observeHandler(1);
    size.observeClaim(10, 1, true);
    const first = size.target(0);
    assert.equal(first, 10);
    size.observeClaim(10, 1, true);
    assert.equal(size.target(0), 2 * first);
    size.observeClaim(10, 1, false);
    assert.equal(size.target(0), 2 * first);
  });

  it('has its limits: what starts in a fifth of a second, a thousand in all', () => {
    assert.equal(starved({ handler: 1, perSecond: 500 }).target(0), 100);
    assert.equal(starved({ handler: 1, perSecond: 100_000 }).target(0), 1000);
  });

  it('shrinks when less is started', () => {
    const size = starved({ handler: 1, perSecond: 5000 });
    assert.equal(size.target(0), 1000);
    for (let i = 0; i < 20; i++) size.observeClaim(1, 10, false);
    assert.ok(size.target(0) <= 21, `still ${size.target(0)}`);
  });

  it('changes its mind when handlers slow down', () => {
    const size = starved({ handler: 1, perSecond: 1000 });
    assert.ok(size.target(0) > 0);
    for (let i = 0; i < 10; i++) size.observeHandler(1000);
    assert.equal(size.target(0), 0);
  });

  it('locks nothing ahead while no handler starts, before any of them ended', () => {
    const size = starved({ handler: 1, perSecond: 1000 });
    assert.ok(size.target(20) > 0);
    assert.equal(size.target(21), 0);
  });

  it('does not fill a buffer again at once that had to be given back', () => {
    const size = starved({ handler: 1, perSecond: 1000 });
    size.observeStall();
    assert.equal(size.target(0), 0);
    for (let i = 0; i < 50; i++) size.observeHandler(1);
    assert.ok(size.target(0) > 0);
  });
});
