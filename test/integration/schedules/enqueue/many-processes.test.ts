import assert from 'node:assert/strict';
import { calendar, checkSchedule, type Planned, planSchedules } from '../../../../scripts/chaos/calendar.js';
import { runChaos } from '../../../../scripts/chaos/run.js';
import { resolveOptions } from '../../../../src/config/options.js';
import { resolveSchedule } from '../../../../src/config/schedule-options.js';
import {
  hashOf,
  type ScheduleDocument,
  type SkipDocument,
} from '../../../../src/domain/schedule/schedule.js';
import { EventBus } from '../../../../src/runtime/event-bus.js';
import { DefinitionRegistry } from '../../../../src/schedules/definition/definition-registry.js';
import { DefinitionSync } from '../../../../src/schedules/enqueue/definition-sync.js';
import { PlanExecutor } from '../../../../src/schedules/enqueue/plan-executor.js';
import { PlanningLock } from '../../../../src/schedules/enqueue/planning-lock.js';
import { ScheduleEnqueuer } from '../../../../src/schedules/enqueue/schedule-enqueuer.js';
import { SchedulePlanner } from '../../../../src/schedules/enqueue/schedule-planner.js';
import { newSchedule } from '../../../../src/schedules/stored/schedule-document.js';
import { createStore } from '../../../../src/store/store.js';
import { aJob } from '../../../support/factories/job.js';
import { aRegistry } from '../../../support/factories/handler-registry.js';
import { useDatabase } from '../../../support/database.js';
import { timeAfter, START } from '../../../support/instants.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const SECOND = 1000;

describe('schedules in many processes', () => {
  const db = useDatabase();

  it('match the calendar in jobs and skips while three processes are killed, frozen and stopped at random [J15] [J19] [F3]', async () => {
    const report = await runChaos({ uri: db.uri, processes: 3, schedules: 20, seconds: 8, seed: 4 });
    assert.deepEqual(report.violations, []);
    const { jobs, completed, faults, contended, skips } = report;
    assert.ok(jobs > 50 && completed > 50, `${jobs} jobs, ${completed} completed`);
    assert.ok(faults.kills + faults.freezes + faults.stops > 0);
    // Two of the handlers take longer than a second.
    assert.ok((skips['overlap'] ?? 0) > 0);
    assert.ok(contended > 0, 'contention can be seen');
  }).timeout(120_000);
});

describe('a schedule that one query returns twice', () => {
  const database = useSharedDatabase();

  /*
   * A scan of the due schedules, in the order of their next time, meets one again whose next time somebody moves on
   * meanwhile. The older reading is void, and the newer one was written under the same token.
   */
  it('is planned once: an occurrence that another process has skipped gets no job [J15] [F3]', async () => {
    const clock = new ManualClock();
    const store = createStore(database.collections);
    const { schedules, jobs, skips } = database.collections;
    const rule = resolveSchedule({ cron: '* * * * * *' }, { timezone: 'UTC', symbols: new Map() }, 'test');
    const definition = { ...rule, taskType: 'report', payload: null };
    const [registry, options] = [aRegistry(), resolveOptions({ uri: database.uri })];
    const enqueuerThatFinds = (found: readonly ScheduleDocument[] | undefined): ScheduleEnqueuer => {
      const events = new EventBus();
      const definitions = new DefinitionRegistry(registry, options);
      const deps = {
        ...{ clock, events, random: () => 0, options, definitions, workerId: 'me' },
        store: found === undefined ? store : { ...store, findDueSchedules: async () => [...found] },
      };
      const jobActions = { cancel: () => assert.fail() };
      return new ScheduleEnqueuer({
        ...deps,
        planner: new SchedulePlanner(deps),
        executor: new PlanExecutor({ ...deps, jobs: jobActions, engine: { wake: () => undefined } }),
        definitionSync: new DefinitionSync(deps),
        planningLock: new PlanningLock(deps),
        changes: { intervalMultiplier: 1 },
      });
    };

    const current = aJob({ _id: `report@${START.toISOString()}`, status: 'RUNNING', schedule: 'report' });
    await jobs.insertOne(current);
    const stored = newSchedule('report', 'api', definition, hashOf(definition), clock.now());
    await schedules.insertOne({ ...stored, active: current._id });
    const older = (await schedules.findOne({ _id: 'report' }))!;

    clock.advance(SECOND);
    await enqueuerThatFinds(undefined).collect('all');
    assert.deepEqual(await skips.distinct('_id'), [`report@${timeAfter(SECOND).toISOString()}`]);
    const newer = (await schedules.findOne({ _id: 'report' }))!;
    await jobs.updateOne({ _id: current._id }, { $set: { status: 'COMPLETED', finishedAt: clock.now() } });

    clock.advance(SECOND);
    await enqueuerThatFinds([older, newer]).collect('all');
    assert.deepEqual(await jobs.distinct('_id'), [
      current._id,
      `report@${timeAfter(2 * SECOND).toISOString()}`,
    ]);
    assert.deepEqual(await skips.distinct('_id'), [`report@${timeAfter(SECOND).toISOString()}`]);
  });
});

describe('the check against the calendar', () => {
  const [, single] = planSchedules(2) as [Planned, Planned];
  const id = (seconds: number): string => `${single.name}@${timeAfter(seconds * SECOND).toISOString()}`;
  /** Decided on up to the fifth second. */
  const schedule = {
    ...{ _id: single.name, createdAt: START, anchor: START, pending: [] },
    nextRunAt: timeAfter(6 * SECOND),
  };

  function job(second: number, takes = 10) {
    const scheduledFor = timeAfter(second * SECOND);
    const finishedAt = timeAfter(takes, scheduledFor);
    return {
      ...aJob({
        _id: id(second),
        status: 'COMPLETED',
        scheduledFor,
        finishedAt,
        firstStartedAt: scheduledFor,
      }),
      endedAt: finishedAt.getTime(),
    };
  }

  function skip(second: number, fields: Partial<SkipDocument> = {}): SkipDocument {
    const at = timeAfter(second * SECOND);
    return {
      ...{
        _id: id(second),
        scheduleId: single.name,
        at,
        until: timeAfter(1, at),
        count: 1,
        reason: 'overlap',
      },
      ...{ activeId: null, runningFor: null, since: at, expiresAt: at, ...fields },
    };
  }

  const jobs = [1, 2, 3, 4, 5].map((second) => job(second));
  const faults = (...given: Parameters<typeof checkSchedule>): string[] => checkSchedule(...given);

  it('accepts a job or a skip with a reason for every instant', () => {
    assert.deepEqual(faults(single, schedule, jobs, []), []);
    const long = [job(1, 2500), job(4), job(5)];
    assert.deepEqual(faults(single, schedule, long, [skip(2), skip(3)]), []);
    const missed = skip(1, { until: timeAfter(4 * SECOND), count: 3, reason: 'misfire' });
    assert.deepEqual(faults(single, schedule, [job(4), job(5)], [missed]), []);
  });

  it('finds missing, extra, doubly recorded and wrongly named jobs', () => {
    const [first, second, ...rest] = jobs;
    assert.match(faults(single, schedule, [first!, ...rest], []).join(), /00:00:02.000Z is missing/);
    assert.match(faults(single, schedule, [...jobs, job(6)], []).join(), /06.000Z is not in the calendar/);
    assert.match(faults(single, schedule, [...jobs, job(1.5)], []).join(), /01.500Z is not in the calendar/);
    assert.match(faults(single, schedule, jobs, [skip(3)]).join(), /03.000Z exists 2 times/);
    const renamed = { ...second!, _id: `${single.name}@${START.toISOString()}` };
    assert.match(faults(single, schedule, [first!, renamed, ...rest], []).join(), /has the occurrence/);
  });

  it('finds skips without a reason, wrong counts, and overlapping runs of a single instance', () => {
    const others = [job(1), job(2), job(4), job(5)];
    assert.match(faults(single, schedule, others, [skip(3)]).join(), /no run of .* was unfinished/);
    const missed = skip(1, { until: timeAfter(4 * SECOND), count: 7, reason: 'misfire' });
    assert.match(faults(single, schedule, [job(4), job(5)], [missed]).join(), /wrong number of skips, 7,/);
    const overlapping = [job(1, 1900), ...jobs.slice(1)];
    assert.match(faults(single, schedule, overlapping, []).join(), /started 900 ms before/);
    const allowed = { ...single, overlap: 'allow' } as const;
    assert.deepEqual(faults(allowed, schedule, overlapping, []), []);
    assert.match(faults(allowed, schedule, others, [skip(3)]).join(), /may overlap/);
  });

  it('computes multiples of a step from an anchor, and fixed seconds, on its own', () => {
    const seconds = (instants: readonly number[]): number[] =>
      instants.map((at) => (at - START.getTime()) / SECOND);
    const [from, to] = [START.getTime(), START.getTime() + 10 * SECOND];
    const call: [string] = ['unused'];
    assert.deepEqual(seconds(calendar({ kind: 'step', step: 3000, call }, 0, from, to)), [3, 6, 9]);
    assert.deepEqual(
      seconds(calendar({ kind: 'anchored', step: 2500, call }, from + 500, from, to)),
      [0.5, 3, 5.5, 8],
    );
    assert.deepEqual(seconds(calendar({ kind: 'seconds', seconds: [0, 1, 8], call }, 0, from, to)), [1, 8]);
  });
});
