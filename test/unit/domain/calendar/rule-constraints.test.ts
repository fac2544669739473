import assert from 'node:assert/strict';
import { runs, type RuleWithoutZone } from '../../../support/rule-runs.js';

const HOUR = 3_600_000;

describe('rules', () => {
  describe('constraints', () => {
    it('restrict an expression field by field [J3]', () => {
      assert.deepEqual(
        runs(
          { cron: '*/15 * * * *', constraints: { hour: [9, 17], minute: [0, 15] } },
          '2026-01-01T00:00Z',
          5,
        ),
        ['2026-01-01T09:00', '2026-01-01T09:15', '2026-01-01T17:00', '2026-01-01T17:15', '2026-01-02T09:00'],
      );
      assert.deepEqual(
        runs({ cron: '0 12 * * *', constraints: { month: [2, 4], day: [1, 30] } }, '2026-01-01T00:00Z', 4),
        ['2026-02-01T12:00', '2026-04-01T12:00', '2026-04-30T12:00', '2027-02-01T12:00'],
      );
      assert.deepEqual(
        runs({ cron: '* * * * * *', constraints: { second: [5, 50], minute: [7] } }, '2026-01-01T00:00Z', 3),
        ['2026-01-01T00:07:05', '2026-01-01T00:07:50', '2026-01-01T01:07:05'],
      );
    });

    it('must all be met, in addition to the days of the expression [J3]', () => {
      assert.deepEqual(runs({ cron: '0 0 13 * *', constraints: { weekday: [5] } }, '2026-01-01T00:00Z', 3), [
        '2026-02-13T00:00',
        '2026-03-13T00:00',
        '2026-11-13T00:00',
      ]);
      assert.deepEqual(
        runs({ cron: '0 0 1 * MON', constraints: { weekday: [0, 1] } }, '2026-01-20T00:00Z', 4),
        ['2026-01-26T00:00', '2026-02-01T00:00', '2026-02-02T00:00', '2026-02-09T00:00'],
      );
    });

    it('may list values in any order [J3]', () => {
      assert.deepEqual(
        runs({ cron: '0 * * * *', constraints: { hour: [20, 4, 12] } }, '2026-01-01T00:00Z', 3),
        ['2026-01-01T04:00', '2026-01-01T12:00', '2026-01-01T20:00'],
      );
    });

    it('set the second of an expression without seconds [J3]', () => {
      assert.deepEqual(
        runs({ cron: '*/30 * * * *', constraints: { second: [10, 40] } }, '2026-01-01T00:00Z', 3),
        ['2026-01-01T00:00:10', '2026-01-01T00:00:40', '2026-01-01T00:30:10'],
      );
      assert.deepEqual(
        runs({ cron: '5 */30 * * * *', constraints: { second: [10] } }, '2026-01-01T00:00Z', 1),
        [],
      );
    });

    it('replace a default time [J3]', () => {
      const daily: RuleWithoutZone = { cron: '0 0 * * *', overridable: ['minute', 'hour'] };
      assert.deepEqual(runs({ ...daily, constraints: { hour: [9, 17] } }, '2026-01-01T00:00Z', 3), [
        '2026-01-01T09:00',
        '2026-01-01T17:00',
        '2026-01-02T09:00',
      ]);
      assert.deepEqual(runs({ ...daily, constraints: { minute: [15], hour: [9] } }, '2026-01-01T00:00Z', 1), [
        '2026-01-01T09:15',
      ]);
      assert.deepEqual(runs({ ...daily, constraints: { minute: [15] } }, '2026-01-01T00:00Z', 2), [
        '2026-01-01T00:15',
        '2026-01-02T00:15',
      ]);
      assert.deepEqual(runs(daily, '2026-01-01T00:00Z', 1), ['2026-01-02T00:00']);
      assert.deepEqual(runs({ cron: '0 0 * * *', constraints: { hour: [9] } }, '2026-01-01T00:00Z', 1), []);
    });

    it('replace a default day, day of the week and month [J3]', () => {
      const monthly: RuleWithoutZone = { cron: '0 0 1 * *', overridable: ['minute', 'hour', 'day'] };
      assert.deepEqual(runs({ ...monthly, constraints: { day: [10, 20] } }, '2026-01-01T00:00Z', 2), [
        '2026-01-10T00:00',
        '2026-01-20T00:00',
      ]);
      assert.deepEqual(runs({ ...monthly, constraints: { weekday: [0] } }, '2026-01-01T00:00Z', 2), [
        '2026-02-01T00:00',
        '2026-03-01T00:00',
      ]);
      const weekly: RuleWithoutZone = { cron: '0 0 * * 0', overridable: ['minute', 'hour', 'weekday'] };
      assert.deepEqual(runs({ ...weekly, constraints: { weekday: [1, 3] } }, '2026-01-01T00:00Z', 3), [
        '2026-01-05T00:00',
        '2026-01-07T00:00',
        '2026-01-12T00:00',
      ]);
      const yearly: RuleWithoutZone = { cron: '0 0 1 1 *', overridable: ['minute', 'hour', 'day', 'month'] };
      assert.deepEqual(runs({ ...yearly, constraints: { month: [6, 7] } }, '2026-01-01T00:00Z', 3), [
        '2026-06-01T00:00',
        '2026-07-01T00:00',
        '2027-06-01T00:00',
      ]);
    });

    it('apply to field schedules [J3]', () => {
      assert.deepEqual(
        runs(
          { fields: { minutes: '*/20' }, constraints: { hour: [6], weekday: [1] } },
          '2026-01-01T00:00Z',
          4,
        ),
        ['2026-01-05T06:00', '2026-01-05T06:20', '2026-01-05T06:40', '2026-01-12T06:00'],
      );
      assert.deepEqual(
        runs({ fields: { minutes: 0 }, constraints: { second: [30] } }, '2026-01-01T00:00Z', 1),
        ['2026-01-01T00:00:30'],
      );
    });
  });

  describe('between', () => {
    it('includes both times [J3] [B10]', () => {
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

    it('may span midnight [J3] [B10]', () => {
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

    it('may be a single time [J3] [B10]', () => {
      assert.deepEqual(runs({ cron: '* * * * *', between: ['12:00', '12:00'] }, '2026-01-01T00:00Z', 2), [
        '2026-01-01T12:00',
        '2026-01-02T12:00',
      ]);
    });

    it('uses the time zone of the rule [J3] [B10]', () => {
      const rule = { cron: '0 * * * *', between: ['08:00', '09:00'], timezone: 'Asia/Tokyo' } as const;
      assert.deepEqual(runs(rule, '2026-01-01T00:00Z', 3), [
        '2026-01-01T23:00',
        '2026-01-02T00:00',
        '2026-01-02T23:00',
      ]);
    });
  });

  describe('except', () => {
    it('excludes a date, or a day of every year [B10]', () => {
      const rule = { cron: '0 9 * * *', except: ['2026-12-24', '12-25'] };
      assert.deepEqual(runs(rule, '2026-12-23T00:00Z', 3), [
        '2026-12-23T09:00',
        '2026-12-26T09:00',
        '2026-12-27T09:00',
      ]);
      assert.deepEqual(runs(rule, '2027-12-24T00:00Z', 2), ['2027-12-24T09:00', '2027-12-26T09:00']);
    });

    it('can exclude the leap day [B10]', () => {
      const rule = { cron: '0 0 28,29,1 2,3 *', except: ['02-29'] };
      assert.deepEqual(runs(rule, '2028-02-27T00:00Z', 2), ['2028-02-28T00:00', '2028-03-01T00:00']);
    });

    it('uses days of the time zone of the rule [B10]', () => {
      const rule = { cron: '0 */12 * * *', except: ['2026-06-10'], timezone: 'Pacific/Auckland' };
      assert.deepEqual(runs(rule, '2026-06-09T00:00Z', 2), ['2026-06-10T12:00', '2026-06-11T00:00']);
    });

    it('applies to intervals [B10]', () => {
      assert.deepEqual(runs({ every: 12 * HOUR, except: ['01-02', '2026-01-03'] }, '2026-01-01T00:00Z', 3), [
        '2026-01-01T12:00',
        '2026-01-04T00:00',
        '2026-01-04T12:00',
      ]);
    });
  });
});
