import {
  type Attributes,
  context,
  type Context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api';
import { toError } from '../domain/errors.js';
import type { JobDocument } from '../domain/job/job.js';
import type { Outcome } from '../domain/job/outcome.js';

/*
 * Uses only the OpenTelemetry API: without an SDK in the application there are no traces. Storing a job is a producer
 * span, and its context is stored with the job. Each attempt is a consumer span that has this context both as parent and
 * as link: one trace then shows a job from dispatch to its last attempt, and tools that follow links work, too. The
 * messaging conventions require the link, and allow the parent if messages are processed one at a time, as here.
 */

const NAME = 'chronos-worker';

/** Undefined as long as no SDK is registered: tracing then costs nothing. */
function activeTracer(): Tracer | undefined {
  // The API's own provider delegates to that of an SDK as soon as one is registered.
  const provider: TracerProvider & { getDelegateTracer?: TracerProvider['getTracer'] } =
    trace.getTracerProvider();
  return provider.getDelegateTracer === undefined
    ? provider.getTracer(NAME)
    : provider.getDelegateTracer(NAME);
}

/** Stores jobs within a producer span and adds its context to them. */
export async function traceSend<T>(jobs: readonly JobDocument[], store: () => Promise<T>): Promise<T> {
  const span = ignoreErrors(() => startSend(jobs));
  if (span === undefined) return store();
  try {
    return await context.with(trace.setSpan(context.active(), span), store);
  } catch (thrown) {
    ignoreErrors(() => fail(span, toError(thrown)));
    throw thrown;
  } finally {
    ignoreErrors(() => span.end());
  }
}

function startSend(jobs: readonly JobDocument[]): Span | undefined {
  const tracer = activeTracer();
  const [first] = jobs;
  if (tracer === undefined || first === undefined) return undefined;
  const queue = jobs.every((job) => job.queue === first.queue) ? first.queue : undefined;
  const attributes: Attributes = {
    ...operation('send'),
    ...(queue !== undefined && { 'messaging.destination.name': queue }),
    ...(jobs.length === 1
      ? { 'messaging.message.id': first._id, 'chronos.task_type': first.taskType }
      : { 'messaging.batch.message_count': jobs.length }),
  };
  const name = queue === undefined ? 'send' : `send ${queue}`;
  const span = tracer.startSpan(name, { kind: SpanKind.PRODUCER, attributes });
  const traceparent = toTraceparent(span.spanContext());
  if (traceparent !== undefined) for (const job of jobs) job.trace = traceparent;
  return span;
}

/** Samplers and processors belong to the application. If they throw, jobs are stored and run anyway. */
function ignoreErrors<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/** The consumer span of one attempt. */
export class AttemptSpan {
  readonly #span: Span;
  readonly #context: Context;

  private constructor(span: Span) {
    this.#span = span;
    // A new root: the context that was active when the worker started is unrelated to this job.
    this.#context = trace.setSpan(ROOT_CONTEXT, span);
  }

  /** A child of the span stored with the job, otherwise the first span of a new trace. Undefined if tracing is off. */
  static start(job: JobDocument): AttemptSpan | undefined {
    const tracer = activeTracer();
    return tracer === undefined ? undefined : ignoreErrors(() => AttemptSpan.#start(job, tracer));
  }

  static #start(job: JobDocument, tracer: Tracer): AttemptSpan {
    const parent = parseTraceparent(job);
    const span = tracer.startSpan(
      `process ${job.queue}`,
      {
        kind: SpanKind.CONSUMER,
        attributes: processAttributes(job),
        ...(parent !== undefined && { links: [{ context: parent }] }),
      },
      parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent),
    );
    // In memory only: the events of this attempt then contain its trace id.
    if (parent === undefined) {
      const own = toTraceparent(span.spanContext());
      if (own !== undefined) job.trace = own;
    }
    return new AttemptSpan(span);
  }

  /** Spans that `work` creates become children of the attempt. */
  within<T>(work: () => T): T {
    return context.with(this.#context, work);
  }

  end(outcome: Outcome): void {
    ignoreErrors(() => {
      this.#span.setAttribute('chronos.outcome', outcome.kind);
      if (outcome.kind === 'failed' || outcome.kind === 'retry') fail(this.#span, outcome.error);
      this.#span.end();
    });
  }
}

function processAttributes(job: JobDocument): Attributes {
  return {
    ...operation('process'),
    'messaging.destination.name': job.queue,
    'messaging.message.id': job._id,
    ...(job.lockedBy !== null && { 'messaging.client.id': job.lockedBy }),
    'chronos.task_type': job.taskType,
    'chronos.attempt': job.attempts + 1,
    'chronos.fence': job.fence,
    ...(job.schedule !== null && { 'chronos.schedule': job.schedule }),
  };
}

function operation(name: 'send' | 'process'): Attributes {
  return {
    'messaging.system': 'chronos',
    'messaging.operation.name': name,
    'messaging.operation.type': name,
  };
}

function fail(span: Span, error: Error): void {
  const { code } = error as { code?: unknown };
  span.recordException(error);
  span.setAttribute('error.type', typeof code === 'string' ? code : error.name);
  span.setStatus({ code: SpanStatusCode.ERROR, message: error.message });
}

type Traced = Pick<JobDocument, 'trace'>;

/** W3C trace context, version 00: trace id, span id, flags. */
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** The form that is stored with a job; undefined for a span that is not recorded. */
export function toTraceparent(span: SpanContext): string | undefined {
  if (!isSpanContextValid(span)) return undefined;
  return `00-${span.traceId}-${span.spanId}-${(span.traceFlags & 0xff).toString(16).padStart(2, '0')}`;
}

/** The span stored with a job; undefined if there is none or it is not valid. */
export function parseTraceparent({ trace }: Traced): SpanContext | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(trace ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  const found = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return isSpanContextValid(found) ? found : undefined;
}

/** The trace id of a job as fields of an event; empty if it has none. */
export function traceFields({ trace }: Traced): { traceId?: string } {
  const traceId = trace === undefined ? undefined : TRACEPARENT.exec(trace)?.[1];
  return traceId === undefined ? NONE : { traceId };
}

/** One shared object, because every untraced job needs it. */
const NONE: { traceId?: string } = Object.freeze({});
