import { VERSION } from '../config/version.js';
import { alive, readiness } from './health.js';
import type { ProblemDocument } from './problem.js';
import type { Route } from './route.js';
import type { JsonSchema } from '../domain/validation.js';
import { number, response, string } from './schemas/schema.js';

export const API = '/api/v1';

export const problem = response<ProblemDocument>({
  type: string(),
  title: string(),
  status: number(),
  detail: string('what was expected, what was received, and what to do'),
  code: string('stable, for programs'),
  requestId: string(),
});

/** Error statuses of every route: invalid request, no token, wrong host, internal error, no database. */
const COMMON_PROBLEMS = [400, 401, 421, 500, 503];
/** Further error statuses of routes that make changes: not allowed, too large, not JSON. */
const CHANGE_PROBLEMS = [403, 413, 415];

/** The OpenAPI 3.1 document, built from the schemas that validate requests and serialize responses. */
export function createDocument(routes: readonly Route[]): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = (paths[`${API}${route.path}`] ??= {});
    path[route.method.toLowerCase()] = operation(route);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Chronos',
      version: VERSION,
      description:
        'Inspect and control a running Chronos system. Every change is recorded in the audit collection.',
    },
    security: [{ token: [] }],
    paths: { ...paths, ...otherPaths() },
    components: {
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'HTTP_TOKEN, or HTTP_READ_TOKEN for routes that only read',
        },
      },
      schemas: { Problem: problem },
    },
  };
}

function operation(route: Route): Record<string, unknown> {
  const { operationId, summary, role, status = 200, problems = [], params, query, body } = route;
  const parameters = [...parametersIn('path', params), ...parametersIn('query', query)];
  const statuses = [
    ...COMMON_PROBLEMS,
    ...((params ?? query ?? body) ? [422] : []),
    ...(role === 'operate' ? CHANGE_PROBLEMS : []),
    ...problems,
  ].sort((a, b) => a - b);
  return {
    operationId,
    summary,
    'x-role': role,
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
    responses: {
      [status]: json('success', route.response),
      ...Object.fromEntries(statuses.map((one) => [one, problemResponse])),
    },
  };
}

const problemResponse = {
  description: 'a problem document (RFC 9457)',
  content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
};

function parametersIn(place: 'path' | 'query', schema: JsonSchema | undefined): Record<string, unknown>[] {
  return Object.entries(schema?.properties ?? {}).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: schema?.required?.includes(name) ?? false,
    ...(description !== undefined && { description }),
    schema: rest,
  }));
}

/** Routes outside the JSON API. */
function otherPaths(): Record<string, unknown> {
  const get = (operationId: string, summary: string, responses: object, more: object = {}): object => ({
    get: { operationId, summary, responses, ...more },
  });
  const open = { security: [] };
  const guarded = { 'x-role': 'read' };
  return {
    '/healthz': get(
      'isAlive',
      'Whether the process is alive: its event loop responds',
      { 200: json('alive', alive) },
      open,
    ),
    '/readyz': get(
      'isReady',
      'Whether the worker is ready: running, connected and not blocked',
      { 200: json('ready', readiness), 503: json('not ready, and why', readiness) },
      open,
    ),
    '/metrics': get(
      'readMetrics',
      'All metrics in the Prometheus text format',
      {
        200: { description: 'metrics', content: { 'text/plain': { schema: string() } } },
        401: problemResponse,
      },
      guarded,
    ),
    [`${API}/openapi.json`]: get(
      'readDocument',
      'This document',
      { 200: json('OpenAPI 3.1', { type: 'object' }), 401: problemResponse },
      guarded,
    ),
  };
}

function json(description: string, schema: JsonSchema): Record<string, unknown> {
  return { description, content: { 'application/json': { schema } } };
}
