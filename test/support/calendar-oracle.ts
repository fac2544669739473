import type { CronField } from '../../src/domain/calendar/cron.js';
import type { FieldSchedule } from '../../src/domain/calendar/field-schedule.js';
import type { Rule } from '../../src/domain/calendar/rule.js';

/*
 * A second implementation of rules, which shares no code with src/domain/calendar: it visits every minute (or second)
 * of a period, formats it with Intl in the time zone, and compares the result with the rule.
 *
 * When clocks change, a rule with a fixed time fires once for a time that occurs twice, and at the end of a gap for a
 * time that the gap skipped. Any other rule fires whenever the wall clock matches.
 */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Milliseconds, both included. */
interface Period {
  readonly from: number;
  readonly to: number;
}

/** Whether a rule matches a date, and a second of the day. */
interface Pattern {
  readonly isDate: (date: Date) => boolean;
  readonly isTime: (second: number) => boolean;
}

/** All occurrences of the rule in the period, in milliseconds. `every` counts from `anchor`. */
export function instantsOf(rule: Rule, anchor: Date, { from, to }: Period): number[] {
  const first = Math.max(from, rule.startsAt?.getTime() ?? -Infinity);
  const last = Math.min(to, rule.endsAt?.getTime() ?? Infinity);
  const pattern = patternOf(rule);
  if (rule.every !== undefined) {
    return countFrom(rule.startsAt ?? anchor, rule.every, { from: first, to: last }).filter((instant) => {
      const wall = instant + stretchAt(instant, rule.timezone).ahead;
      return pattern.isDate(new Date(wall)) && pattern.isTime(Math.floor((wall % DAY) / SECOND));
    });
  }
  const step = hasOtherSeconds(rule) ? SECOND : MINUTE;
  return scan(rule.timezone, pattern, isFixed(rule), step, { from: first, to: last });
}

/** The wall time in the zone at the instant, as milliseconds as if it were UTC. */
export function wallAt(instant: number, timezone: string): number {
  const text = formatOf(timezone).format(instant);
  return Date.parse(`${text.replace(' ', 'T')}Z`) + (instant % SECOND);
}

/** The instants at which clocks in the zone change. */
export function clockChanges(timezone: string, { from, to }: Period): number[] {
  const changes: number[] = [];
  const search = (first: number, last: number, steps: readonly number[]): void => {
    const [step = 0, ...finer] = steps;
    for (let instant = first; instant < last; instant += step) {
      if (aheadAt(instant, timezone) === aheadAt(instant + step, timezone)) continue;
      if (finer.length > 0) search(instant, instant + step, finer);
      else changes.push(instant + step);
    }
  };
  search(from, to, [DAY, HOUR, MINUTE]);
  return changes;
}

/** Visits every step of the period. */
function scan(timezone: string, pattern: Pattern, fixed: boolean, step: number, { from, to }: Period) {
  const { isShown, waitFor } = createMatcher(pattern, step);
  const found: number[] = [];
  let shownTwice = new Set<number>();
  let instant = Math.ceil(from / step) * step - DAY;
  let expected = wallAt(instant, timezone);
  while (instant <= to) {
    const { until, ahead } = stretchAt(instant, timezone);
    const shown = instant + ahead;
    if (fixed && shown < expected) shownTwice = shownBefore(instant, timezone, step);
    if (fixed && shown > expected && !isShown(shown)) {
      for (let skipped = expected; skipped < shown; skipped += step) {
        if (!isShown(skipped)) continue;
        found.push(instant);
        break;
      }
    }
    for (instant += waitFor(shown); instant < until && instant <= to;) {
      if (isShown(instant + ahead) && !shownTwice.has(instant + ahead)) found.push(instant);
      instant += step + waitFor(instant + step + ahead);
    }
    instant = until;
    expected = until + ahead;
  }
  return found.filter((one) => one >= from);
}

/** The wall times of the three hours before the instant. */
function shownBefore(instant: number, timezone: string, step: number): Set<number> {
  const shown = new Set<number>();
  for (let earlier = instant - 3 * HOUR; earlier < instant; earlier += step) {
    shown.add(earlier + stretchAt(earlier, timezone).ahead);
  }
  return shown;
}

/** Evaluates the pattern once for each time of the day, and once for consecutive steps of a date. */
function createMatcher({ isDate, isTime }: Pattern, step: number) {
  // For each time of the day, the number of steps to the next one that matches, or to midnight.
  const waits = new Int32Array(DAY / step);
  for (let index = waits.length - 1; index >= 0; index--) {
    waits[index] = isTime((index * step) / SECOND) ? 0 : (waits[index + 1] ?? 0) + 1;
  }
  let day = -1;
  let isDay = false;
  const isShown = (wall: number): boolean => {
    if (waits[(wall % DAY) / step] !== 0) return false;
    const date = wall - (wall % DAY);
    if (date !== day) {
      day = date;
      isDay = isDate(new Date(date));
    }
    return isDay;
  };
  return { isShown, waitFor: (wall: number): number => waits[(wall % DAY) / step]! * step };
}

function countFrom(anchor: Date, every: number, { from, to }: Period): number[] {
  const instants: number[] = [];
  let count = Math.max(0, Math.floor((from - anchor.getTime()) / every) - 1);
  for (; anchor.getTime() + count * every <= to; count++) instants.push(anchor.getTime() + count * every);
  return instants.filter((instant) => instant >= from);
}

// ---- Rules

const BOUNDS: Record<CronField, { least: number; most: number; names: readonly string[] }> = {
  second: { least: 0, most: 59, names: [] },
  minute: { least: 0, most: 59, names: [] },
  hour: { least: 0, most: 23, names: [] },
  day: { least: 1, most: 31, names: [] },
  month: {
    least: 1,
    most: 12,
    names: ['-', 'JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'],
  },
  weekday: { least: 0, most: 7, names: ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'] },
};

function patternOf(rule: Rule): Pattern {
  const { isDate, isTime } = basePattern(rule);
  const allows = (field: CronField, value: number): boolean =>
    rule.constraints?.[field]?.includes(value) ?? true;
  const isExcluded = (date: string): boolean =>
    (rule.except ?? []).some((day) => (day.length === 5 ? date.endsWith(`-${day}`) : date === day));
  return {
    isDate: (date) =>
      isDate(date) &&
      allows('day', date.getUTCDate()) &&
      allows('month', date.getUTCMonth() + 1) &&
      allows('weekday', date.getUTCDay()) &&
      !isExcluded(date.toISOString().slice(0, 10)),
    isTime: (second) =>
      isTime(second) &&
      allows('second', second % 60) &&
      allows('minute', Math.floor(second / 60) % 60) &&
      allows('hour', Math.floor(second / 3600)) &&
      isBetween(second, rule.between),
  };
}

function basePattern(rule: Rule): Pattern {
  if (rule.cron !== undefined) return cronPattern(fieldTexts(rule));
  if (rule.fields !== undefined) return fieldPattern(rule.fields);
  return { isDate: () => true, isTime: () => true };
}

function cronPattern(texts: Record<CronField, string>): Pattern {
  const read = (field: CronField): boolean[] =>
    Array.from({ length: 60 }, (_, value) => cronShows(texts[field], field, value));
  const [seconds, minutes, hours] = [read('second'), read('minute'), read('hour')];
  const [days, months, weekdays] = [read('day'), read('month'), read('weekday')];
  const isAny = (text: string): boolean => text === '*' || text === '?';
  return {
    isTime: (second) =>
      hours[Math.floor(second / 3600)]! && minutes[Math.floor(second / 60) % 60]! && seconds[second % 60]!,
    isDate: (date) => {
      if (!months[date.getUTCMonth() + 1]!) return false;
      const tomorrow = new Date(date.getTime() + DAY);
      const isLast = tomorrow.getUTCMonth() !== date.getUTCMonth();
      const isDay = days[date.getUTCDate()]! || (isLast && texts.day.toUpperCase().split(',').includes('L'));
      const isWeekday = weekdays[date.getUTCDay()]!;
      if (isAny(texts.day)) return isWeekday;
      if (isAny(texts.weekday)) return isDay;
      return isDay || isWeekday;
    },
  };
}

/** The six fields. A field that a constraint overrides is `*`. */
function fieldTexts({ cron = '', overridable = [], constraints = {} }: Rule): Record<CronField, string> {
  const parts = cron.trim().split(/\s+/);
  const isFree = (field: CronField): boolean =>
    constraints[field] !== undefined && overridable.includes(field);
  const [second = '', minute = '', hour = '', day = '', month = '', weekday = ''] =
    parts.length === 6 ? parts : [constraints.second === undefined ? '0' : '*', ...parts];
  const texts = { second, minute, hour, day, month, weekday };
  const entries = Object.entries(texts) as [CronField, string][];
  return Object.fromEntries(
    entries.map(([field, text]) => [field, isFree(field) ? '*' : text]),
  ) as typeof texts;
}

function cronShows(text: string, field: CronField, value: number): boolean {
  const { least, most, names } = BOUNDS[field];
  const read = (atom: string): number => {
    const name = names.indexOf(atom.toUpperCase());
    return name === -1 ? Number(atom) : name;
  };
  return text.split(',').some((item) => {
    if (item.toUpperCase() === 'L') return false;
    const [range = '', step] = item.split('/');
    const [a = '', b] = range.split('-');
    const isStar = a === '*' || a === '?';
    const from = isStar ? least : read(a);
    const to = isStar || (b === undefined && step !== undefined) ? most : read(b ?? a);
    // Sunday is 0 or 7.
    const values = field === 'weekday' && value === 0 ? [0, 7] : [value];
    return values.some((one) => one >= from && one <= to && (one - from) % Number(step ?? 1) === 0);
  });
}

function fieldPattern(schedule: FieldSchedule): Pattern {
  const shows = (name: keyof FieldSchedule, ...values: number[]): boolean => {
    const items = String(schedule[name] ?? '*').split(',');
    return values.some((value) => items.some((item) => fieldItemShows(item.trim(), value)));
  };
  return {
    isTime: (second) =>
      second % 60 === 0 &&
      shows('minutes', Math.floor(second / 60) % 60) &&
      shows('hours', Math.floor(second / 3600)),
    isDate: (date) =>
      shows('day', date.getUTCDate()) &&
      shows('mday', date.getUTCDate()) &&
      (shows('wday', date.getUTCDay()) || (date.getUTCDay() === 0 && shows('wday', 7))) &&
      shows('mon', date.getUTCMonth() + 1) &&
      shows('year', date.getUTCFullYear()),
  };
}

function fieldItemShows(item: string, value: number): boolean {
  if (item === '*') return true;
  if (item.startsWith('*/')) return value % Number(item.slice(2)) === 0;
  const [from, to = from] = item.split('-').map(Number);
  return value >= from! && value <= to!;
}

/** Whether the time of day is fixed: second, minute and hour have no `*`, or a constraint instead. */
function isFixed(rule: Rule): boolean {
  const { minutes = '*', hours = '*' } = rule.fields ?? {};
  const texts =
    rule.cron === undefined
      ? { second: '0', minute: String(minutes), hour: String(hours) }
      : fieldTexts(rule);
  return (['second', 'minute', 'hour'] as const).every(
    (field) => !/(^|,)\s*\*/.test(texts[field]) || rule.constraints?.[field] !== undefined,
  );
}

function hasOtherSeconds({ cron, constraints, between }: Rule): boolean {
  const isLong = between?.some((time) => time.length > 5) ?? false;
  return cron?.trim().split(/\s+/).length === 6 || constraints?.second !== undefined || isLong;
}

function isBetween(second: number, between: Rule['between']): boolean {
  if (between === undefined) return true;
  const shown = new Date(second * SECOND).toISOString().slice(11, 19);
  const [first, last] = between.map((time) => time.padEnd(8, ':00')) as [string, string];
  return first <= last ? first <= shown && shown <= last : first <= shown || shown <= last;
}

// ---- Time zones, from Intl

interface Stretch {
  readonly until: number;
  readonly ahead: number;
}

const formats = new Map<string, Intl.DateTimeFormat>();
const steady = new Map<string, number | undefined>();

/** A period from the instant on without a clock change: the rest of the day, of the hour or of the minute. */
function stretchAt(instant: number, timezone: string): Stretch {
  for (const length of [DAY, HOUR]) {
    const start = instant - (instant % length);
    const ahead = steadyAhead(start, length, timezone);
    if (ahead !== undefined) return { until: start + length, ahead };
  }
  return { until: instant - (instant % MINUTE) + MINUTE, ahead: aheadAt(instant, timezone) };
}

/** How far the zone is ahead of UTC, if that is the same at both ends. */
function steadyAhead(start: number, length: number, timezone: string): number | undefined {
  const key = `${timezone} ${start} ${length}`;
  if (!steady.has(key)) {
    const ahead = aheadAt(start, timezone);
    steady.set(key, ahead === aheadAt(start + length - SECOND, timezone) ? ahead : undefined);
  }
  return steady.get(key);
}

function aheadAt(instant: number, timezone: string): number {
  return wallAt(instant, timezone) - instant;
}

/** The Swedish format is `2026-03-29 03:00:00`. */
function formatOf(timezone: string): Intl.DateTimeFormat {
  const known = formats.get(timezone);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat('sv-SE', {
    timeZone: timezone,
    dateStyle: 'short',
    timeStyle: 'medium',
  });
  formats.set(timezone, format);
  return format;
}
