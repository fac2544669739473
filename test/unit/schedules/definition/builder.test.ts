import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { FREQUENCIES, WEEKDAYS } from '../../../../src/domain/calendar/frequencies.js';
import type { ScheduleBuilder, Scheduler } from '../../../../src/index.js';
import { ScheduleBuilder as BuilderClass } from '../../../../src/schedules/definition/builder.js';
import { ManualClock } from '../../../support/manual-clock.js';
import {
  aBuilder,
  aScheduler,
  callMethod,
  formatCall,
  formatRuns,
  FROM,
  type Build,
  type Call,
} from '../../../support/schedule-builder.js';

/** Of the frequency methods that require some. */
const ARGUMENTS: Record<string, unknown[]> = {
  everyXMinutes: [5],
  hourlyAt: [15],
  dailyAt: ['02:30'],
  weeklyOn: [1],
  monthlyOn: [15],
  yearlyOn: [6],
};

describe('ScheduleBuilder', () => {
  describe('nextRuns()', () => {
    it('is empty for a definition without a rule [J6]', () => {
      assert.deepEqual(aBuilder().nextRuns(5), []);
      assert.deepEqual(aBuilder().queue('mails').timezone('Asia/Tokyo').nextRuns(5), []);
    });

    it('starts now, by the clock of the scheduler [B10] [J16]', () => {
      const clock = new ManualClock('2031-05-05T12:00:30Z');
      assert.deepEqual(formatRuns(aBuilder({ clock }).everyMinute().nextRuns(1)), ['2031-05-05T12:01:00']);
    });

    it('checks with the clock of the scheduler whether the rule ever matches [J16]', () => {
      const clock = new ManualClock('2020-01-01T00:00:00Z');
      const builder = aBuilder({ clock }).fields({ minutes: 0, hours: 0, mday: 1, mon: 3, year: 2020 });
      assert.deepEqual(formatRuns(builder.nextRuns(2)), ['2020-03-01T00:00:00']);
    });

    it('accepts dates and strings; a string without a zone is in the time zone of the application [B10] [D12]', () => {
      const builder = aBuilder({ timezone: 'Asia/Tokyo' }).hourly();
      const expected = ['2026-01-01T03:00:00'];
      assert.deepEqual(formatRuns(builder.nextRuns(1, new Date('2026-01-01T02:30:00Z'))), expected);
      assert.deepEqual(formatRuns(builder.nextRuns(1, '2026-01-01T02:30:00Z')), expected);
      assert.deepEqual(formatRuns(builder.nextRuns(1, '2026-01-01 11:30')), expected);
      assert.deepEqual(builder.nextRuns(0, FROM), []);
    });

    it('rejects a start that is not an instant [B10]', () => {
      for (const from of ['tomorrow', '2026-02-30', new Date(NaN), 5, null])
        assert.throws(
          () =>
            aBuilder()
              .hourly()
              .nextRuns(1, from as never),
          {
            code: 'INVALID_ARGUMENT',
            message: /^nextRuns\(\) from must be a Date or a text/,
          },
        );
    });

    it('rejects an invalid count [B10]', () => {
      for (const count of [-1, 1.5, NaN, '3', null])
        assert.throws(
          () =>
            aBuilder()
              .hourly()
              .nextRuns(count as never, FROM),
          { code: 'INVALID_ARGUMENT', message: /nextRuns/ },
          inspect(count),
        );
    });
  });

  describe('after its definition was read', () => {
    const SETTERS: Call[] = [
      ...Object.keys(FREQUENCIES).map((name): Call => [name, ...(ARGUMENTS[name] ?? [])]),
      ...Object.keys(WEEKDAYS).map((name): Call => [name]),
      ['named', 'other'],
      ['args', { n: 1 }],
      ['cron', '* * * * *'],
      ['fields', { minutes: 1 }],
      ['symbol', 'EVERY_HOUR'],
      ['every', '1m'],
      ['seconds', 1],
      ['minutes', 1],
      ['hours', 1],
      ['days', 1],
      ['months', 1],
      ['daysOfWeek', 1],
      ['between', '09:00', '10:00'],
      ['except', '12-25'],
      ['timezone', 'Asia/Tokyo'],
      ['startsAt', '2026-01-01'],
      ['endsAt', '2027-01-01'],
      ['maxRuns', 1],
      ['jitter', '1s'],
      ['queue', 'mails'],
      ['priority', 1],
      ['retries', { max: 2 }],
      ['maxRetries', 1],
      ['timeout', '1s'],
      ['lease', '1s'],
      ['maxRunningTime', '1m'],
      ['expiresIn', '1m'],
      ['singleInstance'],
      ['overlap', 'allow'],
      ['onMisfire', 'skip'],
      ['enabled'],
      ['disable'],
      ['environments', 'production'],
      ['dependsOn', 'other'],
      ['when', true],
      ['skip', false],
      ['before', () => undefined],
      ['onSuccess', () => undefined],
      ['onError', () => undefined],
      ['after', () => undefined],
    ];
    const READERS = ['freeze', 'nextRuns', 'delay', 'at', 'dispatch'];
    const INTERNAL = ['constructor'];

    it('has no other methods than those listed here [D1]', () => {
      const all = Object.getOwnPropertyNames(BuilderClass.prototype);
      const listed = [...SETTERS.map(([name]) => name), ...READERS, ...INTERNAL];
      assert.deepEqual([...new Set(listed)].sort(), all.sort());
    });

    for (const one of SETTERS) {
      it(`rejects ${formatCall(one)} with the name of the definition [D1]`, () => {
        const builder = aBuilder();
        builder.nextRuns(1);
        assert.throws(() => callMethod(builder, one), {
          code: 'SCHEDULE_FROZEN',
          message: /^\w+\(\): the definition 'work' is in use and can no longer be changed/,
        });
      });

      it(`returns the builder from ${formatCall(one)} before that [D1]`, () => {
        const builder = aBuilder();
        assert.equal(callMethod(builder, one), builder);
      });
    }

    it('rejects a call with invalid arguments for the same reason [D1]', () => {
      const calls: Call[] = [
        ['tuesdays'],
        ['hours', 99],
        ['cron', 'x'],
        ['lease', -1],
        ['maxRetries', -1],
        ['dailyAt', 'noon'],
        ['named', 'a@b'],
        ['when', 7],
      ];
      for (const one of calls) {
        const builder = aBuilder().mondays();
        builder.nextRuns(1);
        assert.throws(() => callMethod(builder, one), { code: 'SCHEDULE_FROZEN' }, formatCall(one));
      }
    });

    const READS: [string, (scheduler: Scheduler, builder: ScheduleBuilder<unknown>) => unknown][] = [
      ['nextRuns()', (_, builder) => builder.nextRuns(1)],
      ['getDefinitions()', (scheduler) => scheduler.getDefinitions()],
      ['getExecutionOrder()', (scheduler) => scheduler.getExecutionOrder()],
      ['delay()', (_, builder) => builder.delay('1h')],
      ['at()', (_, builder) => builder.at('2030-01-01')],
    ];
    for (const [title, read] of READS) {
      it(`counts ${title} as a read [D1]`, () => {
        const scheduler = aScheduler();
        const builder = scheduler.schedule('work', () => undefined);
        read(scheduler, builder);
        assert.throws(() => builder.daily(), { code: 'SCHEDULE_FROZEN' });
      });
    }

    it('can still be changed when the read was rejected [D1]', () => {
      const builder = aBuilder().dailyAt('02:30').hours(9);
      assert.throws(() => builder.nextRuns(1), { code: 'SCHEDULE_NEVER_RUNS' });
      assert.deepEqual(formatRuns(builder.daily().nextRuns(1, FROM)), ['2026-01-01T09:00:00']);
    });
  });

  describe('rejects at the call', () => {
    const circle: Record<string, unknown> = {};
    circle['self'] = circle;
    const WRONG: [Call, RegExp][] = [
      [['cron', ''], /^cron\(\)\.cron: .*it has 0 fields, expected five .* or six/],
      [['cron', '* * * *'], /^cron\(\)\.cron: .*it has 4 fields, expected five .* or six/],
      [['cron', '* * * * * * *'], /^cron\(\)\.cron: .*it has 7 fields/],
      [['cron', '60 * * * *'], /^cron\(\)\.cron: .*its minute '60'/],
      [['cron', '* * * * MOON'], /^cron\(\)\.cron: .*its weekday 'MOON'/],
      [['cron', '*/0 * * * *'], /^cron\(\)\.cron: .*its minute '\*\/0' has the step '0'/],
      [['cron', '@never'], /^cron\(\)\.cron: .*it is not one of @yearly/],
      [['cron', 5], /^cron\(\)\.cron: .*a cron expression must be a string, got number/],
      [['cron', null], /^cron\(\)\.cron: .*a cron expression must be a string/],
      [['fields', {}], /^fields\(\)\.fields: .*it needs one of minutes, hours/],
      [
        ['fields', { minute: 5 }],
        /^fields\(\)\.fields: .*minute is not a field \(did you mean 'minutes'\?\)/,
      ],
      [['fields', { hours: 24 }], /^fields\(\)\.fields: .*hours must be a number from 0 to 23/],
      [['fields', 'EVERY_HOUR'], /^fields\(\)\.fields: /],
      [
        ['symbol', 'EVERY_HUOR'],
        /^symbol\(\)\.symbol must be one of .*, got 'EVERY_HUOR'.*did you mean 'EVERY_HOUR'\?/,
      ],
      [['every', '-5m'], /^every\(\)\.every must be milliseconds or a text/],
      [['every', -5], /^every\(\)\.every must be between 0 and a hundred years, got -5/],
      [['every', '10ms'], /^every\(\)\.every must be at least 1000 ms, got '10ms'/],
      [['every', 'hourly'], /^every\(\)\.every must be milliseconds or a text like/],
      [['seconds', 60], /^seconds\(\)\.seconds must be a whole number from 0 to 59, got 60/],
      [['minutes', [0, -1]], /^minutes\(\)\.minutes\[1\] must be a whole number from 0 to 59, got -1/],
      [['hours', 24], /^hours\(\)\.hours must be a whole number from 0 to 23, got 24/],
      [['hours', '9'], /^hours\(\)\.hours must be a whole number from 0 to 23, got '9'/],
      [['hours', []], /^hours\(\)\.hours must be a list with at least one entry/],
      [['hours', undefined], /^hours\(\)\.hours/],
      [['days', 0], /^days\(\)\.days must be a whole number from 1 to 31, got 0/],
      [['days', 32], /^days\(\)\.days must be a whole number from 1 to 31, got 32/],
      [['months', 13], /^months\(\)\.months must be a whole number from 1 to 12, got 13/],
      [['daysOfWeek', 8], /^daysOfWeek\(\)\.weekdays must be a whole number/],
      [['between', '9', '17:00'], /^between\(\)\.between must be two times like/],
      [['between', '09:00', '24:00'], /^between\(\)\.between must be two times like/],
      [['except', '2026-02-30'], /^except\(\)\.except\[0\] must be a day like .*got '2026-02-30'/],
      [['except', '12-25', 'christmas'], /^except\(\)\.except\[1\] must be a day like .*got 'christmas'/],
      [
        ['timezone', 'Mars/Olympus'],
        /^timezone\(\)\.timezone must be a time zone like .*got 'Mars\/Olympus'/,
      ],
      [['timezone', '+02:00:00'], /^timezone\(\)\.timezone must be a time zone/],
      [['startsAt', 'tomorrow'], /^startsAt\(\)\.startsAt must be a Date or a text like .*got 'tomorrow'/],
      [['startsAt', new Date(NaN)], /^startsAt\(\)\.startsAt .*got an invalid date/],
      [['endsAt', '2026-02-30'], /^endsAt\(\)\.endsAt .*got '2026-02-30'/],
      [['maxRuns', 0], /^maxRuns\(\)\.maxRuns must be a whole number from 1/],
      [['jitter', '-1s'], /^jitter\(\)\.jitter must be/],
      [['queue', ''], /^queue\(\)\.queue must not be empty/],
      [['queue', { $ne: null }], /^queue\(\)\.queue must be a string, got object/],
      [['priority', -1], /^priority\(\)\.priority must be a whole number from 0 to 1000, got -1/],
      [['priority', 1001], /^priority\(\)\.priority must be a whole number from 0 to 1000, got 1001/],
      [['retries', { max: 0 }], /^retries\(\)\.max must be a whole number from 1 to 1000, got 0/],
      [['retries', { base: '-1s' }], /^retries\(\)\.base must be/],
      [['retries', { base: '1m', cap: '1s' }], /^retries\(\)\.cap .* must not be shorter than/],
      [['retries', { tries: 3 }], /^retries\(\)\.tries is not an option/],
      [['maxRetries', -1], /^maxRetries\(\) must be a whole number from 0 to 999, got -1/],
      [['maxRetries', 1.5], /^maxRetries\(\) must be a whole number from 0 to 999, got 1.5/],
      [['timeout', -1], /^timeout\(\)\.timeout must be/],
      [['timeout', 0], /^timeout\(\)\.timeout must be at least 1 ms/],
      [['lease', -1], /^lease\(\)/],
      [['lease', '10ms'], /^lease\(\).* must be at least 500 ms/],
      [['maxRunningTime', '-1m'], /^maxRunningTime\(\)\.maxRunningTime must be/],
      [['overlap', 'never'], /^overlap\(\)\.overlap must be one of allow, skip, queue, replace, got 'never'/],
      [['onMisfire', 'never'], /^onMisfire\(\)\.misfire\.policy must be one of skip, once, all, got 'never'/],
      [['onMisfire', 'all', { cap: 0 }], /^onMisfire\(\)\.misfire\.cap must be a whole number from 1/],
      [['onMisfire', 'all', { within: -1 }], /^onMisfire\(\)\.misfire\.within must be/],
      [['enabled', 'yes'], /^enabled\(\)\.enabled must be true or false, got 'yes'/],
      [['environments', ''], /^environments\(\)\.environments\[0\] must not be empty/],
      [['environments', [5]], /^environments\(\)\.environments\[0\] must be a string/],
      [['when', 'always'], /^when\(\) takes a function, got string/],
      [['skip', null], /^skip\(\) takes a function, got object/],
      [['before', undefined], /^before\(\) takes a function, got undefined/],
      [['onSuccess', 5], /^onSuccess\(\) takes a function, got number/],
      [['onError', {}], /^onError\(\) takes a function, got object/],
      [['after', 'x'], /^after\(\) takes a function, got string/],
      [['named', ''], /^named\(\): the name of a schedule must not be empty/],
      [['named', 'a@b'], /^named\(\): the name of a schedule must not contain any of @ \+ =, got 'a@b'/],
      [['named', { $ne: 1 }], /^named\(\): the name of a schedule must be a string/],
      [['dailyAt', '25:00'], /^dailyAt\(\) must be a time like '02:30', got "25:00"/],
      [['everyMinute', 0], /^everyMinute\(\)(\[\d\])? must be a whole number from 1 to 59, got 0/],
    ];
    for (const [one, message] of WRONG) {
      it(`${formatCall(one)} [D5]`, () => {
        assert.throws(() => callMethod(aBuilder(), one), {
          name: 'ChronosError',
          code: 'INVALID_SCHEDULE',
          message,
        });
      });
    }

    for (const base of ['cron', 'fields', 'symbol', 'every'] as const) {
      it(`${base}(undefined), because a missing rule must not become no rule [D5]`, () => {
        assert.throws(() => callMethod(aBuilder().daily(), [base, undefined]), { code: 'INVALID_SCHEDULE' });
      });
    }

    it('timezone(undefined), because a missing zone must not become another one [D5]', () => {
      assert.throws(() => callMethod(aBuilder().daily(), ['timezone', undefined]), {
        code: 'INVALID_SCHEDULE',
      });
    });

    it('without changing what was set before [D1]', () => {
      const calls: Call[] = [
        ['cron', 'x'],
        ['fields', {}],
        ['symbol', 'NONE'],
        ['every', -1],
        ['hours', 99],
        ['hours', 10],
        ['between', 'x', 'y'],
        ['except', 'x'],
        ['timezone', 'x'],
        ['dailyAt', 'x'],
        ['maxRetries', -1],
        ['when', 1],
      ];
      for (const one of calls) {
        const builder = aBuilder().everyThirtyMinutes().hours(9).mondays();
        assert.throws(() => callMethod(builder, one), { code: 'INVALID_SCHEDULE' });
        assert.deepEqual(
          formatRuns(builder.nextRuns(3, FROM)),
          ['2026-01-05T09:00:00', '2026-01-05T09:30:00', '2026-01-12T09:00:00'],
          formatCall(one),
        );
      }
    });

    it('or, when it depends on several calls, at the first read with the name of the schedule [D1] [D5]', () => {
      const definitions: [Build, string, RegExp][] = [
        [(b) => b.cron('0 0 31 2 *'), 'SCHEDULE_NEVER_RUNS', /^schedule 'work' never runs/],
        [
          (b) => b.daily().startsAt('2026-02-01').endsAt('2026-01-01'),
          'INVALID_SCHEDULE',
          /^schedule 'work'\.endsAt must not be before schedule 'work'\.startsAt/,
        ],
        [(b) => b.args(() => 1), 'INVALID_PAYLOAD', /^the payload of schedule 'work' cannot be stored/],
        [(b) => b.args(circle), 'INVALID_PAYLOAD', /schedule 'work'/],
        [
          (b) => b.args('x'.repeat(300_000)),
          'INVALID_PAYLOAD',
          /^the payload of schedule 'work' has \d+ bytes, more than maxPayloadBytes/,
        ],
      ];
      for (const [build, code, message] of definitions)
        assert.throws(() => build(aBuilder()).nextRuns(1), { code, message });
    });
  });

  describe('is not a thenable', () => {
    it('because it has no then, catch or finally [J5]', () => {
      for (const name of ['then', 'catch', 'finally']) assert.equal(name in aBuilder(), false, name);
    });

    it('and awaiting it neither hangs nor changes it [J5]', async () => {
      const builder = aBuilder();
      assert.equal(await Promise.resolve(builder), builder);
      // A common mistake: the builder is awaited although it is not a promise.
      // eslint-disable-next-line @typescript-eslint/await-thenable
      const awaited = await builder.daily();
      assert.equal(awaited, builder);
      assert.deepEqual(formatRuns(builder.hours(9).nextRuns(1, FROM)), ['2026-01-01T09:00:00']);
    });
  });

  describe('dispatch()', () => {
    it('rejects instead of throwing [J6]', async () => {
      const builder = aBuilder().dailyAt('02:30').hours(9);
      const dispatched = builder.dispatch();
      await assert.rejects(dispatched, { code: 'SCHEDULE_NEVER_RUNS' });
    });
  });
});
