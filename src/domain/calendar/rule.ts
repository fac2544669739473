import { DAY_MS } from '../duration.js';
import { ChronosError } from '../errors.js';
import { CRON_FIELDS, type CronField, type CronFields, hasSeconds, parseCron } from './cron.js';
import { type FieldSchedule, parseFields } from './field-schedule.js';
import { secondsOfDay } from './frequencies.js';
import { type TimeFields, type TimeValues, type TimeWindow, WHOLE_DAY } from './occurrence-search.js';

/** Allowed values per field, in addition to what `cron`, `fields` or `every` requires. */
export type Constraints = Partial<Record<CronField, readonly number[]>>;

/** When a schedule is due. Exactly one of `cron`, `fields` and `every` is set; the other properties narrow it. */
export interface Rule {
  readonly cron?: string;
  /** Fields of `cron` that are only a default: a constraint replaces them. */
  readonly overridable?: readonly CronField[];
  readonly fields?: FieldSchedule;
  /** Milliseconds of real time between two occurrences. */
  readonly every?: number;
  readonly constraints?: Constraints;
  /** `['09:00', '17:30']`, both included. If the second is earlier than the first, the period ends the next day. */
  readonly between?: readonly [string, string];
  /** Days without occurrences: `'2026-12-24'`, or `'12-25'` for every year. */
  readonly except?: readonly string[];
  readonly timezone: string;
  readonly startsAt?: Date;
  readonly endsAt?: Date;
}

/** The wall times that match a rule. */
interface CompiledRule extends TimeFields {
  /** The rule names times of day, not a frequency: each occurs once a day, also when clocks change. */
  readonly isFixed: boolean;
}

/** What `cron`, `fields` or `every` requires, before constraints narrow it. */
interface Base {
  readonly values: TimeValues;
  readonly isDay: (date: Date) => boolean;
  /** Fields written with a star: a frequency, not a time. */
  readonly open: ReadonlySet<CronField>;
}

const ALL: TimeValues = {
  second: range(0, 59),
  minute: range(0, 59),
  hour: range(0, 23),
  month: range(1, 12),
};

/** Throws INVALID_SCHEDULE. */
export function compileRule(rule: Rule): CompiledRule {
  const base = compileBase(rule);
  const constraints = rule.constraints ?? {};
  const except = new Set(rule.except);
  return {
    values: timeValues((field) =>
      base.values[field].filter((value) => constraints[field]?.includes(value) ?? true),
    ),
    isDay: (date) => {
      if (!base.isDay(date)) return false;
      if (constraints.day?.includes(date.getUTCDate()) === false) return false;
      if (constraints.weekday?.includes(date.getUTCDay()) === false) return false;
      const day = date.toISOString().slice(0, 10);
      return except.size === 0 || !(except.has(day) || except.has(day.slice(5)));
    },
    windows: windowsOf(rule.between),
    isFixed: (['second', 'minute', 'hour'] as const).every(
      (field) => !base.open.has(field) || constraints[field] !== undefined,
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

function compileBase(rule: Rule): Base {
  if (rule.cron !== undefined) return cronBase(rule.cron, rule);
  if (rule.fields !== undefined) return fieldBase(rule.fields, rule.constraints?.second !== undefined);
  if (rule.every !== undefined) return { values: ALL, isDay: () => true, open: new Set(CRON_FIELDS) };
  throw new ChronosError('INVALID_SCHEDULE', 'a rule needs a cron expression, fields or an interval');
}

function cronBase(expression: string, { constraints = {}, overridable = [] }: Rule): Base {
  const fields = parseCron(expression);
  const replaceable = hasSeconds(expression) ? overridable : ['second' as const, ...overridable];
  const isReplaced = (field: CronField): boolean =>
    constraints[field] !== undefined && replaceable.includes(field);
  return {
    values: timeValues((field) => (isReplaced(field) ? ALL[field] : fields[field].values)),
    isDay: cronDays(fields, isReplaced('day'), isReplaced('weekday')),
    open: new Set(CRON_FIELDS.filter((field) => fields[field].open)),
  };
}

/** As in cron: if day of the month and day of the week are both restricted, either may match. */
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
  return new Date(date.getTime() + DAY_MS).getUTCDate() === 1;
}

/** A field schedule has no seconds: 0, unless a constraint names others. */
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

function timeValues(get: (field: keyof TimeValues) => readonly number[]): TimeValues {
  return { second: get('second'), minute: get('minute'), hour: get('hour'), month: get('month') };
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
