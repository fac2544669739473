import type { FastifyInstance } from 'fastify';
import type { LifecycleState } from '../domain/events.js';
import type { Health } from '../metrics/attach.js';
import { type Access, requireRole } from './request-guards.js';
import type { AppContext } from './route.js';
import { boolean, enumOf, list, nullable, number, response, string } from './schemas/schema.js';
import { state } from './schemas/system.js';

const MIN_CYCLE_AGE_MS = 30_000;
const MAX_CYCLE_HEARTBEATS = 3;

/** Health and metrics. These routes do not query the database, so they also work during an outage. */
export function addHealth(
  app: FastifyInstance,
  { scheduler, options, metrics }: AppContext,
  access: Access,
): void {
  const maxCycleAge = (): number => options.maxCycleAge ?? defaultMaxCycleAge(scheduler);
  app.get('/healthz', { schema: { response: { 200: alive } } }, () => ({ status: 'alive' }));
  app.get('/readyz', { schema: { response: { 200: readiness, 503: readiness } } }, (_, reply) => {
    const health = metrics.health();
    const { maxLoopLag } = options;
    // Reading the configuration freezes the definitions; in a running worker they are frozen already.
    const limits = { maxLoopLag, maxCycleAge: health.state === 'Running' ? maxCycleAge() : MIN_CYCLE_AGE_MS };
    const result = toReadiness(health, limits);
    return reply.code(result.status === 'ready' ? 200 : 503).send(result);
  });
  app.get('/metrics', requireRole(access, 'read'), async (_, reply) =>
    reply.type(metrics.contentType).send(await metrics.text()),
  );
}

function defaultMaxCycleAge({ operations }: AppContext['scheduler']): number {
  const { heartbeatInterval } = operations.configuration().options;
  return Math.max(MIN_CYCLE_AGE_MS, MAX_CYCLE_HEARTBEATS * heartbeatInterval);
}

/** In milliseconds. */
export interface ReadinessLimits {
  maxLoopLag: number;
  maxCycleAge: number;
}

/** The response of `/readyz`. Durations in milliseconds. */
export interface Readiness {
  status: 'ready' | 'not ready';
  /** Why it is not ready, one sentence each. */
  reasons: string[];
  state: LifecycleState;
  uptime: number;
  isConnected: boolean;
  isDraining: boolean;
  loopLag: number;
  sinceGoodCycle: number | null;
}

export const readiness = response<Readiness>({
  status: enumOf('ready', 'not ready'),
  reasons: list(string()),
  state,
  uptime: number('milliseconds'),
  isConnected: boolean(),
  isDraining: boolean(),
  loopLag: number('milliseconds'),
  sinceGoodCycle: nullable(number('milliseconds')),
});

export const alive = response<{ status: string }>({ status: string() });

/** If the worker is not Running, that is the only reason: the others would be consequences of it. */
export function toReadiness(health: Health, limits: ReadinessLimits): Readiness {
  const { state, uptime, isConnected, isDraining, loopLag, sinceGoodCycle } = health;
  const reasons = state === 'Running' ? findReasons(health, limits) : [`the worker is ${state}, not Running`];
  return {
    status: reasons.length === 0 ? 'ready' : 'not ready',
    reasons,
    ...{ state, uptime, isConnected, isDraining, loopLag, sinceGoodCycle },
  };
}

function findReasons(health: Health, limits: ReadinessLimits): string[] {
  const { isConnected, isDraining, loopLag, sinceGoodCycle } = health;
  const reasons: string[] = [];
  if (isDraining) reasons.push('the worker is draining: it claims no jobs');
  if (!isConnected) reasons.push('MongoDB cannot be reached, or has no primary');
  if (loopLag > limits.maxLoopLag) {
    reasons.push(`the event loop was blocked for ${Math.round(loopLag)} ms, more than ${limits.maxLoopLag}`);
  }
  if (sinceGoodCycle === null) reasons.push('no database request has succeeded yet');
  else if (sinceGoodCycle > limits.maxCycleAge) {
    reasons.push(
      `no database request succeeded for ${Math.round(sinceGoodCycle)} ms, more than ${limits.maxCycleAge}`,
    );
  }
  return reasons;
}
