import { randomUUID } from 'node:crypto';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { isLoopback } from '../config/http-options.js';
import { withoutCredentials } from '../domain/errors.js';
import type { LogTarget } from '../runtime/logger.js';
import { addApi } from './api.js';
import type { AppParts } from './app-parts.js';
import { addSecurityHeaders, checkHost, checkTarget } from './gatekeeper.js';
import { addHealth } from './health-routes.js';
import { answerBrokenRequest, HttpProblem, problemOf, PROBLEM_TYPE } from './problem.js';
import { Tokens } from './tokens.js';

const BODY_LIMIT = 1024 * 1024;
/** Of an id in a path, percent-encoded: its own length is checked by its schema. */
const LONGEST_PARAMETER = 8000;
/** Milliseconds. A change of many jobs ends by itself before its time is up. */
const TIMES = {
  requestTimeout: 15_000,
  handlerTimeout: 45_000,
  connectionTimeout: 60_000,
  keepAliveTimeout: 5000,
} as const;
const MOST_CONNECTIONS = 256;
const REQUEST_ID = /^[\w.-]{1,64}$/;

/** Everything that is answered, before anything listens. */
export function createApp(parts: AppParts): FastifyInstance {
  const { options, log } = parts;
  const app = fastify({
    ...TIMES,
    bodyLimit: BODY_LIMIT,
    maxRequestsPerSocket: 1000,
    forceCloseConnections: 'idle',
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: LONGEST_PARAMETER },
    genReqId: ({ headers: { 'x-request-id': given } }) =>
      typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID(),
    frameworkErrors: (error, request, reply) => {
      fail(error, request, reply, log);
    },
    clientErrorHandler: answerBrokenRequest,
  });
  app.server.maxConnections = MOST_CONNECTIONS;
  readJsonOnly(app);
  validateStrictly(app);
  const isPrivate = isLoopback(options.host);
  app.addHook('onRequest', (request, reply, done) => {
    addSecurityHeaders(reply);
    reply.header('x-request-id', request.id);
    checkTarget(request.raw.url);
    if (isPrivate) checkHost(request.headers.host);
    done();
  });
  app.setErrorHandler((error: Error, request, reply) => {
    fail(error, request, reply, log);
  });
  app.setNotFoundHandler(({ method, url }) => {
    const path = url.split('?')[0] ?? '';
    throw new HttpProblem(
      404,
      'NO_SUCH_ROUTE',
      `there is nothing at ${method} ${path}: see /api/v1/openapi.json`,
    );
  });
  const tokens = new Tokens(options.token, options.readToken);
  addHealth(app, parts, tokens);
  addApi(app, parts, tokens);
  return app;
}

/** A body is JSON or nothing, and nothing is an empty object. */
function readJsonOnly(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null, {});
    else void parse(request, body as string, done);
  });
}

/** Numbers in a path or a query come as text; in a body they are numbers, or wrong. Nothing is removed or filled in. */
function validateStrictly(app: FastifyInstance): void {
  const common = {
    strict: true,
    allowUnionTypes: true,
    removeAdditional: false,
    useDefaults: false,
  } as const;
  const body = new Ajv2020({ ...common, coerceTypes: false });
  const text = new Ajv2020({ ...common, coerceTypes: true });
  app.setValidatorCompiler<object>(({ schema, httpPart }) =>
    (httpPart === 'body' ? body : text).compile(schema),
  );
}

function fail(error: Error, request: FastifyRequest, reply: FastifyReply, log: LogTarget | undefined): void {
  const { problem, isUnexpected } = problemOf(error, request.id);
  if (isUnexpected) {
    const { method, routeOptions } = request;
    log?.error(
      { err: withoutCredentials(error), requestId: request.id },
      `${method} ${routeOptions.url ?? ''} failed`,
    );
  }
  addSecurityHeaders(reply);
  reply.header('x-request-id', request.id);
  if (problem.status === 401) reply.header('www-authenticate', 'Bearer');
  if (problem.status === 503) reply.header('retry-after', '5');
  void reply.code(problem.status).type(PROBLEM_TYPE).send(JSON.stringify(problem));
}
