import assert from 'node:assert/strict';
import { resolveOptions } from '../../../src/config/options.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { Claimer } from '../../../src/worker/claimer.js';
import type { InFlightJob } from '../../../src/worker/in-flight-jobs.js';
import type { ClaimedJob } from '../../../src/worker/job-picker.js';
import { SingleInstances, type SingleInstancesDeps } from '../../../src/worker/single-instances.js';
import { signal } from '../../support/events.js';
import { aJob } from '../../support/factories/job.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { ManualClock } from '../../support/manual-clock.js';

/** Any call is an error. */
const unusedStore = new Proxy({} as SingleInstancesDeps['store'], {
  get: (_, name) => () => assert.fail(`the database was read with ${String(name)}()`),
});

describe('jobs of other types in a process with singleInstance()', () => {
  const clock = new ManualClock();
  const accepted: string[] = [];

  beforeEach(() => accepted.splice(0));

  function createClaimer(
    taskTypes: string[],
    store: SingleInstancesDeps['store'],
    single: string[],
  ): Claimer {
    const claimed = taskTypes.map((taskType): ClaimedJob => {
      const job = aJob({ taskType, status: 'RUNNING' });
      return { job, token: 'token', lease: 60_000, sentAt: 0 };
    });
    const uncertainClaims = { release: async () => undefined };
    const singleInstances = new SingleInstances({
      ...{ clock, events: new EventBus('worker'), store, uncertainClaims },
      registry: { singleInstances: new Set(single) },
      changes: { intervalMultiplier: 1 },
      options: resolveOptions({ uri: 'mongodb://unused/app' }),
    });
    return new Claimer({
      ...{ singleInstances, uncertainClaims },
      picker: { isContended: false, pick: async () => claimed },
      inFlight: { started: 0, hasCrashSuspect: false, excludedIds: [], queueRoom: undefined },
      runner: {
        freeSlots: 5,
        accept: (jobs) => {
          accepted.push(...jobs.map(({ job }) => job.taskType));
          return [] as InFlightJob[];
        },
      },
    });
  }

  const room = (): { slots: number; prefetch: number } => ({ slots: 5, prefetch: 0 });

  it('start without another query [Y5]', async () => {
    await createClaimer(['mail', 'mail'], unusedStore, []).claim(room);
    await createClaimer(['mail', 'mail'], unusedStore, ['report']).claim(room);
    assert.deepEqual(accepted, ['mail', 'mail', 'mail', 'mail']);
  });

  it('start before those that were claimed with them and need a permission [Y5]', async () => {
    const permission = signal();
    const store = {
      ...unusedStore,
      findCurrentRun: async () => {
        await permission.promise;
        return { scheduleId: 'report', active: null, decision: null, hasPlannedRuns: false };
      },
      findFirstWaiting: async () => null,
      storeCurrentRun: async () => true,
    };
    const claim = createClaimer(['report', 'mail'], store, ['report']).claim(room);
    await flushEventLoop();
    assert.deepEqual(accepted, ['mail']);
    permission.fire();
    await claim;
    assert.deepEqual(accepted, ['mail', 'report']);
  });
});
