import type { FastifyInstance } from 'fastify';
import type { AppParts } from './app-parts.js';
import { checkRights } from './gatekeeper.js';
import { alive, readiness } from './openapi.js';
import { readinessOf } from './readiness.js';
import type { Tokens } from './tokens.js';

const LEAST_CYCLE_AGE = 30_000;
const HEARTBEATS = 3;

/** For those who watch the process. The database is not asked, so that they get an answer when it is gone. */
export function addHealth(
  app: FastifyInstance,
  { scheduler, options, metrics }: AppParts,
  tokens: Tokens,
): void {
  const maxCycleAge = (): number => options.maxCycleAge ?? threeHeartbeats(scheduler);
  app.get('/healthz', { schema: { response: { 200: alive } } }, () => ({ status: 'alive' }));
  app.get('/readyz', { schema: { response: { 200: readiness, 503: readiness } } }, (_, reply) => {
    const health = metrics.health();
    const { maxLoopLag } = options;
    // Looking at the configuration freezes the definitions; a worker that runs has done that already.
    const limits = { maxLoopLag, maxCycleAge: health.state === 'Running' ? maxCycleAge() : LEAST_CYCLE_AGE };
    const answer = readinessOf(health, limits);
    return reply.code(answer.status === 'ready' ? 200 : 503).send(answer);
  });
  app.get(
    '/metrics',
    {
      onRequest: (request, _, done) => {
        checkRights(tokens, 'read', request);
        done();
      },
    },
    async (_, reply) => reply.type(metrics.contentType).send(await metrics.text()),
  );
}

function threeHeartbeats({ operations }: AppParts['scheduler']): number {
  return Math.max(LEAST_CYCLE_AGE, HEARTBEATS * operations.configuration().options.heartbeatInterval);
}
