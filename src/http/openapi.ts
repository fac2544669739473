import { VERSION } from '../config/version.js';
import type { ProblemDocument } from './problem.js';
import type { Readiness } from './readiness.js';
import type { Route } from './route.js';
import { amount, answer, flag, list, nullable, oneOf, shown, type Schema } from './schemas/schema.js';
import { state } from './schemas/system.js';

export const API = '/api/v1';

export const problem = answer<ProblemDocument>({
  type: shown(),
  title: shown(),
  status: amount(),
  detail: shown('what was expected, what came, and what to do'),
  code: shown('stable: for programs'),
  requestId: shown(),
});

export const readiness = answer<Readiness>({
  status: oneOf('ready', 'not ready'),
  reasons: list(shown()),
  state,
  uptime: amount('milliseconds'),
  isConnected: flag(),
  loopLag: amount('milliseconds'),
  sinceGoodCycle: nullable(amount('milliseconds')),
});

export const alive = answer<{ status: string }>({ status: shown() });

/** Problems that any route may answer with: a bad request, no token, a wrong name of the host, our fault, no database. */
const USUAL = [400, 401, 421, 500, 503];
/** Of a change besides: no right to, no JSON, too much of it, not possible. */
const OF_CHANGES = [403, 413, 415];

/** The OpenAPI 3.1 document of these routes, made from the schemas that their requests and answers are held to. */
export function describe(routes: readonly Route[]): Record<string, unknown> {
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
      description: 'What a person does with a running system: look, change, and see who changed what.',
    },
    security: [{ token: [] }],
    paths: { ...paths, ...others() },
    components: {
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'HTTP_TOKEN, or HTTP_READ_TOKEN for what only reads',
        },
      },
      schemas: { Problem: problem },
    },
  };
}

function operation(route: Route): Record<string, unknown> {
  const { operationId, summary, role, status = 200, problems = [], params, query, body } = route;
  const parameters = [...parametersIn('path', params), ...parametersIn('query', query)];
  const special = [
    ...((params ?? query ?? body) ? [422] : []),
    ...(role === 'operate' ? OF_CHANGES : []),
    ...problems,
  ];
  const statuses = [...USUAL, ...special].sort((a, b) => a - b);
  return {
    operationId,
    summary,
    'x-role': role,
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
    responses: {
      [status]: json('done', route.answer),
      ...Object.fromEntries(statuses.map((one) => [one, refersToProblem])),
    },
  };
}

const refersToProblem = {
  description: 'a problem document (RFC 9457)',
  content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
};

function parametersIn(place: 'path' | 'query', schema: Schema | undefined): Record<string, unknown>[] {
  return Object.entries(schema?.properties ?? {}).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: schema?.required?.includes(name) ?? false,
    ...(description !== undefined && { description }),
    schema: rest,
  }));
}

function others(): Record<string, unknown> {
  const get = (operationId: string, summary: string, responses: object, more: object = {}): object => ({
    get: { operationId, summary, responses, ...more },
  });
  const open = { security: [] };
  const guarded = { 'x-role': 'read' };
  return {
    '/healthz': get(
      'isAlive',
      'The process lives: its event loop answers',
      { 200: json('alive', alive) },
      open,
    ),
    '/readyz': get(
      'isReady',
      'Whether the worker works',
      { 200: json('ready', readiness), 503: json('not ready, and why', readiness) },
      open,
    ),
    '/metrics': get(
      'readMetrics',
      'Everything in the text format of Prometheus',
      {
        200: { description: 'metrics', content: { 'text/plain': { schema: shown() } } },
        401: refersToProblem,
      },
      guarded,
    ),
    [`${API}/openapi.json`]: get(
      'readDocument',
      'This document',
      { 200: json('OpenAPI 3.1', { type: 'object' }), 401: refersToProblem },
      guarded,
    ),
  };
}

function json(description: string, schema: Schema): Record<string, unknown> {
  return { description, content: { 'application/json': { schema } } };
}
