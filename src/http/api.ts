import type { ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../domain/clock.js';
import { withAudit } from '../operations/audit.js';
import { systemClock } from '../runtime/system-clock.js';
import { API, createDocument } from './openapi.js';
import { HttpProblem } from './problem.js';
import { type Access, assertContentType, authorize, requireRole } from './request-guards.js';
import type { AppContext, CallContext, Route } from './route.js';
import { bulkRoutes } from './routes/bulk.js';
import { executionRoutes, jobRoutes } from './routes/jobs.js';
import { scheduleRoutes } from './routes/schedules.js';
import { systemRoutes } from './routes/system.js';
import { emptyRequest } from './schemas/schema.js';

/** In the order of the OpenAPI document. */
export const ROUTES: readonly Route[] = [
  ...systemRoutes,
  ...jobRoutes,
  ...bulkRoutes,
  ...executionRoutes,
  ...scheduleRoutes,
];

/** Adds the JSON API and its OpenAPI document. */
export function addApi(app: FastifyInstance, context: AppContext, access: Access): void {
  for (const route of ROUTES) addRoute(app, context, access, route);
  const document = createDocument(ROUTES);
  app.get(`${API}/openapi.json`, requireRole(access, 'read'), () => document);
}

function addRoute(app: FastifyInstance, context: AppContext, access: Access, route: Route): void {
  const { method, path, params, query = emptyRequest, body, response, status = 200, role } = route;
  const senders = new WeakMap<FastifyRequest, string>();
  app.route({
    method,
    url: `${API}${path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
    schema: {
      ...(params && { params }),
      querystring: query,
      ...(body && { body }),
      response: { [status]: response },
    },
    onRequest: (request, reply, done) => {
      senders.set(request, authorize(access, role, reply).who);
      // Browsers send a preflight request before a DELETE to another site, whatever its content type.
      if (role === 'operate' && method !== 'DELETE') assertContentType(request.headers['content-type']);
      done();
    },
    handler: async (request, reply) => {
      assertAvailable(context);
      const result = await callRoute(route, context, request, reply, senders.get(request) ?? '');
      return reply.code(status).send(result);
    },
  });
}

async function callRoute(
  route: Route,
  { scheduler, stopping, logger }: AppContext,
  request: FastifyRequest,
  reply: FastifyReply,
  who: string,
): Promise<unknown> {
  const input = { params: request.params, query: request.query, body: request.body };
  const context: CallContext = {
    who,
    withSignal: (timeoutMs, work) =>
      withRequestSignal({ response: reply.raw, stopping: stopping(), timeoutMs, clock: systemClock }, work),
  };
  const call = (): Promise<unknown> => route.handle(scheduler, input, context);
  const before = route.audit?.before(input);
  if (before === undefined) return call();
  const action = { who, action: route.operationId, requestId: request.id };
  const { result, isRecorded } = await withAudit({
    ...action,
    operations: scheduler.operations,
    before,
    change: call,
    after: (response) => route.audit?.after?.(response) ?? {},
  });
  reply.header('chronos-audit', isRecorded ? 'written' : 'attempted');
  if (!isRecorded) {
    logger?.warn(
      { ...action, ...before },
      `${route.operationId} succeeded, but only its attempt is in the audit collection: writing the result failed`,
    );
  }
  return result;
}

/** A request would reopen the connection of a stopping scheduler, and would hang while the scheduler starts. */
function assertAvailable({ scheduler, stopping }: AppContext): void {
  if (scheduler.state === 'Starting')
    throw new HttpProblem(503, 'WORKER_STARTING', 'the worker is starting: try again in a moment');
  if (scheduler.state === 'Stopping' || stopping().aborted)
    throw new HttpProblem(503, 'WORKER_STOPPING', 'the worker is stopping: send the request to another one');
}

export interface RequestScope {
  /** Not the request, which closes as soon as its body has been read. */
  response: Pick<ServerResponse, 'destroyed' | 'writableFinished' | 'once' | 'off'>;
  stopping: AbortSignal;
  timeoutMs: number;
  clock: Clock;
}

/**
 * Runs `work` with a signal that is aborted when the client disconnects, the worker stops, or the time is up. Listeners
 * are removed afterwards: `stopping` outlives the request.
 */
export async function withRequestSignal<T>(
  { response, stopping, timeoutMs, clock }: RequestScope,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  const onClose = (): void => {
    if (!response.writableFinished) abort();
  };
  if (stopping.aborted || response.destroyed) abort();
  stopping.addEventListener('abort', abort);
  response.once('close', onClose);
  void clock.sleep(timeoutMs, controller.signal).then(abort);
  try {
    return await work(controller.signal);
  } finally {
    abort(); // also ends the sleep
    response.off('close', onClose);
    stopping.removeEventListener('abort', abort);
  }
}
