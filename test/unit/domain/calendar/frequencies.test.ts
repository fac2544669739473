import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { parseCron } from '../../../../src/domain/calendar/cron.js';
import {
  FREQUENCIES,
  type FrequencyName,
  overridableCron,
  secondsOfDay,
  WEEKDAYS,
} from '../../../../src/domain/calendar/frequencies.js';
import { nextRuns, occurrencesOf } from '../../../../src/domain/calendar/occurrences.js';

type Arguments = readonly unknown[];

/** The cron expression, in which `~` marks the fields that a constraint replaces. */
function markedCron(name: FrequencyName, args: Arguments = []): string {
  const { cron } = FREQUENCIES[name] as { cron: (...args: Arguments) => string };
  return cron(...args);
}

function expression(name: FrequencyName, args: Arguments = []): string {
  return markedCron(name, args).replaceAll('~', '');
}

const formatCall = (name: string, args: Arguments): string =>
  `${name}(${args.map((argument) => inspect(argument)).join(', ')})`;

const OTHERS: [FrequencyName, Arguments, string][] = [
  ['everySecond', [], '* * * * * *'],
  ['everyTwoSeconds', [], '*/2 * * * * *'],
  ['everyFiveSeconds', [], '*/5 * * * * *'],
  ['everyTenSeconds', [], '*/10 * * * * *'],
  ['everyFifteenSeconds', [], '*/15 * * * * *'],
  ['everyTwentySeconds', [], '*/20 * * * * *'],
  ['everyThirtySeconds', [], '*/30 * * * * *'],
  ['everyMinute', [1], '* * * * *'],
  ['everyMinute', [undefined], '* * * * *'],
  ['everyMinute', [59], '*/59 * * * *'],
  ['everyXMinutes', [1], '*/1 * * * *'],
  ['everyTwoMinutes', [], '*/2 * * * *'],
  ['everyThreeMinutes', [], '*/3 * * * *'],
  ['everyFourMinutes', [], '*/4 * * * *'],
  ['everyFiveMinutes', [], '*/5 * * * *'],
  ['everyTenMinutes', [], '*/10 * * * *'],
  ['everyFifteenMinutes', [], '*/15 * * * *'],
  ['everyTwentyMinutes', [], '*/20 * * * *'],
  ['everyThirtyMinutes', [], '*/30 * * * *'],
  ['everyHour', [], '0 * * * *'],
  ['hourlyAt', [0], '0 * * * *'],
  ['hourlyAt', [59], '59 * * * *'],
  ['everyTwoHours', [], '0 */2 * * *'],
  ['everyThreeHours', [], '0 */3 * * *'],
  ['everyFourHours', [], '0 */4 * * *'],
  ['everySixHours', [], '0 */6 * * *'],
  ['everyEightHours', [], '0 */8 * * *'],
  ['everyTwelveHours', [], '0 */12 * * *'],
  ['dailyAt', ['00:00'], '0 0 * * *'],
  ['dailyAt', ['2:05'], '5 2 * * *'],
  ['dailyAt', ['23:59'], '59 23 * * *'],
  ['dailyAt', ['12:00:00'], '0 12 * * *'],
  ['twiceDaily', [], '0 1,13 * * *'],
  ['twiceDaily', [6, 18], '0 6,18 * * *'],
  ['twiceDaily', [20, 4], '0 20,4 * * *'],
  ['weeklyOn', [1], '0 0 * * 1'],
  ['weeklyOn', [7], '0 0 * * 7'],
  ['weeklyOn', [[1, 3, 5]], '0 0 * * 1,3,5'],
  ['weeklyOn', [1, '08:30'], '30 8 * * 1'],
  ['monthlyOn', [15], '0 0 15 * *'],
  ['monthlyOn', [[1, 31], '04:00'], '0 4 1,31 * *'],
  ['twiceMonthly', [], '0 0 1,16 * *'],
  ['twiceMonthly', [5, 20], '0 0 5,20 * *'],
  ['twiceMonthly', [5, 20, '13:15'], '15 13 5,20 * *'],
  ['lastDayOfMonth', [], '0 0 L * *'],
  ['lastDayOfMonth', ['18:45'], '45 18 L * *'],
  ['yearlyOn', [6], '0 0 1 6 *'],
  ['yearlyOn', [6, 15], '0 0 15 6 *'],
  ['yearlyOn', [2, 29, '06:00'], '0 6 29 2 *'],
];

/** The expressions that the documentation promises. */
const DOCUMENTED: [FrequencyName, Arguments, string][] = [
  ['everyMinute', [], '* * * * *'],
  ['everyMinute', [5], '*/5 * * * *'],
  ['everyXMinutes', [5], '*/5 * * * *'],
  ['hourly', [], '0 * * * *'],
  ['hourlyAt', [15], '15 * * * *'],
  ['daily', [], '0 0 * * *'],
  ['dailyAt', ['02:30'], '30 2 * * *'],
  ['weekly', [], '0 0 * * 0'],
  ['monthly', [], '0 0 1 * *'],
  ['quarterly', [], '0 0 1 */3 *'],
  ['yearly', [], '0 0 1 1 *'],
];

describe('frequencies', () => {
  for (const [name, args, cron] of DOCUMENTED) {
    it(`${formatCall(name, args)} is ${cron} [D4]`, () => assert.equal(expression(name, args), cron));
  }

  for (const [name, args, cron] of OTHERS) {
    it(`${formatCall(name, args)} is ${cron} [J2]`, () => assert.equal(expression(name, args), cron));
  }

  it('are at least forty together with the days of the week, with different names [J2]', () => {
    const names = new Set([...Object.keys(FREQUENCIES), ...Object.keys(WEEKDAYS)]);
    assert.ok(names.size >= 40, `${names.size}`);
    assert.equal(names.size, Object.keys(FREQUENCIES).length + Object.keys(WEEKDAYS).length);
  });

  it('are all tested here, have a description and are valid cron expressions [J2]', () => {
    const tested = new Set([...DOCUMENTED, ...OTHERS].map(([name]) => name));
    assert.deepEqual(
      Object.keys(FREQUENCIES).filter((name) => !tested.has(name as FrequencyName)),
      [],
    );
    for (const { meaning } of Object.values(FREQUENCIES)) assert.match(meaning, /^\w.*\w$/);
    for (const [, , cron] of [...DOCUMENTED, ...OTHERS]) parseCron(cron);
  });

  it('mark their default values, which a constraint replaces, but not their arguments [J2]', () => {
    assert.equal(markedCron('daily'), '~0 ~0 * * *');
    assert.equal(markedCron('hourly'), '~0 * * * *');
    assert.equal(markedCron('yearly'), '~0 ~0 ~1 ~1 *');
    assert.equal(markedCron('quarterly'), '~0 ~0 ~1 */3 *');
    assert.equal(markedCron('weekly'), '~0 ~0 * * ~0');
    assert.equal(markedCron('weeklyOn', [1]), '~0 ~0 * * 1');
    assert.equal(markedCron('monthlyOn', [1]), '~0 ~0 1 * *');
    assert.equal(markedCron('twiceDaily', [1, 13]), '~0 1,13 * * *');
    for (const [name, args] of [
      ['hourlyAt', [15]],
      ['dailyAt', ['00:00']],
      ['weeklyOn', [1, '08:30']],
      ['monthlyOn', [1, '00:00']],
      ['twiceMonthly', [1, 16, '00:00']],
      ['lastDayOfMonth', ['00:00']],
      ['yearlyOn', [1, 1, '00:00']],
      ['everyMinute', [5]],
    ] as [FrequencyName, Arguments][]) {
      assert.ok(!markedCron(name, args).includes('~'), formatCall(name, args));
    }
  });

  const RUNS: [FrequencyName, Arguments, string[]][] = [
    ['everyThirtySeconds', [], ['2026-01-01T00:00:30', '2026-01-01T00:01:00', '2026-01-01T00:01:30']],
    ['everyMinute', [], ['2026-01-01T00:01:00', '2026-01-01T00:02:00']],
    ['everyMinute', [20], ['2026-01-01T00:20:00', '2026-01-01T00:40:00', '2026-01-01T01:00:00']],
    ['hourly', [], ['2026-01-01T01:00:00', '2026-01-01T02:00:00']],
    ['hourlyAt', [15], ['2026-01-01T00:15:00', '2026-01-01T01:15:00']],
    ['everySixHours', [], ['2026-01-01T06:00:00', '2026-01-01T12:00:00', '2026-01-01T18:00:00']],
    ['daily', [], ['2026-01-02T00:00:00', '2026-01-03T00:00:00']],
    ['dailyAt', ['02:30'], ['2026-01-01T02:30:00', '2026-01-02T02:30:00']],
    ['twiceDaily', [], ['2026-01-01T01:00:00', '2026-01-01T13:00:00', '2026-01-02T01:00:00']],
    ['twiceDaily', [20, 4], ['2026-01-01T04:00:00', '2026-01-01T20:00:00']],
    ['twiceDaily', [4, 4], ['2026-01-01T04:00:00', '2026-01-02T04:00:00']],
    ['weekly', [], ['2026-01-04T00:00:00', '2026-01-11T00:00:00']],
    ['weeklyOn', [[0, 7]], ['2026-01-04T00:00:00', '2026-01-11T00:00:00']],
    ['weeklyOn', [[1, 5], '08:30'], ['2026-01-02T08:30:00', '2026-01-05T08:30:00', '2026-01-09T08:30:00']],
    ['monthly', [], ['2026-02-01T00:00:00', '2026-03-01T00:00:00']],
    ['monthlyOn', [31], ['2026-01-31T00:00:00', '2026-03-31T00:00:00', '2026-05-31T00:00:00']],
    ['twiceMonthly', [], ['2026-01-16T00:00:00', '2026-02-01T00:00:00', '2026-02-16T00:00:00']],
    ['lastDayOfMonth', [], ['2026-01-31T00:00:00', '2026-02-28T00:00:00', '2026-03-31T00:00:00']],
    [
      'quarterly',
      [],
      ['2026-04-01T00:00:00', '2026-07-01T00:00:00', '2026-10-01T00:00:00', '2027-01-01T00:00:00'],
    ],
    ['yearly', [], ['2027-01-01T00:00:00', '2028-01-01T00:00:00']],
    ['yearlyOn', [2, 29], ['2028-02-29T00:00:00', '2032-02-29T00:00:00']],
    ['yearlyOn', [12, 24, '18:00'], ['2026-12-24T18:00:00', '2027-12-24T18:00:00']],
  ];
  for (const [name, args, expected] of RUNS) {
    it(`${formatCall(name, args)} runs at the expected times [J2]`, () => {
      const occurrences = occurrencesOf({ cron: expression(name, args), timezone: 'UTC' }, new Date(0));
      const runs = nextRuns(occurrences, expected.length, new Date('2026-01-01T00:00:00Z'));
      assert.deepEqual(
        runs.map((at) => at.toISOString().slice(0, 19)),
        expected,
      );
    });
  }

  it('have names for the days of the week [J2]', () => {
    assert.deepEqual(WEEKDAYS, {
      weekdays: [1, 2, 3, 4, 5],
      weekends: [0, 6],
      sundays: [0],
      mondays: [1],
      tuesdays: [2],
      wednesdays: [3],
      thursdays: [4],
      fridays: [5],
      saturdays: [6],
    });
  });

  const invalidTimes = [
    '',
    '24:00',
    '2:5',
    '02:60',
    '02:30:15',
    '02:30:60',
    '2',
    '2.30',
    '-1:00',
    ' 2:30',
    '2:30pm',
    '٠٢:٣٠',
    230,
    null,
  ];
  const cycle: unknown[] = [];
  cycle.push(cycle);
  const invalidNumbers = [-1, 1.5, NaN, Infinity, '5', null, true, {}, 5n, Symbol('5')];
  const INVALID: [FrequencyName, Arguments[], RegExp][] = [
    [
      'everyMinute',
      [0, 60, ...invalidNumbers].map((n) => [n]),
      /^everyMinute\(\)(\[\d\])? must be a whole number from 1 to 59, got /,
    ],
    [
      'everyXMinutes',
      [0, 60, undefined, ...invalidNumbers].map((n) => [n]),
      /^everyXMinutes\(\)(\[\d\])? must be a whole number from 1 to 59, got /,
    ],
    [
      'hourlyAt',
      [60, undefined, ...invalidNumbers].map((n) => [n]),
      /^hourlyAt\(\)(\[\d\])? must be a whole number from 0 to 59, got /,
    ],
    ['dailyAt', invalidTimes.map((time) => [time]), /^dailyAt\(\) must be a time like '02:30', got /],
    [
      'twiceDaily',
      [[24], [1, 24], ...invalidNumbers.map((n) => [n, 1])],
      /^twiceDaily\(\)(\[\d\])? must be a whole number from 0 to 23, got /,
    ],
    [
      'weeklyOn',
      [[8], [[1, 8]], [undefined], [cycle], ...invalidNumbers.map((n) => [n])],
      /^weeklyOn\(\)(\[\d\])? must be a whole number from 0 to 7, got /,
    ],
    ['weeklyOn', [[[]]], /^weeklyOn\(\) must be a list with at least one entry, got an empty list$/],
    ['weeklyOn', invalidTimes.map((time) => [1, time]), /^weeklyOn\(\) must be a time like '02:30', got /],
    [
      'monthlyOn',
      [[0], [32], [[1, 32]], ...invalidNumbers.map((n) => [n])],
      /^monthlyOn\(\)(\[\d\])? must be a whole number from 1 to 31, got /,
    ],
    ['monthlyOn', [[[]]], /^monthlyOn\(\) must be a list with at least one entry, got an empty list$/],
    ['twiceMonthly', [[0], [1, 32]], /^twiceMonthly\(\)(\[\d\])? must be a whole number from 1 to 31, got /],
    [
      'lastDayOfMonth',
      invalidTimes.map((time) => [time]),
      /^lastDayOfMonth\(\) must be a time like '02:30', got /,
    ],
    [
      'yearlyOn',
      [[0], [13], [undefined], ...invalidNumbers.map((n) => [n])],
      /^yearlyOn\(\)(\[\d\])? must be a whole number from 1 to 12, got /,
    ],
    [
      'yearlyOn',
      [
        [1, 0],
        [1, 32],
      ],
      /^yearlyOn\(\)(\[\d\])? must be a whole number from 1 to 31, got /,
    ],
  ];
  for (const [name, calls, message] of INVALID) {
    for (const args of calls) {
      it(`${formatCall(name, args)} is rejected [J2]`, () => {
        assert.throws(() => markedCron(name, args), {
          name: 'ChronosError',
          code: 'INVALID_SCHEDULE',
          message,
        });
      });
    }
  }

  it('accept times of the day like 02:30 and 23:59:59 [J2] [J3]', () => {
    for (const [time, seconds] of [
      ['00:00', 0],
      ['0:00', 0],
      ['02:30', 9000],
      ['2:30', 9000],
      ['02:30:15', 9015],
      ['23:59', 86_340],
      ['23:59:59', 86_399],
    ] as const) {
      assert.equal(secondsOfDay(time), seconds, time);
    }
    const wrong = invalidTimes.filter((time) => time !== '02:30:15');
    for (const time of [...wrong, undefined, {}, ['02:30'], '002:30', '02:300', '02:30\n', 'ab:cd', '::']) {
      assert.equal(secondsOfDay(time), undefined, inspect(time));
    }
  });
});

describe('overridableCron', () => {
  for (const [marked, cron, overridable] of [
    ['* * * * *', '* * * * *', []],
    ['~0 * * * *', '0 * * * *', ['minute']],
    ['~0 ~0 ~1 ~1 *', '0 0 1 1 *', ['minute', 'hour', 'day', 'month']],
    ['~0 ~0 * * ~0', '0 0 * * 0', ['minute', 'hour', 'weekday']],
    ['~0 1,13 * * *', '0 1,13 * * *', ['minute']],
    ['*/5 * * * * *', '*/5 * * * * *', []],
    ['~0 ~0 * * * *', '0 0 * * * *', ['second', 'minute']],
  ] as const) {
    it(`splits ${marked} into the expression and its overridable fields [J3]`, () =>
      assert.deepEqual(overridableCron(marked), { cron, overridable }));
  }

  it('removes all marks from every frequency [J2]', () => {
    const args: Record<string, unknown[]> = {
      everyXMinutes: [5],
      hourlyAt: [5],
      dailyAt: ['2:00'],
      weeklyOn: [1],
      monthlyOn: [1],
      yearlyOn: [1],
    };
    for (const [name, { cron }] of Object.entries(FREQUENCIES)) {
      const marked = (cron as (...args: unknown[]) => string)(...(args[name] ?? []));
      assert.doesNotMatch(overridableCron(marked).cron, /~/, name);
    }
  });
});
