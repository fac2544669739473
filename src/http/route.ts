import type { ResolvedHttpOptions } from '../config/http-options.js';
import type { JsonSchema } from '../domain/validation.js';
import type { Metrics } from '../metrics/attach.js';
import type { AuditDetails } from '../operations/audit.js';
import type { LogTarget } from '../runtime/logger.js';
import type { Scheduler } from '../scheduler.js';
import type { Role } from './request-guards.js';
import type { SchemaOf } from './schemas/schema.js';

/** What all routes share. */
export interface AppContext {
  scheduler: Scheduler;
  options: ResolvedHttpOptions;
  metrics: Metrics;
  log: LogTarget | undefined;
  /** Its signal is aborted while the scheduler stops and after, until it starts again. */
  stopping: () => AbortSignal;
}

/** A request, as its schemas describe it. */
export interface RouteInput<P, Q, B> {
  params: P;
  query: Q;
  body: B;
}

export interface CallContext {
  /** Who sent the request; stored with what it changes. */
  who: string;
  /** Runs `work` with a signal that is aborted when the client disconnects, the worker stops, or the time is up. */
  withSignal: <T>(timeoutMs: number, work: (signal: AbortSignal) => Promise<T>) => Promise<T>;
}

export interface Audit<P, Q, B, R> {
  /** Details that are known before the change. Undefined if this request changes nothing. */
  before(input: RouteInput<P, Q, B>): AuditDetails | undefined;
  /** Details that are known after the change. */
  after?(response: R): AuditDetails;
}

interface RouteBase {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** As in OpenAPI: `/jobs/{id}`. */
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly status?: 200 | 201;
  /** Statuses of problems that not every route has. */
  readonly problems?: readonly number[];
}

interface TypedRoute<P, Q, B, R> extends RouteBase {
  readonly params?: SchemaOf<P>;
  readonly query?: SchemaOf<Q>;
  readonly body?: SchemaOf<B>;
  readonly response: SchemaOf<R>;
  /** Marks a route that makes changes: it needs the role `operate` and is recorded. */
  readonly audit?: Audit<NoInfer<P>, NoInfer<Q>, NoInfer<B>, NoInfer<R>>;
  handle(scheduler: Scheduler, input: RouteInput<P, Q, B>, context: CallContext): Promise<R>;
}

/** A route of the JSON API: how it is documented, its schemas, and what it does. */
export interface Route extends RouteBase {
  readonly role: Role;
  readonly params: JsonSchema | undefined;
  readonly query: JsonSchema | undefined;
  readonly body: JsonSchema | undefined;
  readonly response: JsonSchema;
  readonly audit: Audit<unknown, unknown, unknown, unknown> | undefined;
  handle(
    scheduler: Scheduler,
    input: RouteInput<unknown, unknown, unknown>,
    context: CallContext,
  ): Promise<unknown>;
}

/** Derives the types of a route from its schemas. The cast is safe: requests are validated before `handle` is called. */
export function route<P, Q, B, R>(typed: TypedRoute<P, Q, B, R>): Route {
  const { params, query, body, response, audit, ...rest } = typed;
  return {
    ...rest,
    params,
    query,
    body,
    response,
    audit,
    role: audit === undefined ? 'read' : 'operate',
    handle: (scheduler, input, context) => typed.handle(scheduler, input as RouteInput<P, Q, B>, context),
  };
}
