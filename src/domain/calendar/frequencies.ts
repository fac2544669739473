import { ChronosError } from '../errors.js';
import { jsonText } from '../text.js';
import { integer, oneOrMore, parse } from '../validation.js';
import { CRON_FIELDS, type CronField } from './cron.js';

/**
 * The frequency helpers of the builder, each with its cron expression and its meaning. The methods of the builder and a
 * table in docs/schedules.md are generated from it.
 *
 * A value marked `~` is only a default: a constraint on that field replaces it (`daily().hours(9)` runs at nine). An
 * explicit time (`dailyAt('02:30')`) stays.
 */
export const FREQUENCIES = {
  everySecond: { cron: () => '* * * * * *', meaning: 'every second' },
  everyTwoSeconds: { cron: () => '*/2 * * * * *', meaning: 'every 2 seconds' },
  everyFiveSeconds: { cron: () => '*/5 * * * * *', meaning: 'every 5 seconds' },
  everyTenSeconds: { cron: () => '*/10 * * * * *', meaning: 'every 10 seconds' },
  everyFifteenSeconds: { cron: () => '*/15 * * * * *', meaning: 'every 15 seconds' },
  everyTwentySeconds: { cron: () => '*/20 * * * * *', meaning: 'every 20 seconds' },
  everyThirtySeconds: { cron: () => '*/30 * * * * *', meaning: 'every 30 seconds' },
  everyMinute: {
    cron: (n = 1) => (wholeNumber(n, 1, 59, 'everyMinute()') === 1 ? '* * * * *' : `*/${n} * * * *`),
    meaning: 'every minute, or every n minutes',
  },
  everyXMinutes: {
    cron: (n: number) => `*/${wholeNumber(n, 1, 59, 'everyXMinutes()')} * * * *`,
    meaning: 'every n minutes',
  },
  everyTwoMinutes: { cron: () => '*/2 * * * *', meaning: 'every 2 minutes' },
  everyThreeMinutes: { cron: () => '*/3 * * * *', meaning: 'every 3 minutes' },
  everyFourMinutes: { cron: () => '*/4 * * * *', meaning: 'every 4 minutes' },
  everyFiveMinutes: { cron: () => '*/5 * * * *', meaning: 'every 5 minutes' },
  everyTenMinutes: { cron: () => '*/10 * * * *', meaning: 'every 10 minutes' },
  everyFifteenMinutes: { cron: () => '*/15 * * * *', meaning: 'every 15 minutes' },
  everyTwentyMinutes: { cron: () => '*/20 * * * *', meaning: 'every 20 minutes' },
  everyThirtyMinutes: { cron: () => '*/30 * * * *', meaning: 'every 30 minutes' },
  hourly: { cron: () => '~0 * * * *', meaning: 'every hour, on the hour' },
  everyHour: { cron: () => '~0 * * * *', meaning: 'the same as hourly' },
  hourlyAt: {
    cron: (minute: number) => `${wholeNumber(minute, 0, 59, 'hourlyAt()')} * * * *`,
    meaning: 'every hour, this many minutes past',
  },
  everyTwoHours: { cron: () => '~0 */2 * * *', meaning: 'every 2 hours' },
  everyThreeHours: { cron: () => '~0 */3 * * *', meaning: 'every 3 hours' },
  everyFourHours: { cron: () => '~0 */4 * * *', meaning: 'every 4 hours' },
  everySixHours: { cron: () => '~0 */6 * * *', meaning: 'every 6 hours' },
  everyEightHours: { cron: () => '~0 */8 * * *', meaning: 'every 8 hours' },
  everyTwelveHours: { cron: () => '~0 */12 * * *', meaning: 'every 12 hours' },
  daily: { cron: () => '~0 ~0 * * *', meaning: 'every day at midnight' },
  dailyAt: { cron: (time: string) => `${at(time, 'dailyAt()')} * * *`, meaning: 'every day at this time' },
  twiceDaily: {
    cron: (first = 1, second = 13) =>
      `~0 ${wholeNumber(first, 0, 23, 'twiceDaily()')},${wholeNumber(second, 0, 23, 'twiceDaily()')} * * *`,
    meaning: 'every day at two hours, by default 1:00 and 13:00',
  },
  weekly: { cron: () => '~0 ~0 * * ~0', meaning: 'Sundays at midnight' },
  weeklyOn: {
    cron: (day: number | readonly number[], time?: string) =>
      `${at(time, 'weeklyOn()')} * * ${list(day, 0, 7, 'weeklyOn()')}`,
    meaning: 'on these days of the week (0 is Sunday), at midnight or at a time',
  },
  monthly: { cron: () => '~0 ~0 ~1 * *', meaning: 'the 1st of the month at midnight' },
  monthlyOn: {
    cron: (day: number | readonly number[], time?: string) =>
      `${at(time, 'monthlyOn()')} ${list(day, 1, 31, 'monthlyOn()')} * *`,
    meaning: 'on these days of the month, at midnight or at a time',
  },
  twiceMonthly: {
    cron: (first = 1, second = 16, time?: string) =>
      `${at(time, 'twiceMonthly()')} ${list([first, second], 1, 31, 'twiceMonthly()')} * *`,
    meaning: 'on two days of the month, by default the 1st and 16th',
  },
  lastDayOfMonth: {
    cron: (time?: string) => `${at(time, 'lastDayOfMonth()')} L * *`,
    meaning: 'the last day of the month, at midnight or at a time',
  },
  quarterly: { cron: () => '~0 ~0 ~1 */3 *', meaning: '1 January, April, July and October at midnight' },
  yearly: { cron: () => '~0 ~0 ~1 ~1 *', meaning: '1 January at midnight' },
  yearlyOn: {
    cron: (month: number, day = 1, time?: string) =>
      `${at(time, 'yearlyOn()')} ${wholeNumber(day, 1, 31, 'yearlyOn()')} ${wholeNumber(month, 1, 12, 'yearlyOn()')} *`,
    meaning: 'once a year on this month and day, at midnight or at a time',
  },
} as const satisfies Record<string, { cron: (...args: never[]) => string; meaning: string }>;

export type FrequencyName = keyof typeof FREQUENCIES;

/** The helpers that constrain the day of the week. Sunday is 0. */
export const WEEKDAYS = {
  weekdays: [1, 2, 3, 4, 5],
  weekends: [0, 6],
  sundays: [0],
  mondays: [1],
  tuesdays: [2],
  wednesdays: [3],
  thursdays: [4],
  fridays: [5],
  saturdays: [6],
} as const satisfies Record<string, readonly number[]>;

/** Splits an expression of the table into a cron expression and the fields that a constraint may replace. */
export function overridableCron(marked: string): { cron: string; overridable: CronField[] } {
  const parts = marked.split(' ');
  const named = CRON_FIELDS.slice(CRON_FIELDS.length - parts.length);
  return {
    cron: marked.replaceAll('~', ''),
    overridable: named.filter((_, index) => parts[index]?.startsWith('~')),
  };
}

/** The second of the day of `'02:30'` or `'02:30:15'`; undefined if it is not a time. */
export function secondsOfDay(time: unknown): number | undefined {
  const match = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/.exec(typeof time === 'string' ? time : '');
  const [hour = NaN, minute = NaN, second = 0] = (match?.slice(1) ?? []).map((part) => Number(part ?? 0));
  return hour <= 23 && minute <= 59 && second <= 59 ? hour * 3600 + minute * 60 + second : undefined;
}

/** The minute and hour fields of an expression; midnight is a default that a constraint may replace. */
function at(time: string | undefined, where: string): string {
  if (time === undefined) return '~0 ~0';
  const seconds = secondsOfDay(time);
  if (seconds === undefined || seconds % 60 !== 0) {
    throw new ChronosError('INVALID_SCHEDULE', `${where} must be a time like '02:30', got ${jsonText(time)}`);
  }
  return `${(seconds / 60) % 60} ${Math.floor(seconds / 3600)}`;
}

function list(values: number | readonly number[], min: number, max: number, where: string): string {
  return parse(oneOrMore(integer(min, max), 31), values, where, 'INVALID_SCHEDULE').join(',');
}

function wholeNumber(value: unknown, min: number, max: number, where: string): number {
  return parse(integer(min, max), value, where, 'INVALID_SCHEDULE');
}
