import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { isLoopback } from '../config/http-options.js';
import { redactError } from '../domain/errors.js';
import type { Logger } from '../domain/logger.js';
import { systemClock } from '../runtime/system-clock.js';
import { waitAtMost } from '../runtime/waiting.js';
import { addApi } from './api.js';
import { Connections } from './connections.js';
import { addHealth } from './health.js';
import { answerUnparsable, HttpProblem, PROBLEM_TYPE, toProblem } from './problem.js';
import {
  addSecurityHeaders,
  assertLoopbackHost,
  assertOneHost,
  assertPath,
  Tokens,
} from './request-guards.js';
import type { AppContext } from './route.js';

const BODY_LIMIT = 1024 * 1024;
/** Ids are percent-encoded here; the schema checks the length of the decoded id. */
const MAX_PARAMETER_LENGTH = 8000;
/** Bulk changes stop by themselves before `handlerTimeout`. */
const TIMEOUTS_MS = {
  requestTimeout: 10_000,
  handlerTimeout: 45_000,
  connectionTimeout: 60_000,
  keepAliveTimeout: 5000,
} as const;
/** Node checks the times of headers and requests every 30 seconds by default. */
const HEADERS_TIMEOUTS_MS = { headersTimeout: 5000, connectionsCheckingInterval: 1000 } as const;
/** How long the rest of a body is read before a request is rejected and its connection closed. */
const DISCARD_MS = 1000;
const REQUEST_ID = /^[\w.-]{1,64}$/;

/** Creates the server with all routes. The caller starts it with listen(). */
export function createApp(context: AppContext): FastifyInstance {
  const { options, logger } = context;
  const connections = new Connections();
  const onError = (error: Error, request: FastifyRequest, reply: FastifyReply): void =>
    void sendProblem(error, request, reply, { logger, connections });
  const app = fastify({
    ...TIMEOUTS_MS,
    http: HEADERS_TIMEOUTS_MS,
    bodyLimit: BODY_LIMIT,
    maxRequestsPerSocket: 1000,
    forceCloseConnections: 'idle',
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: MAX_PARAMETER_LENGTH },
    genReqId: ({ headers: { 'x-request-id': id } }) =>
      typeof id === 'string' && REQUEST_ID.test(id) ? id : randomUUID(),
    frameworkErrors: onError,
    clientErrorHandler: answerUnparsable,
  });
  connections.limit(app.server);
  readJsonOnly(app);
  validateStrictly(app);
  const isPrivate = isLoopback(options.host);
  app.addHook('onRequest', (request, reply, done) => {
    addSecurityHeaders(reply);
    reply.header('x-request-id', request.id);
    assertPath(request.raw.url);
    assertOneHost(request.raw.headersDistinct['host']);
    if (isPrivate) assertLoopbackHost(request.headers.host);
    done();
  });
  app.setErrorHandler(onError);
  app.setNotFoundHandler(({ method, url }) => {
    const path = url.split('?')[0] ?? '';
    const detail = `there is no route ${method} ${path}: /api/v1/openapi.json lists all routes`;
    throw new HttpProblem(404, 'NO_SUCH_ROUTE', detail);
  });
  const access = { tokens: new Tokens(options.token, options.readToken), connections };
  addHealth(app, context, access);
  addApi(app, context, access);
  return app;
}

/** Accepts JSON only. An empty body is an empty object. */
function readJsonOnly(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null, {});
    else void parse(request, body as string, done);
  });
}

/** Numbers in a path or query arrive as text and are converted; in a body they must be numbers. */
function validateStrictly(app: FastifyInstance): void {
  const common = {
    strict: true,
    allowUnionTypes: true,
    removeAdditional: false,
    useDefaults: false,
  } as const;
  const strict = new Ajv2020({ ...common, coerceTypes: false });
  const coercing = new Ajv2020({ ...common, coerceTypes: true });
  app.setValidatorCompiler<object>(({ schema, httpPart }) =>
    (httpPart === 'body' ? strict : coercing).compile(schema),
  );
}

async function sendProblem(
  error: Error,
  request: FastifyRequest,
  reply: FastifyReply,
  { logger, connections }: { logger: Logger | undefined; connections: Connections },
): Promise<void> {
  const { problem, isUnexpected } = toProblem(error, request.id);
  if (isUnexpected) {
    const { method, routeOptions } = request;
    logger?.error(
      { err: redactError(error), requestId: request.id },
      `${method} ${routeOptions.url ?? ''} failed`,
    );
  }
  addSecurityHeaders(reply);
  reply.header('x-request-id', request.id);
  if (problem.status === 401) reply.header('www-authenticate', 'Bearer');
  if (problem.status === 503) reply.header('retry-after', '5');
  if (!connections.isAuthorized(reply)) {
    reply.header('connection', 'close');
    await discardBody(request.raw);
  }
  void reply.code(problem.status).type(PROBLEM_TYPE).send(JSON.stringify(problem));
}

/** Closing a connection with unread data resets it, and a client that is still sending would not see the response. */
async function discardBody(request: IncomingMessage): Promise<void> {
  if (request.complete || request.destroyed) return;
  const closed = new Promise((resolve) => request.once('close', resolve));
  request.resume();
  await waitAtMost(systemClock, DISCARD_MS, closed);
}
