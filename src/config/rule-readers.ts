import { parseCron } from '../domain/cron.js';
import { ChronosError } from '../domain/errors.js';
import { parseFields, type FieldSchedule } from '../domain/field-schedule.js';
import { secondsOfDay } from '../domain/frequencies.js';
import { parseInstant } from '../domain/instant.js';
import { hint } from '../domain/nearest.js';
import { isTimezone } from '../domain/time-zone.js';
import { duration, listOf, matching, throwing, wholeNumber, type Reader, type Readers } from './readers.js';

/** What is said about when a schedule is due, as read: in milliseconds, dates and lists. */
export interface ReadRule {
  cron: string;
  fields: FieldSchedule;
  symbol: string;
  every: number;
  seconds: readonly number[];
  minutes: readonly number[];
  hours: readonly number[];
  days: readonly number[];
  months: readonly number[];
  weekdays: readonly number[];
  between: readonly [string, string];
  except: readonly string[];
  timezone: string;
  startsAt: Date;
  endsAt: Date;
}

/** What the meaning of a schedule's options depends on. */
export interface ScheduleContext {
  timezone: string;
  symbols: ReadonlyMap<string, FieldSchedule | string>;
}

export function ruleReaders({ timezone, symbols }: ScheduleContext): Readers<ReadRule> {
  const instant = throwing((value) => parseInstant(value, timezone, 'it'));
  return {
    cron: throwing((value) => {
      parseCron(value);
      return value as string;
    }),
    fields: throwing((value) => {
      parseFields(value);
      return { ...(value as FieldSchedule) };
    }),
    symbol: throwing((value) => {
      if (typeof value === 'string' && symbols.has(value)) return value;
      const known = [...symbols.keys()];
      throw new ChronosError(
        'INVALID_SCHEDULE',
        `'${String(value)}' is none of ${known.join(', ')}${hint(String(value), known)}`,
      );
    }),
    every: duration({ min: 1000 }),
    seconds: numbers(0, 59),
    minutes: numbers(0, 59),
    hours: numbers(0, 23),
    days: numbers(1, 31),
    months: numbers(1, 12),
    weekdays: sundayIsZero(numbers(0, 7)),
    between: matching("two times like ['09:00', '17:30']", isBetween),
    except: listOf(matching("a day like '2026-12-24' or '12-25'", isDay), { mayBeEmpty: true }),
    timezone: matching("a time zone like 'Europe/Berlin' or 'UTC'", isTimezone),
    startsAt: instant,
    endsAt: instant,
  };
}

/** A list, or one value for a list of one. */
function numbers(least: number, most: number): Reader<readonly number[]> {
  const list = listOf(wholeNumber(least, most));
  return (value, path, faults) => list(Array.isArray(value) ? value : [value], path, faults);
}

/** 7 is Sunday as well. */
function sundayIsZero(reader: Reader<readonly number[]>): Reader<readonly number[]> {
  return (value, path, faults) => reader(value, path, faults)?.map((day) => day % 7);
}

function isBetween(value: unknown): value is readonly [string, string] {
  return (
    Array.isArray(value) && value.length === 2 && value.every((time) => secondsOfDay(time) !== undefined)
  );
}

function isDay(value: unknown): value is string {
  if (typeof value !== 'string') return false;
  const [, year = '2000', month, day] = /^(?:(\d{4})-)?(\d{2})-(\d{2})$/.exec(value) ?? [];
  if (month === undefined || day === undefined) return false;
  const date = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  return date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day);
}
