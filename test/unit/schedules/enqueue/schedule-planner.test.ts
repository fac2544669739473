import assert from 'node:assert/strict';
import { DEFAULTS } from '../../../../src/config/options.js';
import type { JobDocument } from '../../../../src/domain/job/job.js';
import { runnableNow } from '../../../../src/domain/schedule/overlap.js';
import type { Plan } from '../../../../src/domain/schedule/plan.js';
import {
  jitterOf,
  occurrenceId,
  type PendingRun,
  type PendingSkip,
  type ScheduleDocument,
  type SkipDocument,
} from '../../../../src/domain/schedule/schedule.js';
import { EventBus } from '../../../../src/runtime/event-bus.js';
import {
  PlanExecutor,
  type PlanExecutorDeps,
  createOccurrenceJob,
} from '../../../../src/schedules/enqueue/plan-executor.js';
import {
  type PlannedSchedule,
  SchedulePlanner,
  type SchedulePlannerDeps,
  loadSnapshot,
} from '../../../../src/schedules/enqueue/schedule-planner.js';
import type { BulkResult } from '../../../../src/store/jobs/enqueue.js';
import type { RunState } from '../../../../src/store/jobs/find.js';
import { aJob } from '../../../support/factories/job.js';
import { aSchedule } from '../../../support/factories/schedule.js';
import { recordEvents } from '../../../support/events.js';
import { timeAfter, START } from '../../../support/instants.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { recordMeasurements } from '../../../support/measurements.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

function run(hour: number): PendingRun {
  const at = timeAfter(hour * HOUR);
  return { kind: 'run', id: occurrenceId('s', at), at, since: at };
}

function skip(hour: number): PendingSkip {
  const at = timeAfter(hour * HOUR);
  return {
    ...{ kind: 'skip', id: occurrenceId('s', at), at, until: timeAfter(1, at), count: 1, reason: 'overlap' },
    ...{ activeId: null, runningFor: null, since: at },
  };
}

function aPlan(fields: Partial<ScheduleDocument>, cancel: string | null = null): PlannedSchedule {
  const schedule = aSchedule(fields);
  const { nextRunAt, lastRunAt, runs, pending, active } = schedule;
  return { schedule, plan: { nextRunAt, lastRunAt, runs, pending, active, cancel } };
}

type Store = SchedulePlannerDeps['store'] & PlanExecutorDeps['store'];

describe('SchedulePlanner and PlanExecutor', () => {
  let clock: ManualClock;
  let events: EventBus;
  let store: Store;
  let planner: SchedulePlanner;
  let executor: PlanExecutor;
  let calls: string[];
  let inserted: JobDocument[];
  let recorded: SkipDocument[];
  let disabled: Partial<ScheduleDocument>[];
  let runs: RunState[];
  let rejected: Map<string, Error>;
  let rejectedSkips: Map<string, Error>;
  /** Which of these plans are stored; another process was faster with the rest. */
  let storedPlans: (ids: string[]) => string[];
  let insert: (jobs: readonly JobDocument[]) => BulkResult[];

  beforeEach(() => {
    clock = new ManualClock();
    events = new EventBus('worker');
    [calls, inserted, recorded, disabled, runs] = [[], [], [], [], []];
    rejected = new Map();
    rejectedSkips = new Map();
    storedPlans = (ids) => ids;
    insert = (jobs) => jobs.map(({ _id: id }) => ({ id, duplicate: false }));
    store = {
      storeDecisions: async (_, list) => {
        calls.push(`decide ${list.map(({ schedule }) => schedule._id).join(' ')}`);
        return { stored: new Set(storedPlans(list.map(({ schedule }) => schedule._id))), rejected };
      },
      removePending: async (done) => {
        for (const { scheduleId, kind, ids } of done)
          calls.push(`remove ${kind} ${scheduleId}: ${ids.join(' ')}`);
      },
      enqueueMany: async (jobs) => {
        calls.push(`insert ${jobs.map(({ _id }) => _id).join(' ')}`);
        const results = insert(jobs);
        inserted.push(...jobs);
        return results;
      },
      recordSkips: async (skips) => {
        calls.push(`record ${skips.map(({ _id }) => _id).join(' ')}`);
        recorded.push(...skips);
        return rejectedSkips;
      },
      findRunStates: async (ids) => {
        calls.push(`find ${ids.join(' ')}`);
        return new Map(runs.filter(({ _id }) => ids.includes(_id)).map((one) => [one._id, one]));
      },
      disableSchedule: async ({ _id }, reason, now) => {
        calls.push(`disable ${_id}`);
        disabled.push({ isActive: false, disabledReason: reason, updatedAt: now });
        return true;
      },
    };
    planner = new SchedulePlanner({ store, events });
    executor = new PlanExecutor({
      ...{ store, clock, events, options: DEFAULTS },
      jobs: {
        cancel: async (jobId, reason) => {
          calls.push(`cancel ${jobId}: ${reason}`);
          return { result: 'requested', state: 'running' };
        },
      },
      engine: { wake: () => calls.push('wake') },
    });
  });

  describe('decide', () => {
    it('stores all plans in one write, without those that change nothing [C7]', async () => {
      clock.advance(HOUR);
      const schedules = [
        aSchedule({ _id: 'due' }),
        aSchedule({ _id: 'early', nextRunAt: timeAfter(2 * HOUR) }),
        aSchedule({ _id: 'due too' }),
      ];
      const { stored, conflicts } = await planner.decide(schedules, clock.now());
      assert.deepEqual(calls, ['decide due due too']);
      assert.deepEqual([stored.map(({ schedule }) => schedule._id), conflicts], [['due', 'due too'], 0]);
    });

    it('does not store the plan of a schedule that only waits for its current run [B10]', async () => {
      const waiting = aSchedule({
        overlap: 'queue',
        active: run(1).id,
        pending: [run(2)],
        nextRunAt: timeAfter(3 * HOUR),
      });
      runs = [aJob({ _id: run(1).id, status: 'RUNNING' })];
      await planner.decide([waiting], timeAfter(2 * HOUR));
      assert.deepEqual(calls, [`find ${run(1).id}`]);
    });

    it('reports plans that were lost to another process [F3]', async () => {
      const plans = recordMeasurements(events, 'plan');
      storedPlans = ([first]) => [first!];
      const schedules = ['a', 'b', 'c'].map((_id) => aSchedule({ _id }));
      const { stored, conflicts } = await planner.decide(schedules, timeAfter(HOUR));
      assert.deepEqual([stored.map(({ schedule }) => schedule._id), conflicts], [['a'], 2]);
      assert.deepEqual(plans, [{ stored: 1, conflicts: 2, rejected: 0 }]);
    });

    it('disables a schedule with an invalid rule and plans the others [F5]', async () => {
      const disabledEvents = recordEvents(events, 'schedule:disabled');
      const bad = aSchedule({ _id: 'bad', rule: { cron: 'x', timezone: 'UTC' } });
      const { stored } = await planner.decide([bad, aSchedule({ _id: 'good' })], timeAfter(HOUR));
      assert.deepEqual(
        stored.map(({ schedule }) => schedule._id),
        ['good'],
      );
      const [fields] = disabled;
      assert.deepEqual([fields?.isActive, fields?.updatedAt], [false, timeAfter(HOUR)]);
      assert.match(fields?.disabledReason ?? '', /cron expression 'x' is not valid/);
      assert.deepEqual(
        disabledEvents.map(({ event }) => event),
        [{ scheduleId: 'bad', reason: fields?.disabledReason }],
      );
    });

    it('measures the running time from the first start, else the start, the creation or the plan [Y5]', async () => {
      const id = run(1).id;
      const [createdAt, startedAt, firstStartedAt] = [timeAfter(1), timeAfter(2), timeAfter(3)];
      const since = async (
        job: RunState | undefined,
        pending: PendingRun[] = [],
      ): Promise<Date | undefined> => {
        runs = job === undefined ? [] : [job];
        return (await loadSnapshot(store, aSchedule({ active: id, pending }))).active?.since;
      };
      const job = aJob({ _id: id, createdAt });
      assert.deepEqual(await since(job), createdAt);
      assert.deepEqual(await since({ ...job, status: 'RUNNING', startedAt }), startedAt);
      assert.deepEqual(await since({ ...job, startedAt, firstStartedAt }), firstStartedAt);
      assert.deepEqual(await since(undefined, [run(1)]), run(1).since);
      for (const status of ['COMPLETED', 'FAILED', 'CANCELLED'] as const)
        assert.equal(await since({ ...job, status }), undefined, status);
      assert.equal(await since(undefined), undefined, 'pruned');
    });
  });

  describe('execute', () => {
    it('inserts the job, records the skip, removes both, then cancels [C7]', async () => {
      const one = aPlan({ pending: [run(1), run(2), skip(3)], active: run(1).id, overlap: 'queue' }, 's@0');
      const made = await executor.execute([one], timeAfter(HOUR));
      assert.deepEqual(calls, [
        `insert ${run(1).id}`,
        'wake',
        `remove run s: ${run(1).id}`,
        `record ${skip(3).id}`,
        `remove skip s: ${skip(3).id}`,
        'cancel s@0: replaced by a newer run of its schedule',
      ]);
      assert.deepEqual(
        made.map(({ _id }) => _id),
        [run(1).id],
      );
    });

    it('keeps a run pending whose job cannot be inserted, and reports it [F4]', async () => {
      const reports = recordEvents(events, 'worker:error');
      const one = aPlan({ pending: [run(1)], active: run(1).id });
      insert = ([first]) => [{ id: first!._id, error: new Error('rejected') }];
      assert.deepEqual(await executor.execute([one], timeAfter(HOUR)), []);
      assert.deepEqual(
        reports.map(({ event }) => (event as { error: Error }).error.message),
        ['rejected'],
      );
      insert = () => {
        throw new Error('no connection');
      };
      await assert.rejects(executor.execute([one], timeAfter(HOUR)), { message: 'no connection' });
      assert.deepEqual(
        calls.filter((call) => !call.startsWith('insert')),
        [],
      );
    });

    it('accepts a job that already exists, without an event [J15]', async () => {
      const due = recordEvents(events, 'schedule:due');
      insert = (jobs) => jobs.map(({ _id: id }, index) => ({ id, duplicate: index === 0 }));
      clock.advance(HOUR + 30);
      const one = aPlan({ pending: [run(0), run(1)], overlap: 'allow' });
      const made = await executor.execute([one], clock.now());
      assert.deepEqual(
        made.map(({ _id }) => _id),
        [run(1).id],
      );
      assert.deepEqual(
        due.map(({ event }) => event),
        [{ scheduleId: 's', jobId: run(1).id, scheduledFor: timeAfter(HOUR), late: 30 }],
      );
      assert.ok(calls.includes(`remove run s: ${run(0).id} ${run(1).id}`));
    });

    it('records a skip with its details and emits an event [D13]', async () => {
      const skipped = recordEvents(events, 'schedule:skipped');
      const entry: PendingSkip = { ...skip(1), activeId: 's@0', runningFor: 77 };
      await executor.execute([aPlan({ pending: [entry] })], timeAfter(HOUR));
      const { kind: _, id, ...rest } = entry;
      assert.deepEqual(recorded, [
        { ...rest, _id: id, scheduleId: 's', expiresAt: timeAfter(30 * 24 * HOUR, entry.since) },
      ]);
      assert.deepEqual(
        skipped.map(({ event }) => event),
        [
          {
            scheduleId: 's',
            from: entry.at,
            until: entry.until,
            count: 1,
            reason: 'overlap',
            runningFor: 77,
          },
        ],
      );
    });

    it('removes the other runs when the job of one cannot be inserted [Y8]', async () => {
      insert = (jobs) =>
        jobs.map(({ _id: id, schedule }) =>
          schedule === 'bad' ? { id, error: new Error('rejected') } : { id, duplicate: false },
        );
      const list = ['a', 'bad', 'z'].map((_id) => {
        const pending = [{ ...run(1), id: occurrenceId(_id, timeAfter(HOUR)) }];
        return aPlan({ _id, pending, active: pending[0]!.id });
      });
      await executor.execute(list, timeAfter(HOUR));
      assert.deepEqual(
        calls.filter((call) => call.startsWith('remove')),
        ['a', 'z'].map((id) => `remove run ${id}: ${occurrenceId(id, timeAfter(HOUR))}`),
      );
    });

    it('reports a skip that MongoDB rejects, and removes it like the others [Y8]', async () => {
      const reports = recordEvents(events, 'worker:error');
      rejectedSkips.set(skip(1).id, new Error('rejected'));
      await executor.execute([aPlan({ pending: [skip(1), skip(2)] })], timeAfter(HOUR));
      assert.deepEqual(
        reports.map(({ event }) => (event as { subject?: string }).subject),
        [skip(1).id],
      );
      assert.equal(calls.at(-1), `remove skip s: ${skip(1).id} ${skip(2).id}`);
    });
  });

  describe('the job of an occurrence', () => {
    it('has the settings of the schedule and the time of the occurrence, even if it is inserted late [C7]', () => {
      const schedule = aSchedule({
        taskType: 'report',
        queue: 'reports',
        priority: 3,
        payload: { a: 1 },
        retries: { max: 2 },
        timeout: 1000,
        maxRunningTime: 2000,
        userId: 'ada',
      });
      const { nonce, ...job } = createOccurrenceJob(schedule, run(1), timeAfter(3 * HOUR));
      assert.ok(nonce.length > 0);
      const { nonce: _, ...expected } = aJob({
        ...{ _id: run(1).id, taskType: 'report', queue: 'reports', priority: 3, payload: { a: 1 } },
        ...{ retries: { max: 2 }, timeout: 1000, maxRunningTime: 2000, userId: 'ada' },
        ...{
          schedule: 's',
          scheduledFor: timeAfter(HOUR),
          nextRunAt: timeAfter(HOUR),
          createdAt: timeAfter(3 * HOUR),
          expiresAt: timeAfter(3 * HOUR + 2000),
        },
      });
      assert.deepEqual(job, expected);
      assert.equal(createOccurrenceJob(aSchedule(), run(1), START).queue, 'default');
    });

    it('has a jitter that is the same in every process, within its limit and evenly spread [B10]', () => {
      const jitter = 10 * MINUTE;
      const delays = Array.from({ length: 2000 }, (_, index) => {
        const at = timeAfter(index * HOUR);
        const schedule = aSchedule({ jitter });
        const pending = { ...run(1), id: occurrenceId('s', at), at };
        const [first, second] = [
          createOccurrenceJob(schedule, pending, START),
          createOccurrenceJob(schedule, pending, timeAfter(HOUR)),
        ];
        assert.deepEqual(first.nextRunAt, second.nextRunAt);
        assert.deepEqual(first.scheduledFor, at);
        return first.nextRunAt.getTime() - at.getTime();
      });
      assert.ok(delays.every((delay) => Number.isInteger(delay) && delay >= 0 && delay < jitter));
      const tenths = Array.from(
        { length: 10 },
        (_, tenth) => delays.filter((delay) => Math.floor((delay * 10) / jitter) === tenth).length,
      );
      // 200 each, give or take five standard deviations.
      assert.ok(
        tenths.every((count) => Math.abs(count - 200) < 70),
        tenths.join(' '),
      );
      assert.equal(jitterOf('s@1', 0), 0);
      assert.notEqual(
        jitterOf('s@1', jitter),
        jitterOf('t@1', jitter),
        'schedules that are due at the same time are spread, too',
      );
    });

    it('may start if runs may overlap, otherwise only if it is the current run [B10]', () => {
      const pending: Plan['pending'] = [run(1), skip(2), run(3)];
      const runnable = (overlap: ScheduleDocument['overlap'], active: string | null): string[] =>
        runnableNow({ overlap }, { pending, active }).map(({ id }) => id);
      assert.deepEqual(runnable('allow', null), [run(1).id, run(3).id]);
      for (const overlap of ['skip', 'queue', 'replace'] as const) {
        assert.deepEqual(runnable(overlap, run(3).id), [run(3).id]);
        assert.deepEqual(runnable(overlap, 's@0'), []);
        assert.deepEqual(runnable(overlap, skip(2).id), []);
        assert.deepEqual(runnable(overlap, null), []);
      }
    });
  });
});
