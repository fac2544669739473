import {
  context,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
  type Span,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api';
import { toError } from '../domain/errors.js';
import type { JobDocument } from '../domain/job.js';
import type { Outcome } from '../domain/outcome.js';
import { parentOf, traceparent } from './traceparent.js';

/*
 * Traces through the OpenTelemetry API alone: the application brings an SDK, or there are none. Storing a job is a
 * producer span whose context is kept with the job; each attempt is a consumer span, whose parent that context is. The
 * conventions for messaging ask for a link at least, and allow the parent where one message is processed at a time, as
 * here: with both, one trace shows a job from dispatch to its last attempt, and tools that follow links work as well.
 */

const NAME = 'chronos-worker';

/** What the API registers in front of the provider of an SDK that is to come. */
interface Waiting {
  getDelegateTracer?: (name: string) => Tracer | undefined;
}

/** Undefined as long as nobody registered an SDK: nothing at all is made for a trace then. */
function activeTracer(): Tracer | undefined {
  const provider: TracerProvider & Waiting = trace.getTracerProvider();
  return provider.getDelegateTracer === undefined
    ? provider.getTracer(NAME)
    : provider.getDelegateTracer(NAME);
}

/** True when somebody registered an SDK. */
export function isTracing(): boolean {
  return activeTracer() !== undefined;
}

/** Stores jobs within a producer span, and gives them its context to carry. */
export async function traceSend<T>(jobs: readonly JobDocument[], store: () => Promise<T>): Promise<T> {
  const [first] = jobs;
  const span = first === undefined ? undefined : quietly(() => beginSend(first, jobs));
  if (span === undefined) return store();
  try {
    return await context.with(trace.setSpan(context.active(), span), store);
  } catch (thrown) {
    quietly(() => {
      fail(span, toError(thrown));
    });
    throw thrown;
  } finally {
    quietly(() => {
      span.end();
    });
  }
}

function beginSend(first: JobDocument, jobs: readonly JobDocument[]): Span | undefined {
  const span = activeTracer()?.startSpan(...sendSpan(first, jobs));
  const parent = span === undefined ? undefined : traceparent(span.spanContext());
  if (parent !== undefined) for (const job of jobs) job.trace = parent;
  return span;
}

/** Samplers and processors are the application's: whatever they throw, jobs are stored and run. */
function quietly<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

function sendSpan(
  first: JobDocument,
  jobs: readonly JobDocument[],
): [string, { kind: SpanKind; attributes: Attributes }] {
  const queue = jobs.every((job) => job.queue === first.queue) ? first.queue : undefined;
  const attributes: Attributes = {
    ...operation('send'),
    ...(queue !== undefined && { 'messaging.destination.name': queue }),
    ...(jobs.length === 1
      ? { 'messaging.message.id': first._id, 'chronos.task_type': first.taskType }
      : { 'messaging.batch.message_count': jobs.length }),
  };
  return [queue === undefined ? 'send' : `send ${queue}`, { kind: SpanKind.PRODUCER, attributes }];
}

/** The consumer span of one attempt. */
export class AttemptSpan {
  readonly #span: Span;
  readonly #context: Context;

  private constructor(span: Span) {
    this.#span = span;
    // Of its own: whatever was active when the worker started has nothing to do with this job.
    this.#context = trace.setSpan(ROOT_CONTEXT, span);
  }

  /** A child of what the job carries, or else the first span of a new trace; undefined when nobody traces. */
  static begin(job: JobDocument): AttemptSpan | undefined {
    const tracer = activeTracer();
    return tracer === undefined ? undefined : quietly(() => AttemptSpan.#begin(job, tracer));
  }

  static #begin(job: JobDocument, tracer: Tracer): AttemptSpan {
    const parent = parentOf(job);
    const span = tracer.startSpan(
      `process ${job.queue}`,
      {
        kind: SpanKind.CONSUMER,
        attributes: processAttributes(job),
        ...(parent !== undefined && { links: [{ context: parent }] }),
      },
      parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent),
    );
    // Not stored: so that what is said about this attempt names the trace it is in.
    if (parent === undefined) {
      const own = traceparent(span.spanContext());
      if (own !== undefined) job.trace = own;
    }
    return new AttemptSpan(span);
  }

  /** What runs in here, and spans that it makes, are part of the attempt. */
  within<T>(work: () => T): T {
    return context.with(this.#context, work);
  }

  end(outcome: Outcome): void {
    quietly(() => {
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
