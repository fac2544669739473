import type { ResolvedHttpOptions } from '../config/http-options.js';
import type { Metrics } from '../metrics/attach.js';
import type { AuditDetails } from '../operations/audit.js';
import type { Logger } from '../domain/logger.js';
import type { Scheduler } from '../scheduler.js';
import type { Role } from './request-guards.js';
import type { SchemaOf } from './schemas/schema.js';

/** Shared by all routes. */
export interface AppContext {
  scheduler: Scheduler;
  options: ResolvedHttpOptions;
  metrics: Metrics;
  logger: Logger | undefined;
  /** Returns a signal that is aborted from the moment the scheduler stops until it starts again. */
  stopping: () => AbortSignal;
}

/** A request that matches the schemas of its route. */
export interface RouteInput<P, Q, B> {
  params: P;
  query: Q;
  body: B;
}

export interface CallContext {
  /** The sender of the request, for the audit entry. */
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

interface RouteDefinition<P, Q, B, R> {
  readonly operationId: string;
  readonly summary: string;
  readonly params?: SchemaOf<P>;
  readonly query?: SchemaOf<Q>;
  readonly body?: SchemaOf<B>;
  readonly response: SchemaOf<R>;
  /** Default 200. */
  readonly status?: 200 | 201;
  /** HTTP statuses of errors that are specific to this route. */
  readonly problems?: readonly number[];
  /** Marks a route that makes changes: it needs the role `operate` and is recorded. */
  readonly audit?: Audit<NoInfer<P>, NoInfer<Q>, NoInfer<B>, NoInfer<R>>;
  handle(scheduler: Scheduler, input: RouteInput<P, Q, B>, context: CallContext): Promise<R>;
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** A route of the JSON API: how it is documented, its schemas, and what it does. */
export interface Route extends RouteDefinition<unknown, unknown, unknown, unknown> {
  readonly method: Method;
  /** As in OpenAPI: `/jobs/{id}`. */
  readonly path: string;
  readonly role: Role;
}

/** The schemas determine the types of `handle`, which is called only with requests that match them. */
export function route<P, Q, B, R>(
  endpoint: `${Method} /${string}`,
  definition: RouteDefinition<P, Q, B, R>,
): Route {
  const [method, path] = endpoint.split(' ') as [Method, string];
  return { ...definition, method, path, role: definition.audit === undefined ? 'read' : 'operate' };
}
