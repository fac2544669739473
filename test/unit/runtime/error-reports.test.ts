import assert from 'node:assert/strict';
import type { SchedulerEvents } from '../../../src/domain/events.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { OutageMonitor } from '../../../src/runtime/outage-monitor.js';
import { PlanExecutor } from '../../../src/schedules/enqueue/plan-executor.js';
import { SchedulePlanner } from '../../../src/schedules/enqueue/schedule-planner.js';
import { Settler } from '../../../src/worker/settler.js';
import { StartedMarker } from '../../../src/worker/started-marker.js';
import { aJob } from '../../support/factories/job.js';
import { aSchedule } from '../../support/factories/schedule.js';
import { ManualClock } from '../../support/manual-clock.js';

const URI = 'mongodb://admin:secret@db.example:27017/app';
const leak = (): never => {
  throw new Error(`connect ECONNREFUSED ${URI}`);
};
const HOUR = 3_600_000;

describe('error reports', () => {
  let clock: ManualClock;
  let events: EventBus;

  beforeEach(() => {
    clock = new ManualClock();
    events = new EventBus();
  });

  /** Resolves with the first report. */
  const report = (): Promise<SchedulerEvents['worker:trouble']> =>
    new Promise((resolve) => events.once('worker:trouble', resolve));

  function assertRedacted({ error }: SchedulerEvents['worker:trouble']): void {
    assert.match(error.message, /ECONNREFUSED mongodb:\/\/\*\*\*@db\.example/);
    assert.doesNotMatch(`${error.message} ${error.stack ?? ''}`, /secret/);
  }

  async function settleWith(fail: 'settle' | 'logExecutions'): Promise<void> {
    const settler = new Settler({
      ...{ clock, events, workerId: 'worker', executionRetention: 1000 },
      outages: new OutageMonitor(clock, 60_000),
      store: {
        settle: async (statements) => (fail === 'settle' ? leak() : statements.map(() => 'settled' as const)),
        findSettled: async (statements) => statements.map(() => 'unknown' as const),
        logExecutions: async () => (fail === 'logExecutions' ? leak() : undefined),
      },
    });
    const reported = report();
    const now = clock.now();
    const attempt = {
      outcome: { kind: 'completed', result: null },
      startedAt: now,
      finishedAt: now,
    } as const;
    void settler.settle(aJob({ status: 'RUNNING' }), 'token', {
      ...{ ...attempt, duration: 1, log: [], isStuck: false, hookErrors: [] },
    });
    assertRedacted(await reported);
    await settler.close();
  }

  it('contain no credentials when an outcome cannot be written', () => settleWith('settle'));

  it('contain no credentials when the execution log cannot be written', () => settleWith('logExecutions'));

  it('contain no credentials when a job cannot be marked as started', async () => {
    const marker = new StartedMarker(clock, events, { markStarted: async () => leak() });
    const reported = report();
    marker.add({ jobId: 'job', token: 'token', startedAt: clock.now() });
    clock.advance(25);
    assertRedacted(await reported);
    await marker.whenFlushed();
  });

  it('contain no credentials when the plan of a schedule is rejected', async () => {
    const planner = new SchedulePlanner({
      events,
      store: {
        storeDecisions: async () => ({
          stored: new Set<string>(),
          rejected: new Map([['nightly', error()]]),
        }),
        findRunStates: async () => new Map(),
        changeSchedule: async () => true,
      },
    });
    const reported = report();
    clock.advance(HOUR);
    await planner.decide([aSchedule({ _id: 'nightly' })], clock.now());
    assertRedacted(await reported);
  });

  it('contain no credentials when the job of a schedule cannot be inserted', async () => {
    const executor = new PlanExecutor({
      ...{ clock, events, options: { executionRetention: HOUR } },
      store: {
        enqueueMany: async (jobs) => jobs.map(({ _id: id }) => ({ id, error: error() })),
        recordSkips: async () => new Map(),
        removePending: async () => undefined,
      },
      jobs: { cancel: () => assert.fail('nothing is canceled') },
      engine: { wake: () => undefined },
    });
    const planner = new SchedulePlanner({
      events,
      store: {
        storeDecisions: async (_, list) => ({
          stored: new Set(list.map(({ schedule }) => schedule._id)),
          rejected: new Map(),
        }),
        findRunStates: async () => new Map(),
        changeSchedule: async () => true,
      },
    });
    clock.advance(HOUR);
    const { stored } = await planner.decide([aSchedule({ _id: 'nightly' })], clock.now());
    const reported = report();
    await executor.execute(stored, clock.now());
    assertRedacted(await reported);
  });
});

function error(): Error {
  try {
    return leak();
  } catch (thrown) {
    return thrown as Error;
  }
}
