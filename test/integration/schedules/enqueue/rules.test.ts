import assert from 'node:assert/strict';
import type { ScheduleOptions } from '../../../../src/index.js';
import { manualScheduler } from '../../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

/** The clock starts on Thursday, 1 January 2026, at midnight. */
const RULES: [title: string, rule: ScheduleOptions, instants: string[]][] = [
  [
    'five fields: lists, ranges with steps, names [J1]',
    { cron: '0,30 9-13/4 * JAN FRI' },
    ['2026-01-02T09:00', '2026-01-02T09:30', '2026-01-02T13:00', '2026-01-02T13:30', '2026-01-09T09:00'],
  ],
  ['six fields: seconds [J1]', { cron: '*/20 0 0 * * *' }, ['2026-01-01T00:00:20', '2026-01-01T00:00:40']],
  [
    'day of the month and day of the week: one must match [J1]',
    { cron: '0 0 13 * 5' },
    ['2026-01-02T00:00', '2026-01-09T00:00', '2026-01-13T00:00', '2026-01-16T00:00'],
  ],
  ['the 29th of February [J20]', { cron: '0 0 29 2 *' }, ['2028-02-29T00:00', '2032-02-29T00:00']],
  [
    'the 31st, in months that have one [J20]',
    { cron: '0 0 31 * *' },
    ['2026-01-31T00:00', '2026-03-31T00:00', '2026-05-31T00:00'],
  ],
  ['EVERY_MINUTE [Y3]', { symbol: 'EVERY_MINUTE' }, ['2026-01-01T00:01', '2026-01-01T00:02']],
  ['EVERY_HOUR [Y3]', { symbol: 'EVERY_HOUR' }, ['2026-01-01T00:01', '2026-01-01T01:01']],
  ['EVERY_DAY [Y3]', { symbol: 'EVERY_DAY' }, ['2026-01-01T02:10', '2026-01-02T02:10']],
  ['EVERY_WEEK [Y3]', { symbol: 'EVERY_WEEK' }, ['2026-01-05T06:20', '2026-01-12T06:20']],
  ['EVERY_MONTH [Y3]', { symbol: 'EVERY_MONTH' }, ['2026-01-01T01:30', '2026-02-01T01:30']],
  ['a custom symbol [Y3]', { symbol: 'EVERY_SHIFT' }, ['2026-01-01T06:00', '2026-01-01T14:00']],
  [
    'fields: day of the month and day of the week, both must match [Y4]',
    { fields: { minutes: 0, hours: 0, mday: 13, wday: 5 } },
    ['2026-02-13T00:00', '2026-03-13T00:00', '2026-11-13T00:00'],
  ],
  [
    'a step matches where it divides the value; `day` is `mday` [Y4]',
    { fields: { minutes: 0, hours: 12, day: '*/10', mon: '1,2' } },
    ['2026-01-10T12:00', '2026-01-20T12:00', '2026-01-30T12:00', '2026-02-10T12:00'],
  ],
  [
    'ranges, lists and years [Y4]',
    { fields: { minutes: '*/15', hours: '9-10', wday: '1-5', year: 2026 } },
    ['2026-01-01T09:00', '2026-01-01T09:15', '2026-01-01T09:30', '2026-01-01T09:45', '2026-01-01T10:00'],
  ],
];

describe('stored schedules run at every occurrence of', () => {
  const database = useSharedDatabase();

  for (const [title, rule, instants] of RULES) {
    it(title, async () => {
      const { scheduler, clock } = manualScheduler(database, { symbols: { EVERY_SHIFT: '0 6,14,22 * * *' } });
      scheduler.registerHandler('work', () => undefined);
      await scheduler.addSchedule({ id: 's', taskType: 'work', ...rule });
      const due: string[] = [];
      scheduler.on('schedule:due', ({ scheduledFor }) => due.push(scheduledFor.toISOString()));
      const expected = instants.map((instant) => new Date(`${instant}Z`).toISOString());
      for (const instant of expected) {
        const next = (await scheduler.getSchedule('s'))?.nextRunAt;
        assert.equal(next?.toISOString(), instant);
        clock.advance(next.getTime() - clock.now().getTime());
        await scheduler.run();
      }
      assert.deepEqual(due, expected);
      assert.deepEqual(
        await database.collections.jobs.distinct('_id', { status: 'COMPLETED' }),
        expected.map((instant) => `s@${instant}`),
      );
    });
  }
});
