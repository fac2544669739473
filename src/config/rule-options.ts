import { type CronField, parseCron } from '../domain/calendar/cron.js';
import { type FieldSchedule, parseFields } from '../domain/calendar/field-schedule.js';
import { FREQUENCIES, overridableCron, secondsOfDay } from '../domain/calendar/frequencies.js';
import { MIN_INTERVAL_MS } from '../domain/calendar/occurrences.js';
import type { Constraints, Rule } from '../domain/calendar/rule.js';
import { isTimezone } from '../domain/calendar/time-zone.js';
import { ChronosError } from '../domain/errors.js';
import * as v from '../domain/validation.js';

/** The Scheduler's options that schedules are parsed with. */
export interface ScheduleContext {
  timezone: string;
  symbols: ReadonlyMap<string, FieldSchedule | string>;
}

/** Options that set how often a schedule is due; they exclude each other. The other options narrow that. */
export const BASES = ['cron', 'fields', 'symbol', 'every'] as const;

export type BaseName = (typeof BASES)[number];

/** Options that constrain a field of the rule. */
const CONSTRAINTS = [
  ['seconds', 'second'],
  ['minutes', 'minute'],
  ['hours', 'hour'],
  ['days', 'day'],
  ['months', 'month'],
  ['weekdays', 'weekday'],
] as const satisfies readonly (readonly [keyof ParsedRule, CronField])[];

export type ConstraintName = (typeof CONSTRAINTS)[number][0];

type RuleBase = Pick<Rule, 'cron' | 'overridable' | 'fields' | 'every'>;

export const timezoneShape = v.matching(
  "a time zone like 'Europe/Berlin' or 'UTC'",
  isTimezone,
  v.text(100).schema,
);

const pattern = { ...v.anything, schema: { anyOf: [v.integer(0, 9999).schema, v.text(200).schema] } };
const FIELDS = v.object<Record<keyof FieldSchedule, unknown>>({
  minutes: pattern,
  hours: pattern,
  mday: pattern,
  day: pattern,
  wday: pattern,
  mon: pattern,
  year: pattern,
}).schema;

const DAY = "a day like '2026-12-24' or '12-25'";
const BETWEEN = "two times like '09:00' and '17:30'";

export function ruleShapes({ timezone, symbols }: ScheduleContext): v.Shapes<ParsedRule> {
  return {
    ...COMMON,
    symbol: { ...v.oneOf(...symbols.keys()), schema: v.name.schema },
    startsAt: v.instant(timezone),
    endsAt: v.instant(timezone),
  };
}

const COMMON = {
  cron: v.described(
    v.throwing((value) => {
      parseCron(value);
      return value as string;
    }, v.text(200).schema),
    'five or six fields, or @daily and the like',
  ),
  fields: v.throwing((value) => {
    parseFields(value);
    return { ...(value as FieldSchedule) };
  }, FIELDS),
  every: v.duration({ min: MIN_INTERVAL_MS }),
  seconds: numbers(0, 59),
  minutes: numbers(0, 59),
  hours: numbers(0, 23),
  days: numbers(1, 31),
  months: numbers(1, 12),
  // 7 is Sunday, too.
  weekdays: v.refine(numbers(0, 7), (days) => days.map((day) => day % 7)),
  between: v.matching(
    BETWEEN,
    isBetween,
    v.listOf(v.described(v.text(8), BETWEEN), { min: 2, max: 2 }).schema,
  ),
  except: v.listOf(v.matching(DAY, isDay, v.described(v.text(10), DAY).schema), { min: 0, max: 1000 }),
  timezone: timezoneShape,
};

/** When a schedule is due: durations in milliseconds, instants as dates, single values as lists. */
export type ParsedRule = v.Parsed<typeof COMMON> & { symbol: string; startsAt: Date; endsAt: Date };

function numbers(min: number, max: number): v.Shape<readonly number[]> {
  return v.oneOrMore(v.integer(min, max), 60);
}

/** The rule that the options describe; null if no option says when to run. `overridable`: see Rule. */
export function toRule(
  options: Partial<ParsedRule>,
  context: ScheduleContext,
  overridable: readonly CronField[],
  where: string,
): Rule | null {
  const constraints = getConstraints(options);
  const found = baseOf(options, context, overridable) ?? impliedBase(options, constraints, where);
  if (found === null) return null;
  const { overridable: replaceable = [], ...base } = found;
  const { between, except, startsAt, endsAt, timezone = context.timezone } = options;
  return {
    ...base,
    ...(replaceable.length > 0 && { overridable: replaceable }),
    ...(Object.keys(constraints).length > 0 && { constraints }),
    ...(between !== undefined && { between }),
    ...(except !== undefined && except.length > 0 && { except }),
    ...(startsAt !== undefined && { startsAt }),
    ...(endsAt !== undefined && { endsAt }),
    timezone,
  };
}

/** The inverse of `toRule`: options that describe the same rule, given the same `overridable`. */
export function toRuleOptions({ overridable: _, constraints = {}, ...rest }: Rule): Partial<ParsedRule> {
  const entries = CONSTRAINTS.map(([option, field]) => [option, constraints[field]] as const);
  return { ...rest, ...Object.fromEntries(entries.filter(([, values]) => values !== undefined)) };
}

function getConstraints(options: Partial<ParsedRule>): Constraints {
  const entries = CONSTRAINTS.map(([option, field]) => [field, options[option]] as const);
  return Object.fromEntries(entries.filter(([, values]) => values !== undefined));
}

function baseOf(
  { cron, fields, every, symbol = '' }: Partial<ParsedRule>,
  { symbols }: ScheduleContext,
  overridable: readonly CronField[],
): RuleBase | undefined {
  if (cron !== undefined) return { cron, overridable };
  if (fields !== undefined) return { fields };
  if (every !== undefined) return { every };
  const rule = symbols.get(symbol);
  return typeof rule === 'string' ? { cron: rule } : rule && { fields: rule };
}

/** Constraints alone imply how often: `hours(9)` is once a day, `minutes(30)` once an hour. */
function impliedBase(options: Partial<ParsedRule>, constraints: Constraints, where: string): RuleBase | null {
  if (constraints.second !== undefined) return overridableCron(FREQUENCIES.everyMinute.cron());
  if (constraints.minute !== undefined) return overridableCron(FREQUENCIES.hourly.cron());
  if (constraints.hour !== undefined || constraints.day !== undefined || constraints.weekday !== undefined) {
    return overridableCron(FREQUENCIES.daily.cron());
  }
  if (constraints.month !== undefined) return overridableCron(FREQUENCIES.monthly.cron());
  const narrowing = (['between', 'except', 'startsAt', 'endsAt'] as const).filter(
    (key) => options[key] !== undefined,
  );
  if (narrowing.length === 0) return null;
  throw new ChronosError(
    'INVALID_SCHEDULE',
    `${where} needs a rule that ${narrowing.join(' and ')} can narrow: set how often, like daily() or every('10m')`,
  );
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

/** Rules by name: fields or cron expressions. */
export type Symbols = Readonly<Record<string, FieldSchedule | string>>;

/** Names for common rules, at minutes at which few other jobs start. */
export const SCHEDULE_SYMBOLS: Readonly<Record<string, FieldSchedule>> = {
  EVERY_MINUTE: { minutes: '*' },
  EVERY_HOUR: { minutes: 1, hours: '*' },
  EVERY_DAY: { minutes: 10, hours: 2 },
  EVERY_WEEK: { minutes: 20, hours: 6, wday: 1 },
  EVERY_MONTH: { minutes: 30, hours: 1, mday: 1 },
};

/** Names must be in capitals, like those of SCHEDULE_SYMBOLS. */
export function parseSymbols(value: unknown): Symbols {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ChronosError('INVALID_OPTIONS', 'must be an object of rules by name');
  for (const [symbol, rule] of Object.entries(value)) {
    if (!/^[A-Z][A-Z0-9_]*$/.test(symbol)) {
      throw new ChronosError('INVALID_OPTIONS', `a name must be like EVERY_SHIFT, got '${symbol}'`);
    }
    if (typeof rule === 'string') parseCron(rule);
    else parseFields(rule);
  }
  return value as Symbols;
}
