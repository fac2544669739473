import type { AuditDetails } from '../operations/audited.js';
import type { Scheduler } from '../scheduler.js';
import type { Schema, SchemaOf } from './schemas/schema.js';
import type { Role } from './tokens.js';

/** What came with a request, as its schemas say. */
export interface Asked<P, Q, B> {
  params: P;
  query: Q;
  body: B;
}

export interface CallContext {
  /** Does what takes long with a signal that is aborted when whoever asked is gone, or after `longest` milliseconds. */
  whileWanted: <T>(longest: number, work: (signal: AbortSignal) => Promise<T>) => Promise<T>;
  /** Who asks, for what is kept with a schedule. */
  who: string;
}

export interface Audit<P, Q, B, A> {
  /** Known before: which it is about. Undefined: this request changes nothing. */
  before(asked: Asked<P, Q, B>): AuditDetails | undefined;
  /** Known afterwards. */
  after?(answer: A): AuditDetails;
}

interface RouteBase {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** As in OpenAPI: `/jobs/{id}`. */
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly status?: 200 | 201;
  /** Statuses of problems that are special to it. */
  readonly problems?: readonly number[];
}

interface TypedRoute<P, Q, B, A> extends RouteBase {
  readonly params?: SchemaOf<P>;
  readonly query?: SchemaOf<Q>;
  readonly body?: SchemaOf<B>;
  readonly answer: SchemaOf<A>;
  /** With it the route is a change: it needs the role that may, and is written down. */
  readonly audit?: Audit<NoInfer<P>, NoInfer<Q>, NoInfer<B>, NoInfer<A>>;
  handle(scheduler: Scheduler, asked: Asked<P, Q, B>, context: CallContext): Promise<A>;
}

/** A route of the JSON API: its place in the document, its schemas, and what it does. */
export interface Route extends RouteBase {
  readonly role: Role;
  readonly params: Schema | undefined;
  readonly query: Schema | undefined;
  readonly body: Schema | undefined;
  readonly answer: Schema;
  readonly audit: Audit<unknown, unknown, unknown, unknown> | undefined;
  handle(
    scheduler: Scheduler,
    asked: Asked<unknown, unknown, unknown>,
    context: CallContext,
  ): Promise<unknown>;
}

/** Ties the types of a route to its schemas: the validator makes sure that they hold when it is called. */
export function route<P, Q, B, A>(typed: TypedRoute<P, Q, B, A>): Route {
  const { params, query, body, answer, audit, ...rest } = typed;
  return {
    ...rest,
    params,
    query,
    body,
    answer,
    audit: audit,
    role: audit === undefined ? 'read' : 'operate',
    handle: (scheduler, asked, context) => typed.handle(scheduler, asked as Asked<P, Q, B>, context),
  };
}
