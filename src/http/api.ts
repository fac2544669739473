import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { audited } from '../operations/audited.js';
import { systemClock } from '../runtime/system-clock.js';
import type { AppParts } from './app-parts.js';
import { checkContentType, checkRights } from './gatekeeper.js';
import { API, describe } from './openapi.js';
import { HttpProblem } from './problem.js';
import type { CallContext, Route } from './route.js';
import { ROUTES } from './routes/all.js';
import { input } from './schemas/schema.js';
import type { Tokens } from './tokens.js';
import { whileWanted } from './while-wanted.js';

/** Nothing is taken from a query where the document describes none. */
const NO_QUERY = input<object>({});

/** The JSON API and its document. */
export function addApi(app: FastifyInstance, parts: AppParts, tokens: Tokens): void {
  for (const route of ROUTES) addRoute(app, parts, tokens, route);
  const document = describe(ROUTES);
  app.get(
    `${API}/openapi.json`,
    {
      onRequest: (request, _, done) => {
        checkRights(tokens, 'read', request);
        done();
      },
    },
    () => document,
  );
}

function addRoute(app: FastifyInstance, parts: AppParts, tokens: Tokens, route: Route): void {
  const { method, path, params, query = NO_QUERY, body, answer, status = 200, role } = route;
  const who = new WeakMap<FastifyRequest, string>();
  app.route({
    method,
    url: `${API}${path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
    schema: {
      ...(params && { params }),
      querystring: query,
      ...(body && { body }),
      response: { [status]: answer },
    },
    onRequest: (request, _, done) => {
      who.set(request, checkRights(tokens, role, request).who);
      // A browser asks before it sends a DELETE to another site, whatever its content.
      if (role === 'operate' && method !== 'DELETE') checkContentType(request.headers['content-type']);
      done();
    },
    handler: async (request, reply) => {
      checkAvailable(parts);
      const answered = await answerTo(route, parts, request, reply, who.get(request) ?? '');
      return reply.code(status).send(answered);
    },
  });
}

async function answerTo(
  route: Route,
  { scheduler, stopping, log }: AppParts,
  request: FastifyRequest,
  reply: FastifyReply,
  who: string,
): Promise<unknown> {
  const asked = { params: request.params, query: request.query, body: request.body };
  const context: CallContext = {
    who,
    whileWanted: (longest, work) =>
      whileWanted({ to: reply.raw, stopping: stopping(), longest, clock: systemClock }, work),
  };
  const change = (): Promise<unknown> => route.handle(scheduler, asked, context);
  const before = route.audit?.before(asked);
  if (before === undefined) return change();
  const { answer, isRecorded } = await audited({
    operations: scheduler.operations,
    who,
    action: route.operationId,
    requestId: request.id,
    before,
    change,
    after: (answered) => route.audit?.after?.(answered) ?? {},
  });
  reply.header('chronos-audit', isRecorded ? 'written' : 'attempted');
  if (!isRecorded) {
    const fields = { who, action: route.operationId, requestId: request.id, ...before };
    log?.warn(
      fields,
      `${route.operationId} was done, and the audit collection knows only that it was attempted`,
    );
  }
  return answer;
}

/** Asking a scheduler that stops would open its connection again, and one that starts keeps everybody waiting. */
function checkAvailable({ scheduler, stopping }: AppParts): void {
  if (scheduler.state === 'Starting')
    throw new HttpProblem(503, 'WORKER_STARTING', 'the worker is starting: ask again in a moment');
  if (scheduler.state === 'Stopping' || stopping().aborted)
    throw new HttpProblem(503, 'WORKER_STOPPING', 'the worker is stopping: ask another one');
}
