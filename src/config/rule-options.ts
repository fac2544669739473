import type { CronField } from '../domain/cron.js';
import { ChronosError } from '../domain/errors.js';
import { FREQUENCIES, looseCron } from '../domain/frequencies.js';
import type { Constraints, Rule } from '../domain/rule.js';
import type { ReadRule, ScheduleContext } from './rule-readers.js';

/** Options that say how often; the others narrow that. They exclude each other. */
export const BASES = ['cron', 'fields', 'symbol', 'every'] as const;

export type BaseName = (typeof BASES)[number];

/** Options that are a constraint on a field. */
const CONSTRAINTS = {
  seconds: 'second',
  minutes: 'minute',
  hours: 'hour',
  days: 'day',
  months: 'month',
  weekdays: 'weekday',
} as const satisfies Partial<Record<keyof ReadRule, CronField>>;

export type ConstraintName = keyof typeof CONSTRAINTS;

type RuleBase = Pick<Rule, 'cron' | 'loose' | 'fields' | 'every'>;

/** The rule that the options come to; null when they say nothing about when. `loose`: as in the rule. */
export function ruleOf(
  read: Partial<ReadRule>,
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

/** The way back: options that come to the same rule, with the same `loose`. */
export function optionsOf({ loose: _, only = {}, ...rest }: Rule): Partial<ReadRule> {
  const constraints = Object.entries(CONSTRAINTS).map(([name, field]) => [name, only[field]] as const);
  return { ...rest, ...Object.fromEntries(constraints.filter(([, values]) => values !== undefined)) };
}

function constraintsOf(read: Partial<ReadRule>): Constraints {
  const given = Object.entries(CONSTRAINTS).map(
    ([name, field]) => [field, read[name as ConstraintName]] as const,
  );
  return Object.fromEntries(given.filter(([, values]) => values !== undefined));
}

function baseOf(
  read: Partial<ReadRule>,
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
function impliedBase(read: Partial<ReadRule>, only: Constraints, where: string): RuleBase | null {
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
