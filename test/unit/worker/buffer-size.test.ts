import assert from 'node:assert/strict';
import { BufferSize } from '../../../src/worker/buffer-size.js';

function sized({ handler, claim }: { handler: number; claim: number }): BufferSize {
  const size = new BufferSize();
  for (let i = 0; i < 200; i++) {
    size.observeHandler(handler);
    size.observeClaim(claim);
  }
  return size;
}

describe('BufferSize', () => {
  it('locks nothing ahead before it has seen a handler', () => {
    assert.equal(new BufferSize().target(100, 0), 0);
  });

  it('locks nothing ahead for handlers that take their time', () => {
    assert.equal(sized({ handler: 21, claim: 100 }).target(100, 0), 0);
    assert.equal(sized({ handler: 60_000, claim: 5 }).target(5, 0), 0);
  });

  it('locks as many as are used up during one claim', () => {
    assert.equal(sized({ handler: 10, claim: 5 }).target(100, 0), 50);
    assert.equal(sized({ handler: 5, claim: 10 }).target(4, 0), 8);
  });

  it('has its limits: ten times the concurrency, a thousand in all', () => {
    assert.equal(sized({ handler: 0, claim: 50 }).target(5, 0), 50);
    assert.equal(sized({ handler: 0, claim: 50 }).target(500, 0), 1000);
  });

  it('changes its mind when handlers slow down', () => {
    const size = sized({ handler: 1, claim: 5 });
    assert.ok(size.target(10, 0) > 0);
    for (let i = 0; i < 10; i++) size.observeHandler(1000);
    assert.equal(size.target(10, 0), 0);
  });

  it('locks nothing ahead while no handler starts, before any of them ended', () => {
    const size = sized({ handler: 1, claim: 5 });
    assert.ok(size.target(10, 20) > 0);
    assert.equal(size.target(10, 21), 0);
  });

  it('does not fill a buffer again at once that had to be given back', () => {
    const size = sized({ handler: 1, claim: 5 });
    size.observeStall();
    assert.equal(size.target(10, 0), 0);
    for (let i = 0; i < 50; i++) size.observeHandler(1);
    assert.ok(size.target(10, 0) > 0);
  });
});
