import assert from 'node:assert/strict';
import { toReadiness } from '../../../src/http/health.js';
import type { Health } from '../../../src/metrics/attach.js';

const LIMITS = { maxLoopLag: 2000, maxCycleAge: 30_000 };

function health(changes: Partial<Health> = {}): Health {
  const errors = { connection: 0, lock: 0, decode: 0, push: 0, cron: 0, other: 0 };
  return {
    ...{
      state: 'Running',
      uptime: 60_000,
      lastGoodCycle: new Date(0),
      sinceGoodCycle: 100,
      isConnected: true,
      isDraining: false,
    },
    ...{ loopLag: 3, lockSuccess: 1, pushSuccess: 1, errors },
    ...changes,
  };
}

describe('toReadiness', () => {
  const reasons = (changes: Partial<Health>): string[] => toReadiness(health(changes), LIMITS).reasons;

  it('is ready when the worker is running, connected, responsive, and its database requests succeed', () => {
    assert.deepEqual(toReadiness(health(), LIMITS), {
      status: 'ready',
      reasons: [],
      state: 'Running',
      uptime: 60_000,
      isConnected: true,
      isDraining: false,
      loopLag: 3,
      sinceGoodCycle: 100,
    });
    assert.deepEqual(reasons({ loopLag: 2000, sinceGoodCycle: 30_000 }), []);
  });

  it('lists every reason why the worker is not ready [F7]', () => {
    const all = reasons({ isConnected: false, loopLag: 2500.4, sinceGoodCycle: 31_000 });
    assert.deepEqual(all, [
      'MongoDB cannot be reached, or has no primary',
      'the event loop was blocked for 2500 ms, more than 2000',
      'no database request succeeded for 31000 ms, more than 30000',
    ]);
    assert.deepEqual(reasons({ isDraining: true }), ['the worker is draining: it claims no jobs']);
    assert.deepEqual(reasons({ sinceGoodCycle: null }), ['no database request has succeeded yet']);
  });

  it('has only one reason if the worker is not running', () => {
    for (const state of ['Stopped', 'Starting', 'Stopping', 'Error'] as const) {
      const readiness = toReadiness(health({ state, isConnected: false, sinceGoodCycle: null }), LIMITS);
      assert.deepEqual(
        [readiness.status, readiness.reasons],
        ['not ready', [`the worker is ${state}, not Running`]],
      );
    }
  });
});
