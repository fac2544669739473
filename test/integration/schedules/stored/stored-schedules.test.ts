import assert from 'node:assert/strict';
import type { PageOptions, Scheduler, SchedulerEvents } from '../../../../src/index.js';
import { manualScheduler, withoutRenewalThread } from '../../../support/manual-scheduler.js';
import { aSchedule } from '../../../support/factories/schedule.js';
import { nextEvent, recordEvents } from '../../../support/events.js';
import { withFailPoint, NO_STREAM } from '../../../support/fail-point.js';
import { timeAfter } from '../../../support/instants.js';
import { rejectionOf } from '../../../support/rejection.js';
import { jobIdsOf, outcomesUntil } from '../../../support/schedules.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const SECOND = 1000;
/** Far below the poll interval of a minute, far above the delay on a busy machine. */
const MAX_DELAY_MS = 10 * SECOND;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

describe('stored schedules', () => {
  const database = useSharedDatabase();

  describe('getSchedule() and listSchedules()', () => {
    it('preview the next runs, from now or from another time [B10]', async () => {
      const { scheduler } = manualScheduler(database, { timezone: 'Europe/Berlin' });
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '30 2 * * *' });
      const schedule = (await scheduler.getSchedule('s'))!;
      assert.deepEqual(schedule.nextRuns(2), [
        new Date('2026-01-01T01:30:00Z'),
        new Date('2026-01-02T01:30:00Z'),
      ]);
      assert.deepEqual(schedule.nextRuns(2, '2026-03-28 12:00'), [
        new Date('2026-03-29T01:00:00Z'),
        new Date('2026-03-30T00:30:00Z'),
      ]);
      assert.deepEqual(schedule.nextRuns(0), []);
      assert.throws(() => schedule.nextRuns(1, 'tomorrow'), { code: 'INVALID_ARGUMENT' });
    });

    it('return schedules in the order of their ids, by page and filter [F1]', async () => {
      const { scheduler } = manualScheduler(database);
      scheduler.schedule('coded', () => undefined).daily();
      await scheduler.run();
      for (const [id, userId, taskType] of [
        ['c', 'ada', 'mail'],
        ['a', 'ada', 'work'],
        ['b', 'eve', 'work'],
        ['d', 'eve', 'mail'],
      ] as const)
        await scheduler.addSchedule({ id, userId, taskType, cron: '@daily' });
      await scheduler.pauseSchedule('d');
      const list = async (query?: Parameters<Scheduler['listSchedules']>[0]): Promise<string> =>
        (await scheduler.listSchedules(query)).items.map(({ id }) => id).join(' ');
      assert.equal(await list(), 'a b c coded d');
      assert.equal(await list({ userId: 'ada' }), 'a c');
      assert.equal(await list({ taskType: 'work' }), 'a b');
      assert.equal(await list({ owner: 'code' }), 'coded');
      assert.equal(await list({ isActive: false }), 'd');
      assert.equal(await list({ userId: 'eve', isActive: true }), 'b');
      assert.equal(await list({ limit: 2 }), 'a b');
      const pages: string[] = [];
      for (let after: string | null = ''; after !== null;) {
        const query = { limit: 2, ...(after !== '' && { after }) };
        const page: Awaited<ReturnType<Scheduler['listSchedules']>> = await scheduler.listSchedules(query);
        pages.push(page.items.map(({ id }) => id).join(' '));
        after = page.next;
      }
      assert.deepEqual(pages, ['a b', 'c coded', 'd']);
      assert.equal((await scheduler.listSchedules({ limit: 5 })).next, null, 'a full last page');
    });

    it('return twenty schedules unless the query has a limit [F1]', async () => {
      const { scheduler } = manualScheduler(database);
      const ids = Array.from({ length: 21 }, (_, index) => `s-${String(index).padStart(2, '0')}`);
      await database.collections.schedules.insertMany(ids.map((_id) => aSchedule({ _id, owner: 'api' })));
      const first = await scheduler.listSchedules();
      assert.deepEqual(
        first.items.map(({ id }) => id),
        ids.slice(0, 20),
      );
      const last = await scheduler.listSchedules({ after: first.next ?? '' });
      assert.deepEqual([last.items.map(({ id }) => id), last.next], [['s-20'], null]);
    });

    it('report all problems of an invalid query [F1]', async () => {
      const { scheduler } = manualScheduler(database);
      const query = { userId: { $ne: null }, owner: 'me', limit: 0, isActive: 'yes', where: '1' };
      const error = await rejectionOf(scheduler.listSchedules(query as never));
      assert.equal(error.code, 'INVALID_ARGUMENT');
      for (const part of Object.keys(query)) assert.match(error.message, new RegExp(`\\.${part}`));
      for (const invalid of [null, 'all', 5])
        assert.equal((await rejectionOf(scheduler.listSchedules(invalid as never))).code, 'INVALID_ARGUMENT');
    });
  });

  describe('pauseSchedule() and resumeSchedule()', () => {
    it('store who paused and why, and resume from now on [B8] [F1]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      clock.advance(30 * MINUTE);
      assert.equal(await scheduler.pauseSchedule('s', { by: 'ada', reason: 'holidays' }), true);
      const paused = await scheduler.getSchedule('s');
      assert.deepEqual(
        [paused?.isActive, paused?.paused, paused?.updatedAt],
        [false, { at: timeAfter(30 * MINUTE), by: 'ada', reason: 'holidays' }, timeAfter(30 * MINUTE)],
      );
      clock.advance(2 * HOUR);
      await scheduler.run();
      assert.deepEqual([await jobIdsOf(database, 's'), (await scheduler.getSkips('s')).items], [[], []]);
      assert.equal(await scheduler.resumeSchedule('s'), true);
      const resumed = await scheduler.getSchedule('s');
      assert.deepEqual(
        [resumed?.isActive, resumed?.paused, resumed?.nextRunAt],
        [true, null, timeAfter(3 * HOUR)],
      );
      assert.equal(await scheduler.resumeSchedule('s'), true, 'resuming an active schedule is allowed');
      clock.advance(30 * MINUTE);
      await scheduler.run();
      assert.deepEqual(await outcomesUntil(database, clock.now()), ['paused', 'paused', 'job']);
    });

    it('reject invalid options [B8]', async () => {
      const { scheduler } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '@daily' });
      for (const options of [{ by: { $gt: '' } }, { reason: '' }, { why: 'because' }, null, 'because'])
        assert.equal(
          (await rejectionOf(scheduler.pauseSchedule('s', options as never))).code,
          'INVALID_ARGUMENT',
          JSON.stringify(options),
        );
      assert.equal((await scheduler.getSchedule('s'))?.isActive, true);
    });
  });

  describe('getSkips()', () => {
    it('returns the latest skips first, page by page [D13] [Y5]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      for (let hour = 0; hour < 4; hour++) {
        clock.advance(HOUR);
        await scheduler.run();
      }
      const read = async (query?: PageOptions): Promise<{ times: Date[]; next: string | null }> => {
        const { items, next } = await scheduler.getSkips('s', query);
        return { times: items.map(({ at }) => at), next };
      };
      const [last, second, first] = [4, 3, 2].map((hour) => timeAfter(hour * HOUR));
      assert.deepEqual(await read(), { times: [last, second, first], next: null });
      const page = await read({ limit: 2 });
      assert.deepEqual(page.times, [last, second]);
      assert.deepEqual(await read({ limit: 2, after: page.next ?? '' }), { times: [first], next: null });
      assert.equal((await read({ limit: 3 })).next, null, 'a full last page');
    });

    it('rejects an invalid query [D13]', async () => {
      const { scheduler } = manualScheduler(database);
      for (const query of [
        ...[-1, 0, 1.5, 'all', {}, NaN, 1e9].map((limit) => ({ limit })),
        ...[5, null, { after: 'b' }, { after: 7 }, { where: '1' }],
      ]) {
        const error = await rejectionOf(scheduler.getSkips('s', query as never));
        assert.equal(error.code, 'INVALID_ARGUMENT', JSON.stringify(query));
      }
    });
  });

  describe('changes of schedules', () => {
    function createWorker(pollInterval: string): Scheduler {
      const worker = database.scheduler({ ...withoutRenewalThread, pollInterval });
      worker.registerHandler('work', () => undefined);
      return worker;
    }

    it('reach workers at once, although they poll once a minute [F1] [B2]', async () => {
      const [worker, api] = [createWorker('1m'), database.scheduler(withoutRenewalThread)];
      await worker.start();
      const due = recordEvents(worker, 'schedule:due');
      const next = (id: string): Promise<SchedulerEvents['schedule:due']> =>
        nextEvent(worker, 'schedule:due', ({ scheduleId }) => scheduleId === id);

      const added = next('s');
      await api.addSchedule({ id: 's', taskType: 'work', every: '1s' });
      await api.addSchedule({ id: 'changed', taskType: 'work', cron: '0 0 1 1 *' });
      const lates = [(await added).late];

      const changed = next('changed');
      await api.pauseSchedule('s');
      // An occurrence up to now may have been planned before the pause, and be announced after it.
      const pausedBefore = withoutRenewalThread.clock.now();
      await api.updateSchedule('changed', { every: '1s', maxRuns: 1 });
      lates.push((await changed).late);
      const duringPause = due
        .map(({ event }) => event as SchedulerEvents['schedule:due'])
        .filter(({ scheduleId, scheduledFor }) => scheduleId === 's' && scheduledFor > pausedBefore);
      assert.deepEqual(duringPause, []);

      const resumed = next('s');
      await api.resumeSchedule('s');
      lates.push((await resumed).late);
      for (const late of lates) assert.ok(late >= 0 && late < MAX_DELAY_MS, `${late} ms late`);
      await api.removeSchedule('s');
    });

    it('are not missed while the change stream opens [F1] [B2]', async () => {
      await database.collections.schedules.insertOne(aSchedule({ _id: 'due at the start' }));
      const worker = createWorker('1m');
      const opening = { ...NO_STREAM, how: 500, times: 1 } as const;
      const { late } = await withFailPoint(database, opening, async () => {
        const checked = nextEvent(worker, 'schedule:due');
        await worker.start();
        // The worker has checked all schedules, and its stream is not open yet.
        await checked;
        const due = nextEvent(worker, 'schedule:due', ({ scheduleId }) => scheduleId === 's');
        await database
          .scheduler(withoutRenewalThread)
          .addSchedule({ id: 's', taskType: 'work', every: '1s', maxRuns: 1 });
        return due;
      });
      assert.ok(late < MAX_DELAY_MS, `${late} ms late`);
    });

    it('reach workers within a poll without a change stream [F1]', async () => {
      // With an open stream, polls are six times rarer, which would be too late here.
      const worker = createWorker('2s');
      const trouble = nextEvent(worker, 'worker:error', ({ operation }) => operation === 'watch changes');
      const { late } = await withFailPoint(database, NO_STREAM, async () => {
        await worker.start();
        await trouble;
        const due = nextEvent(worker, 'schedule:due');
        await database
          .scheduler(withoutRenewalThread)
          .addSchedule({ id: 's', taskType: 'work', every: '1s', maxRuns: 1 });
        return due;
      });
      assert.ok(late < MAX_DELAY_MS, `${late} ms late`);
    });
  });
});
