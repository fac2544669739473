import assert from 'node:assert/strict';
import { parentOf, traceFields, traceparent } from '../../../src/runtime/traceparent.js';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';
const trace = `00-${traceId}-${spanId}-01`;

describe('the trace a job carries', () => {
  it('is the span that dispatched it, and comes back as that', () => {
    const span = { traceId, spanId, traceFlags: 1 };
    assert.equal(traceparent(span), trace);
    assert.deepEqual(parentOf({ trace }), { ...span, isRemote: true });
    assert.deepEqual(traceFields({ trace }), { traceId });
    assert.equal(traceparent({ ...span, traceFlags: 0 }), `00-${traceId}-${spanId}-00`);
  });

  it('is none for a span that nobody records', () => {
    assert.equal(traceparent({ traceId: '0'.repeat(32), spanId: '0'.repeat(16), traceFlags: 0 }), undefined);
  });

  it('is none when there is nothing stored, or something else', () => {
    assert.equal(parentOf({}), undefined);
    assert.deepEqual(traceFields({}), {});
    const wrong = ['', 'x', `01-${traceId}-${spanId}-01`, trace.toUpperCase(), `${trace}-more`, `${trace}\n`];
    for (const one of [...wrong, `00-${'0'.repeat(32)}-${spanId}-01`])
      assert.equal(parentOf({ trace: one }), undefined, one);
  });
});
