import assert from 'node:assert/strict';
import { parseTraceparent, toTraceparent, traceFields } from '../../../src/runtime/tracing.js';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';
const trace = `00-${traceId}-${spanId}-01`;

describe('the trace context of a job', () => {
  it('is the span that dispatched it and can be restored', () => {
    const span = { traceId, spanId, traceFlags: 1 };
    assert.equal(toTraceparent(span), trace);
    assert.deepEqual(parseTraceparent({ trace }), { ...span, isRemote: true });
    assert.deepEqual(traceFields({ trace }), { traceId });
    assert.equal(toTraceparent({ ...span, traceFlags: 0 }), `00-${traceId}-${spanId}-00`);
  });

  it('is empty for a span that is not recorded', () => {
    assert.equal(
      toTraceparent({ traceId: '0'.repeat(32), spanId: '0'.repeat(16), traceFlags: 0 }),
      undefined,
    );
  });

  it('is empty when nothing, or no valid traceparent, is stored', () => {
    assert.equal(parseTraceparent({}), undefined);
    assert.deepEqual(traceFields({}), {});
    const invalid = [
      '',
      'x',
      `01-${traceId}-${spanId}-01`,
      trace.toUpperCase(),
      `${trace}-more`,
      `${trace}\n`,
    ];
    for (const text of [...invalid, `00-${'0'.repeat(32)}-${spanId}-01`])
      assert.equal(parseTraceparent({ trace: text }), undefined, text);
  });
});
