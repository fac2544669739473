import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  aBuilder,
  aScheduler,
  assertNextRuns,
  callMethod,
  formatCall,
  formatRuns,
  FROM,
  type Build,
  type Call,
} from '../../../support/schedule-builder.js';

/** The next runs after these calls, or the code of the error that one of them threw. */
function resultOf(calls: readonly Call[]): string[] | string {
  const builder = aBuilder();
  try {
    for (const one of calls) callMethod(builder, one);
    return formatRuns(builder.nextRuns(6, FROM));
  } catch (error) {
    return String((error as { code?: unknown }).code);
  }
}

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length <= 1) return [[...items]];
  return items.flatMap((item, index) =>
    permutations([...items.slice(0, index), ...items.slice(index + 1)]).map((rest) => [item, ...rest]),
  );
}

describe('ScheduleBuilder', () => {
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
      it(`replaces a value that the frequency left open: ${title} [J3]`, () =>
        assertNextRuns(build, expected));
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
      it(`narrows a value that was set: ${title} [J3]`, () => assertNextRuns(build, expected));
    }

    const CONTRADICTIONS: [string, Build][] = [
      ["dailyAt('02:30').hours(9)", (b) => b.dailyAt('02:30').hours(9)],
      ["cron('0 9 * * *').minutes(30)", (b) => b.cron('0 9 * * *').minutes(30)],
      ["cron('0 0 9 * * *').seconds(30)", (b) => b.cron('0 0 9 * * *').seconds(30)],
      ['hourlyAt(15).minutes(30)', (b) => b.hourlyAt(15).minutes(30)],
      ['weeklyOn(1).tuesdays()', (b) => b.weeklyOn(1).tuesdays()],
      ['monthlyOn(15).days(16)', (b) => b.monthlyOn(15).days(16)],
      ['lastDayOfMonth().days(1)', (b) => b.lastDayOfMonth().days(1)],
      ['fields({ hours: 2 }).hours(3)', (b) => b.fields({ hours: 2 }).hours(3)],
    ];
    for (const [title, build] of CONTRADICTIONS) {
      it(`does not replace a time that was set, and the schedule never runs: ${title} [J3]`, () => {
        assert.throws(() => build(aBuilder()).nextRuns(1, FROM), {
          code: 'SCHEDULE_NEVER_RUNS',
          message: /^schedule 'work' never runs: .* has no occurrence within five years/,
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
      it(`without a frequency sets one: ${title} [J3]`, () => assertNextRuns(build, expected));
    }

    it('that contradicts another is rejected at once [J3]', () => {
      assert.throws(() => aBuilder().mondays().tuesdays(), {
        code: 'INVALID_SCHEDULE',
        message: /^tuesdays\(\) and an earlier constraint have no value in common/,
      });
      assert.throws(() => aBuilder().hours(9).daily().hours([10, 11]), { code: 'INVALID_SCHEDULE' });
    });

    it('on Sunday accepts 0 and 7, also next to another constraint [J3]', () => {
      const SUNDAY = ['2026-01-04T00:00:00'];
      for (const build of [
        (b) => b.sundays().daysOfWeek(7),
        (b) => b.daysOfWeek(7).sundays(),
        (b) => b.daysOfWeek([6, 7]).daysOfWeek([0, 1]),
      ] as Build[])
        assert.deepEqual(formatRuns(build(aBuilder()).nextRuns(1, FROM)), SUNDAY);
    });

    it('between() can be called twice: both ranges apply, in either order [B10]', () => {
      const [morning, midday] = [
        ['between', '08:00', '12:00'],
        ['between', '10:00', '14:00'],
      ] as const;
      const base = ['hourly'] as const;
      const one = resultOf([base, morning, midday]);
      assert.deepEqual(one, resultOf([base, midday, morning]));
      assert.deepEqual(one.slice(0, 4), [
        '2026-01-01T10:00:00',
        '2026-01-01T11:00:00',
        '2026-01-01T12:00:00',
        '2026-01-02T10:00:00',
      ]);
    });

    it('that has nothing to narrow is rejected with the name of the schedule [B10]', () => {
      const narrowing: Call[] = [
        ['between', '09:00', '17:00'],
        ['except', '12-25'],
        ['startsAt', '2026-02-01'],
        ['endsAt', '2026-02-01'],
      ];
      for (const one of narrowing) {
        const builder = aBuilder();
        callMethod(builder, one);
        assert.throws(
          () => builder.nextRuns(1),
          (error: Error & { code?: string }) => {
            assert.equal(error.code, 'INVALID_SCHEDULE');
            assert.match(error.message, new RegExp(one[0]));
            assert.match(error.message, /how often/);
            assert.match(error.message, /'work'/);
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

    it('gives the same result for constraints before and after the base [J3] [D4]', () => {
      let withRuns = 0;
      const shuffledCalls = fc
        .tuple(fc.constantFrom(...BASES), fc.subarray(CONSTRAINTS, { minLength: 1, maxLength: 5 }))
        .chain(([base, constraints]) => {
          const calls = [base, ...constraints];
          return fc.tuple(
            fc.constant(calls),
            fc.shuffledSubarray(calls, { minLength: calls.length, maxLength: calls.length }),
          );
        });
      fc.assert(
        fc.property(shuffledCalls, ([calls, shuffled]) => {
          const expected = resultOf(calls);
          if (Array.isArray(expected) && expected.length > 0) withRuns++;
          assert.deepEqual(resultOf(shuffled), expected, shuffled.map(formatCall).join('.'));
        }),
        { seed: 20_260_101, numRuns: 300 },
      );
      assert.ok(withRuns > 100, `only ${withRuns} of 300 have runs`);
    });

    it('gives the same result for every order of four constraints around a base [J3]', () => {
      const calls: Call[] = [
        ['daily'],
        ['hours', [9, 17]],
        ['weekdays'],
        ['months', [1, 2]],
        ['minutes', 30],
      ];
      const expected = resultOf(calls);
      assert.deepEqual(expected.slice(0, 3), [
        '2026-01-01T09:30:00',
        '2026-01-01T17:30:00',
        '2026-01-02T09:30:00',
      ]);
      const orders = permutations(calls);
      assert.equal(orders.length, 120);
      for (const order of orders)
        assert.deepEqual(resultOf(order), expected, order.map(formatCall).join('.'));
    });

    it('accepts run settings before and after the rule [J3]', () => {
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
          for (const one of order) callMethod(builder, one);
          return scheduler.getDefinitions()[0]!.hash;
        }),
      );
      assert.equal(hashes.size, 1);
    });

    it('uses the last frequency as the base, whatever kind the previous one was [J2]', () => {
      for (const first of BASES) {
        for (const last of BASES)
          assert.deepEqual(
            resultOf([first, last]),
            resultOf([last]),
            `${formatCall(first)}.${formatCall(last)}`,
          );
      }
    });

    it('keeps the constraints when the base changes [J2]', () => {
      assert.deepEqual(
        resultOf([['daily'], ['hours', 9], ['everyThirtyMinutes']]),
        resultOf([['everyThirtyMinutes'], ['hours', 9]]),
      );
    });
  });
});
