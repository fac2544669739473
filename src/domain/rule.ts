import { CRON_FIELDS, hasSeconds, parseCron, type CronField, type CronFields } from './cron.js';
import { ChronosError } from './errors.js';
import { parseFields, type FieldSchedule } from './field-schedule.js';
import { secondsOfDay } from './frequencies.js';
import { isEverTime, nextWall, WHOLE_DAY, type TimeFields, type TimeWindow } from './time-fields.js';
import { zoneSegments, type ZoneSegment } from './time-zone.js';

/** Values a field of the clock or the calendar must have, whatever the rest of the rule says. */
export type Constraints = Partial<Record<CronField, readonly number[]>>;

/** When a schedule is due, as it is stored. One of `cron`, `fields` and `every` is its base. */
export interface Rule {
  readonly cron?: string;
  /** Fields of `cron` that only stand for "some time": a constraint takes their place. */
  readonly loose?: readonly CronField[];
  readonly fields?: FieldSchedule;
  /** Milliseconds of real time between two occurrences. */
  readonly every?: number;
  readonly only?: Constraints;
  /** `['09:00', '17:30']`, both included; past midnight when the second is the earlier one. */
  readonly between?: readonly [string, string];
  /** Days without occurrences: `'2026-12-24'`, or `'12-25'` for every year. */
  readonly except?: readonly string[];
  readonly timezone: string;
  readonly startsAt?: Date;
  readonly endsAt?: Date;
}

/** The occurrences of a rule. */
export interface Occurrences {
  /** The first one after the instant, or null when there is none within five years. */
  next(after: Date): Date | null;
}

const SECOND = 1000;
const DAY = 86_400_000;
const MOST_PREVIEWED = 10_000;
const FIVE_YEARS = 5 * 366 * DAY;

interface Base {
  readonly values: Readonly<Record<'second' | 'minute' | 'hour' | 'month', readonly number[]>>;
  readonly isDay: (date: Date) => boolean;
  /** Fields written with a star. */
  readonly open: ReadonlySet<CronField>;
}

/** Reads the rule once, for any number of questions. `anchor` is where `every` counts from. Throws INVALID_SCHEDULE. */
export function occurrencesOf(rule: Rule, anchor: Date): Occurrences {
  if (typeof rule.timezone !== 'string' || rule.timezone === '') {
    throw new ChronosError('INVALID_SCHEDULE', 'a rule needs a time zone');
  }
  for (const date of [rule.startsAt, rule.endsAt]) {
    if (date !== undefined && !(date instanceof Date && !Number.isNaN(date.getTime()))) {
      throw new ChronosError('INVALID_SCHEDULE', 'startsAt and endsAt of a rule are dates');
    }
  }
  if (rule.every !== undefined && !(rule.every >= 1)) {
    throw new ChronosError('INVALID_SCHEDULE', `an interval is at least a millisecond, got ${rule.every}`);
  }
  const base = baseOf(rule);
  const fields = narrow(base, rule);
  const isFixed = (['second', 'minute', 'hour'] as const).every(
    (field) => !base.open.has(field) || rule.only?.[field] !== undefined,
  );
  const find =
    rule.every === undefined
      ? (segment: ZoneSegment, after: number, last: number) =>
          isFixed ? findFixed(fields, segment, after, last) : findOpen(fields, segment, after, last)
      : steps(fields, rule.every, (rule.startsAt ?? anchor).getTime());
  return {
    next: (after) => {
      const from = Math.max(after.getTime(), (rule.startsAt?.getTime() ?? -Infinity) - 1);
      const limit = Math.min(from + FIVE_YEARS, rule.endsAt?.getTime() ?? Infinity);
      for (const segment of zoneSegments(from, rule.timezone)) {
        if (segment.start > limit) return null;
        const found = find(segment, from, Math.min(segment.end - 1, limit));
        if (found !== undefined) return new Date(found);
      }
      return null;
    },
  };
}

/** The next `count` occurrences after the instant, or as many as are left. */
export function nextRuns(occurrences: Occurrences, count: number, from: Date, left = Infinity): Date[] {
  if (!Number.isInteger(count) || count < 0 || count > MOST_PREVIEWED) {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      `nextRuns() takes how many, a whole number up to ${MOST_PREVIEWED}, got ${String(count)}`,
    );
  }
  const runs: Date[] = [];
  for (let at: Date | null = from; at !== null && runs.length < Math.min(count, left);) {
    at = occurrences.next(at);
    if (at !== null) runs.push(at);
  }
  return runs;
}

/*
 * Where clocks change: segment i runs from instant T with offset o, after an offset p. On the wall, the time line is
 * cut at T + p, where the clocks of the segment before end. A fixed time belongs to the segment that owns its place on
 * that line: one that a leap forward skips lies before the segment's first wall time T + o and fires at T, right
 * after the gap; one that is shown twice lies before T + p and fires in the segment before, once.
 */
function findFixed(
  fields: TimeFields,
  { start, offset, previousOffset }: ZoneSegment,
  after: number,
  last: number,
): number | undefined {
  const owned = start + previousOffset;
  const first = after < start ? owned : Math.max(owned, after + 1 + offset);
  const wall = nextWall(fields, first, last + offset);
  return wall === undefined ? undefined : Math.max(start, wall - offset);
}

/** Every N minutes, say: due whenever clocks show it, twice where they do, never where they do not. */
function findOpen(
  fields: TimeFields,
  { start, offset }: ZoneSegment,
  after: number,
  last: number,
): number | undefined {
  const wall = nextWall(fields, Math.max(start, after + 1) + offset, last + offset);
  return wall === undefined ? undefined : wall - offset;
}

/**
 * Real time from the anchor on, where the constraints allow it. As long as an offset lasts, steps come upon times of
 * the day that lie a common divisor of step and day apart: when none of them is allowed, looking at each is in vain.
 */
function steps(fields: TimeFields, every: number, anchor: number) {
  const stepFrom = (instant: number): number =>
    anchor + Math.max(0, Math.ceil((instant - anchor) / every)) * every;
  const apart = greatestDivisor(every, DAY);
  const known = new Map<number, boolean>();
  return ({ start, offset }: ZoneSegment, after: number, last: number): number | undefined => {
    const isPossible = known.get(offset) ?? isEverTime(fields, anchor + offset, apart);
    known.set(offset, isPossible);
    if (!isPossible) return undefined;
    for (let instant = stepFrom(Math.max(start, after + 1)); instant <= last;) {
      const shown = Math.floor((instant + offset) / SECOND) * SECOND;
      const wall = nextWall(fields, shown, last + offset);
      if (wall === undefined) return undefined;
      if (wall === shown) return instant;
      instant = stepFrom(wall - offset);
    }
    return undefined;
  };
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

function narrow(base: Base, rule: Rule): TimeFields {
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
  if (rule.every !== undefined)
    return { values: everything(), isDay: () => true, open: new Set(CRON_FIELDS) };
  throw new ChronosError('INVALID_SCHEDULE', 'a rule needs a cron expression, fields or an interval');
}

function cronBase(expression: string, { only = {}, loose = [] }: Rule): Base {
  const fields = parseCron(expression);
  const given = hasSeconds(expression) ? loose : ['second' as const, ...loose];
  /** A constraint takes the place of a value that was there only to have one. */
  const isReplaced = (field: CronField): boolean => only[field] !== undefined && given.includes(field);
  const all = everything();
  const values = (field: keyof Base['values']): readonly number[] =>
    isReplaced(field) ? all[field] : fields[field].values;
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
  const all = everything();
  return {
    values: {
      second: anySecond ? all.second : [0],
      minute: all.minute.filter(fields.minutes.matches),
      hour: all.hour.filter(fields.hours.matches),
      month: all.month.filter(fields.mon.matches),
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

function everything(): Base['values'] {
  return { second: upTo(0, 59), minute: upTo(0, 59), hour: upTo(0, 23), month: upTo(1, 12) };
}

function upTo(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
