import assert from 'node:assert/strict';
import { FREQUENCIES, WEEKDAYS } from '../../../../src/domain/calendar/frequencies.js';
import { aBuilder, assertNextRuns, formatRuns, FROM, type Build } from '../../../support/schedule-builder.js';

describe('ScheduleBuilder', () => {
  describe('supports', () => {
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
        'D7 the preview of a disabled schedule',
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
      ['B10 an interval', (b) => b.every('90s'), FROM, ['01-01T00:01:30', '01-01T00:03:00']],
      [
        'B10 an interval from an instant on',
        (b) => b.every('90s').startsAt('2026-01-01T00:00:10Z'),
        FROM,
        ['01-01T00:00:10', '01-01T00:01:40'],
      ],
      [
        'B10 a range of times, both ends included',
        (b) => b.everyThirtyMinutes().between('08:30', '09:30'),
        FROM,
        ['01-01T08:30:00', '01-01T09:00:00', '01-01T09:30:00', '01-02T08:30:00'],
      ],
      [
        'B10 a range of times past midnight',
        (b) => b.hourly().between('22:30', '01:00'),
        '2026-01-01T12:00:00Z',
        ['01-01T23:00:00', '01-02T00:00:00', '01-02T01:00:00', '01-02T23:00:00'],
      ],
      [
        'B10 excluded days, which accumulate',
        (b) => b.daily().except('2026-01-02').except(['01-04', '2027-01-05']),
        FROM,
        ['01-03T00:00:00', '01-05T00:00:00', '01-06T00:00:00'],
      ],
      [
        'B10 a start and an end',
        (b) => b.daily().startsAt('2026-02-01').endsAt('2026-02-02'),
        FROM,
        ['02-01T00:00:00', '02-02T00:00:00'],
      ],
      [
        'D12 a time zone of the schedule',
        (b) => b.dailyAt('02:00').timezone('Asia/Tokyo'),
        FROM,
        ['01-01T17:00:00', '01-02T17:00:00'],
      ],
    ];
    for (const [title, build, from, expected] of RECIPES) {
      it(title, () => assertNextRuns(build, expected, from));
    }

    it('custom symbols, as fields or as cron [Y3]', () => {
      const symbols = { EVERY_SHIFT: { minutes: 0, hours: '6,14,22' }, AT_LUNCH: '30 12 * * MON-FRI' };
      const shift = aBuilder({ symbols }).symbol('EVERY_SHIFT');
      const lunch = aBuilder({ symbols }).symbol('AT_LUNCH');
      assert.deepEqual(formatRuns(shift.nextRuns(2, FROM)), ['2026-01-01T06:00:00', '2026-01-01T14:00:00']);
      assert.deepEqual(formatRuns(lunch.nextRuns(3, FROM)), [
        '2026-01-01T12:30:00',
        '2026-01-02T12:30:00',
        '2026-01-05T12:30:00',
      ]);
    });

    it('the time zone of the application by default [D12]', () => {
      const builder = aBuilder({ timezone: 'Europe/Berlin' }).dailyAt('02:00').startsAt('2026-07-01 02:00');
      assert.deepEqual(formatRuns(builder.nextRuns(1, FROM)), ['2026-07-01T00:00:00']);
    });

    it('a method for every frequency and every day of the week [J2]', () => {
      for (const name of [...Object.keys(FREQUENCIES), ...Object.keys(WEEKDAYS)])
        assert.equal(typeof (aBuilder() as unknown as Record<string, unknown>)[name], 'function', name);
    });
  });
});
