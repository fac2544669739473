import { isSpanContextValid, type SpanContext } from '@opentelemetry/api';
import type { JobDocument } from '../domain/job.js';

type Traced = Pick<JobDocument, 'trace'>;

/** Version 00 of the W3C's trace context: the trace, the span, and whether it is sampled. */
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** A span as a job carries it; undefined for one that nobody records. */
export function traceparent(span: SpanContext): string | undefined {
  if (!isSpanContextValid(span)) return undefined;
  return `00-${span.traceId}-${span.spanId}-${(span.traceFlags & 0xff).toString(16).padStart(2, '0')}`;
}

/** The span that a job carries; undefined when there is none, or what is stored is none. */
export function parentOf({ trace }: Traced): SpanContext | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(trace ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  const found = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return isSpanContextValid(found) ? found : undefined;
}

/** The trace that a job belongs to, as a part of an event; nothing when it has none. */
export function traceFields({ trace }: Traced): { traceId?: string } {
  const traceId = trace === undefined ? undefined : TRACEPARENT.exec(trace)?.[1];
  return traceId === undefined ? NONE : { traceId };
}

/** Shared: it is asked for with every job. */
const NONE: { traceId?: string } = Object.freeze({});
