import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { ChronosError, Scheduler, SchedulerEvents } from '../../../../src/index.js';
import { manualScheduler, withoutRenewalThread } from '../../../support/manual-scheduler.js';
import { loadOutcomes } from '../../../support/occurrence-outcomes.js';
import { nextEvent, recordEvents } from '../../../support/events.js';
import { withFailPoint, NO_STREAM } from '../../../support/fail-point.js';
import { timeAfter, START } from '../../../support/instants.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const SECOND = 1000;
/** Far below the poll interval of a minute, far above what a busy machine takes. */
const PROMPT = 10 * SECOND;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Whatever a program without types, or a request from outside, may pass. */
type Anything = never;

describe('stored schedules', () => {
  const database = useSharedDatabase();

  async function rejected(call: Promise<unknown>): Promise<ChronosError> {
    return call.then(
      () => assert.fail('it was accepted'),
      (error: unknown) => error as ChronosError,
    );
  }

  async function ids(schedule: string): Promise<string[]> {
    const jobs = await database.collections.jobs.find({ schedule }, { sort: { _id: 1 } }).toArray();
    return jobs.map(({ _id }) => _id);
  }

  describe('getSchedule() and listSchedules()', () => {
    it('preview the next runs, from now or any other time [B10]', async () => {
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
        (await scheduler.listSchedules(query)).map(({ id }) => id).join(' ');
      assert.equal(await list(), 'a b c coded d');
      assert.equal(await list({ userId: 'ada' }), 'a c');
      assert.equal(await list({ taskType: 'work' }), 'a b');
      assert.equal(await list({ owner: 'code' }), 'coded');
      assert.equal(await list({ isActive: false }), 'd');
      assert.equal(await list({ userId: 'eve', isActive: true }), 'b');
      assert.equal(await list({ limit: 2 }), 'a b');
      assert.equal(await list({ limit: 2, after: 'b' }), 'c coded');
      assert.equal(await list({ after: 'd' }), '');
    });

    it('report all problems of an invalid query [F1]', async () => {
      const { scheduler } = manualScheduler(database);
      const query = { userId: { $ne: null }, owner: 'me', limit: 0, isActive: 'yes', where: '1' };
      const error = await rejected(scheduler.listSchedules(query as Anything));
      assert.equal(error.code, 'INVALID_ARGUMENT');
      for (const part of Object.keys(query)) assert.match(error.message, new RegExp(`\\.${part}`));
      for (const none of [null, 'all', 5])
        assert.equal((await rejected(scheduler.listSchedules(none as Anything))).code, 'INVALID_ARGUMENT');
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
      assert.deepEqual([await ids('s'), await scheduler.getSkips('s')], [[], []]);
      assert.equal(await scheduler.resumeSchedule('s'), true);
      const resumed = await scheduler.getSchedule('s');
      assert.deepEqual(
        [resumed?.isActive, resumed?.paused, resumed?.nextRunAt],
        [true, null, timeAfter(3 * HOUR)],
      );
      assert.equal(await scheduler.resumeSchedule('s'), true, 'resuming what runs is no mistake');
      clock.advance(30 * MINUTE);
      await scheduler.run();
      const span = { after: START, until: clock.now() };
      assert.deepEqual(await loadOutcomes(database.collections, 's', span), ['paused', 'paused', 'job']);
    });

    it('reject invalid options [B8]', async () => {
      const { scheduler } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '@daily' });
      for (const options of [{ by: { $gt: '' } }, { reason: '' }, { why: 'because' }, null, 'because'])
        assert.equal(
          (await rejected(scheduler.pauseSchedule('s', options as Anything))).code,
          'INVALID_ARGUMENT',
          JSON.stringify(options),
        );
      assert.equal((await scheduler.getSchedule('s'))?.isActive, true);
    });
  });

  describe('getSkips()', () => {
    it('returns the latest skips first, up to the limit [D13] [Y5]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      for (let hour = 0; hour < 4; hour++) {
        clock.advance(HOUR);
        await scheduler.run();
      }
      const times = async (limit?: number): Promise<Date[]> =>
        (await scheduler.getSkips('s', limit)).map(({ at }) => at);
      assert.deepEqual(await times(), [timeAfter(4 * HOUR), timeAfter(3 * HOUR), timeAfter(2 * HOUR)]);
      assert.deepEqual(await times(1), [timeAfter(4 * HOUR)]);
    });

    it('rejects an invalid limit [D13]', async () => {
      const { scheduler } = manualScheduler(database);
      for (const limit of [-1, 0, 1.5, 'all', {}, NaN, 1e9]) {
        const error = await rejected(scheduler.getSkips('s', limit as Anything));
        assert.equal(error.code, 'INVALID_ARGUMENT', JSON.stringify(limit));
      }
    });
  });

  describe('changes of schedules', () => {
    /** A worker that polls once a minute, and another process that does not work at all. */
    async function apart(
      options: Parameters<typeof database.scheduler>[0] = {},
    ): Promise<{ worker: Scheduler; api: Scheduler }> {
      const worker = database.scheduler({ ...withoutRenewalThread, pollInterval: '1m', ...options });
      worker.registerHandler('work', () => undefined);
      await worker.start();
      return { worker, api: database.scheduler(withoutRenewalThread) };
    }

    it('that are added, changed, paused or resumed reach workers at once, although they poll once a minute [F1] [B2]', async () => {
      const { worker, api } = await apart();
      const due = recordEvents(worker, 'schedule:due');
      const next = (id: string): Promise<SchedulerEvents['schedule:due']> =>
        nextEvent(worker, 'schedule:due', ({ scheduleId }) => scheduleId === id);

      const added = next('s');
      await api.addSchedule({ id: 's', taskType: 'work', every: '1s' });
      await api.addSchedule({ id: 'changed', taskType: 'work', cron: '0 0 1 1 *' });
      const lates = [(await added).late];

      const changed = next('changed');
      await api.pauseSchedule('s');
      const before = due.length;
      await api.updateSchedule('changed', { every: '1s', maxRuns: 1 });
      lates.push((await changed).late);
      const ofPaused = due
        .slice(before)
        .filter(({ event }) => (event as { scheduleId: string }).scheduleId === 's');
      assert.deepEqual(ofPaused, []);

      const resumed = next('s');
      await api.resumeSchedule('s');
      lates.push((await resumed).late);
      for (const late of lates) assert.ok(late >= 0 && late < PROMPT, `${late} ms late`);
      await api.removeSchedule('s');
    });

    it('that happen while the change stream opens are not missed [F1] [B2]', async () => {
      const api = database.scheduler(withoutRenewalThread);
      assert.deepEqual(await api.listSchedules(), []);
      const opening = { ...NO_STREAM, how: 500, times: 1 } as const;
      const { late } = await withFailPoint(database, opening, async () => {
        const { worker } = await apart();
        // By now it has looked once, and its stream is not open.
        await pause(200);
        const due = nextEvent(worker, 'schedule:due');
        await api.addSchedule({ id: 's', taskType: 'work', every: '1s', maxRuns: 1 });
        return due;
      });
      assert.ok(late < PROMPT, `${late} ms late`);
    });

    it('reach workers within a poll without a change stream [F1]', async () => {
      // With a healthy stream polls come six times less often, which would be too late here.
      const worker = database.scheduler({ ...withoutRenewalThread, pollInterval: '2s' });
      worker.registerHandler('work', () => undefined);
      const trouble = nextEvent(worker, 'worker:trouble', ({ operation }) => operation === 'watch changes');
      const { late } = await withFailPoint(database, NO_STREAM, async () => {
        await worker.start();
        await trouble;
        const due = nextEvent(worker, 'schedule:due');
        await database
          .scheduler(withoutRenewalThread)
          .addSchedule({ id: 's', taskType: 'work', every: '1s', maxRuns: 1 });
        return due;
      });
      assert.ok(late < PROMPT, `${late} ms late`);
    });
  });
});
