import assert from 'node:assert/strict';
import { type ScheduleContext, SCHEDULE_SYMBOLS } from '../../../src/config/rule-options.js';
import { resolveSchedule, type ScheduleOptions } from '../../../src/config/schedule-options.js';
import { FREQUENCIES, overridableCron } from '../../../src/domain/calendar/frequencies.js';
import { nextRuns, occurrencesOf } from '../../../src/domain/calendar/occurrences.js';
import type { Rule } from '../../../src/domain/calendar/rule.js';

const context: ScheduleContext = {
  timezone: 'UTC',
  symbols: new Map(Object.entries({ ...SCHEDULE_SYMBOLS, AT_LUNCH: '30 12 * * MON-FRI' })),
};

function resolve(options: ScheduleOptions): ReturnType<typeof resolveSchedule> {
  return resolveSchedule(options, context, 'options');
}

function errorOf(options: unknown): string {
  try {
    resolve(options as ScheduleOptions);
  } catch (error) {
    assert.equal((error as { code?: string }).code, 'INVALID_SCHEDULE');
    return (error as Error).message;
  }
  return assert.fail('the options were accepted');
}

function runsOf(rule: Rule | null, count: number): string[] {
  const from = new Date('2026-01-01T00:00:00Z');
  return nextRuns(occurrencesOf(rule!, from), count, from).map((at) => at.toISOString().slice(5, 16));
}

describe('resolveSchedule', () => {
  it('fills in the defaults [D1]', () => {
    assert.deepEqual(resolve({}), {
      rule: null,
      queue: null,
      priority: 100,
      retries: null,
      timeout: null,
      maxRunningTime: null,
      expiresIn: null,
      misfire: { policy: 'once', within: 86_400_000, cap: 100 },
      overlap: 'skip',
      singleInstance: false,
      jitter: 0,
      maxRuns: null,
      enabled: true,
      environments: [],
      userId: null,
    });
  });

  it('reads milliseconds, dates and lists [D1]', () => {
    assert.deepEqual(
      resolve({
        cron: '0 9 * * MON',
        seconds: 30,
        minutes: [0, 30],
        hours: 9,
        days: [1, 15],
        months: 6,
        weekdays: [1],
        between: ['09:00', '17:30'],
        except: ['12-25', '2026-12-24'],
        timezone: 'Europe/Berlin',
        startsAt: '2026-01-01',
        endsAt: '2027-01-01T00:00:00Z',
        queue: 'reports',
        priority: 7,
        retries: { max: 5, base: '2s', cap: '60s', jitter: 'none' },
        timeout: '2m',
        maxRunningTime: '10m',
        expiresIn: '5m',
        overlap: 'replace',
        misfire: { policy: 'all', within: '2h', cap: 5 },
        jitter: '30s',
        maxRuns: 3,
        enabled: false,
        environments: ['production'],
        userId: 'u42',
      }),
      {
        rule: {
          cron: '0 9 * * MON',
          constraints: { second: [30], minute: [0, 30], hour: [9], day: [1, 15], month: [6], weekday: [1] },
          between: ['09:00', '17:30'],
          except: ['12-25', '2026-12-24'],
          timezone: 'Europe/Berlin',
          startsAt: new Date('2026-01-01T00:00:00Z'),
          endsAt: new Date('2027-01-01T00:00:00Z'),
        },
        queue: 'reports',
        priority: 7,
        retries: { max: 5, base: 2000, cap: 60_000, jitter: 'none' },
        timeout: 120_000,
        maxRunningTime: 600_000,
        expiresIn: 300_000,
        overlap: 'replace',
        singleInstance: false,
        misfire: { policy: 'all', within: 7_200_000, cap: 5 },
        jitter: 30_000,
        maxRuns: 3,
        enabled: false,
        environments: ['production'],
        userId: 'u42',
      },
    );
  });

  it('reads dates without a zone in the time zone of the application, whatever the zone of the schedule [D12]', () => {
    const berlin = { ...context, timezone: 'Europe/Berlin' };
    const startsAt = (options: ScheduleOptions): Date | undefined => {
      const withStart = { cron: '0 9 * * *', startsAt: '2026-07-01 09:00', ...options };
      return resolveSchedule(withStart, berlin, 'options').rule?.startsAt;
    };
    assert.deepEqual(startsAt({}), new Date('2026-07-01T07:00:00Z'));
    assert.deepEqual(startsAt({ timezone: 'Asia/Tokyo' }), new Date('2026-07-01T07:00:00Z'));
  });

  it('fills in missing parts of misfire [D13]', () => {
    assert.deepEqual(resolve({ misfire: { policy: 'skip' } }).misfire, {
      policy: 'skip',
      within: 86_400_000,
      cap: 100,
    });
  });

  it('reports all problems at once [D5]', () => {
    const message = errorOf({
      cron: '61 * * * *',
      hours: 24,
      timezone: 'Mars/Olympus',
      priority: -1,
      jitter: '-1s',
      colour: 'red',
      endAt: '2026-01-01',
    });
    assert.match(message, /^7 problems:\n/);
    for (const part of [
      /options\.cron: the cron expression '61 \* \* \* \*' is not valid/,
      /options\.hours must be a whole number from 0 to 23, got 24/,
      /options\.timezone must be a time zone like 'Europe\/Berlin' or 'UTC', got 'Mars\/Olympus'/,
      /options\.priority must be a whole number from 0 to 1000, got -1/,
      /options\.jitter must be/,
      /options\.colour is not an option/,
      /options\.endAt is not an option \(did you mean 'endsAt'\?\)/,
    ])
      assert.match(message, part);
  });

  it('accepts only one of cron, fields, every and symbol [D5]', () => {
    assert.equal(
      errorOf({ cron: '* * * * *', every: '1m' }),
      'options.cron and options.every exclude each other: set one of them',
    );
    assert.match(
      errorOf({ fields: { minutes: 1 }, symbol: 'EVERY_HOUR' }),
      /options\.fields and options\.symbol exclude/,
    );
  });

  it('rejects an end before the start, and accepts the same instant [B10]', () => {
    const ends = (endsAt: string): ScheduleOptions => ({ cron: '* * * * *', startsAt: '2026-02-01', endsAt });
    assert.equal(errorOf(ends('2026-01-31')), 'options.endsAt must not be before options.startsAt');
    assert.notEqual(resolve(ends('2026-02-01')).rule, null);
  });

  it('rejects query operators instead of text [D5]', () => {
    for (const key of ['cron', 'symbol', 'timezone', 'queue', 'userId', 'overlap', 'startsAt'])
      assert.match(errorOf({ [key]: { $ne: null } }), new RegExp(`^options\\.${key}`), key);
    assert.match(errorOf({ environments: { $ne: null } }), /^options\.environments must be a list/);
    assert.match(errorOf(null), /^options must be an object/);
  });

  it('replaces a symbol by its fields or cron expression [Y3]', () => {
    assert.deepEqual(resolve({ symbol: 'EVERY_WEEK' }).rule, {
      fields: { minutes: 20, hours: 6, wday: 1 },
      timezone: 'UTC',
    });
    assert.deepEqual(resolve({ symbol: 'AT_LUNCH' }).rule, { cron: '30 12 * * MON-FRI', timezone: 'UTC' });
    assert.match(
      errorOf({ symbol: 'EVERY_HUOR' }),
      /^options\.symbol must be one of EVERY_MINUTE, .*did you mean 'EVERY_HOUR'\?/,
    );
    for (const symbol of ['constructor', 'every_hour', ''])
      assert.match(errorOf({ symbol }), /must be one of/, symbol);
  });

  it('has the five documented symbols [Y3]', () => {
    assert.deepEqual(SCHEDULE_SYMBOLS, {
      EVERY_MINUTE: { minutes: '*' },
      EVERY_HOUR: { minutes: 1, hours: '*' },
      EVERY_DAY: { minutes: 10, hours: 2 },
      EVERY_WEEK: { minutes: 20, hours: 6, wday: 1 },
      EVERY_MONTH: { minutes: 30, hours: 1, mday: 1 },
    });
  });

  describe('constraints without cron, fields, every or symbol', () => {
    for (const [title, options, expected] of [
      ['seconds run once a minute', { seconds: 0 }, ['01-01T00:01', '01-01T00:02']],
      ['minutes run once an hour', { minutes: 15 }, ['01-01T00:15', '01-01T01:15']],
      ['hours run once a day', { hours: 9 }, ['01-01T09:00', '01-02T09:00']],
      ['days run at midnight', { days: 15 }, ['01-15T00:00', '02-15T00:00']],
      ['weekdays run at midnight', { weekdays: 1 }, ['01-05T00:00', '01-12T00:00']],
      ['months run on the 1st', { months: [2, 5] }, ['02-01T00:00', '05-01T00:00']],
      ['months and days run at midnight', { months: 2, days: 3 }, ['02-03T00:00']],
      [
        'hours and minutes run at each combination',
        { hours: [9, 10], minutes: 30 },
        ['01-01T09:30', '01-01T10:30', '01-02T09:30'],
      ],
    ] as const) {
      it(`${title} [J3]`, () => assert.deepEqual(runsOf(resolve(options).rule, expected.length), expected));
    }

    for (const [key, value] of Object.entries({
      between: ['09:00', '17:00'],
      except: ['12-25'],
      startsAt: '2026-01-01',
      endsAt: '2026-01-01',
    })) {
      it(`reject ${key}, which has nothing to narrow [J3]`, () => {
        const message = errorOf({ [key]: value });
        assert.match(message, new RegExp(`\\b${key}\\b`));
        assert.match(message, /can narrow: set how often/);
        assert.match(message, /\boptions\b/);
      });
    }

    it('have no rule if only the time zone is set [J6]', () => {
      assert.equal(resolve({ timezone: 'Asia/Tokyo' }).rule, null);
    });
  });

  describe('between and except', () => {
    it('accept times with and without seconds, past midnight, and equal times [B10]', () => {
      for (const between of [
        ['09:00', '17:30'],
        ['9:00', '17:30:59'],
        ['22:00', '06:00'],
        ['12:00', '12:00'],
      ] as [string, string][])
        assert.deepEqual(resolve({ cron: '* * * * *', between }).rule?.between, between);
    });

    it('reject between if it is not a pair of times [B10]', () => {
      for (const between of [
        [],
        ['09:00'],
        ['09:00', '10:00', '11:00'],
        ['9', '10'],
        ['09:00', '24:00'],
        '09:00',
        {},
      ])
        assert.match(errorOf({ cron: '* * * * *', between }), /^options\.between must be two times like/);
    });

    it('accept existing days, including February 29 of every year [B10]', () => {
      const except = ['2028-02-29', '02-29', '12-31', '2026-01-01'];
      assert.deepEqual(resolve({ cron: '* * * * *', except }).rule?.except, except);
      assert.equal(resolve({ cron: '* * * * *', except: [] }).rule?.except, undefined);
    });

    it('reject days that do not exist [B10]', () => {
      for (const day of [
        '2026-02-29',
        '02-30',
        '13-01',
        '00-10',
        '2026-1-1',
        '1-1',
        '2026-01-01T00:00',
        '',
        5,
        null,
        ['2026-12-24'],
      ])
        assert.match(
          errorOf({ cron: '* * * * *', except: ['12-25', day] }),
          /^options\.except\[1\] must be a day like/,
        );
    });
  });

  it('stores which fields of the rule a constraint replaces [J3]', () => {
    const { cron, overridable } = overridableCron(FREQUENCIES.weekly.cron());
    assert.deepEqual(resolveSchedule({ cron, hours: 9 }, context, 'options', overridable).rule, {
      cron: '0 0 * * 0',
      overridable: ['minute', 'hour', 'weekday'],
      constraints: { hour: [9] },
      timezone: 'UTC',
    });
    assert.deepEqual(resolveSchedule({ cron: '0 0 * * 0' }, context, 'options').rule, {
      cron: '0 0 * * 0',
      timezone: 'UTC',
    });
  });
});
