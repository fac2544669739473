import assert from 'node:assert/strict';
import { nextRuns, occurrencesOf } from '../../../src/domain/occurrences.js';
import type { Rule } from '../../../src/domain/rule.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const ANCHOR = new Date('2026-01-01T00:00:00Z');

type Unplaced = Omit<Rule, 'timezone'>;

/** The next runs in UTC, as texts without what is zero anyway. */
function runs(rule: Unplaced & { timezone?: string }, from: string, count: number): string[] {
  const occurrences = occurrencesOf({ timezone: 'UTC', ...rule }, ANCHOR);
  return nextRuns(occurrences, count, new Date(from)).map((at) =>
    at.toISOString().replace(/(:00)?\.000Z$/, ''),
  );
}

/** Says yes or no to every day, and counts how often it was asked. */
function counting(answer: boolean): { days: number[]; asked: () => number } {
  let asked = 0;
  const days = Object.assign([], {
    includes: () => {
      asked++;
      return answer;
    },
  });
  return { days, asked: () => asked };
}

describe('rules', () => {
  describe('the days of a cron expression', () => {
    it('J1 are those of the month or of the week, when both are given', () => {
      assert.deepEqual(runs({ cron: '0 0 13 * 5' }, '2026-02-01T00:00Z', 6), [
        '2026-02-06T00:00',
        '2026-02-13T00:00',
        '2026-02-20T00:00',
        '2026-02-27T00:00',
        '2026-03-06T00:00',
        '2026-03-13T00:00',
      ]);
      assert.deepEqual(runs({ cron: '0 0 10,20 * MON' }, '2026-06-01T00:00Z', 5), [
        '2026-06-08T00:00',
        '2026-06-10T00:00',
        '2026-06-15T00:00',
        '2026-06-20T00:00',
        '2026-06-22T00:00',
      ]);
    });

    it('J1 are those of the one that is given, when one is', () => {
      assert.deepEqual(runs({ cron: '0 0 13 * *' }, '2026-02-01T00:00Z', 2), [
        '2026-02-13T00:00',
        '2026-03-13T00:00',
      ]);
      assert.deepEqual(runs({ cron: '0 0 13 * ?' }, '2026-02-01T00:00Z', 2), [
        '2026-02-13T00:00',
        '2026-03-13T00:00',
      ]);
      assert.deepEqual(runs({ cron: '0 0 * * 5' }, '2026-02-01T00:00Z', 2), [
        '2026-02-06T00:00',
        '2026-02-13T00:00',
      ]);
      assert.deepEqual(runs({ cron: '0 0 ? * 5' }, '2026-02-01T00:00Z', 2), [
        '2026-02-06T00:00',
        '2026-02-13T00:00',
      ]);
    });

    it('J1 are united within the months that are given', () => {
      assert.deepEqual(runs({ cron: '0 0 1 6 SUN' }, '2026-05-01T00:00Z', 6), [
        '2026-06-01T00:00',
        '2026-06-07T00:00',
        '2026-06-14T00:00',
        '2026-06-21T00:00',
        '2026-06-28T00:00',
        '2027-06-01T00:00',
      ]);
    });

    it('J1 are united with the last of the month', () => {
      assert.deepEqual(runs({ cron: '0 0 L * MON' }, '2026-02-20T00:00Z', 4), [
        '2026-02-23T00:00',
        '2026-02-28T00:00',
        '2026-03-02T00:00',
        '2026-03-09T00:00',
      ]);
      assert.deepEqual(runs({ cron: '0 0 15,L * *' }, '2026-02-01T00:00Z', 3), [
        '2026-02-15T00:00',
        '2026-02-28T00:00',
        '2026-03-15T00:00',
      ]);
    });
  });

  describe('the calendar', () => {
    it('J20 has a 29 February every four years', () => {
      assert.deepEqual(runs({ cron: '0 0 29 2 *' }, '2025-01-01T00:00Z', 3), [
        '2028-02-29T00:00',
        '2032-02-29T00:00',
        '2036-02-29T00:00',
      ]);
    });

    it('J20 has none in 2100: eight years are too far', () => {
      assert.deepEqual(runs({ cron: '0 0 29 2 *' }, '2096-02-01T00:00Z', 1), ['2096-02-29T00:00']);
      assert.deepEqual(runs({ cron: '0 0 29 2 *' }, '2096-03-01T00:00Z', 1), []);
      assert.deepEqual(runs({ cron: '0 0 29 2 *' }, '2100-01-01T00:00Z', 1), ['2104-02-29T00:00']);
    });

    it('J20 has a 31st in seven months', () => {
      assert.deepEqual(runs({ cron: '0 12 31 * *' }, '2026-01-01T00:00Z', 8), [
        '2026-01-31T12:00',
        '2026-03-31T12:00',
        '2026-05-31T12:00',
        '2026-07-31T12:00',
        '2026-08-31T12:00',
        '2026-10-31T12:00',
        '2026-12-31T12:00',
        '2027-01-31T12:00',
      ]);
    });

    it('J20 has a last day in every month', () => {
      assert.deepEqual(runs({ cron: '59 23 L * *' }, '2028-01-01T00:00Z', 12), [
        '2028-01-31T23:59',
        '2028-02-29T23:59',
        '2028-03-31T23:59',
        '2028-04-30T23:59',
        '2028-05-31T23:59',
        '2028-06-30T23:59',
        '2028-07-31T23:59',
        '2028-08-31T23:59',
        '2028-09-30T23:59',
        '2028-10-31T23:59',
        '2028-11-30T23:59',
        '2028-12-31T23:59',
      ]);
      assert.deepEqual(runs({ cron: '0 0 L 2 *' }, '2026-01-01T00:00Z', 3), [
        '2026-02-28T00:00',
        '2027-02-28T00:00',
        '2028-02-29T00:00',
      ]);
    });

    it('J20 turns at midnight, at the end of the month and of the year', () => {
      assert.deepEqual(runs({ cron: '59 59 23 31 12 *' }, '2026-12-31T23:59:58Z', 2), [
        '2026-12-31T23:59:59',
        '2027-12-31T23:59:59',
      ]);
      assert.deepEqual(runs({ cron: '* * * * * *' }, '2026-12-31T23:59:58.500Z', 3), [
        '2026-12-31T23:59:59',
        '2027-01-01T00:00',
        '2027-01-01T00:00:01',
      ]);
      assert.deepEqual(
        runs({ cron: '0 0 * * *', timezone: 'Pacific/Kiritimati' }, '2026-12-31T09:59:59Z', 2),
        ['2026-12-31T10:00', '2027-01-01T10:00'],
      );
    });

    it('J20 is the one of the zone', () => {
      assert.deepEqual(runs({ cron: '30 9 1 1 *', timezone: 'Asia/Kolkata' }, '2026-06-01T00:00Z', 1), [
        '2027-01-01T04:00',
      ]);
      assert.deepEqual(runs({ cron: '0 20 * * SAT', timezone: 'America/New_York' }, '2026-07-01T00:00Z', 1), [
        '2026-07-05T00:00',
      ]);
    });
  });

  describe('the horizon', () => {
    const limit = 5 * 366 * DAY;
    const far = new Date('2031-03-05T00:00:00Z');
    const rule: Rule = { fields: { minutes: 0, hours: 0, mday: 5, mon: 3, year: 2031 }, timezone: 'UTC' };

    it('J20 is five years away, to the millisecond', () => {
      const occurrences = occurrencesOf(rule, ANCHOR);
      assert.deepEqual(occurrences.next(new Date(far.getTime() - limit)), far);
      assert.equal(occurrences.next(new Date(far.getTime() - limit - 1)), null);
      assert.deepEqual(occurrences.next(new Date(far.getTime() - 1)), far);
      assert.equal(occurrences.next(far), null);
    });

    it('J20 begins with the schedule, when that is later', () => {
      const startsAt = new Date(far.getTime() - limit + 1);
      assert.deepEqual(occurrencesOf({ ...rule, startsAt }, ANCHOR).next(new Date('2020-01-01')), far);
    });

    it('J20 holds for intervals too', () => {
      const occurrences = occurrencesOf({ every: HOUR, timezone: 'UTC' }, far);
      assert.deepEqual(occurrences.next(new Date(far.getTime() - limit)), far);
      assert.equal(occurrences.next(new Date(far.getTime() - limit - 1)), null);
    });

    for (const [what, never] of Object.entries<Unplaced>({
      'a 30 February': { cron: '0 0 30 2 *' },
      'a 31st of a short month': { cron: '* * 31 4,6,9,11 *' },
      'a year that is over': { fields: { year: 2020 } },
      'a leap day on a Monday': { fields: { mday: 29, mon: 2, wday: 1, minutes: 0 } },
      'a value that the constraint excludes': { cron: '0 9 * * *', only: { hour: [10] } },
      'an empty constraint': { cron: '0 9 * * *', only: { month: [] } },
      'a time outside its window': { cron: '0 9 * * *', between: ['10:00', '11:00'] },
      'a day that is always excluded': { cron: '0 0 24 12 *', except: ['12-24'] },
      'an interval that never meets its constraint': { every: DAY, only: { hour: [10] } },
      'an interval on no day': { every: 1, only: { day: [] } },
    })) {
      it(`J20 is empty for ${what}`, () => {
        for (const timezone of ['UTC', 'Europe/Berlin']) {
          const occurrences = occurrencesOf({ ...never, timezone }, ANCHOR);
          assert.equal(occurrences.next(ANCHOR), null);
          assert.deepEqual(nextRuns(occurrences, 3, ANCHOR), []);
        }
      });
    }

    for (const base of [
      { cron: '0 0 * * *' },
      { cron: '*/5 * * * * *' },
      { fields: { minutes: 0 } },
      { every: 1 },
    ]) {
      it(`J20 is searched once, day by day: ${JSON.stringify(base)}`, () => {
        const { days, asked } = counting(false);
        const never = occurrencesOf({ ...base, only: { day: days }, timezone: 'Europe/Berlin' }, ANCHOR);
        assert.equal(never.next(ANCHOR), null);
        assert.ok(asked() >= 1830 && asked() < 2000, `${asked()} days looked at`);
      });
    }

    it('J20 is not searched past the end of the schedule', () => {
      const { days, asked } = counting(false);
      const endsAt = new Date(ANCHOR.getTime() + 10 * DAY);
      const never = occurrencesOf(
        { cron: '0 0 * * *', only: { day: days }, endsAt, timezone: 'UTC' },
        ANCHOR,
      );
      assert.equal(never.next(ANCHOR), null);
      assert.ok(asked() <= 12, `${asked()} days looked at`);
    });
  });

  describe('constraints', () => {
    it('J3 narrow an expression field by field', () => {
      assert.deepEqual(
        runs({ cron: '*/15 * * * *', only: { hour: [9, 17], minute: [0, 15] } }, '2026-01-01T00:00Z', 5),
        ['2026-01-01T09:00', '2026-01-01T09:15', '2026-01-01T17:00', '2026-01-01T17:15', '2026-01-02T09:00'],
      );
      assert.deepEqual(
        runs({ cron: '0 12 * * *', only: { month: [2, 4], day: [1, 30] } }, '2026-01-01T00:00Z', 4),
        ['2026-02-01T12:00', '2026-04-01T12:00', '2026-04-30T12:00', '2027-02-01T12:00'],
      );
      assert.deepEqual(
        runs({ cron: '* * * * * *', only: { second: [5, 50], minute: [7] } }, '2026-01-01T00:00Z', 3),
        ['2026-01-01T00:07:05', '2026-01-01T00:07:50', '2026-01-01T01:07:05'],
      );
    });

    it('J3 all have to be met, on top of what the expression says about days', () => {
      assert.deepEqual(runs({ cron: '0 0 13 * *', only: { weekday: [5] } }, '2026-01-01T00:00Z', 3), [
        '2026-02-13T00:00',
        '2026-03-13T00:00',
        '2026-11-13T00:00',
      ]);
      assert.deepEqual(runs({ cron: '0 0 1 * MON', only: { weekday: [0, 1] } }, '2026-01-20T00:00Z', 4), [
        '2026-01-26T00:00',
        '2026-02-01T00:00',
        '2026-02-02T00:00',
        '2026-02-09T00:00',
      ]);
    });

    it('J3 may be in any order', () => {
      assert.deepEqual(runs({ cron: '0 * * * *', only: { hour: [20, 4, 12] } }, '2026-01-01T00:00Z', 3), [
        '2026-01-01T04:00',
        '2026-01-01T12:00',
        '2026-01-01T20:00',
      ]);
    });

    it('J3 say the second of an expression that has none', () => {
      assert.deepEqual(runs({ cron: '*/30 * * * *', only: { second: [10, 40] } }, '2026-01-01T00:00Z', 3), [
        '2026-01-01T00:00:10',
        '2026-01-01T00:00:40',
        '2026-01-01T00:30:10',
      ]);
      assert.deepEqual(runs({ cron: '5 */30 * * * *', only: { second: [10] } }, '2026-01-01T00:00Z', 1), []);
    });

    it('J3 take the place of what is only some time', () => {
      const daily: Unplaced = { cron: '0 0 * * *', loose: ['minute', 'hour'] };
      assert.deepEqual(runs({ ...daily, only: { hour: [9, 17] } }, '2026-01-01T00:00Z', 3), [
        '2026-01-01T09:00',
        '2026-01-01T17:00',
        '2026-01-02T09:00',
      ]);
      assert.deepEqual(runs({ ...daily, only: { minute: [15], hour: [9] } }, '2026-01-01T00:00Z', 1), [
        '2026-01-01T09:15',
      ]);
      assert.deepEqual(runs({ ...daily, only: { minute: [15] } }, '2026-01-01T00:00Z', 2), [
        '2026-01-01T00:15',
        '2026-01-02T00:15',
      ]);
      assert.deepEqual(runs(daily, '2026-01-01T00:00Z', 1), ['2026-01-02T00:00']);
      assert.deepEqual(runs({ cron: '0 0 * * *', only: { hour: [9] } }, '2026-01-01T00:00Z', 1), []);
    });

    it('J3 take the place of some day, some day of the week and some month', () => {
      const monthly: Unplaced = { cron: '0 0 1 * *', loose: ['minute', 'hour', 'day'] };
      assert.deepEqual(runs({ ...monthly, only: { day: [10, 20] } }, '2026-01-01T00:00Z', 2), [
        '2026-01-10T00:00',
        '2026-01-20T00:00',
      ]);
      assert.deepEqual(runs({ ...monthly, only: { weekday: [0] } }, '2026-01-01T00:00Z', 2), [
        '2026-02-01T00:00',
        '2026-03-01T00:00',
      ]);
      const weekly: Unplaced = { cron: '0 0 * * 0', loose: ['minute', 'hour', 'weekday'] };
      assert.deepEqual(runs({ ...weekly, only: { weekday: [1, 3] } }, '2026-01-01T00:00Z', 3), [
        '2026-01-05T00:00',
        '2026-01-07T00:00',
        '2026-01-12T00:00',
      ]);
      const yearly: Unplaced = { cron: '0 0 1 1 *', loose: ['minute', 'hour', 'day', 'month'] };
      assert.deepEqual(runs({ ...yearly, only: { month: [6, 7] } }, '2026-01-01T00:00Z', 3), [
        '2026-06-01T00:00',
        '2026-07-01T00:00',
        '2027-06-01T00:00',
      ]);
    });

    it('J3 apply to field schedules', () => {
      assert.deepEqual(
        runs({ fields: { minutes: '*/20' }, only: { hour: [6], weekday: [1] } }, '2026-01-01T00:00Z', 4),
        ['2026-01-05T06:00', '2026-01-05T06:20', '2026-01-05T06:40', '2026-01-12T06:00'],
      );
      assert.deepEqual(runs({ fields: { minutes: 0 }, only: { second: [30] } }, '2026-01-01T00:00Z', 1), [
        '2026-01-01T00:00:30',
      ]);
    });
  });

  describe('hours of the day', () => {
    it('J3 B10 count from the first to the last, both included', () => {
      assert.deepEqual(runs({ cron: '*/30 * * * *', between: ['09:00', '10:30'] }, '2026-01-01T00:00Z', 5), [
        '2026-01-01T09:00',
        '2026-01-01T09:30',
        '2026-01-01T10:00',
        '2026-01-01T10:30',
        '2026-01-02T09:00',
      ]);
      assert.deepEqual(
        runs({ cron: '*/20 * * * * *', between: ['09:00', '09:00:20'] }, '2026-01-01T00:00Z', 3),
        ['2026-01-01T09:00', '2026-01-01T09:00:20', '2026-01-02T09:00'],
      );
    });

    it('J3 B10 may reach past midnight', () => {
      assert.deepEqual(runs({ cron: '0 * * * *', between: ['22:00', '01:00'] }, '2026-01-01T12:00Z', 6), [
        '2026-01-01T22:00',
        '2026-01-01T23:00',
        '2026-01-02T00:00',
        '2026-01-02T01:00',
        '2026-01-02T22:00',
        '2026-01-02T23:00',
      ]);
      assert.deepEqual(runs({ cron: '30 0,23 * * *', between: ['23:15', '00:45'] }, '2026-01-01T12:00Z', 3), [
        '2026-01-01T23:30',
        '2026-01-02T00:30',
        '2026-01-02T23:30',
      ]);
    });

    it('J3 B10 may be a single time', () => {
      assert.deepEqual(runs({ cron: '* * * * *', between: ['12:00', '12:00'] }, '2026-01-01T00:00Z', 2), [
        '2026-01-01T12:00',
        '2026-01-02T12:00',
      ]);
    });

    it('J3 B10 are those of the zone', () => {
      const rule = { cron: '0 * * * *', between: ['08:00', '09:00'], timezone: 'Asia/Tokyo' } as const;
      assert.deepEqual(runs(rule, '2026-01-01T00:00Z', 3), [
        '2026-01-01T23:00',
        '2026-01-02T00:00',
        '2026-01-02T23:00',
      ]);
    });
  });

  describe('excluded days', () => {
    it('B10 leave out a date, or a day of every year', () => {
      const rule = { cron: '0 9 * * *', except: ['2026-12-24', '12-25'] };
      assert.deepEqual(runs(rule, '2026-12-23T00:00Z', 3), [
        '2026-12-23T09:00',
        '2026-12-26T09:00',
        '2026-12-27T09:00',
      ]);
      assert.deepEqual(runs(rule, '2027-12-24T00:00Z', 2), ['2027-12-24T09:00', '2027-12-26T09:00']);
    });

    it('B10 leave out a leap day only where there is one', () => {
      const rule = { cron: '0 0 28,29,1 2,3 *', except: ['02-29'] };
      assert.deepEqual(runs(rule, '2028-02-27T00:00Z', 2), ['2028-02-28T00:00', '2028-03-01T00:00']);
    });

    it('B10 are days of the zone', () => {
      const rule = { cron: '0 */12 * * *', except: ['2026-06-10'], timezone: 'Pacific/Auckland' };
      assert.deepEqual(runs(rule, '2026-06-09T00:00Z', 2), ['2026-06-10T12:00', '2026-06-11T00:00']);
    });

    it('B10 apply to intervals', () => {
      assert.deepEqual(runs({ every: 12 * HOUR, except: ['01-02', '2026-01-03'] }, '2026-01-01T00:00Z', 3), [
        '2026-01-01T12:00',
        '2026-01-04T00:00',
        '2026-01-04T12:00',
      ]);
    });
  });

  describe('intervals', () => {
    it('J3 count from the anchor, which is the first', () => {
      const occurrences = occurrencesOf(
        { every: 90_000, timezone: 'UTC' },
        new Date('2026-01-01T00:00:10.500Z'),
      );
      assert.deepEqual(
        nextRuns(occurrences, 3, new Date('2020-01-01T00:00:00Z')).map((at) => at.toISOString()),
        [],
      );
      assert.deepEqual(
        nextRuns(occurrences, 3, new Date('2025-12-31T00:00:00Z')).map((at) => at.toISOString()),
        ['2026-01-01T00:00:10.500Z', '2026-01-01T00:01:40.500Z', '2026-01-01T00:03:10.500Z'],
      );
    });

    it('J3 keep their beat however late they are asked', () => {
      assert.deepEqual(runs({ every: 7 * MINUTE }, '2026-03-05T10:00:30Z', 2), [
        new Date(ANCHOR.getTime() + 13_046 * 7 * MINUTE).toISOString().slice(0, 16),
        new Date(ANCHOR.getTime() + 13_047 * 7 * MINUTE).toISOString().slice(0, 16),
      ]);
    });

    it('J3 count from the start of the schedule, when it has one', () => {
      assert.deepEqual(
        runs({ every: HOUR, startsAt: new Date('2026-01-01T00:20Z') }, '2026-01-01T00:00Z', 2),
        ['2026-01-01T00:20', '2026-01-01T01:20'],
      );
    });

    it('J3 keep their beat through constraints', () => {
      assert.deepEqual(runs({ every: 25 * MINUTE, only: { hour: [3] } }, '2026-01-01T00:00Z', 6), [
        '2026-01-01T03:20',
        '2026-01-01T03:45',
        '2026-01-02T03:05',
        '2026-01-02T03:30',
        '2026-01-02T03:55',
        '2026-01-03T03:15',
      ]);
    });

    it('J3 may meet their constraint with one offset and not with the other', () => {
      const rule = { every: HOUR, only: { minute: [30] }, timezone: 'Australia/Lord_Howe' };
      assert.deepEqual(runs(rule, '2026-01-01T00:00Z', 2), ['2026-04-04T15:00', '2026-04-04T16:00']);
      assert.deepEqual(runs(rule, '2026-10-03T14:00Z', 2), ['2026-10-03T15:00', '2027-04-03T15:00']);
    });

    for (const [every, second] of [
      [2000, [1, 3, 5]],
      [MINUTE, [30]],
      [7 * MINUTE, [59]],
      [90_000, [15]],
    ] as const) {
      it(`J20 are not followed when they never meet their constraint: ${every} ms, second ${second.join()}`, () => {
        const { days, asked } = counting(true);
        const rule: Rule = { every, only: { second, day: days }, timezone: 'Europe/Berlin' };
        assert.equal(occurrencesOf(rule, ANCHOR).next(ANCHOR), null);
        assert.ok(asked() < 2000, `${asked()} days looked at`);
      });
    }
  });

  describe('start and end', () => {
    const hourly = { cron: '0 * * * *' };
    const noon = new Date('2026-01-01T12:00:00Z');

    it('B10 are both included', () => {
      assert.deepEqual(runs({ ...hourly, startsAt: noon }, '2026-01-01T00:00Z', 2), [
        '2026-01-01T12:00',
        '2026-01-01T13:00',
      ]);
      assert.deepEqual(runs({ ...hourly, endsAt: noon }, '2026-01-01T10:00Z', 9), [
        '2026-01-01T11:00',
        '2026-01-01T12:00',
      ]);
      assert.deepEqual(runs({ ...hourly, startsAt: noon, endsAt: noon }, '2026-01-01T00:00Z', 9), [
        '2026-01-01T12:00',
      ]);
    });

    it('B10 count to the millisecond', () => {
      const startsAt = new Date(noon.getTime() + 1);
      assert.deepEqual(runs({ ...hourly, startsAt }, '2026-01-01T00:00Z', 1), ['2026-01-01T13:00']);
      const endsAt = new Date(noon.getTime() - 1);
      assert.deepEqual(runs({ ...hourly, endsAt }, '2026-01-01T11:00Z', 1), []);
    });

    it('B10 leave the expression as it is, once begun', () => {
      assert.deepEqual(runs({ ...hourly, startsAt: noon }, '2026-01-01T15:30Z', 1), ['2026-01-01T16:00']);
    });

    it('B10 allow nothing when the end comes first', () => {
      const endsAt = new Date(noon.getTime() - DAY);
      assert.deepEqual(runs({ ...hourly, startsAt: noon, endsAt }, '2025-12-01T00:00Z', 1), []);
    });

    it('B10 may end in the middle of a leap of the clocks', () => {
      const rule = { cron: '30 2 * * *', timezone: 'Europe/Berlin' };
      const leap = new Date('2026-03-29T01:00:00Z');
      const before = new Date(leap.getTime() - 1);
      assert.deepEqual(runs({ ...rule, endsAt: leap }, '2026-03-28T12:00Z', 2), ['2026-03-29T01:00']);
      assert.deepEqual(runs({ ...rule, endsAt: before }, '2026-03-28T12:00Z', 2), []);
      assert.deepEqual(runs({ ...rule, startsAt: leap }, '2026-03-28T12:00Z', 1), ['2026-03-29T01:00']);
    });
  });

  describe('reading', () => {
    it('B10 finds what comes after an instant, never the instant itself', () => {
      const occurrences = occurrencesOf({ cron: '0 12 * * *', timezone: 'UTC' }, ANCHOR);
      const noon = new Date('2026-01-01T12:00:00Z');
      assert.deepEqual(occurrences.next(new Date(noon.getTime() - 1)), noon);
      assert.deepEqual(occurrences.next(noon), new Date(noon.getTime() + DAY));
    });

    it('B10 previews as many runs as are asked for', () => {
      const occurrences = occurrencesOf({ cron: '0 12 * * *', timezone: 'UTC' }, ANCHOR);
      assert.equal(nextRuns(occurrences, 0, ANCHOR).length, 0);
      assert.equal(nextRuns(occurrences, 1, ANCHOR).length, 1);
      assert.equal(nextRuns(occurrences, 400, ANCHOR).length, 400);
    });

    it('D5 fails for a rule that says nothing, or nothing valid', () => {
      const code = 'INVALID_SCHEDULE';
      assert.throws(() => occurrencesOf({ timezone: 'UTC' }, ANCHOR), {
        code,
        message: /a rule needs a cron expression, fields or an interval/,
      });
      assert.throws(() => occurrencesOf({ cron: '60 * * * *', timezone: 'UTC' }, ANCHOR), { code });
      assert.throws(() => occurrencesOf({ fields: { minutes: 60 }, timezone: 'UTC' }, ANCHOR), { code });
    });
  });
});
