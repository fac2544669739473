import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import type {
  ChronosError,
  NewSchedule,
  SchedulePatch,
  Scheduler,
  SchedulerEvents,
  StoredSchedule,
} from '../../src/index.js';
import { byHand, inProcess } from '../support/by-hand.js';
import { accountFor } from '../support/calendar.js';
import { nextEvent, recordEvents } from '../support/events.js';
import { failing, NO_STREAM } from '../support/fail-point.js';
import { after, START } from '../support/instants.js';
import { useSharedDatabase } from '../support/shared-database.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const LEFT_ALONE = 2 * SECOND;

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

  describe('addSchedule', () => {
    it('F1 what is said is stored, the rest is filled in', async () => {
      const { scheduler } = byHand(database, { timezone: 'Asia/Tokyo' });
      const id = await scheduler.addSchedule({
        taskType: 'sendDigest',
        cron: '0 8 * * MON',
        userId: 'u42',
        priority: 5,
        payload: { kind: 'weekly' },
      });
      assert.ok(id.length > 10);
      const schedule = (await scheduler.getSchedule(id))!;
      assert.deepEqual({ ...schedule, nextRuns: undefined }, {
        nextRuns: undefined,
        id,
        owner: 'api',
        taskType: 'sendDigest',
        rule: { cron: '0 8 * * MON', timezone: 'Asia/Tokyo' },
        payload: { kind: 'weekly' },
        queue: null,
        priority: 5,
        retries: null,
        timeout: null,
        maxRunningTime: null,
        misfire: { policy: 'once', within: DAY, cap: 100 },
        overlap: 'skip',
        jitter: 0,
        maxRuns: null,
        enabled: true,
        environments: [],
        userId: 'u42',
        rev: 0,
        isActive: true,
        paused: null,
        disabledReason: null,
        anchor: START,
        nextRunAt: new Date('2026-01-04T23:00:00Z'),
        lastRunAt: null,
        active: null,
        runs: 0,
        createdAt: START,
        updatedAt: START,
        waiting: 0,
      } satisfies Record<keyof StoredSchedule, unknown>);
      assert.notEqual(await scheduler.addSchedule({ taskType: 'sendDigest', cron: '@daily' }), id);
    });

    it('F1 every way to say when', async () => {
      const { scheduler } = byHand(database, { symbols: { EVERY_SHIFT: '0 6,14,22 * * *' } });
      const said: [Partial<NewSchedule>, string][] = [
        [{ cron: '*/15 * * * * *' }, '2026-01-01T00:00:15.000Z'],
        [{ cron: '@daily', timezone: 'Europe/Berlin' }, '2026-01-01T23:00:00.000Z'],
        [{ fields: { minutes: '*/15', hours: '9-17', wday: '1-5' } }, '2026-01-01T09:00:00.000Z'],
        [{ symbol: 'EVERY_DAY' }, '2026-01-01T02:10:00.000Z'],
        [{ symbol: 'EVERY_SHIFT' }, '2026-01-01T06:00:00.000Z'],
        [{ every: '90s' }, '2026-01-01T00:01:30.000Z'],
        [{ every: '1h', startsAt: '2026-01-03 05:30' }, '2026-01-03T05:30:00.000Z'],
        [{ hours: 9 }, '2026-01-01T09:00:00.000Z'],
        [{ minutes: [15, 45] }, '2026-01-01T00:15:00.000Z'],
        [{ weekdays: [1], hours: [7] }, '2026-01-05T07:00:00.000Z'],
        [
          { cron: '0 * * * *', between: ['22:00', '02:00'], except: ['2026-01-01'] },
          '2026-01-02T00:00:00.000Z',
        ],
      ];
      for (const [rule, next] of said) {
        const id = await scheduler.addSchedule({ taskType: 'work', ...rule });
        const { nextRunAt } = (await scheduler.getSchedule(id))!;
        assert.equal(nextRunAt?.toISOString(), next, JSON.stringify(rule));
      }
    });

    it('F1 an id that is taken is refused, by a stored schedule or by one in code', async () => {
      const { scheduler } = byHand(database);
      scheduler.schedule('coded', () => undefined).hourly();
      await scheduler.run();
      await scheduler.addSchedule({ id: 'stored', taskType: 'work', cron: '@daily' });
      const before = await database.collections.schedules.find().toArray();
      for (const id of ['stored', 'coded']) {
        const call = scheduler.addSchedule({ id, taskType: 'work', cron: '@hourly' });
        await assert.rejects(call, { code: 'SCHEDULE_EXISTS' });
      }
      assert.deepEqual(await database.collections.schedules.find().toArray(), before);
    });

    it('F1 isActive: false stores it paused; it begins when it is resumed', async () => {
      const { scheduler, clock } = byHand(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', isActive: false });
      assert.equal((await scheduler.getSchedule('s'))?.isActive, false);
      clock.advance(HOUR);
      await scheduler.run();
      assert.deepEqual(await ids('s'), []);
      assert.equal(await scheduler.updateSchedule('s', { isActive: true }), true);
      clock.advance(HOUR);
      await scheduler.run();
      assert.deepEqual(await ids('s'), ['s@2026-01-01T02:00:00.000Z']);
    });

    it('F1 bad options: every fault is named, in one error', async () => {
      const { scheduler } = byHand(database);
      const error = await rejected(
        scheduler.addSchedule({
          taskType: 'work',
          cron: '61 * * * *',
          timezone: 'Mars/Phobos',
          between: ['9', '25:00'],
          except: ['2026-02-30'],
          hours: 24,
          priority: -1,
          overlap: 'sometimes',
          misfire: { policy: 'never', cap: 0 },
          jitter: 'a while',
          maxRuns: 0,
          userId: '',
          environments: 'production',
          startsAt: 'soon',
          retries: { max: 0 },
          croon: '* * * * *',
        } as Anything),
      );
      assert.equal(error.code, 'INVALID_SCHEDULE');
      for (const path of [
        ...['cron', 'timezone', 'between', 'except[0]', 'hours', 'priority', 'overlap', 'misfire.policy'],
        ...['misfire.cap', 'jitter', 'maxRuns', 'userId', 'environments', 'startsAt', 'retries.max'],
      ])
        assert.ok(error.message.includes(`addSchedule().${path}`), `${path} in ${error.message}`);
      assert.match(error.message, /addSchedule\(\)\.croon is not an option.*did you mean 'cron'/);
      assert.equal(await database.collections.schedules.countDocuments(), 0);
    });

    it('F1 also together with an id, a task type or a payload that is no good', async () => {
      const { scheduler } = byHand(database);
      const error = await rejected(
        scheduler.addSchedule({
          id: 'a@b',
          taskType: 'c!d',
          cron: 'never',
          isActive: 'yes',
          payload: { run: () => undefined },
        } as Anything),
      );
      for (const part of [/id/, /task ?type/i, /cron/, /isActive/, /payload/])
        assert.match(error.message, part, error.message);
    });

    const refused: [string, unknown, ChronosError['code'], RegExp][] = [
      ['no rule', { taskType: 'work' }, 'INVALID_SCHEDULE', /needs a rule: cron, fields, symbol or every/],
      [
        'two bases',
        { taskType: 'work', cron: '@daily', every: '1h' },
        'INVALID_SCHEDULE',
        /exclude each other/,
      ],
      ['seven fields', { taskType: 'work', cron: '* * * * * * *' }, 'INVALID_SCHEDULE', /cron/],
      ['an empty cron', { taskType: 'work', cron: '' }, 'INVALID_SCHEDULE', /cron/],
      ['an unknown symbol', { taskType: 'work', symbol: 'EVERY_OUR' }, 'INVALID_SCHEDULE', /EVERY_HOUR/],
      ['a name of Object', { taskType: 'work', symbol: 'constructor' }, 'INVALID_SCHEDULE', /constructor/],
      ['an interval too short', { taskType: 'work', every: '500ms' }, 'INVALID_SCHEDULE', /at least 1000 ms/],
      [
        'a day that never comes',
        { taskType: 'work', cron: '0 0 30 2 *' },
        'SCHEDULE_NEVER_RUNS',
        /never runs/,
      ],
      [
        'nothing left of a rule',
        { taskType: 'work', cron: '0 5 * * *', hours: 6 },
        'SCHEDULE_NEVER_RUNS',
        /never/,
      ],
      [
        'an end before the start',
        { taskType: 'work', cron: '@daily', startsAt: '2027-01-02', endsAt: '2027-01-01' },
        'INVALID_SCHEDULE',
        /endsAt must not be before/,
      ],
      ['only limits', { taskType: 'work', between: ['09:00', '10:00'] }, 'INVALID_SCHEDULE', /narrow a rule/],
      ['no task type', { cron: '@daily' }, 'INVALID_ARGUMENT', /task type must be a string/],
      [
        'an operator for a task type',
        { taskType: { $ne: 1 }, cron: '@daily' },
        'INVALID_ARGUMENT',
        /task type/,
      ],
      [
        'an operator for a payload',
        { taskType: 'work', cron: '@daily', payload: { $x: 1 } },
        'INVALID_PAYLOAD',
        /\$/,
      ],
      ['a function', { taskType: 'work', cron: '@daily', payload: () => 1 }, 'INVALID_PAYLOAD', /payload/],
      [
        'a payload too large',
        { taskType: 'work', cron: '@daily', payload: 'x'.repeat(300_000) },
        'INVALID_PAYLOAD',
        /bytes/,
      ],
      [
        'isActive as text',
        { taskType: 'work', cron: '@daily', isActive: 'false' },
        'INVALID_SCHEDULE',
        /isActive/,
      ],
      ['null', null, 'INVALID_ARGUMENT', /takes an object, got null/],
      ['a list', [], 'INVALID_ARGUMENT', /takes an object/],
      ['text', '* * * * *', 'INVALID_ARGUMENT', /takes an object, got string/],
      [
        'a prototype in disguise',
        JSON.parse('{"taskType":"work","cron":"@daily","__proto__":{"priority":1}}'),
        'INVALID_SCHEDULE',
        /__proto__/,
      ],
    ];
    for (const [name, said, code, message] of refused) {
      it(`F1 D5 refused: ${name}`, async () => {
        const { scheduler } = byHand(database);
        const error = await rejected(scheduler.addSchedule(said as Anything));
        assert.deepEqual([error.code, message.test(error.message)], [code, true], error.message);
        assert.equal(await database.collections.schedules.countDocuments(), 0);
      });
    }

    it('F1 B16 a payload that the handler’s schema refuses', async () => {
      const { scheduler } = byHand(database);
      scheduler.registerHandler('mail', () => undefined, { schema: z.object({ to: z.string() }) });
      const call = (payload: unknown): Promise<string> =>
        scheduler.addSchedule({ taskType: 'mail', cron: '@daily', payload });
      await assert.rejects(call({ to: 5 }), { code: 'INVALID_PAYLOAD' });
      await call({ to: 'ada' });
    });
  });

  describe('ids from outside', () => {
    const calls: Record<string, (scheduler: Scheduler, id: string) => Promise<unknown>> = {
      getSchedule: (scheduler, id) => scheduler.getSchedule(id),
      updateSchedule: (scheduler, id) => scheduler.updateSchedule(id, { priority: 1 }),
      'updateSchedule isActive': (scheduler, id) => scheduler.updateSchedule(id, { isActive: false }),
      removeSchedule: (scheduler, id) => scheduler.removeSchedule(id),
      pauseSchedule: (scheduler, id) => scheduler.pauseSchedule(id),
      resumeSchedule: (scheduler, id) => scheduler.resumeSchedule(id),
      triggerSchedule: (scheduler, id) => scheduler.triggerSchedule(id),
      backfill: (scheduler, id) => scheduler.backfill(id, START, START),
      getSkips: (scheduler, id) => scheduler.getSkips(id),
      addSchedule: (scheduler, id) => scheduler.addSchedule({ id, taskType: 'work', cron: '@daily' }),
    };
    const hostile = [{ $gt: '' }, ['s'], null, 5, '', 's@1', 's!1', 's#1', 'x'.repeat(201), 'a\0b', '\ud800'];

    it('F1 what is no id is refused everywhere, and changes nothing', async () => {
      const { scheduler } = byHand(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '@daily' });
      const before = await database.collections.schedules.find().toArray();
      for (const [name, call] of Object.entries(calls)) {
        for (const id of hostile) {
          const error = await rejected(call(scheduler, id as Anything));
          assert.equal(error.code, 'INVALID_ARGUMENT', `${name}(${JSON.stringify(id)}): ${error.message}`);
        }
      }
      assert.deepEqual(await database.collections.schedules.find().toArray(), before);
    });

    it('F1 what is strange but text is an id like any other', async () => {
      const { scheduler, clock } = byHand(database);
      scheduler.registerHandler('work', () => undefined);
      const strange = ['__proto__', 'constructor', 'a.b', '$where', ' ', '日本', 'x'.repeat(200), '%2e/../'];
      for (const id of strange)
        assert.equal(await scheduler.addSchedule({ id, taskType: 'work', cron: '0 * * * *' }), id);
      clock.advance(HOUR);
      assert.equal(await scheduler.run(), strange.length);
      for (const id of strange) {
        assert.deepEqual(await ids(id), [`${id}@2026-01-01T01:00:00.000Z`]);
        assert.equal((await scheduler.getSchedule(id))?.id, id);
        const triggered = await scheduler.triggerSchedule(id);
        assert.ok(triggered.triggered && triggered.jobId.startsWith(`${id}!`));
        assert.equal(await scheduler.removeSchedule(id), true);
      }
    });

    it('F1 of one that does not exist: null, false, notFound or an error, never a new one', async () => {
      const { scheduler } = byHand(database);
      assert.equal(await scheduler.getSchedule('s'), null);
      assert.equal(await scheduler.updateSchedule('s', { priority: 1 }), false);
      assert.equal(await scheduler.updateSchedule('s', { isActive: true }), false);
      assert.equal(await scheduler.updateSchedule('s', {}), false);
      assert.equal(await scheduler.removeSchedule('s'), false);
      assert.equal(await scheduler.pauseSchedule('s'), false);
      assert.equal(await scheduler.resumeSchedule('s'), false);
      assert.deepEqual(await scheduler.triggerSchedule('s'), { triggered: false, reason: 'notFound' });
      await assert.rejects(scheduler.backfill('s', START, START), { code: 'SCHEDULE_NOT_FOUND' });
      assert.deepEqual(await scheduler.getSkips('s'), []);
      assert.equal(await database.collections.schedules.countDocuments(), 0);
    });
  });

  describe('updateSchedule', () => {
    it('F2 a changed cron recomputes the next run, from the change on', async () => {
      const { scheduler, clock } = byHand(database);
      scheduler.registerHandler('work', () => undefined);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      clock.advance(HOUR);
      await scheduler.run();
      clock.advance(20 * MINUTE);
      assert.equal(await scheduler.updateSchedule('s', { cron: '*/15 * * * *' }), true);
      const changed = await scheduler.getSchedule('s');
      assert.deepEqual(
        [changed?.nextRunAt, changed?.lastRunAt, changed?.runs, changed?.updatedAt],
        [after(HOUR + 30 * MINUTE), after(HOUR), 1, clock.now()],
      );
      assert.deepEqual(changed?.rule, { cron: '*/15 * * * *', timezone: 'UTC' });
      clock.advance(10 * MINUTE);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(await ids('s'), ['s@2026-01-01T01:00:00.000Z', 's@2026-01-01T01:30:00.000Z']);
      assert.deepEqual(await scheduler.getSkips('s'), []);
    });

    it('F2 so does a changed time zone, interval, window or limit', async () => {
      const { scheduler } = byHand(database);
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

    it('F2 what was due before the change and nobody decided on is recorded as skipped', async () => {
      const { scheduler, clock } = byHand(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      const rule = (await scheduler.getSchedule('s'))!.rule!;
      clock.advance(2 * HOUR + 10 * MINUTE);
      const changedAt = clock.now();
      await scheduler.updateSchedule('s', { cron: '30 * * * *' });
      clock.advance(20 * MINUTE);
      await scheduler.run();
      const skips = await scheduler.getSkips('s');
      assert.deepEqual(
        skips.map(({ at, until, reason }) => [at, until, reason]),
        [[after(HOUR), after(1, changedAt), 'changed']],
      );
      await database.collections.jobs.deleteMany();
      const span = { after: START, until: changedAt, rule };
      assert.deepEqual(await accountFor(database.collections, 's', span), ['changed', 'changed']);
    });

    it('F2 what is not the rule leaves the next run alone, also one that is due', async () => {
      const { scheduler, clock } = byHand(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      clock.advance(HOUR);
      const patch = { priority: 9, payload: { n: 2 }, queue: 'q', userId: 'ada', overlap: 'allow' } as const;
      assert.equal(await scheduler.updateSchedule('s', patch), true);
      assert.deepEqual((await scheduler.getSchedule('s'))?.nextRunAt, after(HOUR));
      await scheduler.run();
      const [job] = await database.collections.jobs.find().toArray();
      assert.deepEqual(
        [job?._id, job?.priority, job?.payload, job?.queue, job?.userId],
        ['s@2026-01-01T01:00:00.000Z', 9, { n: 2 }, 'q', 'ada'],
      );
    });

    it('F1 null takes something back', async () => {
      const { scheduler } = byHand(database);
      const said = {
        queue: 'q',
        timeout: '1m',
        maxRuns: 3,
        userId: 'ada',
        jitter: '1m',
        priority: 1,
      } as const;
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '@hourly', payload: 1, ...said });
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

    it('F1 undefined says nothing', async () => {
      const { scheduler } = byHand(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '@hourly', priority: 1, queue: 'q' });
      const nothing = { priority: undefined, cron: undefined, queue: undefined, taskType: undefined };
      assert.equal(await scheduler.updateSchedule('s', { ...nothing, userId: 'ada' } as Anything), true);
      const { priority, queue, userId, rule } = (await scheduler.getSchedule('s'))!;
      assert.deepEqual([priority, queue, userId, rule?.cron], [1, 'q', 'ada', '@hourly']);
    });

    it('F2 a rule of constraints alone stays what it is when something else changes', async () => {
      const { scheduler } = byHand(database);
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

    it('F1 isActive pauses and resumes, alone or with the rest', async () => {
      const { scheduler, clock } = byHand(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      assert.equal(await scheduler.updateSchedule('s', { isActive: false, priority: 3 }), true);
      clock.advance(HOUR);
      await scheduler.run();
      const paused = await scheduler.getSchedule('s');
      assert.deepEqual([paused?.isActive, paused?.priority, await ids('s')], [false, 3, []]);
      await scheduler.updateSchedule('s', { cron: '30 * * * *' });
      assert.equal((await scheduler.getSchedule('s'))?.isActive, false, 'a change does not resume it');
      assert.equal(await scheduler.updateSchedule('s', { isActive: true }), true);
      clock.advance(30 * MINUTE);
      await scheduler.run();
      assert.deepEqual(await ids('s'), ['s@2026-01-01T01:30:00.000Z']);
    });

    it('F1 enabled: false and back: what was due meanwhile is skipped', async () => {
      const { scheduler, clock } = byHand(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      await scheduler.updateSchedule('s', { enabled: false });
      clock.advance(2 * HOUR);
      await scheduler.run();
      assert.deepEqual(await ids('s'), []);
      await scheduler.updateSchedule('s', { enabled: true });
      clock.advance(HOUR);
      await scheduler.run();
      const span = { after: START, until: clock.now() };
      assert.deepEqual(await accountFor(database.collections, 's', span), ['changed', 'changed', 'job']);
    });

    it('F1 a patch that is no good changes nothing, and names every fault', async () => {
      const { scheduler } = byHand(database);
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
        const error = await rejected(scheduler.updateSchedule('s', patch as Anything));
        assert.match(error.code, /^INVALID_/, JSON.stringify(patch));
        const now = await database.collections.schedules.findOne({ _id: 's' });
        assert.deepEqual(now, before, JSON.stringify(patch));
      }
      const { message } = await rejected(scheduler.updateSchedule('s', patches[0] as Anything));
      for (const part of ['cron', 'priority', 'unknown'])
        assert.ok(message.includes(`updateSchedule().${part}`), message);
    });

    it('F1 an empty patch says whether it exists', async () => {
      const { scheduler } = byHand(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '@hourly' });
      assert.equal(await scheduler.updateSchedule('s', {}), true);
      assert.equal((await scheduler.getSchedule('s'))?.rev, 0);
    });

    it('F1 F3 many change it at once: none is lost', async () => {
      const clock = byHand(database).clock;
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
      const answers = await Promise.all(
        patches.map((patch, index) => schedulers[index % 3]!.updateSchedule('s', patch)),
      );
      assert.ok(answers.every((answer) => answer));
      const schedule = (await schedulers[0]!.getSchedule('s'))!;
      const { priority, queue, userId, jitter, maxRuns, overlap, timeout, isActive, rev } = schedule;
      assert.deepEqual(
        [priority, queue, userId, jitter, maxRuns, overlap, timeout, isActive, rev],
        [1, 'q', 'ada', SECOND, 9, 'allow', MINUTE, false, 8],
      );
    });

    it('F1 one that is defined in code is changed there, but paused and triggered from anywhere', async () => {
      const { scheduler, clock } = byHand(database);
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

  describe('removeSchedule', () => {
    it('F1 no more occurrences; the jobs it has made stay', async () => {
      const { scheduler, clock } = byHand(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      clock.advance(HOUR);
      await scheduler.run();
      assert.equal(await scheduler.removeSchedule('s'), true);
      assert.equal(await scheduler.removeSchedule('s'), false);
      clock.advance(HOUR);
      scheduler.registerHandler('work', () => undefined);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(await ids('s'), ['s@2026-01-01T01:00:00.000Z']);
    });

    it('F1 the id is free again, and begins anew', async () => {
      const { scheduler, clock } = byHand(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      clock.advance(HOUR);
      await scheduler.run();
      await scheduler.removeSchedule('s');
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      assert.deepEqual((await scheduler.getSchedule('s'))?.nextRunAt, after(2 * HOUR));
      await scheduler.run();
      assert.equal((await ids('s')).length, 1);
    });
  });

  describe('getSchedule and listSchedules', () => {
    it('B10 a preview of the next runs, from now or from when you like', async () => {
      const { scheduler } = byHand(database, { timezone: 'Europe/Berlin' });
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

    it('F1 in the order of their ids, by page and by what they are', async () => {
      const { scheduler } = byHand(database);
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

    it('F1 a query that is none is refused, with every fault', async () => {
      const { scheduler } = byHand(database);
      const query = { userId: { $ne: null }, owner: 'me', limit: 0, isActive: 'yes', where: '1' };
      const error = await rejected(scheduler.listSchedules(query as Anything));
      assert.equal(error.code, 'INVALID_ARGUMENT');
      for (const part of Object.keys(query)) assert.match(error.message, new RegExp(`\\.${part}`));
      for (const none of [null, 'all', 5])
        assert.equal((await rejected(scheduler.listSchedules(none as Anything))).code, 'INVALID_ARGUMENT');
    });
  });

  describe('pauseSchedule and resumeSchedule', () => {
    it('B8 F1 stored, with who and why; resuming goes on from then', async () => {
      const { scheduler, clock } = byHand(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      clock.advance(30 * MINUTE);
      assert.equal(await scheduler.pauseSchedule('s', { by: 'ada', reason: 'holidays' }), true);
      const paused = await scheduler.getSchedule('s');
      assert.deepEqual(
        [paused?.isActive, paused?.paused, paused?.updatedAt],
        [false, { at: after(30 * MINUTE), by: 'ada', reason: 'holidays' }, after(30 * MINUTE)],
      );
      clock.advance(2 * HOUR);
      await scheduler.run();
      assert.deepEqual([await ids('s'), await scheduler.getSkips('s')], [[], []]);
      assert.equal(await scheduler.resumeSchedule('s'), true);
      const resumed = await scheduler.getSchedule('s');
      assert.deepEqual(
        [resumed?.isActive, resumed?.paused, resumed?.nextRunAt],
        [true, null, after(3 * HOUR)],
      );
      assert.equal(await scheduler.resumeSchedule('s'), true, 'resuming what runs is no mistake');
      clock.advance(30 * MINUTE);
      await scheduler.run();
      const span = { after: START, until: clock.now() };
      assert.deepEqual(await accountFor(database.collections, 's', span), ['paused', 'paused', 'job']);
    });

    it('B8 options that are none are refused', async () => {
      const { scheduler } = byHand(database);
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

  describe('triggerSchedule', () => {
    it('F1 runs it once now, besides its occurrences', async () => {
      const { scheduler, clock } = byHand(database);
      const seen: unknown[] = [];
      scheduler.registerHandler('work', (payload, { schedule, userId }) =>
        seen.push([payload, schedule, userId]),
      );
      await scheduler.addSchedule({
        id: 's',
        taskType: 'work',
        cron: '0 * * * *',
        payload: 1,
        userId: 'ada',
      });
      const before = (await scheduler.getSchedule('s'))!;
      clock.advance(MINUTE);
      const answer = await scheduler.triggerSchedule('s');
      assert.ok(answer.triggered);
      assert.match(answer.jobId, /^s![0-9a-f-]{36}$/);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(seen, [[1, 's', 'ada']]);
      const { nextRunAt, lastRunAt, runs } = (await scheduler.getSchedule('s'))!;
      assert.deepEqual(
        { nextRunAt, lastRunAt, runs },
        { nextRunAt: before.nextRunAt, lastRunAt: null, runs: 0 },
      );
      clock.advance(59 * MINUTE);
      assert.equal(await scheduler.run(), 1);
    });

    it('F1 Y5 by its overlap policy: refused while one runs, which it names', async () => {
      const { scheduler, clock } = byHand(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      const first = await scheduler.triggerSchedule('s');
      assert.ok(first.triggered);
      clock.advance(MINUTE);
      assert.deepEqual(await scheduler.triggerSchedule('s'), {
        triggered: false,
        reason: 'running',
        jobId: first.jobId,
        runningFor: MINUTE,
      });
      // And it is a run like any other: an occurrence is skipped for it.
      clock.advance(59 * MINUTE);
      await scheduler.run();
      const [skip] = await scheduler.getSkips('s');
      assert.deepEqual([skip?.reason, skip?.activeId], ['overlap', first.jobId]);
    });

    it('F1 Y5 refused also for one that waits in line, which it names', async () => {
      const { scheduler, clock } = byHand(database);
      const misfire = { policy: 'all' } as const;
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', misfire });
      clock.advance(2 * HOUR);
      await scheduler.run();
      await scheduler.cancel('s@2026-01-01T01:00:00.000Z');
      const answer = await scheduler.triggerSchedule('s');
      assert.ok(!answer.triggered && answer.reason === 'running');
      assert.equal(answer.jobId, 's@2026-01-01T02:00:00.000Z');
    });

    it('F1 F3 by ten at once: one runs, nine are told', async () => {
      const clock = byHand(database).clock;
      const schedulers = Array.from({ length: 5 }, () => database.scheduler({ clock, lockTimeout: '1d' }));
      await schedulers[0]!.addSchedule({ id: 's', taskType: 'work', cron: '@daily' });
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, index) => schedulers[index % 5]!.triggerSchedule('s')),
      );
      assert.equal(answers.filter(({ triggered }) => triggered).length, 1);
      assert.equal((await ids('s')).length, 1);
    });

    it('F1 also while it is paused, or over', async () => {
      const { scheduler } = byHand(database);
      await scheduler.addSchedule({
        id: 's',
        taskType: 'work',
        cron: '@daily',
        endsAt: '2026-01-01T00:00:00Z',
      });
      await scheduler.pauseSchedule('s');
      assert.equal((await scheduler.triggerSchedule('s')).triggered, true);
      assert.equal((await ids('s')).length, 1);
    });
  });

  describe('backfill', () => {
    it('F1 D13 the jobs of past occurrences that have none, both ends included', async () => {
      const { scheduler, clock } = byHand(database);
      await scheduler.addSchedule({
        id: 's',
        taskType: 'work',
        cron: '0 * * * *',
        overlap: 'allow',
        userId: 'ada',
      });
      clock.advance(2 * HOUR);
      await scheduler.run();
      const before = (await scheduler.getSchedule('s'))!;
      const answer = await scheduler.backfill('s', '2025-12-31 21:00', '2026-01-01T02:00:00Z');
      assert.deepEqual(answer, { occurrences: 6, existing: 2 });
      assert.equal((await ids('s')).length, 6);
      const job = await scheduler.getJob('s@2025-12-31T21:00:00.000Z');
      assert.deepEqual([job?.scheduledFor, job?.userId], [new Date('2025-12-31T21:00:00Z'), 'ada']);
      const { nextRunAt, lastRunAt, runs } = (await scheduler.getSchedule('s'))!;
      assert.deepEqual([nextRunAt, lastRunAt, runs], [before.nextRunAt, before.lastRunAt, before.runs]);
      const again = await scheduler.backfill('s', '2025-12-31 21:00', '2026-01-01T02:00:00Z');
      assert.deepEqual(again, { occurrences: 6, existing: 6 });
    });

    it('F1 up to now, never ahead; an empty span is empty; texts without a zone are the application’s', async () => {
      const { scheduler, clock } = byHand(database, { timezone: 'Asia/Tokyo' });
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', overlap: 'allow' });
      clock.advance(90 * MINUTE);
      await scheduler.run();
      assert.deepEqual(await scheduler.backfill('s', '2026-01-01 10:00', '2026-01-02'), {
        occurrences: 1,
        existing: 1,
      });
      assert.deepEqual(await scheduler.backfill('s', '2026-01-02', '2026-01-01'), {
        occurrences: 0,
        existing: 0,
      });
    });

    it('F1 B10 one after another, oldest first, where they must not overlap', async () => {
      const { scheduler, clock } = byHand(database);
      const order: Date[] = [];
      scheduler.registerHandler('work', (_, { scheduledFor }) => void order.push(scheduledFor!));
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      const answer = await scheduler.backfill('s', after(-3 * HOUR), after(-HOUR));
      assert.deepEqual([answer, (await ids('s')).length], [{ occurrences: 3, existing: 0 }, 1]);
      for (let pass = 0; pass < 4; pass++) {
        await scheduler.run();
        clock.advance(LEFT_ALONE);
      }
      assert.deepEqual(order, [after(-3 * HOUR), after(-2 * HOUR), after(-HOUR)]);
    });

    it('F1 what was missed and skipped can be made up for later', async () => {
      const { scheduler, clock } = byHand(database);
      const misfire = { policy: 'skip' } as const;
      await scheduler.addSchedule({
        id: 's',
        taskType: 'work',
        cron: '0 * * * *',
        misfire,
        overlap: 'allow',
      });
      clock.advance(2 * HOUR + 30 * MINUTE);
      await scheduler.run();
      assert.deepEqual(await ids('s'), []);
      assert.deepEqual(await scheduler.backfill('s', START, clock.now()), { occurrences: 3, existing: 0 });
      assert.equal((await ids('s')).length, 3);
    });

    for (const overlap of ['skip', 'queue', 'replace', 'allow'] as const) {
      it(`F1 D13 ${overlap}: occurrences that are due and nobody has decided on yet run, once, and none is lost`, async () => {
        const { scheduler, clock } = byHand(database);
        scheduler.registerHandler('work', () => undefined);
        const misfire = { policy: 'all' } as const;
        await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', overlap, misfire });
        clock.advance(3 * HOUR + 30 * SECOND);
        const answer = await scheduler.backfill('s', after(1), clock.now());
        assert.deepEqual(answer, { occurrences: 3, existing: 0 });
        for (let pass = 0; pass < 5; pass++) {
          await scheduler.run();
          clock.advance(LEFT_ALONE);
        }
        const span = { after: START, until: clock.now() };
        assert.deepEqual(await accountFor(database.collections, 's', span), ['job', 'job', 'job']);
      });
    }

    it('F1 says before what it would come to, in pieces that it takes', async () => {
      const { scheduler, clock } = byHand(database);
      const { operations } = scheduler;
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '* * * * *', overlap: 'allow' });
      await scheduler.backfill('s', after(-9 * MINUTE), START);
      const preview = await operations.previewBackfill('s', after(-1200 * MINUTE), after(DAY));
      assert.deepEqual([preview.occurrences, preview.existing, preview.pieces.length], [1201, 10, 7]);
      const made = { occurrences: 0, existing: 0 };
      for (const { from, to } of preview.pieces) {
        const piece = await scheduler.backfill('s', from, to);
        made.occurrences += piece.occurrences;
        made.existing += piece.existing;
      }
      assert.deepEqual(made, { occurrences: 1201, existing: 10 });
      assert.equal(
        (await operations.previewBackfill('s', after(-1200 * MINUTE), clock.now())).existing,
        1201,
      );
      await assert.rejects(operations.previewBackfill('s', after(-20_000 * MINUTE), START), {
        code: 'INVALID_ARGUMENT',
        message: /at most 20000 jobs/,
      });
      await assert.rejects(operations.previewBackfill('nope', START, START), { code: 'SCHEDULE_NOT_FOUND' });
    });

    it('F1 more than a thousand at once, or no instants, are refused', async () => {
      const { scheduler } = byHand(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '* * * * *', overlap: 'allow' });
      const answer = await scheduler.backfill('s', after(-999 * MINUTE), START);
      assert.deepEqual(answer, { occurrences: 1000, existing: 0 });
      await assert.rejects(scheduler.backfill('s', after(-1000 * MINUTE), START), {
        code: 'INVALID_ARGUMENT',
        message: /at most 1000 jobs at once/,
      });
      for (const bad of ['yesterday', 5, null, new Date(NaN), { $gt: 1 }])
        await assert.rejects(scheduler.backfill('s', bad as Anything, START), { code: 'INVALID_ARGUMENT' });
    });
  });

  describe('getSkips', () => {
    it('D13 Y5 the last first, as many as wanted', async () => {
      const { scheduler, clock } = byHand(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      for (let hour = 0; hour < 4; hour++) {
        clock.advance(HOUR);
        await scheduler.run();
      }
      const times = async (limit?: number): Promise<Date[]> =>
        (await scheduler.getSkips('s', limit)).map(({ at }) => at);
      assert.deepEqual(await times(), [after(4 * HOUR), after(3 * HOUR), after(2 * HOUR)]);
      assert.deepEqual(await times(1), [after(4 * HOUR)]);
    });

    it('D13 a limit that is none is refused', async () => {
      const { scheduler } = byHand(database);
      for (const limit of [-1, 0, 1.5, 'all', {}, NaN, 1e9]) {
        const error = await rejected(scheduler.getSkips('s', limit as Anything));
        assert.equal(error.code, 'INVALID_ARGUMENT', JSON.stringify(limit));
      }
    });
  });

  describe('all workers follow', () => {
    /** A worker that polls once a minute, and another process that does not work at all. */
    async function apart(
      options: Parameters<typeof database.scheduler>[0] = {},
    ): Promise<{ worker: Scheduler; api: Scheduler }> {
      const worker = database.scheduler({ ...inProcess, pollInterval: '1m', ...options });
      worker.registerHandler('work', () => undefined);
      await worker.start();
      return { worker, api: database.scheduler(inProcess) };
    }

    it('F1 B2 a new schedule, a changed, a paused and a resumed one: within a second, although they poll once a minute', async () => {
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
      for (const late of lates) assert.ok(late >= 0 && late < SECOND, `${late} ms late`);
      await api.removeSchedule('s');
    });

    it('F1 B2 a change that comes while the stream opens is not overlooked', async () => {
      const api = database.scheduler(inProcess);
      assert.deepEqual(await api.listSchedules(), []);
      const opening = { ...NO_STREAM, how: 500, times: 1 } as const;
      const { late } = await failing(database, opening, async () => {
        const { worker } = await apart();
        // By now it has looked once, and its stream is not open.
        await pause(200);
        const due = nextEvent(worker, 'schedule:due');
        await api.addSchedule({ id: 's', taskType: 'work', every: '1s', maxRuns: 1 });
        return due;
      });
      assert.ok(late < SECOND, `${late} ms late`);
    });

    it('F1 without a change stream: within a poll', async () => {
      const worker = database.scheduler({ ...inProcess, pollInterval: '200ms' });
      worker.registerHandler('work', () => undefined);
      const trouble = nextEvent(
        worker,
        'worker:trouble',
        ({ operation }) => operation === 'watch for changes',
      );
      const { late } = await failing(database, NO_STREAM, async () => {
        await worker.start();
        await trouble;
        const due = nextEvent(worker, 'schedule:due');
        await database
          .scheduler(inProcess)
          .addSchedule({ id: 's', taskType: 'work', every: '1s', maxRuns: 1 });
        return due;
      });
      assert.ok(late < SECOND, `${late} ms late`);
    });
  });
});
