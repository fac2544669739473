import assert from 'node:assert/strict';
import { nextRuns, occurrencesOf } from '../../../../src/domain/calendar/occurrences.js';
import type { Rule } from '../../../../src/domain/calendar/rule.js';

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
    it('are those of the month or of the week, if both are restricted [J1]', () => {
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

    it('are those of the restricted one, if only one is [J1]', () => {
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

    it('are united within the months of the expression [J1]', () => {
      assert.deepEqual(runs({ cron: '0 0 1 6 SUN' }, '2026-05-01T00:00Z', 6), [
        '2026-06-01T00:00',
        '2026-06-07T00:00',
        '2026-06-14T00:00',
        '2026-06-21T00:00',
        '2026-06-28T00:00',
        '2027-06-01T00:00',
      ]);
    });

    it('are united with the last of the month [J1]', () => {
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
    it('has a 29 February every four years [J20]', () => {
      assert.deepEqual(runs({ cron: '0 0 29 2 *' }, '2025-01-01T00:00Z', 3), [
        '2028-02-29T00:00',
        '2032-02-29T00:00',
        '2036-02-29T00:00',
      ]);
    });

    it('has none in 2100: eight years are too far [J20]', () => {
      assert.deepEqual(runs({ cron: '0 0 29 2 *' }, '2096-02-01T00:00Z', 1), ['2096-02-29T00:00']);
      assert.deepEqual(runs({ cron: '0 0 29 2 *' }, '2096-03-01T00:00Z', 1), []);
      assert.deepEqual(runs({ cron: '0 0 29 2 *' }, '2100-01-01T00:00Z', 1), ['2104-02-29T00:00']);
    });

    it('has a 31st in seven months [J20]', () => {
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

    it('has a last day in every month [J20]', () => {
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

    it('turns at midnight, at the end of the month and of the year [J20]', () => {
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

    it('is the one of the zone [J20]', () => {
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

    it('is five years away, to the millisecond [J20]', () => {
      const occurrences = occurrencesOf(rule, ANCHOR);
      assert.deepEqual(occurrences.next(new Date(far.getTime() - limit)), far);
      assert.equal(occurrences.next(new Date(far.getTime() - limit - 1)), null);
      assert.deepEqual(occurrences.next(new Date(far.getTime() - 1)), far);
      assert.equal(occurrences.next(far), null);
    });

    it('begins with the schedule, when that is later [J20]', () => {
      const startsAt = new Date(far.getTime() - limit + 1);
      assert.deepEqual(occurrencesOf({ ...rule, startsAt }, ANCHOR).next(new Date('2020-01-01')), far);
    });

    it('holds for intervals too [J20]', () => {
      const occurrences = occurrencesOf({ every: HOUR, timezone: 'UTC' }, far);
      assert.deepEqual(occurrences.next(new Date(far.getTime() - limit)), far);
      assert.equal(occurrences.next(new Date(far.getTime() - limit - 1)), null);
    });

    for (const [what, never] of Object.entries<Unplaced>({
      'a 30 February': { cron: '0 0 30 2 *' },
      'a 31st of a short month': { cron: '* * 31 4,6,9,11 *' },
      'a year that is over': { fields: { year: 2020 } },
      'a leap day on a Monday': { fields: { mday: 29, mon: 2, wday: 1, minutes: 0 } },
      'a value that the constraint excludes': { cron: '0 9 * * *', constraints: { hour: [10] } },
      'an empty constraint': { cron: '0 9 * * *', constraints: { month: [] } },
      'a time outside its window': { cron: '0 9 * * *', between: ['10:00', '11:00'] },
      'a day that is always excluded': { cron: '0 0 24 12 *', except: ['12-24'] },
      'an interval that never meets its constraint': { every: DAY, constraints: { hour: [10] } },
      'an interval on no day': { every: 1, constraints: { day: [] } },
    })) {
      it(`is empty for ${what} [J20]`, () => {
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
      it(`is searched once, day by day: ${JSON.stringify(base)} [J20]`, () => {
        const { days, asked } = counting(false);
        const never = occurrencesOf(
          { ...base, constraints: { day: days }, timezone: 'Europe/Berlin' },
          ANCHOR,
        );
        assert.equal(never.next(ANCHOR), null);
        assert.ok(asked() >= 1830 && asked() < 2000, `${asked()} days looked at`);
      });
    }

    it('is not searched past the end of the schedule [J20]', () => {
      const { days, asked } = counting(false);
      const endsAt = new Date(ANCHOR.getTime() + 10 * DAY);
      const never = occurrencesOf(
        { cron: '0 0 * * *', constraints: { day: days }, endsAt, timezone: 'UTC' },
        ANCHOR,
      );
      assert.equal(never.next(ANCHOR), null);
      assert.ok(asked() <= 12, `${asked()} days looked at`);
    });
  });

  describe('intervals', () => {
    it('count from the anchor, which is the first [J3]', () => {
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

    it('do not drift, however late they are searched [J3]', () => {
      assert.deepEqual(runs({ every: 7 * MINUTE }, '2026-03-05T10:00:30Z', 2), [
        new Date(ANCHOR.getTime() + 13_046 * 7 * MINUTE).toISOString().slice(0, 16),
        new Date(ANCHOR.getTime() + 13_047 * 7 * MINUTE).toISOString().slice(0, 16),
      ]);
    });

    it('count from the start of the schedule, when it has one [J3]', () => {
      assert.deepEqual(
        runs({ every: HOUR, startsAt: new Date('2026-01-01T00:20Z') }, '2026-01-01T00:00Z', 2),
        ['2026-01-01T00:20', '2026-01-01T01:20'],
      );
    });

    it('do not drift through constraints [J3]', () => {
      assert.deepEqual(runs({ every: 25 * MINUTE, constraints: { hour: [3] } }, '2026-01-01T00:00Z', 6), [
        '2026-01-01T03:20',
        '2026-01-01T03:45',
        '2026-01-02T03:05',
        '2026-01-02T03:30',
        '2026-01-02T03:55',
        '2026-01-03T03:15',
      ]);
    });

    it('may meet their constraint with one offset and not with the other [J3]', () => {
      const rule = { every: HOUR, constraints: { minute: [30] }, timezone: 'Australia/Lord_Howe' };
      assert.deepEqual(runs(rule, '2026-01-01T00:00Z', 2), ['2026-04-04T15:00', '2026-04-04T16:00']);
      assert.deepEqual(runs(rule, '2026-10-03T14:00Z', 2), ['2026-10-03T15:00', '2027-04-03T15:00']);
    });

    for (const [every, second] of [
      [2000, [1, 3, 5]],
      [MINUTE, [30]],
      [7 * MINUTE, [59]],
      [90_000, [15]],
    ] as const) {
      it(`are not followed when they never meet their constraint: ${every} ms, second ${second.join()} [J20]`, () => {
        const { days, asked } = counting(true);
        const rule: Rule = { every, constraints: { second, day: days }, timezone: 'Europe/Berlin' };
        assert.equal(occurrencesOf(rule, ANCHOR).next(ANCHOR), null);
        assert.ok(asked() < 2000, `${asked()} days looked at`);
      });
    }
  });

  describe('start and end', () => {
    const hourly = { cron: '0 * * * *' };
    const noon = new Date('2026-01-01T12:00:00Z');

    it('are both included [B10]', () => {
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

    it('count to the millisecond [B10]', () => {
      const startsAt = new Date(noon.getTime() + 1);
      assert.deepEqual(runs({ ...hourly, startsAt }, '2026-01-01T00:00Z', 1), ['2026-01-01T13:00']);
      const endsAt = new Date(noon.getTime() - 1);
      assert.deepEqual(runs({ ...hourly, endsAt }, '2026-01-01T11:00Z', 1), []);
    });

    it('leave the expression as it is, once begun [B10]', () => {
      assert.deepEqual(runs({ ...hourly, startsAt: noon }, '2026-01-01T15:30Z', 1), ['2026-01-01T16:00']);
    });

    it('allow nothing when the end comes first [B10]', () => {
      const endsAt = new Date(noon.getTime() - DAY);
      assert.deepEqual(runs({ ...hourly, startsAt: noon, endsAt }, '2025-12-01T00:00Z', 1), []);
    });

    it('may end in the middle of a leap of the clocks [B10]', () => {
      const rule = { cron: '30 2 * * *', timezone: 'Europe/Berlin' };
      const leap = new Date('2026-03-29T01:00:00Z');
      const before = new Date(leap.getTime() - 1);
      assert.deepEqual(runs({ ...rule, endsAt: leap }, '2026-03-28T12:00Z', 2), ['2026-03-29T01:00']);
      assert.deepEqual(runs({ ...rule, endsAt: before }, '2026-03-28T12:00Z', 2), []);
      assert.deepEqual(runs({ ...rule, startsAt: leap }, '2026-03-28T12:00Z', 1), ['2026-03-29T01:00']);
    });
  });

  describe('reading', () => {
    it('finds what comes after an instant, never the instant itself [B10]', () => {
      const occurrences = occurrencesOf({ cron: '0 12 * * *', timezone: 'UTC' }, ANCHOR);
      const noon = new Date('2026-01-01T12:00:00Z');
      assert.deepEqual(occurrences.next(new Date(noon.getTime() - 1)), noon);
      assert.deepEqual(occurrences.next(noon), new Date(noon.getTime() + DAY));
    });

    it('previews as many runs as are asked for [B10]', () => {
      const occurrences = occurrencesOf({ cron: '0 12 * * *', timezone: 'UTC' }, ANCHOR);
      assert.equal(nextRuns(occurrences, 0, ANCHOR).length, 0);
      assert.equal(nextRuns(occurrences, 1, ANCHOR).length, 1);
      assert.equal(nextRuns(occurrences, 400, ANCHOR).length, 400);
    });

    it('fails for an empty or invalid rule [D5]', () => {
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
