import assert from 'node:assert/strict';
import { trace, type Span, type Tracer, type TracerProvider } from '@opentelemetry/api';
import { AttemptSpan, traceSend } from '../../../src/runtime/tracing.js';
import { aJob } from '../../support/factories/job.js';
import { throwing } from '../../support/handlers/recording-definition.js';

/** A tracer whose `startSpan` throws, or whose spans throw at their `end`. */
function brokenTracer(method: 'startSpan' | 'end'): TracerProvider {
  const fail = throwing(new Error('broken span processor'));
  const span = { ...trace.wrapSpanContext({ traceId: '', spanId: '', traceFlags: 0 }) };
  const methods = {
    spanContext: () => ({ traceId: '0'.repeat(32), spanId: '0'.repeat(16), traceFlags: 0 }),
    setAttribute: () => methods,
    end: fail,
  };
  const tracer = {
    startSpan: method === 'startSpan' ? fail : () => Object.assign(span, methods) as unknown as Span,
  } as unknown as Tracer;
  return { getTracer: () => tracer };
}

describe('tracing with a broken SDK', () => {
  afterEach(() => {
    trace.disable();
  });

  for (const method of ['startSpan', 'end'] as const) {
    it(`stores and runs jobs when ${method} throws [B13]`, async () => {
      trace.setGlobalTracerProvider(brokenTracer(method));
      assert.equal(await traceSend([aJob()], async () => 'stored'), 'stored');
      await assert.rejects(
        traceSend([aJob()], () => Promise.reject(new Error('no answer'))),
        /no answer/,
      );
      AttemptSpan.start(aJob({ status: 'RUNNING' }))?.end({ kind: 'completed', result: null });
    });
  }
});
