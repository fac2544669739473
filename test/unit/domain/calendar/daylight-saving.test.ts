import assert from 'node:assert/strict';
import { nextRuns, occurrencesOf } from '../../../../src/domain/calendar/occurrences.js';
import type { Rule } from '../../../../src/domain/calendar/rule.js';
import { clockChanges, instantsOf } from '../../../support/calendar-oracle.js';

const ANCHOR = new Date('2024-01-01T00:00:00Z');
const YEARS = { from: Date.parse('2024-01-01T00:00:00Z'), to: Date.parse('2034-12-31T23:59:59Z') };

/** Times inside, at the edges of, and next to the gap and the overlap of each zone. */
const DAILY = {
  'Europe/Berlin': ['0 2 * * *', '30 2 * * *', '0 3 * * *'],
  'America/New_York': ['0 1 * * *', '30 1 * * *', '30 2 * * *'],
  'Australia/Lord_Howe': ['30 1 * * *', '45 1 * * *', '15 2 * * *'],
  'America/Santiago': ['30 0 * * *', '0 23 * * *', '30 23 * * *'],
  UTC: ['30 2 * * *'],
};
const IN_ALL_ZONES = [
  '0 0 * * *',
  '30 1,2,3 * * *',
  '10-50/20 0-3,23 * * SUN',
  '*/15 * * * *',
  '0 * * * *',
  '0 */2 * * *',
  '*/20 2 * * *',
];

function runs(rule: Omit<Rule, 'timezone'> & { zone: string }, from: string, count: number): string[] {
  const { zone, ...rest } = rule;
  return iso(nextRuns(occurrencesOf({ ...rest, timezone: zone }, ANCHOR), count, new Date(from)));
}

function iso(instants: Iterable<Date | number>): string[] {
  return Array.from(instants, (instant) => new Date(instant).toISOString().replace(':00.000Z', 'Z'));
}

describe('daylight saving', () => {
  describe('a fixed time that does not exist', () => {
    it('fires right after the gap in Berlin [B10]', () => {
      assert.deepEqual(runs({ cron: '30 2 * * *', zone: 'Europe/Berlin' }, '2026-03-28T00:00Z', 3), [
        '2026-03-28T01:30Z',
        '2026-03-29T01:00Z',
        '2026-03-30T00:30Z',
      ]);
    });

    it('fires right after the gap in New York [B10]', () => {
      assert.deepEqual(runs({ cron: '30 2 * * *', zone: 'America/New_York' }, '2026-03-07T00:00Z', 3), [
        '2026-03-07T07:30Z',
        '2026-03-08T07:00Z',
        '2026-03-09T06:30Z',
      ]);
    });

    it('fires right after the half hour that Lord Howe skips [B10]', () => {
      assert.deepEqual(runs({ cron: '15 2 * * *', zone: 'Australia/Lord_Howe' }, '2026-10-02T12:00Z', 3), [
        '2026-10-02T15:45Z',
        '2026-10-03T15:30Z',
        '2026-10-04T15:15Z',
      ]);
    });

    it('fires at one o’clock where Santiago has no midnight [B10]', () => {
      assert.deepEqual(runs({ cron: '0 0 * * *', zone: 'America/Santiago' }, '2026-09-05T00:00Z', 3), [
        '2026-09-05T04:00Z',
        '2026-09-06T04:00Z',
        '2026-09-07T03:00Z',
      ]);
    });

    it('stays on the same day [B10]', () => {
      const sunday = { cron: '0 0 * * 0', zone: 'America/Santiago' };
      assert.deepEqual(runs(sunday, '2026-09-01T00:00Z', 2), ['2026-09-06T04:00Z', '2026-09-13T03:00Z']);
      const saturday = { cron: '0 0 * * 6', zone: 'America/Santiago' };
      assert.deepEqual(runs(saturday, '2026-09-01T00:00Z', 2), ['2026-09-05T04:00Z', '2026-09-12T03:00Z']);
    });

    it('is found from any instant before the gap [B10]', () => {
      for (const from of ['2026-03-29T00:00:01Z', '2026-03-29T00:30:00Z', '2026-03-29T00:59:59.999Z']) {
        assert.deepEqual(runs({ cron: '10 2 * * *', zone: 'Europe/Berlin' }, from, 2), [
          '2026-03-29T01:00Z',
          '2026-03-30T00:10Z',
        ]);
      }
    });

    it('fires once for several times in the gap, also if one at the end of the gap exists [B10]', () => {
      assert.deepEqual(runs({ cron: '0,15,45 2,3 * * *', zone: 'Europe/Berlin' }, '2026-03-29T00:00Z', 4), [
        '2026-03-29T01:00Z',
        '2026-03-29T01:15Z',
        '2026-03-29T01:45Z',
        '2026-03-30T00:00Z',
      ]);
      assert.deepEqual(runs({ cron: '30 1,2,3 * * *', zone: 'Europe/Berlin' }, '2026-03-29T00:00Z', 4), [
        '2026-03-29T00:30Z',
        '2026-03-29T01:00Z',
        '2026-03-29T01:30Z',
        '2026-03-29T23:30Z',
      ]);
    });

    it('fires once for a whole day that Apia skipped [B10]', () => {
      assert.deepEqual(runs({ cron: '0 9,18 * * *', zone: 'Pacific/Apia' }, '2011-12-29T12:00Z', 4), [
        '2011-12-29T19:00Z',
        '2011-12-30T04:00Z',
        '2011-12-30T10:00Z',
        '2011-12-30T19:00Z',
      ]);
    });
  });

  describe('a fixed time that exists twice', () => {
    it('fires at the first of them in Berlin [B10]', () => {
      assert.deepEqual(runs({ cron: '0,30 2 * * *', zone: 'Europe/Berlin' }, '2026-10-24T23:00Z', 3), [
        '2026-10-25T00:00Z',
        '2026-10-25T00:30Z',
        '2026-10-26T01:00Z',
      ]);
    });

    it('fires at the first of them in New York [B10]', () => {
      assert.deepEqual(runs({ cron: '30 1 * * *', zone: 'America/New_York' }, '2026-11-01T00:00Z', 2), [
        '2026-11-01T05:30Z',
        '2026-11-02T06:30Z',
      ]);
    });

    it('fires at the first of them on Lord Howe [B10]', () => {
      assert.deepEqual(runs({ cron: '45 1 * * *', zone: 'Australia/Lord_Howe' }, '2026-04-04T00:00Z', 2), [
        '2026-04-04T14:45Z',
        '2026-04-05T15:15Z',
      ]);
    });

    it('fires at the first of them in Santiago, and at the only midnight [B10]', () => {
      assert.deepEqual(runs({ cron: '30 23 * * *', zone: 'America/Santiago' }, '2026-04-04T12:00Z', 2), [
        '2026-04-05T02:30Z',
        '2026-04-06T03:30Z',
      ]);
      assert.deepEqual(runs({ cron: '0 0 * * *', zone: 'America/Santiago' }, '2026-04-04T12:00Z', 2), [
        '2026-04-05T04:00Z',
        '2026-04-06T04:00Z',
      ]);
    });

    it('does not fire again during the repeated hour [B10]', () => {
      for (const from of ['2026-10-25T00:30Z', '2026-10-25T01:00Z', '2026-10-25T01:15Z']) {
        assert.deepEqual(runs({ cron: '30 2 * * *', zone: 'Europe/Berlin' }, from, 1), ['2026-10-26T01:30Z']);
      }
    });

    it('is not confused with the first time after the overlap [B10]', () => {
      assert.deepEqual(runs({ cron: '0 3 * * *', zone: 'Europe/Berlin' }, '2026-10-24T12:00Z', 1), [
        '2026-10-25T02:00Z',
      ]);
    });
  });

  describe('a frequency', () => {
    it('follows real time through a gap [B10]', () => {
      assert.deepEqual(runs({ cron: '*/30 * * * *', zone: 'Europe/Berlin' }, '2026-03-29T00:00Z', 4), [
        '2026-03-29T00:30Z',
        '2026-03-29T01:00Z',
        '2026-03-29T01:30Z',
        '2026-03-29T02:00Z',
      ]);
    });

    it('fires twice if clocks show its time twice [B10]', () => {
      assert.deepEqual(runs({ cron: '30 * * * *', zone: 'Europe/Berlin' }, '2026-10-24T23:45Z', 3), [
        '2026-10-25T00:30Z',
        '2026-10-25T01:30Z',
        '2026-10-25T02:30Z',
      ]);
      assert.deepEqual(runs({ cron: '0 */2 * * *', zone: 'Europe/Berlin' }, '2026-10-24T22:30Z', 3), [
        '2026-10-25T00:00Z',
        '2026-10-25T01:00Z',
        '2026-10-25T03:00Z',
      ]);
    });

    it('does not fire if clocks skip its time [B10]', () => {
      assert.deepEqual(runs({ cron: '*/20 2 * * *', zone: 'Europe/Berlin' }, '2026-03-28T01:40Z', 1), [
        '2026-03-30T00:00Z',
      ]);
      assert.deepEqual(runs({ cron: '0 */2 * * *', zone: 'Europe/Berlin' }, '2026-03-28T23:00Z', 2), [
        '2026-03-29T02:00Z',
        '2026-03-29T04:00Z',
      ]);
    });

    it('can be one of seconds, with fixed minutes and hours [B10]', () => {
      const rule = { cron: '*/30 30 2 * * *', zone: 'Europe/Berlin' };
      assert.deepEqual(runs(rule, '2026-03-28T01:30:30Z', 1), ['2026-03-30T00:30Z']);
      assert.deepEqual(runs(rule, '2026-10-25T00:00Z', 4), [
        '2026-10-25T00:30Z',
        '2026-10-25T00:30:30.000Z',
        '2026-10-25T01:30Z',
        '2026-10-25T01:30:30.000Z',
      ]);
    });

    it('becomes a fixed time if constraints set all fields [B10]', () => {
      const constraints = { minute: [30], hour: [2] };
      const rule = { cron: '* * * * *', constraints, zone: 'Europe/Berlin' };
      assert.deepEqual(runs(rule, '2026-03-28T12:00Z', 1), ['2026-03-29T01:00Z']);
      assert.deepEqual(runs(rule, '2026-10-24T12:00Z', 2), ['2026-10-25T00:30Z', '2026-10-26T01:30Z']);
    });

    it('stays a frequency while one field has a star [B10]', () => {
      const rule = { cron: '* * * * *', constraints: { hour: [2] }, zone: 'Europe/Berlin' };
      assert.deepEqual(runs(rule, '2026-03-28T01:59Z', 1), ['2026-03-30T00:00Z']);
    });

    it('counts an interval in real time [B10]', () => {
      const rule = { every: 3_600_000, startsAt: new Date('2026-10-24T23:15Z'), zone: 'Europe/Berlin' };
      assert.deepEqual(runs(rule, '2026-10-24T00:00Z', 4), [
        '2026-10-24T23:15Z',
        '2026-10-25T00:15Z',
        '2026-10-25T01:15Z',
        '2026-10-25T02:15Z',
      ]);
    });
  });

  describe('a field schedule', () => {
    it('follows the same rules [B10] [Y4]', () => {
      const fixed = { fields: { minutes: 30, hours: 2 }, zone: 'Europe/Berlin' };
      assert.deepEqual(runs(fixed, '2026-03-28T12:00Z', 1), ['2026-03-29T01:00Z']);
      assert.deepEqual(runs(fixed, '2026-10-24T12:00Z', 2), ['2026-10-25T00:30Z', '2026-10-26T01:30Z']);
      const hourly = { fields: { minutes: 30 }, zone: 'Europe/Berlin' };
      assert.deepEqual(runs(hourly, '2026-10-24T23:45Z', 2), ['2026-10-25T00:30Z', '2026-10-25T01:30Z']);
    });
  });

  for (const [zone, daily] of Object.entries(DAILY)) {
    describe(`${zone}, 2024–2034, compared with an oracle that asks Intl for every minute`, () => {
      it('has more than ten clock changes, except UTC [B10]', () => {
        assert.equal(clockChanges(zone, YEARS).length > 10, zone !== 'UTC');
      });

      for (const cron of [...daily, ...IN_ALL_ZONES]) {
        it(`${cron} [B10] [J1]`, () => {
          const rule: Rule = { cron, timezone: zone };
          const expected = instantsOf(rule, ANCHOR, YEARS);
          const occurrences = occurrencesOf(rule, ANCHOR);
          // One by one, because the message for two long lists would not show where they differ.
          let at = occurrences.next(new Date(YEARS.from - 1));
          for (const instant of expected) {
            if (at?.getTime() !== instant) assert.deepEqual(iso(at === null ? [] : [at]), iso([instant]));
            at = occurrences.next(at!);
          }
          assert.ok(at !== null && at.getTime() > YEARS.to, `unexpected run: ${String(at)}`);
          assert.ok(expected.length > 2000);
        });
      }
    });
  }
});
