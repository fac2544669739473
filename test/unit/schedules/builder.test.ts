import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { Scheduler, type ScheduleBuilder, type SchedulerOptions } from '../../../src/index.js';
import { FREQUENCIES, WEEKDAYS } from '../../../src/domain/frequencies.js';
import { ScheduleBuilder as BuilderClass } from '../../../src/schedules/builder.js';
import { ManualClock } from '../../support/manual-clock.js';

type Call = readonly [method: string, ...args: unknown[]];
type Build = (builder: ScheduleBuilder<unknown>) => ScheduleBuilder<unknown>;

/** For the helpers that take some. */
const ARGUMENTS: Record<string, unknown[]> = {
  everyXMinutes: [5],
  hourlyAt: [15],
  dailyAt: ['02:30'],
  weeklyOn: [1],
  monthlyOn: [15],
  yearlyOn: [6],
};

/** A Thursday. */
const FROM = '2026-01-01T00:00:00Z';

function aScheduler(options: Partial<SchedulerOptions> = {}): Scheduler {
  return new Scheduler({ uri: 'mongodb://unused/app', ...options });
}

function aBuilder(options: Partial<SchedulerOptions> = {}): ScheduleBuilder<unknown> {
  return aScheduler(options).schedule('work', () => undefined);
}

function call(builder: ScheduleBuilder<unknown>, [method, ...args]: Call): unknown {
  return (builder as unknown as Record<string, (...args: unknown[]) => unknown>)[method]!(...args);
}

function show([method, ...args]: Call): string {
  return `${method}(${args.map((argument) => inspect(argument)).join(', ')})`;
}

function texts(runs: readonly Date[]): string[] {
  return runs.map((at) => at.toISOString().slice(0, 19));
}

/** The next runs, or the code of the error that there is instead. */
function comesTo(calls: readonly Call[]): string[] | string {
  const builder = aBuilder();
  try {
    for (const one of calls) call(builder, one);
    return texts(builder.nextRuns(6, FROM));
  } catch (error) {
    return String((error as { code?: unknown }).code);
  }
}

describe('ScheduleBuilder', () => {
  describe('recipes', () => {
    const nineToFive = [9, 10, 11, 12, 13, 14, 15, 16, 17];
    const RECIPES: [title: string, build: Build, from: string, expected: string[]][] = [
      [
        'J1 every day at nine, with five fields',
        (b) => b.cron('0 9 * * *'),
        FROM,
        ['01-01T09:00:00', '01-02T09:00:00'],
      ],
      [
        'J1 every five seconds, with six fields',
        (b) => b.cron('*/5 * * * * *'),
        FROM,
        ['01-01T00:00:05', '01-01T00:00:10'],
      ],
      [
        'J1 every five seconds of one minute on weekdays',
        (b) => b.cron('*/5 0 9 * * 1-5'),
        '2026-01-02T09:00:50Z',
        ['01-02T09:00:55', '01-05T09:00:00', '01-05T09:00:05'],
      ],
      [
        'J1 a list',
        (b) => b.cron('1,3,5 0 * * *'),
        FROM,
        ['01-01T00:01:00', '01-01T00:03:00', '01-01T00:05:00', '01-02T00:01:00'],
      ],
      [
        'J1 a range with a step',
        (b) => b.cron('0 8-18/5 * * *'),
        FROM,
        ['01-01T08:00:00', '01-01T13:00:00', '01-01T18:00:00', '01-02T08:00:00'],
      ],
      [
        'J1 day of the month or day of the week',
        (b) => b.cron('0 0 13 * 5'),
        FROM,
        ['01-02T00:00:00', '01-09T00:00:00', '01-13T00:00:00', '01-16T00:00:00'],
      ],
      [
        'J3 payroll: at nine, on the 1st and 15th, in January and July',
        (b) => b.daily().hours(9).days([1, 15]).months([1, 7]),
        FROM,
        ['01-01T09:00:00', '01-15T09:00:00', '07-01T09:00:00', '07-15T09:00:00'],
      ],
      [
        'J3 reminders: four times a day',
        (b) => b.daily().hours([9, 12, 15, 18]),
        FROM,
        ['01-01T09:00:00', '01-01T12:00:00', '01-01T15:00:00', '01-01T18:00:00', '01-02T09:00:00'],
      ],
      [
        'J2 J3 notifications: every five minutes in business hours',
        (b) => b.everyFiveMinutes().hours(nineToFive).weekdays(),
        '2026-01-02T17:50:00Z',
        ['01-02T17:55:00', '01-05T09:00:00', '01-05T09:05:00'],
      ],
      [
        'J2 a daily summary',
        (b) => b.daily().args({ tz: 'UTC' }),
        FROM,
        ['01-02T00:00:00', '01-03T00:00:00'],
      ],
      ['J2 everyHour, the same as hourly', (b) => b.everyHour(), FROM, ['01-01T01:00:00', '01-01T02:00:00']],
      [
        'D4 a daily report at two',
        (b) => b.dailyAt('02:00').queue('reports').maxRetries(3),
        FROM,
        ['01-01T02:00:00', '01-02T02:00:00'],
      ],
      [
        'D4 every minute, one at a time',
        (b) => b.everyMinute().singleInstance(),
        FROM,
        ['01-01T00:01:00', '01-01T00:02:00'],
      ],
      ['D4 housekeeping every hour', (b) => b.hourly(), FROM, ['01-01T01:00:00', '01-01T02:00:00']],
      [
        'D5 at half past three, Monday to Friday',
        (b) => b.cron('30 3 * * 1-5'),
        FROM,
        ['01-01T03:30:00', '01-02T03:30:00', '01-05T03:30:00'],
      ],
      [
        'D7 one that is disabled can still be previewed',
        (b) => b.everyMinute().environments('production').disable(),
        FROM,
        ['01-01T00:01:00'],
      ],
      ['Y3 EVERY_MINUTE', (b) => b.symbol('EVERY_MINUTE'), FROM, ['01-01T00:01:00', '01-01T00:02:00']],
      ['Y3 EVERY_HOUR at :01', (b) => b.symbol('EVERY_HOUR'), FROM, ['01-01T00:01:00', '01-01T01:01:00']],
      ['Y3 EVERY_DAY at 02:10', (b) => b.symbol('EVERY_DAY'), FROM, ['01-01T02:10:00', '01-02T02:10:00']],
      [
        'Y3 EVERY_WEEK on Mondays at 06:20',
        (b) => b.symbol('EVERY_WEEK'),
        FROM,
        ['01-05T06:20:00', '01-12T06:20:00'],
      ],
      [
        'Y3 EVERY_MONTH on the 1st at 01:30',
        (b) => b.symbol('EVERY_MONTH'),
        FROM,
        ['01-01T01:30:00', '02-01T01:30:00'],
      ],
      [
        'Y4 day of the month and day of the week: both',
        (b) => b.fields({ minutes: 0, hours: 0, mday: 13, wday: 5 }),
        FROM,
        ['02-13T00:00:00', '03-13T00:00:00', '11-13T00:00:00'],
      ],
      [
        'Y4 `day` is `mday`',
        (b) => b.fields({ minutes: 0, hours: 0, day: 13, wday: 5 }),
        FROM,
        ['02-13T00:00:00', '03-13T00:00:00', '11-13T00:00:00'],
      ],
      [
        'Y4 a step where it divides the value',
        (b) => b.fields({ minutes: 0, hours: 0, mday: '*/10' }),
        FROM,
        ['01-10T00:00:00', '01-20T00:00:00', '01-30T00:00:00', '02-10T00:00:00'],
      ],
      [
        'Y4 ranges, lists, and fields that are left out',
        (b) => b.fields({ hours: '9-10', wday: '0,6' }),
        '2026-01-03T09:58:00Z',
        ['01-03T09:59:00', '01-03T10:00:00', '01-03T10:01:00'],
      ],
      ['B10 in real time', (b) => b.every('90s'), FROM, ['01-01T00:01:30', '01-01T00:03:00']],
      [
        'B10 in real time, from an instant on',
        (b) => b.every('90s').startsAt('2026-01-01T00:00:10Z'),
        FROM,
        ['01-01T00:00:10', '01-01T00:01:40'],
      ],
      [
        'B10 between two times of the day, both included',
        (b) => b.everyThirtyMinutes().between('08:30', '09:30'),
        FROM,
        ['01-01T08:30:00', '01-01T09:00:00', '01-01T09:30:00', '01-02T08:30:00'],
      ],
      [
        'B10 between, past midnight',
        (b) => b.hourly().between('22:30', '01:00'),
        '2026-01-01T12:00:00Z',
        ['01-01T23:00:00', '01-02T00:00:00', '01-02T01:00:00', '01-02T23:00:00'],
      ],
      [
        'B10 except on days, which add up',
        (b) => b.daily().except('2026-01-02').except(['01-04', '2027-01-05']),
        FROM,
        ['01-03T00:00:00', '01-05T00:00:00', '01-06T00:00:00'],
      ],
      [
        'B10 from one instant to another',
        (b) => b.daily().startsAt('2026-02-01').endsAt('2026-02-02'),
        FROM,
        ['02-01T00:00:00', '02-02T00:00:00'],
      ],
      [
        'D12 in a time zone of its own',
        (b) => b.dailyAt('02:00').timezone('Asia/Tokyo'),
        FROM,
        ['01-01T17:00:00', '01-02T17:00:00'],
      ],
    ];
    for (const [title, build, from, expected] of RECIPES) {
      it(title, () => {
        const runs = texts(build(aBuilder()).nextRuns(expected.length, from));
        assert.deepEqual(
          runs,
          expected.map((at) => `2026-${at}`),
        );
      });
    }

    it('Y3 names of your own, as fields or as cron', () => {
      const symbols = { EVERY_SHIFT: { minutes: 0, hours: '6,14,22' }, AT_LUNCH: '30 12 * * MON-FRI' };
      const shift = aBuilder({ symbols }).symbol('EVERY_SHIFT');
      const lunch = aBuilder({ symbols }).symbol('AT_LUNCH');
      assert.deepEqual(texts(shift.nextRuns(2, FROM)), ['2026-01-01T06:00:00', '2026-01-01T14:00:00']);
      assert.deepEqual(texts(lunch.nextRuns(3, FROM)), [
        '2026-01-01T12:30:00',
        '2026-01-02T12:30:00',
        '2026-01-05T12:30:00',
      ]);
    });

    it('D12 without one, in the time zone of the application', () => {
      const builder = aBuilder({ timezone: 'Europe/Berlin' }).dailyAt('02:00').startsAt('2026-07-01 02:00');
      assert.deepEqual(texts(builder.nextRuns(1, FROM)), ['2026-07-01T00:00:00']);
    });

    it('J2 every frequency and every day of the week is a method', () => {
      for (const name of [...Object.keys(FREQUENCIES), ...Object.keys(WEEKDAYS)])
        assert.equal(typeof (aBuilder() as unknown as Record<string, unknown>)[name], 'function', name);
    });
  });

  describe('a constraint', () => {
    const REPLACES: [string, Build, string[]][] = [
      ['daily().hours(9)', (b) => b.daily().hours(9), ['01-01T09:00:00', '01-02T09:00:00']],
      ['daily().minutes(30)', (b) => b.daily().minutes(30), ['01-01T00:30:00', '01-02T00:30:00']],
      [
        'daily().hours(9).minutes([0, 30])',
        (b) => b.daily().hours(9).minutes([0, 30]),
        ['01-01T09:00:00', '01-01T09:30:00', '01-02T09:00:00'],
      ],
      ['hourly().minutes(15)', (b) => b.hourly().minutes(15), ['01-01T00:15:00', '01-01T01:15:00']],
      [
        'everySixHours().minutes(5)',
        (b) => b.everySixHours().minutes(5),
        ['01-01T00:05:00', '01-01T06:05:00'],
      ],
      ['twiceDaily().minutes(30)', (b) => b.twiceDaily().minutes(30), ['01-01T01:30:00', '01-01T13:30:00']],
      ['weekly().mondays()', (b) => b.weekly().mondays(), ['01-05T00:00:00', '01-12T00:00:00']],
      ['monthly().days(15)', (b) => b.monthly().days(15), ['01-15T00:00:00', '02-15T00:00:00']],
      [
        'quarterly().days(15).hours(6)',
        (b) => b.quarterly().days(15).hours(6),
        ['01-15T06:00:00', '04-15T06:00:00'],
      ],
      ['yearly().months(6)', (b) => b.yearly().months(6), ['06-01T00:00:00']],
      ['weeklyOn(1).hours(8)', (b) => b.weeklyOn(1).hours(8), ['01-05T08:00:00', '01-12T08:00:00']],
      ['everyMinute().seconds(30)', (b) => b.everyMinute().seconds(30), ['01-01T00:00:30', '01-01T00:01:30']],
      [
        "cron('0 9 * * *').seconds([0, 30])",
        (b) => b.cron('0 9 * * *').seconds([0, 30]),
        ['01-01T09:00:00', '01-01T09:00:30', '01-02T09:00:00'],
      ],
      [
        "fields({ minutes: '*' }).seconds(30)",
        (b) => b.fields({ minutes: '*' }).seconds(30),
        ['01-01T00:00:30', '01-01T00:01:30'],
      ],
      [
        "symbol('EVERY_HOUR').seconds(30)",
        (b) => b.symbol('EVERY_HOUR').seconds(30),
        ['01-01T00:01:30', '01-01T01:01:30'],
      ],
    ];
    for (const [title, build, expected] of REPLACES) {
      it(`J3 takes the place of what was only some time: ${title}`, () => {
        const runs = texts(build(aBuilder()).nextRuns(expected.length, FROM));
        assert.deepEqual(
          runs,
          expected.map((at) => `2026-${at}`),
        );
      });
    }

    const NARROWS: [string, Build, string[]][] = [
      ['monthly().mondays(): the 1st when it is a Monday', (b) => b.monthly().mondays(), ['06-01T00:00:00']],
      [
        'weekly().days(1): a Sunday that is the 1st',
        (b) => b.weekly().days(1),
        ['02-01T00:00:00', '03-01T00:00:00'],
      ],
      [
        'everyFiveMinutes().minutes([0, 3, 30])',
        (b) => b.everyFiveMinutes().minutes([0, 3, 30]),
        ['01-01T00:30:00', '01-01T01:00:00'],
      ],
      [
        'hourlyAt(15).hours([9, 10])',
        (b) => b.hourlyAt(15).hours([9, 10]),
        ['01-01T09:15:00', '01-01T10:15:00', '01-02T09:15:00'],
      ],
      [
        "dailyAt('02:30').weekends()",
        (b) => b.dailyAt('02:30').weekends(),
        ['01-03T02:30:00', '01-04T02:30:00', '01-10T02:30:00'],
      ],
      [
        "every('8h').hours([0, 8])",
        (b) => b.every('8h').startsAt(FROM).hours([0, 8]),
        ['01-01T08:00:00', '01-02T00:00:00'],
      ],
      [
        'hours([9, 10]).hours([10, 11]): both',
        (b) => b.daily().hours([9, 10]).hours([10, 11]),
        ['01-01T10:00:00', '01-02T10:00:00'],
      ],
      ['weekdays().mondays()', (b) => b.daily().weekdays().mondays(), ['01-05T00:00:00', '01-12T00:00:00']],
      ['daysOfWeek([0, 1]).weekdays()', (b) => b.daily().daysOfWeek([0, 1]).weekdays(), ['01-05T00:00:00']],
    ];
    for (const [title, build, expected] of NARROWS) {
      it(`J3 narrows what was said: ${title}`, () => {
        const runs = texts(build(aBuilder()).nextRuns(expected.length, FROM));
        assert.deepEqual(
          runs,
          expected.map((at) => `2026-${at}`),
        );
      });
    }

    const SAID: [string, Build][] = [
      ["dailyAt('02:30').hours(9)", (b) => b.dailyAt('02:30').hours(9)],
      ["cron('0 9 * * *').minutes(30)", (b) => b.cron('0 9 * * *').minutes(30)],
      ["cron('0 0 9 * * *').seconds(30)", (b) => b.cron('0 0 9 * * *').seconds(30)],
      ['hourlyAt(15).minutes(30)', (b) => b.hourlyAt(15).minutes(30)],
      ['weeklyOn(1).tuesdays()', (b) => b.weeklyOn(1).tuesdays()],
      ['monthlyOn(15).days(16)', (b) => b.monthlyOn(15).days(16)],
      ['lastDayOfMonth().days(1)', (b) => b.lastDayOfMonth().days(1)],
      ['fields({ hours: 2 }).hours(3)', (b) => b.fields({ hours: 2 }).hours(3)],
    ];
    for (const [title, build] of SAID) {
      it(`J3 leaves a time that was said, so that nothing is left: ${title}`, () => {
        assert.throws(() => build(aBuilder()).nextRuns(1, FROM), {
          code: 'SCHEDULE_NEVER_RUNS',
          message: /^schedule 'work' never runs: .* has no match within five years/,
        });
      });
    }

    const ALONE: [string, Build, string[]][] = [
      ['seconds(30): once a minute', (b) => b.seconds(30), ['01-01T00:00:30', '01-01T00:01:30']],
      ['minutes(30): once an hour', (b) => b.minutes(30), ['01-01T00:30:00', '01-01T01:30:00']],
      ['hours(9): once a day', (b) => b.hours(9), ['01-01T09:00:00', '01-02T09:00:00']],
      ['hours(9).minutes(30)', (b) => b.hours(9).minutes(30), ['01-01T09:30:00', '01-02T09:30:00']],
      ['days(15): at midnight', (b) => b.days(15), ['01-15T00:00:00', '02-15T00:00:00']],
      ['months(6): on the 1st', (b) => b.months(6), ['06-01T00:00:00']],
      ['fridays(): at midnight', (b) => b.fridays(), ['01-02T00:00:00', '01-09T00:00:00']],
      ['weekends().hours(10)', (b) => b.weekends().hours(10), ['01-03T10:00:00', '01-04T10:00:00']],
    ];
    for (const [title, build, expected] of ALONE) {
      it(`J3 alone says how often: ${title}`, () => {
        const runs = texts(build(aBuilder()).nextRuns(expected.length, FROM));
        assert.deepEqual(
          runs,
          expected.map((at) => `2026-${at}`),
        );
      });
    }

    it('J3 that leaves nothing of another is refused at once', () => {
      assert.throws(() => aBuilder().mondays().tuesdays(), {
        code: 'INVALID_SCHEDULE',
        message: /^tuesdays\(\) leaves nothing of what was said before/,
      });
      assert.throws(() => aBuilder().hours(9).daily().hours([10, 11]), { code: 'INVALID_SCHEDULE' });
    });

    it('J3 Sunday is 0 and 7, also for a constraint beside another', () => {
      const SUNDAY = ['2026-01-04T00:00:00'];
      for (const build of [
        (b) => b.sundays().daysOfWeek(7),
        (b) => b.daysOfWeek(7).sundays(),
        (b) => b.daysOfWeek([6, 7]).daysOfWeek([0, 1]),
      ] as Build[])
        assert.deepEqual(texts(build(aBuilder()).nextRuns(1, FROM)), SUNDAY);
    });

    it('B10 between twice: both must hold, in either order', () => {
      const [early, late] = [
        ['between', '08:00', '12:00'],
        ['between', '10:00', '14:00'],
      ] as const;
      const base = ['hourly'] as const;
      const one = comesTo([base, early, late]);
      assert.deepEqual(one, comesTo([base, late, early]));
      assert.deepEqual(one.slice(0, 4), [
        '2026-01-01T10:00:00',
        '2026-01-01T11:00:00',
        '2026-01-01T12:00:00',
        '2026-01-02T10:00:00',
      ]);
    });

    it('B10 that narrows nothing is refused, with the name of the schedule', () => {
      const narrowing: Call[] = [
        ['between', '09:00', '17:00'],
        ['except', '12-25'],
        ['startsAt', '2026-02-01'],
        ['endsAt', '2026-02-01'],
      ];
      for (const one of narrowing) {
        const builder = aBuilder();
        call(builder, one);
        assert.throws(
          () => builder.nextRuns(1),
          (error: Error & { code?: string }) => {
            assert.equal(error.code, 'INVALID_SCHEDULE');
            assert.match(error.message, new RegExp(one[0]));
            assert.match(error.message, /how often/);
            assert.match(error.message, /'work'/, 'says where');
            return true;
          },
        );
      }
    });
  });

  describe('in any order of calls', () => {
    const BASES: Call[] = [
      ['daily'],
      ['dailyAt', '09:30'],
      ['hourly'],
      ['everyFiveMinutes'],
      ['weekly'],
      ['monthly'],
      ['quarterly'],
      ['twiceDaily'],
      ['everyTenSeconds'],
      ['cron', '15 9-11 1,15 * 1'],
      ['fields', { minutes: '*/20', wday: '1-5' }],
      ['symbol', 'EVERY_WEEK'],
      ['every', '7m'],
    ];
    const CONSTRAINTS: Call[] = [
      ['seconds', [0, 30]],
      ['minutes', [0, 15, 30]],
      ['minutes', [15, 30, 45]],
      ['hours', [9, 10, 11]],
      ['hours', 9],
      ['days', [1, 2, 15]],
      ['months', [1, 7]],
      ['daysOfWeek', [1, 3, 5]],
      ['weekdays'],
      ['mondays'],
      ['except', '2026-01-02'],
      ['except', '01-05', '01-09'],
      ['between', '08:30', '18:00'],
      ['timezone', 'Europe/Berlin'],
      ['startsAt', '2026-01-03T00:00:00Z'],
      ['endsAt', '2026-12-31T00:00:00Z'],
    ];

    it('J3 D4 constraints come to the same, before and after the base', () => {
      const said = fc
        .tuple(fc.constantFrom(...BASES), fc.subarray(CONSTRAINTS, { minLength: 1, maxLength: 5 }))
        .chain(([base, constraints]) => {
          const calls = [base, ...constraints];
          return fc.tuple(
            fc.constant(calls),
            fc.shuffledSubarray(calls, { minLength: calls.length, maxLength: calls.length }),
          );
        });
      fc.assert(
        fc.property(said, ([calls, shuffled]) => {
          assert.deepEqual(comesTo(shuffled), comesTo(calls), shuffled.map(show).join('.'));
        }),
        { seed: 20_260_101, numRuns: 300 },
      );
    });

    it('J3 every order of four constraints around a base comes to the same', () => {
      const calls: Call[] = [
        ['daily'],
        ['hours', [9, 17]],
        ['weekdays'],
        ['months', [1, 2]],
        ['minutes', 30],
      ];
      const expected = comesTo(calls);
      assert.deepEqual(expected.slice(0, 3), [
        '2026-01-01T09:30:00',
        '2026-01-01T17:30:00',
        '2026-01-02T09:30:00',
      ]);
      const orders = permutations(calls);
      assert.equal(orders.length, 120);
      for (const order of orders) assert.deepEqual(comesTo(order), expected, order.map(show).join('.'));
    });

    it('J3 how it runs may be said before and after when', () => {
      const calls: Call[] = [
        ['dailyAt', '09:00'],
        ['mondays'],
        ['queue', 'reports'],
        ['priority', 7],
        ['maxRetries', 2],
        ['timeout', '1m'],
      ];
      const hashes = new Set(
        permutations(calls).map((order) => {
          const scheduler = aScheduler();
          const builder = scheduler.schedule('work', () => undefined);
          for (const one of order) call(builder, one);
          return scheduler.getDefinitions()[0]!.hash;
        }),
      );
      assert.equal(hashes.size, 1);
    });

    it('J2 the last frequency sets the base, whatever kind the one before was', () => {
      for (const first of BASES) {
        for (const last of BASES)
          assert.deepEqual(comesTo([first, last]), comesTo([last]), `${show(first)}.${show(last)}`);
      }
    });

    it('J2 a new base leaves the constraints', () => {
      assert.deepEqual(
        comesTo([['daily'], ['hours', 9], ['everyThirtyMinutes']]),
        comesTo([['everyThirtyMinutes'], ['hours', 9]]),
      );
    });
  });

  describe('nextRuns', () => {
    it('J6 of a definition without a rule are none', () => {
      assert.deepEqual(aBuilder().nextRuns(5), []);
      assert.deepEqual(aBuilder().queue('mails').timezone('Asia/Tokyo').nextRuns(5), []);
    });

    it('B10 J16 count from now, by the clock of the scheduler', () => {
      const clock = new ManualClock('2031-05-05T12:00:30Z');
      assert.deepEqual(texts(aBuilder({ clock }).everyMinute().nextRuns(1)), ['2031-05-05T12:01:00']);
    });

    it('J16 whether it ever runs is asked of the clock of the scheduler too', () => {
      const clock = new ManualClock('2020-01-01T00:00:00Z');
      const builder = aBuilder({ clock }).fields({ minutes: 0, hours: 0, mday: 1, mon: 3, year: 2020 });
      assert.deepEqual(texts(builder.nextRuns(2)), ['2020-03-01T00:00:00']);
    });

    it('B10 D12 take dates and texts, those without a zone in the time zone of the application', () => {
      const builder = aBuilder({ timezone: 'Asia/Tokyo' }).hourly();
      const expected = ['2026-01-01T03:00:00'];
      assert.deepEqual(texts(builder.nextRuns(1, new Date('2026-01-01T02:30:00Z'))), expected);
      assert.deepEqual(texts(builder.nextRuns(1, '2026-01-01T02:30:00Z')), expected);
      assert.deepEqual(texts(builder.nextRuns(1, '2026-01-01 11:30')), expected);
      assert.deepEqual(builder.nextRuns(0, FROM), []);
    });

    it('B10 refuse a start that is no instant', () => {
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

    it('B10 refuse a count that is none', () => {
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

  describe('once it was read', () => {
    const SAYING: Call[] = [
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
    const READING = ['freeze', 'nextRuns', 'delay', 'at', 'dispatch'];
    const INTERNAL = ['constructor', 'frequency', 'onDays'];

    it('D1 this list has every method', () => {
      const all = Object.getOwnPropertyNames(BuilderClass.prototype);
      const listed = [...SAYING.map(([name]) => name), ...READING, ...INTERNAL];
      assert.deepEqual([...new Set(listed)].sort(), all.sort());
    });

    for (const one of SAYING) {
      it(`D1 ${show(one)} is an error that names the definition`, () => {
        const builder = aBuilder();
        builder.nextRuns(1);
        assert.throws(() => call(builder, one), {
          code: 'SCHEDULE_FROZEN',
          message: /^\w+\(\): the definition 'work' is in use and cannot be changed any more/,
        });
      });

      it(`D1 ${show(one)} returns the builder before`, () => {
        const builder = aBuilder();
        assert.equal(call(builder, one), builder);
      });
    }

    it('D1 also where the call would be refused for another reason', () => {
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
        assert.throws(() => call(builder, one), { code: 'SCHEDULE_FROZEN' }, show(one));
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
      it(`D1 ${title} is a read`, () => {
        const scheduler = aScheduler();
        const builder = scheduler.schedule('work', () => undefined);
        read(scheduler, builder);
        assert.throws(() => builder.daily(), { code: 'SCHEDULE_FROZEN' });
      });
    }

    it('D1 a read that was refused leaves it open', () => {
      const builder = aBuilder().dailyAt('02:30').hours(9);
      assert.throws(() => builder.nextRuns(1), { code: 'SCHEDULE_NEVER_RUNS' });
      assert.deepEqual(texts(builder.daily().nextRuns(1, FROM)), ['2026-01-01T09:00:00']);
    });
  });

  describe('refuses at the call', () => {
    const circle: Record<string, unknown> = {};
    circle['self'] = circle;
    const WRONG: [Call, RegExp][] = [
      [['cron', ''], /^cron\(\)\.cron: .*it has 0 fields, expected five .* or six/],
      [['cron', '* * * *'], /^cron\(\)\.cron: .*it has 4 fields, expected five .* or six/],
      [['cron', '* * * * * * *'], /^cron\(\)\.cron: .*it has 7 fields/],
      [['cron', '60 * * * *'], /^cron\(\)\.cron: .*its minute '60'/],
      [['cron', '* * * * MOON'], /^cron\(\)\.cron: .*its weekday 'MOON'/],
      [['cron', '*/0 * * * *'], /^cron\(\)\.cron: .*its minute '\*\/0' has the step '0'/],
      [['cron', '@never'], /^cron\(\)\.cron: .*it is none of @yearly/],
      [['cron', 5], /^cron\(\)\.cron: .*a cron expression is a text, got number/],
      [['cron', null], /^cron\(\)\.cron: .*a cron expression is a text/],
      [['fields', {}], /^fields\(\)\.fields: .*none of minutes, hours/],
      [
        ['fields', { minute: 5 }],
        /^fields\(\)\.fields: .*minute is not a field \(did you mean 'minutes'\?\)/,
      ],
      [['fields', { hours: 24 }], /^fields\(\)\.fields: .*hours must be a number from 0 to 23/],
      [['fields', 'EVERY_HOUR'], /^fields\(\)\.fields: /],
      [
        ['symbol', 'EVERY_HUOR'],
        /^symbol\(\)\.symbol: 'EVERY_HUOR' is none of .*did you mean 'EVERY_HOUR'\?/,
      ],
      [['every', '-5m'], /^every\(\)\.every must be milliseconds or a text/],
      [['every', -5], /^every\(\)\.every must be between 0 and a hundred years, got -5/],
      [['every', '10ms'], /^every\(\)\.every must be at least 1000 ms, got '10ms'/],
      [['every', 'hourly'], /^every\(\)\.every must be milliseconds or a text like/],
      [['seconds', 60], /^seconds\(\)\.seconds\[0\] must be a whole number from 0 to 59, got 60/],
      [['minutes', [0, -1]], /^minutes\(\)\.minutes\[1\] must be a whole number from 0 to 59, got -1/],
      [['hours', 24], /^hours\(\)\.hours\[0\] must be a whole number from 0 to 23, got 24/],
      [['hours', '9'], /^hours\(\)\.hours\[0\] must be a whole number from 0 to 23, got '9'/],
      [['hours', []], /^hours\(\)\.hours must be a list with at least one entry/],
      [['hours', undefined], /^hours\(\)\.hours/],
      [['days', 0], /^days\(\)\.days\[0\] must be a whole number from 1 to 31, got 0/],
      [['days', 32], /^days\(\)\.days\[0\] must be a whole number from 1 to 31, got 32/],
      [['months', 13], /^months\(\)\.months\[0\] must be a whole number from 1 to 12, got 13/],
      [['daysOfWeek', 8], /^daysOfWeek\(\)\.weekdays\[0\] must be a whole number/],
      [['between', '9', '17:00'], /^between\(\)\.between must be two times like/],
      [['between', '09:00', '24:00'], /^between\(\)\.between must be two times like/],
      [['except', '2026-02-30'], /^except\(\)\.except\[0\] must be a day like .*got '2026-02-30'/],
      [['except', '12-25', 'christmas'], /^except\(\)\.except\[1\] must be a day like .*got 'christmas'/],
      [
        ['timezone', 'Mars/Olympus'],
        /^timezone\(\)\.timezone must be a time zone like .*got 'Mars\/Olympus'/,
      ],
      [['timezone', '+02:00:00'], /^timezone\(\)\.timezone must be a time zone/],
      [
        ['startsAt', 'tomorrow'],
        /^startsAt\(\)\.startsAt: it must be a Date or a text like .*got 'tomorrow'/,
      ],
      [['startsAt', new Date(NaN)], /^startsAt\(\)\.startsAt: .*got an invalid date/],
      [['endsAt', '2026-02-30'], /^endsAt\(\)\.endsAt: .*got '2026-02-30'/],
      [['maxRuns', 0], /^maxRuns\(\)\.maxRuns must be a whole number from 1/],
      [['jitter', '-1s'], /^jitter\(\)\.jitter must be/],
      [['queue', ''], /^queue\(\)\.queue must not be empty/],
      [['queue', { $ne: null }], /^queue\(\)\.queue must be a string, got object/],
      [['priority', -1], /^priority\(\)\.priority must be a whole number from 0 to 1000, got -1/],
      [['priority', 1001], /^priority\(\)\.priority must be a whole number from 0 to 1000, got 1001/],
      [['retries', { max: 0 }], /^retries\(\)\.retries\.max must be a whole number from 1 to 1000, got 0/],
      [['retries', { base: '-1s' }], /^retries\(\)\.retries\.base must be/],
      [['retries', { base: '1m', cap: '1s' }], /^retries\(\)\.retries\.cap .* must not be shorter than/],
      [['retries', { tries: 3 }], /^retries\(\)\.retries\.tries is not an option/],
      [['maxRetries', -1], /^maxRetries\(\) takes a whole number from 0 to 999, got -1/],
      [['maxRetries', 1.5], /^maxRetries\(\) takes a whole number from 0 to 999, got 1.5/],
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
      [['named', 'a@b'], /^named\(\): the name of a schedule must not contain any of @ ! #, got 'a@b'/],
      [['named', { $ne: 1 }], /^named\(\): the name of a schedule must be a string/],
      [['dailyAt', '25:00'], /^dailyAt\(\) takes a time like '02:30', got "25:00"/],
      [['everyMinute', 0], /^everyMinute\(\) takes a whole number from 1 to 59, got 0/],
    ];
    for (const [one, message] of WRONG) {
      it(`D5 ${show(one)}`, () => {
        assert.throws(() => call(aBuilder(), one), {
          name: 'ChronosError',
          code: 'INVALID_SCHEDULE',
          message,
        });
      });
    }

    for (const base of ['cron', 'fields', 'symbol', 'every'] as const) {
      it(`D5 ${base}(undefined): a rule that is missing must not become no rule at all`, () => {
        assert.throws(() => call(aBuilder().daily(), [base, undefined]), { code: 'INVALID_SCHEDULE' });
      });
    }

    it('D5 timezone(undefined): a zone that is missing must not become another one', () => {
      assert.throws(() => call(aBuilder().daily(), ['timezone', undefined]), { code: 'INVALID_SCHEDULE' });
    });

    it('D1 and what was said before stays', () => {
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
        assert.throws(() => call(builder, one), { code: 'INVALID_SCHEDULE' });
        assert.deepEqual(
          texts(builder.nextRuns(3, FROM)),
          ['2026-01-05T09:00:00', '2026-01-05T09:30:00', '2026-01-12T09:00:00'],
          show(one),
        );
      }
    });

    it('D1 D5 what only the whole shows is refused at the first read, with the name of the schedule', () => {
      const wholes: [Build, string, RegExp][] = [
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
      for (const [build, code, message] of wholes)
        assert.throws(() => build(aBuilder()).nextRuns(1), { code, message });
    });
  });

  describe('is no thenable', () => {
    it('J5 it has no then, catch or finally', () => {
      for (const name of ['then', 'catch', 'finally']) assert.equal(name in aBuilder(), false, name);
    });

    it('J5 awaiting it neither hangs nor changes it', async () => {
      const builder = aBuilder();
      assert.equal(await Promise.resolve(builder), builder);
      // Not a promise, and awaited all the same: as people do.
      // eslint-disable-next-line @typescript-eslint/await-thenable
      const awaited = await builder.daily();
      assert.equal(awaited, builder);
      assert.deepEqual(texts(builder.hours(9).nextRuns(1, FROM)), ['2026-01-01T09:00:00']);
    });
  });

  describe('dispatch', () => {
    it('J6 one that is refused rejects, it does not throw', async () => {
      const builder = aBuilder().dailyAt('02:30').hours(9);
      const dispatched = builder.dispatch();
      await assert.rejects(dispatched, { code: 'SCHEDULE_NEVER_RUNS' });
    });
  });
});

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length <= 1) return [[...items]];
  return items.flatMap((item, index) =>
    permutations([...items.slice(0, index), ...items.slice(index + 1)]).map((rest) => [item, ...rest]),
  );
}
