import assert from 'node:assert/strict';
import type { ScheduleUpsert } from '../../../../src/index.js';
import type { ScheduleDocument } from '../../../../src/domain/schedule/schedule.js';
import { timeAfter } from '../../../support/instants.js';
import { manualScheduler } from '../../../support/manual-scheduler.js';
import { rejectionOf } from '../../../support/rejection.js';
import { jobIdsOf } from '../../../support/schedules.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const HOUR = 3_600_000;
const HOURLY: ScheduleUpsert = { id: 's', taskType: 'work', cron: '0 * * * *', payload: { n: 1 } };

describe('stored schedules', () => {
  const database = useSharedDatabase();

  async function stored(): Promise<ScheduleDocument> {
    return (await database.collections.schedules.findOne({ _id: 's' }))!;
  }

  describe('upsertSchedule()', () => {
    it('of a program that starts three times stores one schedule and writes once [F1]', async () => {
      const results: string[] = [];
      for (let start = 0; start < 3; start++) {
        const { scheduler, clock } = manualScheduler(database);
        clock.advance(start * 1000);
        results.push((await scheduler.upsertSchedule(HOURLY)).result);
        await scheduler.stop();
      }
      assert.deepEqual(results, ['created', 'unchanged', 'unchanged']);
      const schedules = await database.collections.schedules.find().toArray();
      assert.deepEqual(
        schedules.map(({ _id, rev, owner, updatedAt }) => [_id, rev, owner, updatedAt]),
        [['s', 0, 'api', timeAfter(0)]],
      );
    });

    it('by several processes at once ends with one schedule and no error [F1]', async () => {
      const schedulers = Array.from({ length: 8 }, () => manualScheduler(database).scheduler);
      const upsertAll = async (schedule: ScheduleUpsert): Promise<Record<string, number>> => {
        const results = await Promise.all(schedulers.map((one) => one.upsertSchedule(schedule)));
        const count = (result: string): number => results.filter((one) => one.result === result).length;
        return { created: count('created'), updated: count('updated'), unchanged: count('unchanged') };
      };
      assert.deepEqual(await upsertAll(HOURLY), { created: 1, updated: 0, unchanged: 7 });
      assert.deepEqual(await upsertAll({ ...HOURLY, priority: 5 }), { created: 0, updated: 1, unchanged: 7 });
      assert.equal(await database.collections.schedules.countDocuments(), 1);
      assert.deepEqual([(await stored()).rev, (await stored()).priority], [1, 5]);
    });

    it('replaces the whole definition: a setting that is left out gets its default [F1]', async () => {
      const { scheduler } = manualScheduler(database);
      await scheduler.upsertSchedule({
        ...HOURLY,
        queue: 'mail',
        maxRuns: 3,
        overlap: 'allow',
        timezone: 'Asia/Tokyo',
      });
      const { result } = await scheduler.upsertSchedule({ id: 's', taskType: 'other', every: '1h' });
      const { taskType, payload, queue, maxRuns, overlap, rule } = await stored();
      assert.equal(result, 'updated');
      assert.deepEqual(
        { taskType, payload, queue, maxRuns, overlap, rule },
        {
          ...{ taskType: 'other', payload: null, queue: null, maxRuns: null, overlap: 'skip' },
          rule: { every: HOUR, timezone: 'UTC' },
        },
      );
    });

    it('does not rewind: what ran counts, and an unchanged rule continues where it was [F1]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      scheduler.registerHandler('work', () => undefined);
      await scheduler.upsertSchedule(HOURLY);
      clock.advance(HOUR);
      await scheduler.run();
      clock.advance(HOUR);
      // An occurrence is due and not decided yet.
      await scheduler.upsertSchedule({ ...HOURLY, payload: { n: 2 } });
      const { runs, anchor, lastRunAt, nextRunAt } = await stored();
      assert.deepEqual(
        [runs, anchor, lastRunAt, nextRunAt],
        [1, timeAfter(0), timeAfter(HOUR), timeAfter(2 * HOUR)],
      );
      await scheduler.run();
      assert.deepEqual(await jobIdsOf(database, 's'), [
        's@2026-01-01T01:00:00.000Z',
        's@2026-01-01T02:00:00.000Z',
      ]);
    });

    it('leaves a paused schedule paused, whether the definition changes or not [F1]', async () => {
      const { scheduler } = manualScheduler(database);
      await scheduler.upsertSchedule(HOURLY);
      await scheduler.pauseSchedule('s', { by: 'ada', reason: 'holidays' });
      const paused = await stored();
      assert.equal((await scheduler.upsertSchedule(HOURLY)).result, 'unchanged');
      assert.deepEqual(await stored(), paused);
      assert.equal((await scheduler.upsertSchedule({ ...HOURLY, cron: '@daily' })).result, 'updated');
      const changed = await stored();
      assert.deepEqual([changed.isActive, changed.paused], [false, paused.paused]);
    });

    it('enables a schedule again that was disabled because of its rule, like updateSchedule() [F1]', async () => {
      const { scheduler } = manualScheduler(database);
      await scheduler.upsertSchedule(HOURLY);
      const broken = { isActive: false, disabledReason: 'invalid', rule: { cron: 'x', timezone: 'UTC' } };
      await database.collections.schedules.updateOne({ _id: 's' }, { $set: broken });
      assert.equal((await scheduler.upsertSchedule(HOURLY)).result, 'updated');
      const { isActive, disabledReason, rule } = await stored();
      assert.deepEqual([isActive, disabledReason, rule?.cron], [true, null, HOURLY.cron]);
    });

    it('rejects the id of a schedule in code [F1]', async () => {
      const { scheduler } = manualScheduler(database);
      scheduler.schedule('s', () => undefined).hourly();
      await scheduler.run();
      const before = await stored();
      assert.equal((await rejectionOf(scheduler.upsertSchedule(HOURLY))).code, 'SCHEDULE_IN_CODE');
      assert.deepEqual(await stored(), before);
    });

    it('needs an id, and says why [F1]', async () => {
      const { scheduler } = manualScheduler(database);
      const { code, message } = await rejectionOf(
        scheduler.upsertSchedule({ taskType: 'work', cron: '@daily' } as ScheduleUpsert),
      );
      assert.equal(code, 'INVALID_ARGUMENT');
      assert.match(message, /needs an id: without one, every start of the program would store another/);
    });

    it('rejects isActive and invalid settings, and stores nothing [F1]', async () => {
      const { scheduler } = manualScheduler(database);
      for (const [input, error] of [
        [{ ...HOURLY, isActive: true }, /does not take isActive, .* use pauseSchedule/],
        [{ ...HOURLY, cron: '61 * * * *' }, /upsertSchedule\(\)\.cron/],
        [{ ...HOURLY, croon: '@daily' }, /croon/],
        [{ id: 's', taskType: 'work' }, /needs a rule/],
        [{ ...HOURLY, id: 'a@b' }, /the id of a schedule must not contain/],
        [null, /must be an object, got null/],
      ] as const)
        assert.match((await rejectionOf(scheduler.upsertSchedule(input as ScheduleUpsert))).message, error);
      assert.equal(await database.collections.schedules.countDocuments(), 0);
    });
  });
});
