import assert from 'node:assert/strict';
import { trace, type Span, type Tracer, type TracerProvider } from '@opentelemetry/api';
import { AttemptSpan, traceSend } from '../../../src/runtime/tracing.js';
import { aJob } from '../../support/factories/job.js';

/** A tracer of an application with a fault: it throws at one of its calls. */
function faulty(fault: 'startSpan' | 'end'): TracerProvider {
  const broken = (): never => {
    throw new Error('a span processor with a fault');
  };
  const span = { ...trace.wrapSpanContext({ traceId: '', spanId: '', traceFlags: 0 }) };
  const methods = {
    spanContext: () => ({ traceId: '0'.repeat(32), spanId: '0'.repeat(16), traceFlags: 0 }),
    setAttribute: () => methods,
    end: broken,
  };
  const tracer = {
    startSpan: fault === 'startSpan' ? broken : () => Object.assign(span, methods) as unknown as Span,
  } as unknown as Tracer;
  return { getTracer: () => tracer };
}

describe('tracing with an SDK that throws', () => {
  afterEach(() => {
    trace.disable();
  });

  for (const fault of ['startSpan', 'end'] as const) {
    it(`still stores and runs jobs: ${fault} [B13]`, async () => {
      trace.setGlobalTracerProvider(faulty(fault));
      assert.equal(await traceSend([aJob()], async () => 'stored'), 'stored');
      await assert.rejects(
        traceSend([aJob()], () => Promise.reject(new Error('no answer'))),
        /no answer/,
      );
      AttemptSpan.start(aJob({ status: 'RUNNING' }))?.end({ kind: 'completed', result: null });
    });
  }
});
