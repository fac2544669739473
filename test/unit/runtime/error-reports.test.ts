import assert from 'node:assert/strict';
import { aRegistry } from '../../support/factories/handler-registry.js';
import { DEFAULTS } from '../../../src/config/options.js';
import type { SchedulerEvents } from '../../../src/domain/events.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { OutageMonitor } from '../../../src/runtime/outage-monitor.js';
import { PlanExecutor } from '../../../src/schedules/enqueue/plan-executor.js';
import {
  SchedulePlanner,
  type SchedulePlannerDeps,
} from '../../../src/schedules/enqueue/schedule-planner.js';
import { Settler } from '../../../src/worker/settler.js';
import { StartedMarker } from '../../../src/worker/started-marker.js';
import { aJob } from '../../support/factories/job.js';
import { aSchedule } from '../../support/factories/schedule.js';
import { ManualClock } from '../../support/manual-clock.js';

const URI = 'mongodb://admin:secret@db.example:27017/app';
const connectionError = (): Error => new Error(`connect ECONNREFUSED ${URI}`);
const fail = (): Promise<never> => Promise.reject(connectionError());
const HOUR = 3_600_000;

describe('error reports', () => {
  let clock: ManualClock;
  let events: EventBus;

  beforeEach(() => {
    clock = new ManualClock();
    events = new EventBus('worker');
  });

  /** Call it before doing what causes the report. */
  const nextReport = (): Promise<SchedulerEvents['worker:error']> =>
    new Promise((resolve) => events.once('worker:error', resolve));

  function assertRedacted({ error }: SchedulerEvents['worker:error']): void {
    assert.match(error.message, /ECONNREFUSED mongodb:\/\/\*\*\*@db\.example/);
    assert.doesNotMatch(`${error.message} ${error.stack ?? ''}`, /secret/);
  }

  async function settleWith(failing: 'settle' | 'logExecutions'): Promise<void> {
    const settler = new Settler({
      ...{ clock, events, workerId: 'worker', registry: aRegistry() },
      outages: new OutageMonitor(clock, 60_000),
      store: {
        settle: async (statements) =>
          failing === 'settle' ? fail() : statements.map(() => 'settled' as const),
        findSettled: async (statements) => statements.map(() => 'unknown' as const),
        logExecutions: async () => (failing === 'logExecutions' ? fail() : undefined),
      },
    });
    const reported = nextReport();
    const now = clock.now();
    void settler.settle(aJob({ status: 'RUNNING' }), 'token', {
      ...{ outcome: { kind: 'completed', result: null }, startedAt: now, finishedAt: now, duration: 1 },
      ...{ log: [], isStuck: false, hookErrors: [] },
    });
    assertRedacted(await reported);
    await settler.close();
  }

  function aPlanner(storeDecisions: SchedulePlannerDeps['store']['storeDecisions']): SchedulePlanner {
    return new SchedulePlanner({
      events,
      store: { storeDecisions, findRunStates: async () => new Map(), disableSchedule: async () => true },
    });
  }

  it('contain no credentials when an outcome cannot be written', () => settleWith('settle'));

  it('contain no credentials when the execution log cannot be written', () => settleWith('logExecutions'));

  it('contain no credentials when a job cannot be marked as started', async () => {
    const marker = new StartedMarker(clock, events, { markStarted: fail });
    const reported = nextReport();
    marker.add({ jobId: 'job', token: 'token', startedAt: clock.now() });
    clock.advance(25);
    assertRedacted(await reported);
    await marker.whenFlushed();
  });

  it('contain no credentials when the plan of a schedule is rejected', async () => {
    const planner = aPlanner(async () => ({
      stored: new Set<string>(),
      rejected: new Map([['nightly', connectionError()]]),
    }));
    const reported = nextReport();
    clock.advance(HOUR);
    await planner.decide([aSchedule({ _id: 'nightly' })], clock.now());
    assertRedacted(await reported);
  });

  it('contain no credentials when the job of a schedule cannot be inserted', async () => {
    const executor = new PlanExecutor({
      ...{ clock, events, options: DEFAULTS },
      store: {
        enqueueMany: async (jobs) => jobs.map(({ _id: id }) => ({ id, error: connectionError() })),
        recordSkips: async () => new Map(),
        removePending: async () => undefined,
      },
      jobs: { cancel: () => assert.fail('must not cancel') },
      engine: { wake: () => undefined },
    });
    const planner = aPlanner(async (_, list) => ({
      stored: new Set(list.map(({ schedule }) => schedule._id)),
      rejected: new Map(),
    }));
    clock.advance(HOUR);
    const { stored } = await planner.decide([aSchedule({ _id: 'nightly' })], clock.now());
    const reported = nextReport();
    await executor.execute(stored, clock.now());
    assertRedacted(await reported);
  });
});
