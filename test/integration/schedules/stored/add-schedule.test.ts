import assert from 'node:assert/strict';
import { z } from 'zod';
import type { ChronosError, NewSchedule, Scheduler, StoredSchedule } from '../../../../src/index.js';
import { manualScheduler } from '../../../support/manual-scheduler.js';
import { START } from '../../../support/instants.js';
import { rejectionOf } from '../../../support/rejection.js';
import { jobIdsOf } from '../../../support/schedules.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe('stored schedules', () => {
  const database = useSharedDatabase();

  describe('addSchedule()', () => {
    it('stores the settings and fills in the defaults [F1]', async () => {
      const { scheduler } = manualScheduler(database, { timezone: 'Asia/Tokyo' });
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
        expiresIn: null,
        misfire: { policy: 'once', within: DAY, cap: 100 },
        overlap: 'skip',
        singleInstance: false,
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
        invalid: null,
      } satisfies Record<keyof StoredSchedule, unknown>);
      assert.notEqual(await scheduler.addSchedule({ taskType: 'sendDigest', cron: '@daily' }), id);
    });

    it('accepts every kind of rule [F1]', async () => {
      const { scheduler } = manualScheduler(database, { symbols: { EVERY_SHIFT: '0 6,14,22 * * *' } });
      const rules: [Partial<NewSchedule>, string][] = [
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
      for (const [rule, next] of rules) {
        const id = await scheduler.addSchedule({ taskType: 'work', ...rule });
        const { nextRunAt } = (await scheduler.getSchedule(id))!;
        assert.equal(nextRunAt?.toISOString(), next, JSON.stringify(rule));
      }
    });

    it('rejects the id of another stored schedule or of a definition in code [F1]', async () => {
      const { scheduler } = manualScheduler(database);
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

    it('with isActive: false stores a paused schedule that starts when it is resumed [F1]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', isActive: false });
      assert.equal((await scheduler.getSchedule('s'))?.isActive, false);
      clock.advance(HOUR);
      await scheduler.run();
      assert.deepEqual(await jobIdsOf(database, 's'), []);
      assert.equal(await scheduler.updateSchedule('s', { isActive: true }), true);
      clock.advance(HOUR);
      await scheduler.run();
      assert.deepEqual(await jobIdsOf(database, 's'), ['s@2026-01-01T02:00:00.000Z']);
    });

    it('reports all invalid options in one error [F1]', async () => {
      const { scheduler } = manualScheduler(database);
      const error = await rejectionOf(
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
        } as never),
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

    it('reports an invalid id, task type and payload in the same error [F1]', async () => {
      const { scheduler } = manualScheduler(database);
      const error = await rejectionOf(
        scheduler.addSchedule({
          id: 'a@b',
          taskType: 'c+d',
          cron: 'never',
          isActive: 'yes',
          payload: { run: () => undefined },
        } as never),
      );
      for (const part of [/id/, /task ?type/i, /cron/, /isActive/, /payload/])
        assert.match(error.message, part, error.message);
    });

    const INVALID: [title: string, unknown, ChronosError['code'], RegExp][] = [
      ['no rule', { taskType: 'work' }, 'INVALID_SCHEDULE', /needs a rule: cron, fields, symbol or every/],
      [
        'two rules',
        { taskType: 'work', cron: '@daily', every: '1h' },
        'INVALID_SCHEDULE',
        /exclude each other/,
      ],
      [
        'a cron expression with seven fields',
        { taskType: 'work', cron: '* * * * * * *' },
        'INVALID_SCHEDULE',
        /cron/,
      ],
      ['an empty cron expression', { taskType: 'work', cron: '' }, 'INVALID_SCHEDULE', /cron/],
      ['an unknown symbol', { taskType: 'work', symbol: 'EVERY_OUR' }, 'INVALID_SCHEDULE', /EVERY_HOUR/],
      [
        'a symbol that is a property of Object.prototype',
        { taskType: 'work', symbol: 'constructor' },
        'INVALID_SCHEDULE',
        /constructor/,
      ],
      [
        'an interval below a second',
        { taskType: 'work', every: '500ms' },
        'INVALID_SCHEDULE',
        /at least 1000 ms/,
      ],
      [
        'a date that does not exist',
        { taskType: 'work', cron: '0 0 30 2 *' },
        'SCHEDULE_NEVER_RUNS',
        /never runs/,
      ],
      [
        'constraints that exclude every occurrence',
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
      [
        'a time window without a rule',
        { taskType: 'work', between: ['09:00', '10:00'] },
        'INVALID_SCHEDULE',
        /needs a rule that between can narrow/,
      ],
      ['no task type', { cron: '@daily' }, 'INVALID_ARGUMENT', /task type must be a string/],
      [
        'a query operator as task type',
        { taskType: { $ne: 1 }, cron: '@daily' },
        'INVALID_ARGUMENT',
        /task type/,
      ],
      [
        'a payload with an operator',
        { taskType: 'work', cron: '@daily', payload: { $x: 1 } },
        'INVALID_PAYLOAD',
        /\$/,
      ],
      [
        'a function as payload',
        { taskType: 'work', cron: '@daily', payload: () => 1 },
        'INVALID_PAYLOAD',
        /payload/,
      ],
      [
        'a payload that is too large',
        { taskType: 'work', cron: '@daily', payload: 'x'.repeat(300_000) },
        'INVALID_PAYLOAD',
        /bytes/,
      ],
      [
        'isActive as a string',
        { taskType: 'work', cron: '@daily', isActive: 'false' },
        'INVALID_SCHEDULE',
        /isActive/,
      ],
      ['null instead of an object', null, 'INVALID_ARGUMENT', /must be an object, got null/],
      ['an array instead of an object', [], 'INVALID_ARGUMENT', /must be an object, got an empty list/],
      [
        'a string instead of an object',
        '* * * * *',
        'INVALID_ARGUMENT',
        /must be an object, got '\* \* \* \* \*'/,
      ],
      [
        'a property named __proto__',
        JSON.parse('{"taskType":"work","cron":"@daily","__proto__":{"priority":1}}'),
        'INVALID_SCHEDULE',
        /__proto__/,
      ],
    ];
    for (const [title, input, code, message] of INVALID) {
      it(`rejects ${title} [F1] [D5]`, async () => {
        const { scheduler } = manualScheduler(database);
        const error = await rejectionOf(scheduler.addSchedule(input as never));
        assert.deepEqual([error.code, message.test(error.message)], [code, true], error.message);
        assert.equal(await database.collections.schedules.countDocuments(), 0);
      });
    }

    it('rejects a payload that does not match the schema of the handler [F1] [B16]', async () => {
      const { scheduler } = manualScheduler(database);
      scheduler.registerHandler('mail', () => undefined, { schema: z.object({ to: z.string() }) });
      const call = (payload: unknown): Promise<string> =>
        scheduler.addSchedule({ taskType: 'mail', cron: '@daily', payload });
      await assert.rejects(call({ to: 5 }), { code: 'INVALID_PAYLOAD' });
      await call({ to: 'ada' });
    });
  });

  describe('schedule ids', () => {
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
    const invalidIds = [
      { $gt: '' },
      ['s'],
      null,
      5,
      '',
      's@1',
      's+1',
      's=1',
      'x'.repeat(201),
      'a\0b',
      '\ud800',
    ];

    it('that are invalid are rejected by every method and change nothing [F1]', async () => {
      const { scheduler } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '@daily' });
      const before = await database.collections.schedules.find().toArray();
      for (const [name, call] of Object.entries(calls)) {
        for (const id of invalidIds) {
          const error = await rejectionOf(call(scheduler, id as never));
          assert.equal(error.code, 'INVALID_ARGUMENT', `${name}(${JSON.stringify(id)}): ${error.message}`);
        }
      }
      assert.deepEqual(await database.collections.schedules.find().toArray(), before);
    });

    it('may contain any other characters [F1]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      scheduler.registerHandler('work', () => undefined);
      const unusualIds = [
        '__proto__',
        'constructor',
        'a.b',
        '$where',
        ' ',
        '日本',
        'x'.repeat(200),
        '%2e/../',
      ];
      for (const id of unusualIds)
        assert.equal(await scheduler.addSchedule({ id, taskType: 'work', cron: '0 * * * *' }), id);
      clock.advance(HOUR);
      assert.equal(await scheduler.run(), unusualIds.length);
      for (const id of unusualIds) {
        assert.deepEqual(await jobIdsOf(database, id), [`${id}@2026-01-01T01:00:00.000Z`]);
        assert.equal((await scheduler.getSchedule(id))?.id, id);
        const triggered = await scheduler.triggerSchedule(id);
        assert.ok(triggered.triggered && triggered.jobId.startsWith(`${id}+`));
        assert.equal(await scheduler.removeSchedule(id), true);
      }
    });

    it('that do not exist return null, false, notFound or an error, and create no schedule [F1]', async () => {
      const { scheduler } = manualScheduler(database);
      assert.equal(await scheduler.getSchedule('s'), null);
      assert.equal(await scheduler.updateSchedule('s', { priority: 1 }), false);
      assert.equal(await scheduler.updateSchedule('s', { isActive: true }), false);
      assert.equal(await scheduler.updateSchedule('s', {}), false);
      assert.equal(await scheduler.removeSchedule('s'), false);
      assert.equal(await scheduler.pauseSchedule('s'), false);
      assert.equal(await scheduler.resumeSchedule('s'), false);
      assert.deepEqual(await scheduler.triggerSchedule('s'), { triggered: false, reason: 'notFound' });
      await assert.rejects(scheduler.backfill('s', START, START), { code: 'SCHEDULE_NOT_FOUND' });
      assert.deepEqual((await scheduler.getSkips('s')).items, []);
      assert.equal(await database.collections.schedules.countDocuments(), 0);
    });
  });
});
