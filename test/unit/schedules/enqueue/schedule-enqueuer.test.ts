import assert from 'node:assert/strict';
import type { Plan } from '../../../../src/domain/schedule/plan.js';
import type { PendingRun, ScheduleDocument } from '../../../../src/domain/schedule/schedule.js';
import { EventBus } from '../../../../src/runtime/event-bus.js';
import type { DefinitionSync } from '../../../../src/schedules/enqueue/definition-sync.js';
import { MalformedSchedules } from '../../../../src/schedules/enqueue/malformed-schedules.js';
import type { PlanExecutor } from '../../../../src/schedules/enqueue/plan-executor.js';
import { PlanningLock } from '../../../../src/schedules/enqueue/planning-lock.js';
import { ScheduleEnqueuer } from '../../../../src/schedules/enqueue/schedule-enqueuer.js';
import type {
  PlannedSchedule,
  StoredPlans,
  SchedulePlanner,
} from '../../../../src/schedules/enqueue/schedule-planner.js';
import type { ScheduleScope } from '../../../../src/store/schedules/due.js';
import { aSchedule } from '../../../support/factories/schedule.js';
import { recordEvents } from '../../../support/events.js';
import { timeAfter, START } from '../../../support/instants.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { flushEventLoop } from '../../../support/flush-event-loop.js';

const POLL = 5000;
const BATCH = 500;

describe('ScheduleEnqueuer', () => {
  let clock: ManualClock;
  let events: EventBus;
  let enqueuer: ScheduleEnqueuer;
  let due: ScheduleDocument[][];
  let pending: ScheduleDocument[];
  let next: Date | null;
  let registerNew: () => Promise<void>;
  let decide: (schedules: readonly ScheduleDocument[]) => Partial<StoredPlans>;
  /** Calls of the dependencies, in order. */
  let calls: string[];
  let scopes: ScheduleScope[];
  let isLockedByAnother: boolean;
  let intervalMultiplier: number;
  let unselectable: ScheduleDocument[];

  beforeEach(() => {
    clock = new ManualClock();
    events = new EventBus('worker');
    [due, pending, next, calls, scopes, isLockedByAnother] = [[], [], null, [], [], false];
    intervalMultiplier = 1;
    unselectable = [];
    registerNew = async () => undefined;
    decide = (schedules) => ({ stored: schedules.map((schedule) => aPlan(schedule)), conflicts: 0 });
    enqueuer = new ScheduleEnqueuer({
      ...{ clock, events, random: () => 0.5, options: { environment: 'test', pollInterval: POLL } },
      store: {
        findDueSchedules: async (scope, now, limit) => {
          scopes.push(scope);
          calls.push(`due at ${now.getTime() - START.getTime()}, ${limit}`);
          return due.shift() ?? [];
        },
        nextScheduleAt: async () => next,
        findUnselectableSchedules: async () => unselectable,
        findPendingSchedules: async (_, before, from) => {
          calls.push(`pending since ${before.getTime() - START.getTime()}`);
          return pending.filter(({ _id }) => _id > from);
        },
        findSchedules: async (ids) => {
          calls.push(`find ${ids.join(' ')}`);
          return ids.map((_id) => aSchedule({ _id }));
        },
      },
      planner: {
        decide: async (schedules: readonly ScheduleDocument[]) => {
          if (schedules.length > 0) calls.push(`decide ${schedules.map(({ _id }) => _id).join(' ')}`);
          return { stored: [], conflicts: 0, unplannable: [], ...decide(schedules) };
        },
      } as unknown as SchedulePlanner,
      executor: {
        execute: async (stored: readonly PlannedSchedule[]) => {
          if (stored.length > 0)
            calls.push(`execute ${stored.map(({ schedule }) => schedule._id).join(' ')}`);
          return [];
        },
      } as unknown as PlanExecutor,
      malformed: new MalformedSchedules({
        ...{ clock, events },
        store: {
          disableSchedule: async ({ _id }) => {
            calls.push(`disable ${_id}`);
            return true;
          },
        },
      }),
      definitionSync: { names: ['coded'], registerNew: () => registerNew() } as unknown as DefinitionSync,
      planningLock: new PlanningLock({
        clock,
        workerId: 'me',
        store: {
          acquireLock: async (name, grant, now) => {
            calls.push('acquire the lock');
            if (isLockedByAnother) return null;
            return { _id: name, fence: 1, lockToken: grant.token, lockedBy: 'me', lockedUntil: now };
          },
          releaseLock: async () => {
            calls.push('release the lock');
            return true;
          },
        },
      }),
      changes: {
        get intervalMultiplier() {
          return intervalMultiplier;
        },
      },
    });
  });

  afterEach(async () => {
    const stopped = enqueuer.stop();
    clock.advance(60_000);
    await stopped;
  });

  function aPlan(schedule: ScheduleDocument, plan: Partial<Plan> = {}): PlannedSchedule {
    const { nextRunAt, lastRunAt, runs, pending, active } = schedule;
    return { schedule, plan: { nextRunAt, lastRunAt, runs, pending, active, cancel: null, ...plan } };
  }

  const run = (id: string): PendingRun => ({ kind: 'run', id, at: START, since: START });

  it('plans and executes due schedules together with those that have been pending for two seconds [C7]', async () => {
    due = [[aSchedule({ _id: 'a' }), aSchedule({ _id: 'b' })]];
    // A schedule may be both.
    pending = [aSchedule({ _id: 'b' }), aSchedule({ _id: 'c' })];
    await enqueuer.runOnce();
    assert.deepEqual(calls, [`due at 0, ${BATCH}`, 'pending since -2000', 'decide a b c', 'execute a b c']);
    assert.deepEqual(scopes, [{ names: ['coded'], environment: 'test', except: [] }]);
  });

  it('plans nothing if nothing is due [C7]', async () => {
    await enqueuer.runOnce();
    assert.deepEqual(
      calls.filter((call) => call.startsWith('decide')),
      [],
    );
  });

  it('continues after a full batch until a batch is not full [F3]', async () => {
    const full = Array.from({ length: BATCH }, (_, index) => aSchedule({ _id: `s-${index}` }));
    due = [full, full, [aSchedule({ _id: 'last' })]];
    await enqueuer.runOnce();
    assert.equal(calls.filter((call) => call.startsWith('decide')).length, 3);
  });

  it('sleeps until the next schedule is due, at most for a poll interval [C1]', async () => {
    assert.equal(await enqueuer.runOnce(), POLL);
    next = timeAfter(1234);
    assert.equal(await enqueuer.runOnce(), 1234);
    // A schedule that was planned in this round has a next run, too.
    [next, due] = [null, [[aSchedule()]]];
    decide = ([first]) => ({ stored: [aPlan(first!, { nextRunAt: timeAfter(2345) })] });
    assert.equal(await enqueuer.runOnce(), 2345);
    // The plans of other processes are not known.
    due = [[aSchedule()]];
    decide = () => ({ conflicts: 1 });
    assert.equal(await enqueuer.runOnce(), 0);
  });

  it('polls less often while a change stream is open, unless a run waits for one in another process [C1]', async () => {
    intervalMultiplier = 6;
    assert.equal(await enqueuer.runOnce(), 6 * POLL);
    next = timeAfter(4 * POLL);
    assert.equal(await enqueuer.runOnce(), 4 * POLL);
    pending = [aSchedule({ overlap: 'queue', active: 'first', pending: [run('first'), run('second')] })];
    decide = () => ({});
    assert.equal(await enqueuer.runOnce(), POLL);
  });

  describe('after a round with more conflicts than plans', () => {
    beforeEach(async () => {
      due = [[aSchedule({ _id: 'a' }), aSchedule({ _id: 'b' }), aSchedule({ _id: 'c' })]];
      decide = ([first]) => ({ stored: [aPlan(first!)], conflicts: 2 });
      await enqueuer.runOnce();
      decide = (schedules) => ({ stored: schedules.map((schedule) => aPlan(schedule)), conflicts: 0 });
      calls = [];
    });

    it('acquires the planning lock and plans until it expires [F3]', async () => {
      due = [[aSchedule({ _id: 'a' })], [aSchedule({ _id: 'a' })]];
      await enqueuer.runOnce();
      clock.advance(1999);
      await enqueuer.runOnce();
      const lockAndPlanCalls = (): string[] => calls.filter((call) => /^(acquire|decide)/.test(call));
      assert.deepEqual(lockAndPlanCalls(), ['acquire the lock', 'decide a', 'decide a']);
      clock.advance(1);
      due = [[aSchedule({ _id: 'a' })]];
      await enqueuer.runOnce();
      assert.deepEqual(lockAndPlanCalls().slice(3), ['acquire the lock', 'decide a']);
    });

    it('does not acquire the lock while nothing is due [F3]', async () => {
      await enqueuer.runOnce();
      assert.ok(!calls.includes('acquire the lock'));
    });

    it('plans nothing while another process has the lock, and tries again when it may have expired [F3]', async () => {
      isLockedByAnother = true;
      due = [[aSchedule({ _id: 'a' })]];
      assert.equal(await enqueuer.runOnce(), 1500);
      assert.ok(!calls.some((call) => call.startsWith('decide')));
    });

    it('plans the next run after one that ended in this process even if another process has the lock [F3]', async () => {
      isLockedByAnother = true;
      pending = [
        aSchedule({ _id: 'queued', overlap: 'queue', pending: [run('queued@1')], active: 'queued@0' }),
      ];
      await enqueuer.runOnce();
      enqueuer.runEnded('queued@0', 'work');
      await enqueuer.runOnce();
      assert.deepEqual(calls.slice(-2), ['decide queued', 'execute queued']);
    });

    it('does not need the lock in a pass [F3]', async () => {
      isLockedByAnother = true;
      due = [[aSchedule({ _id: 'a' })]];
      await enqueuer.collect('all');
      assert.ok(calls.includes('decide a'));
    });

    it('releases the lock when it stops [F3]', async () => {
      due = [[aSchedule({ _id: 'a' })]];
      await enqueuer.runOnce();
      await enqueuer.stop();
      assert.equal(calls.at(-1), 'release the lock');
    });
  });

  it('reports malformed schedules, counts them and leaves them out [F5]', async () => {
    const reports = recordEvents(events, 'schedule:invalid');
    const bad = (_id: string): ScheduleDocument => ({ ...aSchedule({ _id }), overlap: 'x' as 'skip' });
    due = [[bad('b1'), aSchedule({ _id: 'good' }), bad('b2')], []];
    await enqueuer.runOnce();
    await enqueuer.runOnce();
    assert.ok(calls.includes('decide good'));
    assert.deepEqual(
      reports.map(({ event }) => event),
      ['b1', 'b2'].map((scheduleId, index) => ({
        scheduleId,
        reason: "overlap must be one of allow, skip, queue, replace, got 'x'",
        count: index + 1,
      })),
    );
    assert.deepEqual(scopes.at(-1)?.except, ['b1', 'b2']);
  });

  it('leaves malformed schedules out of the next batch of a pass [F5]', async () => {
    due = [Array.from({ length: BATCH }, (_, index) => ({ ...aSchedule({ _id: `b${index}` }), runs: -1 }))];
    await enqueuer.collect('all');
    assert.deepEqual(
      scopes.map(({ except }) => except.length),
      [0, BATCH],
    );
  });

  describe('when a run ends in this process', () => {
    async function start(schedule: ScheduleDocument, plan: Partial<Plan>): Promise<void> {
      due = [[schedule]];
      decide = (schedules) => ({ stored: schedules.map((one) => aPlan(one, plan)), conflicts: 0 });
      enqueuer.start();
      await flushEventLoop();
      calls = [];
    }

    it('plans the waiting run at once [B10]', async () => {
      await start(aSchedule({ overlap: 'queue' }), { pending: [run('s@2')], active: 's@1' });
      enqueuer.runEnded('s@1', 'work');
      await flushEventLoop();
      assert.ok(calls.includes('find s') && calls.includes('decide s'), calls.join(', '));
      assert.equal(clock.now().getTime(), START.getTime());
    });

    it('does not wake for schedules without a waiting run [B10]', async () => {
      await start(aSchedule({ overlap: 'queue' }), { pending: [run('s@1')], active: 's@1' });
      for (const id of ['s@1', 's+1', 't@1', '6123-4567', 'mail=key']) enqueuer.runEnded(id, 'work');
      await flushEventLoop();
      assert.deepEqual(calls, []);
    });

    it('does not wake for schedules whose runs may overlap [B10]', async () => {
      await start(aSchedule({ overlap: 'allow' }), { pending: [run('s@2')], active: 's@1' });
      enqueuer.runEnded('s@1', 'work');
      await flushEventLoop();
      assert.deepEqual(calls, []);
    });
  });

  it('leaves out definitions in code when it collects stored schedules [J19]', async () => {
    await enqueuer.collect('stored');
    await enqueuer.collect('all');
    assert.deepEqual(
      scopes.map(({ names }) => names),
      [[], ['coded']],
    );
  });

  it('does not start another batch when it stops [C12]', async () => {
    const full = Array.from({ length: BATCH }, (_, index) => aSchedule({ _id: `s-${index}` }));
    due = Array.from({ length: 20 }, () => full);
    let stopped: Promise<void> | undefined;
    decide = (schedules) => {
      stopped ??= enqueuer.stop();
      return { stored: schedules.map((one) => aPlan(one)), conflicts: 0 };
    };
    enqueuer.start();
    await flushEventLoop(10);
    await stopped;
    assert.equal(calls.filter((call) => call.startsWith('decide')).length, 1);
  });

  it('registers new definitions before each round [C7]', async () => {
    registerNew = async () => void calls.push('register');
    await enqueuer.runOnce();
    assert.equal(calls[0], 'register');
  });
});
