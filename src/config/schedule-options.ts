import type { RetryPolicy } from '../domain/backoff.js';
import { parseCron, type CronField } from '../domain/cron.js';
import type { Duration } from '../domain/duration.js';
import { ChronosError } from '../domain/errors.js';
import { parseFields, type FieldSchedule } from '../domain/field-schedule.js';
import { FREQUENCIES, secondsOfDay } from '../domain/frequencies.js';
import { parseInstant, type Instant } from '../domain/instant.js';
import { hint } from '../domain/nearest.js';
import type { Constraints, Rule } from '../domain/rule.js';
import {
  DEFAULT_MISFIRE,
  MISFIRES,
  OVERLAPS,
  type Misfire,
  type Overlap,
  type ScheduleDefinition,
} from '../domain/schedule.js';
import { isTimezone } from '../domain/time-zone.js';
import { DEFAULT_PRIORITY } from './options.js';
import { optionsError } from './options-error.js';
import { retryReader, type RetryOptions } from './retry-options.js';
import {
  duration,
  flag,
  listOf,
  matching,
  name,
  oneOf,
  record,
  throwing,
  wholeNumber,
  type Reader,
} from './readers.js';

/** What happens to runs that were missed. */
export interface MisfireOptions {
  /** `skip` none of them, `once` the last of them, `all` of them. Default `once`. Up to a minute late is not missed. */
  policy?: Misfire['policy'];
  /** Older ones are skipped whatever the policy. Default `'1d'`. */
  within?: Duration;
  /** `all` makes up for the last ones, at most this many. Default 100. */
  cap?: number;
}

/** When a schedule is due, and how its jobs run. One of `cron`, `fields`, `symbol` and `every` is its base. */
export interface ScheduleOptions {
  /** Five or six fields, or `@daily` and its like. */
  cron?: string;
  /** Field by field; all that are given must match. */
  fields?: FieldSchedule;
  /** A name: `EVERY_HOUR`, or one of the Scheduler's `symbols`. */
  symbol?: string;
  /** An interval in real time, from `startsAt` or from when the schedule was first stored. At least `'1s'`. */
  every?: Duration;
  /** Only at these seconds. */
  seconds?: number | readonly number[];
  /** Only at these minutes. */
  minutes?: number | readonly number[];
  /** Only at these hours. */
  hours?: number | readonly number[];
  /** Only on these days of the month. */
  days?: number | readonly number[];
  /** Only in these months, 1–12. */
  months?: number | readonly number[];
  /** Only on these days of the week; 0 is Sunday. */
  weekdays?: number | readonly number[];
  /** Only between these times of the day, both included; may pass midnight. */
  between?: readonly [string, string];
  /** Not on these days: `'2026-12-24'`, or `'12-25'` for every year. */
  except?: readonly string[];
  /** Default: the Scheduler's `timezone`. */
  timezone?: string;
  /** Not before this instant. */
  startsAt?: Instant;
  /** Not after this instant. */
  endsAt?: Instant;
  /** Queue of its jobs. Default: none; workers then take them in `default`, and a one-pass run executes them in place. */
  queue?: string;
  /** 0–1000, lower is more urgent. Default 100. */
  priority?: number;
  /** Overrides the handler's `retries`. */
  retries?: RetryOptions;
  /** Overrides the handler's `timeout` of one attempt. */
  timeout?: Duration;
  /** Longest time of one run, over all its attempts. Default none. */
  maxRunningTime?: Duration;
  /** What to do while the run before is not finished: `skip`, `queue`, `replace` it, or `allow` both. Default `skip`. */
  overlap?: Overlap;
  /** What happens to runs that were missed. Default: the last of them is made up for, within a day. */
  misfire?: MisfireOptions;
  /** Delays each run by up to this, evenly spread. Default none. */
  jitter?: Duration;
  /** Ends after this many runs. Default none. */
  maxRuns?: number;
  /** Default true. */
  enabled?: boolean;
  /** Only where the Scheduler's `environment` is one of these. Default everywhere. */
  environments?: readonly string[];
  /** Whose schedule it is; its jobs carry it. */
  userId?: string;
}

/** As read, in milliseconds, dates and lists. */
interface ReadSchedule {
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
  queue: string;
  priority: number;
  retries: Partial<RetryPolicy>;
  timeout: number;
  maxRunningTime: number;
  overlap: Overlap;
  misfire: Partial<Misfire>;
  jitter: number;
  maxRuns: number;
  enabled: boolean;
  environments: readonly string[];
  userId: string;
}

/** What the meaning of a schedule's options depends on. */
export interface ScheduleContext {
  timezone: string;
  symbols: ReadonlyMap<string, FieldSchedule | string>;
}

const CONSTRAINTS = {
  seconds: 'second',
  minutes: 'minute',
  hours: 'hour',
  days: 'day',
  months: 'month',
  weekdays: 'weekday',
} as const satisfies Record<string, CronField>;

const BASES = ['cron', 'fields', 'symbol', 'every'] as const;

function readerOf({ timezone, symbols }: ScheduleContext): Reader<Partial<ReadSchedule>> {
  const instant = throwing((value) => parseInstant(value, timezone, 'it'));
  return record<ReadSchedule>({
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
    queue: name(),
    priority: wholeNumber(0, 1000),
    retries: retryReader,
    timeout: duration({ min: 1 }),
    maxRunningTime: duration({ min: 1 }),
    overlap: oneOf(...OVERLAPS),
    misfire: record<Misfire>({
      policy: oneOf(...MISFIRES),
      within: duration(),
      cap: wholeNumber(1, 1000),
    }),
    jitter: duration(),
    maxRuns: wholeNumber(1, Number.MAX_SAFE_INTEGER),
    enabled: flag(),
    environments: listOf(name(), { mayBeEmpty: true }),
    userId: name(),
  });
}

/** Throws INVALID_SCHEDULE with every fault. `loose`: fields of `cron` that a constraint may replace. */
export function resolveSchedule(
  input: ScheduleOptions,
  context: ScheduleContext,
  where: string,
  loose: readonly CronField[] = [],
): Omit<ScheduleDefinition, 'taskType' | 'payload'> {
  const faults: string[] = [];
  const read = readerOf(context)(input, where, faults) ?? {};
  const bases = BASES.filter((base) => read[base] !== undefined);
  if (bases.length > 1)
    faults.push(`${where}.${bases.join(` and ${where}.`)} exclude each other: give one of them`);
  if (read.startsAt !== undefined && read.endsAt !== undefined && read.endsAt < read.startsAt) {
    faults.push(`${where}.endsAt must not be before ${where}.startsAt`);
  }
  if (faults.length > 0) throw optionsError('INVALID_SCHEDULE', faults);
  return {
    rule: ruleOf(read, context, loose, where),
    queue: read.queue ?? null,
    priority: read.priority ?? DEFAULT_PRIORITY,
    retries: read.retries ?? null,
    timeout: read.timeout ?? null,
    maxRunningTime: read.maxRunningTime ?? null,
    misfire: { ...DEFAULT_MISFIRE, ...read.misfire },
    overlap: read.overlap ?? 'skip',
    jitter: read.jitter ?? 0,
    maxRuns: read.maxRuns ?? null,
    enabled: read.enabled ?? true,
    environments: read.environments ?? [],
    userId: read.userId ?? null,
  };
}

function ruleOf(
  read: Partial<ReadSchedule>,
  context: ScheduleContext,
  loose: readonly CronField[],
  where: string,
): Rule | null {
  const only = constraintsOf(read);
  const said = baseOf(read, context, loose) ?? impliedBase(read, only, where);
  if (said === null) return null;
  const { loose: replaceable = [], ...base } = said;
  const { between, except, startsAt, endsAt, timezone = context.timezone } = read;
  return {
    ...base,
    ...(replaceable.length > 0 && { loose: replaceable }),
    ...(Object.keys(only).length > 0 && { only }),
    ...(between !== undefined && { between }),
    ...(except !== undefined && except.length > 0 && { except }),
    ...(startsAt !== undefined && { startsAt }),
    ...(endsAt !== undefined && { endsAt }),
    timezone,
  };
}

function constraintsOf(read: Partial<ReadSchedule>): Constraints {
  const given = Object.entries(CONSTRAINTS).flatMap(([key, field]) => {
    const values = read[key as keyof typeof CONSTRAINTS];
    return values === undefined ? [] : [[field, values] as const];
  });
  return Object.fromEntries(given);
}

type RuleBase = Pick<Rule, 'cron' | 'loose' | 'fields' | 'every'>;

function baseOf(
  read: Partial<ReadSchedule>,
  { symbols }: ScheduleContext,
  loose: readonly CronField[],
): RuleBase | undefined {
  if (read.cron !== undefined) return { cron: read.cron, loose };
  if (read.fields !== undefined) return { fields: read.fields };
  if (read.every !== undefined) return { every: read.every };
  const symbol = symbols.get(read.symbol ?? '');
  return typeof symbol === 'string' ? { cron: symbol } : symbol && { fields: symbol };
}

/** Constraints alone say how often too: `hours(9)` is once a day, `minutes(30)` once an hour. */
function impliedBase(read: Partial<ReadSchedule>, only: Constraints, where: string): RuleBase | null {
  if (only.second !== undefined) return looseCron(FREQUENCIES.everyMinute.cron());
  if (only.minute !== undefined) return looseCron(FREQUENCIES.hourly.cron());
  if (only.hour !== undefined || only.day !== undefined || only.weekday !== undefined) {
    return looseCron(FREQUENCIES.daily.cron());
  }
  if (only.month !== undefined) return looseCron(FREQUENCIES.monthly.cron());
  const narrowing = (['between', 'except', 'startsAt', 'endsAt'] as const).filter(
    (key) => read[key] !== undefined,
  );
  if (narrowing.length === 0) return null;
  throw new ChronosError(
    'INVALID_SCHEDULE',
    `${where}: ${narrowing.join(' and ')} narrow a rule, and there is none: say how often, like daily() or every('10m')`,
  );
}

/** Splits an expression of the table of frequencies into what it says and what may be replaced. */
export function looseCron(marked: string): { cron: string; loose: CronField[] } {
  const parts = marked.split(' ');
  const fields: CronField[] = ['second', 'minute', 'hour', 'day', 'month', 'weekday'];
  const named = fields.slice(fields.length - parts.length);
  return {
    cron: marked.replaceAll('~', ''),
    loose: named.filter((_, index) => parts[index]?.startsWith('~')),
  };
}

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
  const [, year = '2000', month, day] = /^(?:(\d{4})-)?(\d{2})-(\d{2})$/.exec(String(value)) ?? [];
  if (month === undefined || day === undefined) return false;
  const date = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  return date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day);
}
