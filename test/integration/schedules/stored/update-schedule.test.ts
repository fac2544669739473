import assert from 'node:assert/strict';
import type { SchedulePatch } from '../../../../src/index.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { manualScheduler } from '../../../support/manual-scheduler.js';
import { loadOutcomes } from '../../../support/occurrence-outcomes.js';
import { timeAfter, START } from '../../../support/instants.js';
import { rejectionOf } from '../../../support/rejection.js';
import { jobIdsOf, outcomesUntil } from '../../../support/schedules.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

describe('stored schedules', () => {
  const database = useSharedDatabase();

  describe('updateSchedule()', () => {
    it('recomputes the next run from now on when cron changes [F2]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      scheduler.registerHandler('work', () => undefined);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      clock.advance(HOUR);
      await scheduler.run();
      clock.advance(20 * MINUTE);
      assert.equal(await scheduler.updateSchedule('s', { cron: '*/15 * * * *' }), true);
      const changed = await scheduler.getSchedule('s');
      assert.deepEqual(
        [changed?.nextRunAt, changed?.lastRunAt, changed?.runs, changed?.updatedAt],
        [timeAfter(HOUR + 30 * MINUTE), timeAfter(HOUR), 1, clock.now()],
      );
      assert.deepEqual(changed?.rule, { cron: '*/15 * * * *', timezone: 'UTC' });
      clock.advance(10 * MINUTE);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(await jobIdsOf(database, 's'), [
        's@2026-01-01T01:00:00.000Z',
        's@2026-01-01T01:30:00.000Z',
      ]);
      assert.deepEqual((await scheduler.getSkips('s')).items, []);
    });

    it('recomputes the next run when the time zone, interval, window or limit changes [F2]', async () => {
      const { scheduler } = manualScheduler(database);
      const patches: [SchedulePatch, string | undefined][] = [
        [{ timezone: 'Asia/Kolkata' }, '2026-01-01T02:30:00.000Z'],
        [{ hours: 9 }, undefined],
        [{ cron: '0 */2 * * *', hours: [10] }, '2026-01-01T04:30:00.000Z'],
        [{ hours: null, except: ['2026-01-01'] }, '2026-01-01T18:30:00.000Z'],
        [{ except: null, startsAt: '2026-02-01T00:00:00Z' }, '2026-02-01T00:30:00.000Z'],
        [{ every: '7h' }, '2026-02-01T00:00:00.000Z'],
        [{ startsAt: null }, '2026-01-01T07:00:00.000Z'],
        [{ fields: { minutes: 5, hours: 6 }, timezone: 'UTC' }, '2026-01-01T06:05:00.000Z'],
      ];
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 8 * * *' });
      for (const [patch, next] of patches) {
        const call = scheduler.updateSchedule('s', patch);
        if (next === undefined) await assert.rejects(call, { code: 'SCHEDULE_NEVER_RUNS' });
        else {
          assert.equal(await call, true);
          const { nextRunAt } = (await scheduler.getSchedule('s'))!;
          assert.equal(nextRunAt?.toISOString(), next, JSON.stringify(patch));
        }
      }
    });

    it('records occurrences that were due before the change, but not planned yet, as skipped [F2]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      const rule = (await scheduler.getSchedule('s'))!.rule!;
      clock.advance(2 * HOUR + 10 * MINUTE);
      const changedAt = clock.now();
      await scheduler.updateSchedule('s', { cron: '30 * * * *' });
      clock.advance(20 * MINUTE);
      await scheduler.run();
      const { items: skips } = await scheduler.getSkips('s');
      assert.deepEqual(
        skips.map(({ at, until, reason }) => [at, until, reason]),
        [[timeAfter(HOUR), timeAfter(1, changedAt), 'changed']],
      );
      await database.collections.jobs.deleteMany();
      const span = { after: START, until: changedAt, rule };
      assert.deepEqual(await loadOutcomes(database.stored, 's', span), ['changed', 'changed']);
    });

    it('keeps the next run when the rule does not change, even if it is due [F2]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      clock.advance(HOUR);
      const patch = { priority: 9, payload: { n: 2 }, queue: 'q', userId: 'ada', overlap: 'allow' } as const;
      assert.equal(await scheduler.updateSchedule('s', patch), true);
      assert.deepEqual((await scheduler.getSchedule('s'))?.nextRunAt, timeAfter(HOUR));
      await scheduler.run();
      const [job] = await database.collections.jobs.find().toArray();
      assert.deepEqual(
        [job?._id, job?.priority, job?.payload, job?.queue, job?.userId],
        ['s@2026-01-01T01:00:00.000Z', 9, { n: 2 }, 'q', 'ada'],
      );
    });

    it('removes a setting with null [F1]', async () => {
      const { scheduler } = manualScheduler(database);
      const settings = {
        queue: 'q',
        timeout: '1m',
        maxRuns: 3,
        userId: 'ada',
        jitter: '1m',
        priority: 1,
      } as const;
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '@hourly', payload: 1, ...settings });
      const none = { queue: null, timeout: null, maxRuns: null, userId: null, jitter: null, priority: null };
      assert.equal(await scheduler.updateSchedule('s', { ...none, payload: null }), true);
      const schedule = (await scheduler.getSchedule('s'))!;
      const { queue, timeout, maxRuns, userId, jitter, priority, payload } = schedule;
      assert.deepEqual(
        { queue, timeout, maxRuns, userId, jitter, priority, payload },
        { ...none, jitter: 0, priority: 100, payload: null },
      );
      await assert.rejects(scheduler.updateSchedule('s', { cron: null }), { code: 'INVALID_SCHEDULE' });
      await assert.rejects(scheduler.updateSchedule('s', { taskType: null }), { code: 'INVALID_ARGUMENT' });
    });

    it('ignores undefined [F1]', async () => {
      const { scheduler } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '@hourly', priority: 1, queue: 'q' });
      const nothing = { priority: undefined, cron: undefined, queue: undefined, taskType: undefined };
      assert.equal(await scheduler.updateSchedule('s', { ...nothing, userId: 'ada' } as never), true);
      const { priority, queue, userId, rule } = (await scheduler.getSchedule('s'))!;
      assert.deepEqual([priority, queue, userId, rule?.cron], [1, 'q', 'ada', '@hourly']);
    });

    it('keeps a rule that has only constraints when other settings change [F2]', async () => {
      const { scheduler } = manualScheduler(database);
      for (const rule of [
        { hours: 9 },
        { minutes: 30 },
        { weekdays: [1, 2] },
        { months: 3 },
        { seconds: 10 },
      ]) {
        const id = await scheduler.addSchedule({ taskType: 'work', ...rule });
        const before = (await scheduler.getSchedule(id))!;
        assert.equal(await scheduler.updateSchedule(id, { priority: 1 }), true, JSON.stringify(rule));
        const changed = (await scheduler.getSchedule(id))!;
        assert.deepEqual([changed.rule, changed.nextRunAt], [before.rule, before.nextRunAt]);
      }
    });

    it('pauses and resumes with isActive, alone or with other settings [F1]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      assert.equal(await scheduler.updateSchedule('s', { isActive: false, priority: 3 }), true);
      clock.advance(HOUR);
      await scheduler.run();
      const paused = await scheduler.getSchedule('s');
      assert.deepEqual([paused?.isActive, paused?.priority, await jobIdsOf(database, 's')], [false, 3, []]);
      await scheduler.updateSchedule('s', { cron: '30 * * * *' });
      assert.equal((await scheduler.getSchedule('s'))?.isActive, false, 'a change does not resume it');
      assert.equal(await scheduler.updateSchedule('s', { isActive: true }), true);
      clock.advance(30 * MINUTE);
      await scheduler.run();
      assert.deepEqual(await jobIdsOf(database, 's'), ['s@2026-01-01T01:30:00.000Z']);
    });

    it('skips occurrences that were due while enabled was false [F1]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      await scheduler.updateSchedule('s', { enabled: false });
      clock.advance(2 * HOUR);
      await scheduler.run();
      assert.deepEqual(await jobIdsOf(database, 's'), []);
      await scheduler.updateSchedule('s', { enabled: true });
      clock.advance(HOUR);
      await scheduler.run();
      assert.deepEqual(await outcomesUntil(database, clock.now()), ['changed', 'changed', 'job']);
    });

    it('reports all problems of an invalid patch and changes nothing [F1]', async () => {
      const { scheduler } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '@hourly' });
      const before = await database.collections.schedules.findOne({ _id: 's' });
      const patches: unknown[] = [
        { cron: 'x', priority: 5000, unknown: 1 },
        { id: 't' },
        { isActive: 'false' },
        { isActive: 0 },
        { cron: 'x', isActive: false },
        { cron: '@daily', every: '1h' },
        { payload: { $set: 1 } },
        null,
        [],
        'pause',
        JSON.parse('{"__proto__": {"cron": "@daily"}}'),
      ];
      for (const patch of patches) {
        const error = await rejectionOf(scheduler.updateSchedule('s', patch as never));
        assert.match(error.code, /^INVALID_/, JSON.stringify(patch));
        const now = await database.collections.schedules.findOne({ _id: 's' });
        assert.deepEqual(now, before, JSON.stringify(patch));
      }
      const { message } = await rejectionOf(scheduler.updateSchedule('s', patches[0] as never));
      for (const part of ['cron', 'priority', 'unknown'])
        assert.ok(message.includes(`updateSchedule().${part}`), message);
    });

    it('with an empty patch returns whether the schedule exists [F1]', async () => {
      const { scheduler } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '@hourly' });
      assert.equal(await scheduler.updateSchedule('s', {}), true);
      assert.equal((await scheduler.getSchedule('s'))?.rev, 0);
    });

    it('loses no change when several are made at once [F1] [F3]', async () => {
      const clock = new ManualClock();
      const schedulers = Array.from({ length: 3 }, () => database.scheduler({ clock, lockTimeout: '1d' }));
      await schedulers[0]!.addSchedule({ id: 's', taskType: 'work', cron: '@hourly' });
      const patches: SchedulePatch[] = [
        { priority: 1 },
        { queue: 'q' },
        { userId: 'ada' },
        { jitter: '1s' },
        { maxRuns: 9 },
        { overlap: 'allow' },
        { timeout: '1m' },
        { isActive: false },
      ];
      const results = await Promise.all(
        patches.map((patch, index) => schedulers[index % 3]!.updateSchedule('s', patch)),
      );
      assert.ok(results.every(Boolean));
      const schedule = (await schedulers[0]!.getSchedule('s'))!;
      const { priority, queue, userId, jitter, maxRuns, overlap, timeout, isActive, rev } = schedule;
      assert.deepEqual(
        [priority, queue, userId, jitter, maxRuns, overlap, timeout, isActive, rev],
        [1, 'q', 'ada', SECOND, 9, 'allow', MINUTE, false, 8],
      );
    });

    it('rejects changes of a definition in code, which can still be paused and triggered [F1]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      scheduler.schedule('coded', () => undefined).hourly();
      await scheduler.run();
      const before = await database.collections.schedules.findOne({ _id: 'coded' });
      const other = database.scheduler({ clock, lockTimeout: '1d' });
      for (const patch of [{ priority: 1 }, { cron: '@daily' }, { cron: '@daily', isActive: false }])
        await assert.rejects(other.updateSchedule('coded', patch), { code: 'SCHEDULE_IN_CODE' });
      assert.deepEqual(await database.collections.schedules.findOne({ _id: 'coded' }), before);

      assert.equal(await other.pauseSchedule('coded', { by: 'ada', reason: 'holidays' }), true);
      clock.advance(HOUR);
      assert.equal(await scheduler.run(), 0);
      assert.equal((await other.triggerSchedule('coded')).triggered, true);
      assert.equal(await scheduler.run(), 1);
      assert.equal(await other.updateSchedule('coded', { isActive: true }), true);
      clock.advance(HOUR);
      assert.equal(await scheduler.run(), 1);
    });
  });

  describe('removeSchedule()', () => {
    it('ends the schedule and keeps its existing jobs [F1]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      clock.advance(HOUR);
      await scheduler.run();
      assert.equal(await scheduler.removeSchedule('s'), true);
      assert.equal(await scheduler.removeSchedule('s'), false);
      clock.advance(HOUR);
      scheduler.registerHandler('work', () => undefined);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(await jobIdsOf(database, 's'), ['s@2026-01-01T01:00:00.000Z']);
    });

    it('frees the id for a new schedule, which starts from now [F1]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      clock.advance(HOUR);
      await scheduler.run();
      await scheduler.removeSchedule('s');
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      assert.deepEqual((await scheduler.getSchedule('s'))?.nextRunAt, timeAfter(2 * HOUR));
      await scheduler.run();
      assert.equal((await jobIdsOf(database, 's')).length, 1);
    });
  });
});
