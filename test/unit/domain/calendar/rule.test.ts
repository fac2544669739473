import assert from 'node:assert/strict';
import { nextRuns, occurrencesOf } from '../../../../src/domain/calendar/occurrences.js';
import type { Rule } from '../../../../src/domain/calendar/rule.js';
import { START } from '../../../support/instants.js';
import { runs, type RuleWithoutZone } from '../../../support/rule-runs.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A constraint that allows all days or none, and counts how many days are searched. */
function countedDays(isAllowed: boolean): { days: number[]; searched: () => number } {
  let searched = 0;
  const days = Object.assign([], {
    includes: () => {
      searched++;
      return isAllowed;
    },
  });
  return { days, searched: () => searched };
}

describe('rules', () => {
  describe('the days of a cron expression', () => {
    it('match the day of the month or of the week if both are restricted [J1]', () => {
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

    it('match the restricted one if only one is restricted [J1]', () => {
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

    it('are limited to the months of the expression [J1]', () => {
      assert.deepEqual(runs({ cron: '0 0 1 6 SUN' }, '2026-05-01T00:00Z', 6), [
        '2026-06-01T00:00',
        '2026-06-07T00:00',
        '2026-06-14T00:00',
        '2026-06-21T00:00',
        '2026-06-28T00:00',
        '2027-06-01T00:00',
      ]);
    });

    it('can include the last day of the month [J1]', () => {
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
    it('has a February 29 every four years [J20]', () => {
      assert.deepEqual(runs({ cron: '0 0 29 2 *' }, '2025-01-01T00:00Z', 3), [
        '2028-02-29T00:00',
        '2032-02-29T00:00',
        '2036-02-29T00:00',
      ]);
    });

    it('has no February 29 in 2100, and eight years are beyond the horizon [J20]', () => {
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

    it('continues after midnight, the end of a month and of a year [J20]', () => {
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

    it('uses the time zone of the rule [J20]', () => {
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
      const occurrences = occurrencesOf(rule, START);
      assert.deepEqual(occurrences.next(new Date(far.getTime() - limit)), far);
      assert.equal(occurrences.next(new Date(far.getTime() - limit - 1)), null);
      assert.deepEqual(occurrences.next(new Date(far.getTime() - 1)), far);
      assert.equal(occurrences.next(far), null);
    });

    it('starts at startsAt if that is later [J20]', () => {
      const startsAt = new Date(far.getTime() - limit + 1);
      assert.deepEqual(occurrencesOf({ ...rule, startsAt }, START).next(new Date('2020-01-01')), far);
    });

    it('applies to intervals [J20]', () => {
      const occurrences = occurrencesOf({ every: HOUR, timezone: 'UTC' }, far);
      assert.deepEqual(occurrences.next(new Date(far.getTime() - limit)), far);
      assert.equal(occurrences.next(new Date(far.getTime() - limit - 1)), null);
    });

    for (const [what, never] of Object.entries<RuleWithoutZone>({
      'February 30': { cron: '0 0 30 2 *' },
      'the 31st of a short month': { cron: '* * 31 4,6,9,11 *' },
      'a year in the past': { fields: { year: 2020 } },
      'a leap day on a Monday': { fields: { mday: 29, mon: 2, wday: 1, minutes: 0 } },
      'a value that the constraint excludes': { cron: '0 9 * * *', constraints: { hour: [10] } },
      'an empty constraint': { cron: '0 9 * * *', constraints: { month: [] } },
      'a time outside between': { cron: '0 9 * * *', between: ['10:00', '11:00'] },
      'a day that is always excluded': { cron: '0 0 24 12 *', except: ['12-24'] },
      'an interval that never meets its constraint': { every: DAY, constraints: { hour: [10] } },
      'an interval on no day': { every: 1000, constraints: { day: [] } },
    })) {
      it(`contains no run for ${what} [J20]`, () => {
        for (const timezone of ['UTC', 'Europe/Berlin']) {
          const occurrences = occurrencesOf({ ...never, timezone }, START);
          assert.equal(occurrences.next(START), null);
          assert.deepEqual(nextRuns(occurrences, 3, START), []);
        }
      });
    }

    for (const base of [
      { cron: '0 0 * * *' },
      { cron: '*/5 * * * * *' },
      { fields: { minutes: 0 } },
      { every: 1000 },
    ]) {
      it(`is searched once, one check per day, for ${JSON.stringify(base)} [J20]`, () => {
        const { days, searched } = countedDays(false);
        const never = occurrencesOf(
          { ...base, constraints: { day: days }, timezone: 'Europe/Berlin' },
          START,
        );
        assert.equal(never.next(START), null);
        assert.ok(searched() >= 1830 && searched() < 2000, `${searched()} days`);
      });
    }

    it('is not searched after endsAt [J20]', () => {
      const { days, searched } = countedDays(false);
      const endsAt = new Date(START.getTime() + 10 * DAY);
      const never = occurrencesOf(
        { cron: '0 0 * * *', constraints: { day: days }, endsAt, timezone: 'UTC' },
        START,
      );
      assert.equal(never.next(START), null);
      assert.ok(searched() <= 12, `${searched()} days`);
    });
  });

  describe('intervals', () => {
    it('count from the anchor, which is the first run [J3]', () => {
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

    it('do not drift over time [J3]', () => {
      assert.deepEqual(runs({ every: 7 * MINUTE }, '2026-03-05T10:00:30Z', 2), [
        new Date(START.getTime() + 13_046 * 7 * MINUTE).toISOString().slice(0, 16),
        new Date(START.getTime() + 13_047 * 7 * MINUTE).toISOString().slice(0, 16),
      ]);
    });

    it('count from startsAt if it is set [J3]', () => {
      assert.deepEqual(
        runs({ every: HOUR, startsAt: new Date('2026-01-01T00:20Z') }, '2026-01-01T00:00Z', 2),
        ['2026-01-01T00:20', '2026-01-01T01:20'],
      );
    });

    it('do not drift because of constraints [J3]', () => {
      assert.deepEqual(runs({ every: 25 * MINUTE, constraints: { hour: [3] } }, '2026-01-01T00:00Z', 6), [
        '2026-01-01T03:20',
        '2026-01-01T03:45',
        '2026-01-02T03:05',
        '2026-01-02T03:30',
        '2026-01-02T03:55',
        '2026-01-03T03:15',
      ]);
    });

    it('may meet their constraint only while the zone has one of its offsets [J3]', () => {
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
      it(`of ${every} ms are not searched step by step if they never meet second ${second.join()} [J20]`, () => {
        const { days, searched } = countedDays(true);
        const rule: Rule = { every, constraints: { second, day: days }, timezone: 'Europe/Berlin' };
        assert.equal(occurrencesOf(rule, START).next(START), null);
        assert.ok(searched() < 2000, `${searched()} days`);
      });
    }
  });

  describe('startsAt and endsAt', () => {
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

    it('are exact to the millisecond [B10]', () => {
      const startsAt = new Date(noon.getTime() + 1);
      assert.deepEqual(runs({ ...hourly, startsAt }, '2026-01-01T00:00Z', 1), ['2026-01-01T13:00']);
      const endsAt = new Date(noon.getTime() - 1);
      assert.deepEqual(runs({ ...hourly, endsAt }, '2026-01-01T11:00Z', 1), []);
    });

    it('do not shift the runs of an expression [B10]', () => {
      assert.deepEqual(runs({ ...hourly, startsAt: noon }, '2026-01-01T15:30Z', 1), ['2026-01-01T16:00']);
    });

    it('allow no run if endsAt is before startsAt [B10]', () => {
      const endsAt = new Date(noon.getTime() - DAY);
      assert.deepEqual(runs({ ...hourly, startsAt: noon, endsAt }, '2025-12-01T00:00Z', 1), []);
    });

    it('may be the instant of a clock change [B10]', () => {
      const rule = { cron: '30 2 * * *', timezone: 'Europe/Berlin' };
      const change = new Date('2026-03-29T01:00:00Z');
      const before = new Date(change.getTime() - 1);
      assert.deepEqual(runs({ ...rule, endsAt: change }, '2026-03-28T12:00Z', 2), ['2026-03-29T01:00']);
      assert.deepEqual(runs({ ...rule, endsAt: before }, '2026-03-28T12:00Z', 2), []);
      assert.deepEqual(runs({ ...rule, startsAt: change }, '2026-03-28T12:00Z', 1), ['2026-03-29T01:00']);
    });
  });

  describe('occurrences', () => {
    it('are those after an instant, never the instant itself [B10]', () => {
      const occurrences = occurrencesOf({ cron: '0 12 * * *', timezone: 'UTC' }, START);
      const noon = new Date('2026-01-01T12:00:00Z');
      assert.deepEqual(occurrences.next(new Date(noon.getTime() - 1)), noon);
      assert.deepEqual(occurrences.next(noon), new Date(noon.getTime() + DAY));
    });

    it('can be previewed in any number [B10]', () => {
      const occurrences = occurrencesOf({ cron: '0 12 * * *', timezone: 'UTC' }, START);
      assert.equal(nextRuns(occurrences, 0, START).length, 0);
      assert.equal(nextRuns(occurrences, 1, START).length, 1);
      assert.equal(nextRuns(occurrences, 400, START).length, 400);
    });

    it('cannot be computed for an empty or invalid rule [D5]', () => {
      const code = 'INVALID_SCHEDULE';
      assert.throws(() => occurrencesOf({ timezone: 'UTC' }, START), {
        code,
        message: /a rule needs a cron expression, fields or an interval/,
      });
      assert.throws(() => occurrencesOf({ cron: '60 * * * *', timezone: 'UTC' }, START), { code });
      assert.throws(() => occurrencesOf({ fields: { minutes: 60 }, timezone: 'UTC' }, START), { code });
    });
  });
});
