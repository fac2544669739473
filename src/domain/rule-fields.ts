import { CRON_FIELDS, hasSeconds, parseCron, type CronField, type CronFields } from './cron.js';
import { ChronosError } from './errors.js';
import { parseFields, type FieldSchedule } from './field-schedule.js';
import { secondsOfDay } from './frequencies.js';
import type { Rule } from './rule.js';
import { WHOLE_DAY, type TimeFields, type TimeWindow } from './time-fields.js';

/** What clock and calendar have to show for a rule to match. */
export interface RuleFields extends TimeFields {
  /** It says when on the clock rather than how often: each such time is due once a day, also where clocks change. */
  readonly isFixed: boolean;
}

/** What the base of a rule asks for, before anything narrows it. */
interface Base {
  readonly values: Readonly<Record<'second' | 'minute' | 'hour' | 'month', readonly number[]>>;
  readonly isDay: (date: Date) => boolean;
  /** Fields written with a star. */
  readonly open: ReadonlySet<CronField>;
}

const DAY = 86_400_000;
const ALL: Base['values'] = {
  second: upTo(0, 59),
  minute: upTo(0, 59),
  hour: upTo(0, 23),
  month: upTo(1, 12),
};

/** The base, narrowed by everything else the rule says. Throws INVALID_SCHEDULE. */
export function fieldsOf(rule: Rule): RuleFields {
  const base = baseOf(rule);
  const only = rule.only ?? {};
  const within = (field: keyof Base['values']): readonly number[] => {
    const allowed = only[field];
    return allowed === undefined
      ? base.values[field]
      : base.values[field].filter((value) => allowed.includes(value));
  };
  const except = new Set(rule.except);
  return {
    seconds: within('second'),
    minutes: within('minute'),
    hours: within('hour'),
    months: within('month'),
    isDay: (date) => {
      if (!base.isDay(date)) return false;
      if (only.day?.includes(date.getUTCDate()) === false) return false;
      if (only.weekday?.includes(date.getUTCDay()) === false) return false;
      const day = date.toISOString().slice(0, 10);
      return except.size === 0 || !(except.has(day) || except.has(day.slice(5)));
    },
    windows: windowsOf(rule.between),
    isFixed: (['second', 'minute', 'hour'] as const).every(
      (field) => !base.open.has(field) || only[field] !== undefined,
    ),
  };
}

function windowsOf(between: Rule['between']): TimeWindow[] {
  const [first, last] = (between ?? []).map(secondsOfDay);
  if (first === undefined || last === undefined) return [WHOLE_DAY];
  return first <= last
    ? [[first, last]]
    : [
        [0, last],
        [first, WHOLE_DAY[1]],
      ];
}

function baseOf(rule: Rule): Base {
  if (rule.cron !== undefined) return cronBase(rule.cron, rule);
  if (rule.fields !== undefined) return fieldBase(rule.fields, rule.only?.second !== undefined);
  if (rule.every !== undefined) return { values: ALL, isDay: () => true, open: new Set(CRON_FIELDS) };
  throw new ChronosError('INVALID_SCHEDULE', 'a rule needs a cron expression, fields or an interval');
}

function cronBase(expression: string, { only = {}, loose = [] }: Rule): Base {
  const fields = parseCron(expression);
  const given = hasSeconds(expression) ? loose : ['second' as const, ...loose];
  /** A constraint takes the place of a value that was there only to have one. */
  const isReplaced = (field: CronField): boolean => only[field] !== undefined && given.includes(field);
  const values = (field: keyof Base['values']): readonly number[] =>
    isReplaced(field) ? ALL[field] : fields[field].values;
  return {
    values: {
      second: values('second'),
      minute: values('minute'),
      hour: values('hour'),
      month: values('month'),
    },
    isDay: cronDays(fields, isReplaced('day'), isReplaced('weekday')),
    open: new Set(CRON_FIELDS.filter((field) => fields[field].open)),
  };
}

/** Day of the month and day of the week: the one that is given; when both are, either will do. */
function cronDays({ day, weekday }: CronFields, anyDay: boolean, anyWeekday: boolean): Base['isDay'] {
  const isDay = (date: Date): boolean =>
    day.values.includes(date.getUTCDate()) || (day.last && isLastDayOfMonth(date));
  const isWeekday = (date: Date): boolean => weekday.values.includes(date.getUTCDay());
  const freeDay = anyDay || day.any;
  const freeWeekday = anyWeekday || weekday.any;
  if (freeDay && freeWeekday) return () => true;
  if (freeDay) return isWeekday;
  if (freeWeekday) return isDay;
  return (date) => isDay(date) || isWeekday(date);
}

function isLastDayOfMonth(date: Date): boolean {
  return new Date(date.getTime() + DAY).getUTCDate() === 1;
}

/** Fields say nothing about seconds: 0, unless a constraint does. */
function fieldBase(schedule: FieldSchedule, anySecond: boolean): Base {
  const fields = parseFields(schedule);
  return {
    values: {
      second: anySecond ? ALL.second : [0],
      minute: ALL.minute.filter(fields.minutes.matches),
      hour: ALL.hour.filter(fields.hours.matches),
      month: ALL.month.filter(fields.mon.matches),
    },
    isDay: (date) =>
      fields.mday.matches(date.getUTCDate()) &&
      fields.day.matches(date.getUTCDate()) &&
      fields.wday.matches(date.getUTCDay()) &&
      fields.year.matches(date.getUTCFullYear()),
    open: new Set([
      ...(fields.minutes.open ? ['minute' as const] : []),
      ...(fields.hours.open ? ['hour' as const] : []),
    ]),
  };
}

function upTo(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
