import { type CronField, parseCron } from '../domain/calendar/cron.js';
import { type FieldPattern, type FieldSchedule, parseFields } from '../domain/calendar/field-schedule.js';
import { FREQUENCIES, overridableCron, secondsOfDay } from '../domain/calendar/frequencies.js';
import type { Constraints, Rule } from '../domain/calendar/rule.js';
import { isTimezone } from '../domain/calendar/time-zone.js';
import { didYouMean } from '../domain/did-you-mean.js';
import { ChronosError } from '../domain/errors.js';
import {
  anything,
  described,
  duration,
  instant,
  integer,
  listOf,
  matching,
  name,
  object,
  oneOrMore,
  type Parsed,
  refine,
  type Shape,
  type Shapes,
  text,
  throwing,
} from '../domain/validation.js';

/** What the meaning of a schedule's options depends on. */
export interface ScheduleContext {
  timezone: string;
  symbols: ReadonlyMap<string, FieldSchedule | string>;
}

/** How often a schedule is due; the other options narrow that. They exclude each other. */
export const BASES = ['cron', 'fields', 'symbol', 'every'] as const;

export type BaseName = (typeof BASES)[number];

/** The options that constrain a field. */
const CONSTRAINTS = {
  seconds: 'second',
  minutes: 'minute',
  hours: 'hour',
  days: 'day',
  months: 'month',
  weekdays: 'weekday',
} as const satisfies Partial<Record<keyof ParsedRule, CronField>>;

export type ConstraintName = keyof typeof CONSTRAINTS;

type RuleBase = Pick<Rule, 'cron' | 'overridable' | 'fields' | 'every'>;

export const timezoneShape = matching(
  "a time zone like 'Europe/Berlin' or 'UTC'",
  isTimezone,
  text(100).schema,
);

const pattern: Shape<FieldPattern> = {
  ...anything,
  schema: { anyOf: [integer(0, 9999).schema, text(200).schema] },
} as Shape<FieldPattern>;
const FIELDS = object<FieldSchedule>({
  minutes: pattern,
  hours: pattern,
  mday: pattern,
  day: pattern,
  wday: pattern,
  mon: pattern,
  year: pattern,
}).schema;

const DAY = described(text(10), "a day like '2026-12-24' or '12-25'").schema;
const TIME_OF_DAY = described(text(8), "two times like '09:00' and '17:30'");

export function ruleShapes({ timezone, symbols }: ScheduleContext): Shapes<ParsedRule> {
  return {
    ...COMMON,
    symbol: throwing((value) => parseSymbol(value, symbols), name.schema),
    startsAt: instant(timezone),
    endsAt: instant(timezone),
  };
}

const COMMON = {
  cron: described(
    throwing((value) => {
      parseCron(value);
      return value as string;
    }, text(200).schema),
    'five or six fields, or @daily and the like',
  ),
  fields: throwing((value) => {
    parseFields(value);
    return { ...(value as FieldSchedule) };
  }, FIELDS),
  every: duration({ min: 1000 }),
  seconds: numbers(0, 59),
  minutes: numbers(0, 59),
  hours: numbers(0, 23),
  days: numbers(1, 31),
  months: numbers(1, 12),
  // 7 is Sunday, too.
  weekdays: refine(numbers(0, 7), (days) => days.map((day) => day % 7)),
  between: matching(
    "two times like '09:00' and '17:30'",
    isBetween,
    listOf(TIME_OF_DAY, { min: 2, max: 2 }).schema,
  ),
  except: listOf(matching("a day like '2026-12-24' or '12-25'", isDay, DAY), { min: 0, max: 1000 }),
  timezone: timezoneShape,
};

/** When a schedule is due: durations in milliseconds, instants as dates, one value as a list of one. */
export type ParsedRule = Parsed<typeof COMMON> & { symbol: string; startsAt: Date; endsAt: Date };

function numbers(min: number, max: number): Shape<readonly number[]> {
  return oneOrMore(integer(min, max), 60);
}

function parseSymbol(value: unknown, symbols: ScheduleContext['symbols']): string {
  if (typeof value === 'string' && symbols.has(value)) return value;
  const known = [...symbols.keys()];
  throw new ChronosError(
    'INVALID_SCHEDULE',
    `'${String(value)}' is none of ${known.join(', ')}${didYouMean(String(value), known)}`,
  );
}

/** The rule that the options describe; null if they do not mention when. `overridable`: see Rule. */
export function toRule(
  options: Partial<ParsedRule>,
  context: ScheduleContext,
  overridable: readonly CronField[],
  where: string,
): Rule | null {
  const constraints = constraintsOf(options);
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
  const constraintOptions = Object.entries(CONSTRAINTS).map(
    ([option, field]) => [option, constraints[field]] as const,
  );
  return { ...rest, ...Object.fromEntries(constraintOptions.filter(([, values]) => values !== undefined)) };
}

function constraintsOf(options: Partial<ParsedRule>): Constraints {
  const constraints = Object.entries(CONSTRAINTS).map(
    ([option, field]) => [field, options[option as ConstraintName]] as const,
  );
  return Object.fromEntries(constraints.filter(([, values]) => values !== undefined));
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

/** Names for common rules, at minutes when few other jobs start. */
export const SCHEDULE_SYMBOLS: Readonly<Record<string, FieldSchedule>> = {
  EVERY_MINUTE: { minutes: '*' },
  EVERY_HOUR: { minutes: 1, hours: '*' },
  EVERY_DAY: { minutes: 10, hours: 2 },
  EVERY_WEEK: { minutes: 20, hours: 6, wday: 1 },
  EVERY_MONTH: { minutes: 30, hours: 1, mday: 1 },
};

/** Names are in capitals, so that they cannot be confused with anything else. */
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
