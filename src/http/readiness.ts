import type { LifecycleState } from '../domain/events.js';
import type { Health } from '../metrics/index.js';

/** In milliseconds. */
export interface ReadinessLimits {
  maxLoopLag: number;
  maxCycleAge: number;
}

/** What `/readyz` answers with. Durations in milliseconds. */
export interface Readiness {
  status: 'ready' | 'not ready';
  /** Why it is not ready, one sentence each. */
  reasons: string[];
  state: LifecycleState;
  uptime: number;
  isConnected: boolean;
  loopLag: number;
  sinceGoodCycle: number | null;
}

/** A worker that is not Running has one reason, and the rest would only follow from it. */
export function readinessOf(health: Health, limits: ReadinessLimits): Readiness {
  const { state, uptime, isConnected, loopLag, sinceGoodCycle } = health;
  const reasons = state === 'Running' ? troubles(health, limits) : [`the worker is ${state}, not Running`];
  return {
    status: reasons.length === 0 ? 'ready' : 'not ready',
    reasons,
    ...{ state, uptime, isConnected, loopLag, sinceGoodCycle },
  };
}

function troubles({ isConnected, loopLag, sinceGoodCycle }: Health, limits: ReadinessLimits): string[] {
  const reasons: string[] = [];
  if (!isConnected) reasons.push('MongoDB cannot be reached, or has no primary');
  if (loopLag > limits.maxLoopLag) {
    reasons.push(`the event loop was blocked for ${Math.round(loopLag)} ms, more than ${limits.maxLoopLag}`);
  }
  if (sinceGoodCycle === null) reasons.push('nothing that asks the database has gone well yet');
  else if (sinceGoodCycle > limits.maxCycleAge) {
    reasons.push(
      `nothing that asks the database went well for ${Math.round(sinceGoodCycle)} ms, more than ${limits.maxCycleAge}`,
    );
  }
  return reasons;
}
