import { DAY_MS } from '../duration.js';
import { ChronosError, describeValue } from '../errors.js';
import { isRecord } from '../language.js';
import { integer, parse } from '../validation.js';
import { CRON_FIELDS } from './cron.js';
import { secondsOfDay } from './frequencies.js';
import { searchFixed, searchRecurring, type SegmentSearch, searchInterval } from './occurrence-search.js';
import { compileRule, type Rule } from './rule.js';
import { isTimezone, isWithinYears, zoneSegments } from './time-zone.js';

export interface Occurrences {
  /** The first occurrence after the instant, or null if there is none within five years. */
  next(after: Date): Date | null;
}

const FIVE_YEARS_MS = 5 * 366 * DAY_MS;
const MAX_PREVIEWED = 10_000;

/** `anchor` is the start of `every` intervals. Throws INVALID_SCHEDULE. */
export function occurrencesOf(rule: Rule, anchor: Date): Occurrences {
  assertWellFormed(rule);
  const find = createSearch(rule, anchor);
  return {
    next: (after) => {
      const from = Math.max(after.getTime(), (rule.startsAt?.getTime() ?? -Infinity) - 1);
      const limit = Math.min(from + FIVE_YEARS_MS, rule.endsAt?.getTime() ?? Infinity);
      for (const segment of zoneSegments(from, rule.timezone)) {
        if (segment.start > limit) return null;
        const found = find(segment, from, Math.min(segment.end - 1, limit));
        if (found !== undefined) return new Date(found);
      }
      return null;
    },
  };
}

/** The next `count` occurrences after `from`, but not more than the `left` runs that `maxRuns` allows. */
export function nextRuns(occurrences: Occurrences, count: number, from: Date, left = Infinity): Date[] {
  parse(integer(0, MAX_PREVIEWED), count, 'nextRuns() count', 'INVALID_ARGUMENT');
  const runs: Date[] = [];
  while (runs.length < Math.min(count, left)) {
    const at = occurrences.next(runs.at(-1) ?? from);
    if (at === null) break;
    runs.push(at);
  }
  return runs;
}

/** The occurrences from `first` to `last`, both included, found one by one. */
export function* occurrencesWithin(
  occurrences: Occurrences,
  first: Date,
  last: Date,
): Generator<Date, undefined> {
  const before = new Date(first.getTime() - 1);
  for (let at = occurrences.next(before); at !== null && at <= last; at = occurrences.next(at)) yield at;
}

/** A shorter interval would be due more often than workers check schedules. */
export const MIN_INTERVAL_MS = 1000;

/** System cron runs a pass every minute, so a pass covers one minute. */
const PASS_MS = 60_000;

/** The last occurrence in the minute that ends with the instant. */
export function lastInMinute(occurrences: Occurrences, at: Date): Date | undefined {
  const first = new Date(at.getTime() - PASS_MS + 1);
  return [...occurrencesWithin(occurrences, first, at)].at(-1);
}

/** Rules also come from the database, where other programs may have written them. */
function assertWellFormed(rule: unknown): asserts rule is Rule {
  const error = isRecord(rule) ? findRuleError(rule) : `a rule must be an object, got ${describeValue(rule)}`;
  if (error !== undefined) throw new ChronosError('INVALID_SCHEDULE', error);
}

function findRuleError(rule: Readonly<Record<string, unknown>>): string | undefined {
  const { timezone, every, constraints = {}, overridable = [], between, except = [] } = rule;
  if (timezone === undefined || timezone === '')
    return "a rule must have a time zone like 'Europe/Berlin' or 'UTC', got none";
  if (!isTimezone(timezone))
    return `the time zone of a rule must be one that this Node.js knows, like 'Europe/Berlin' or 'UTC', got ${describeValue(timezone)}`;
  for (const field of ['startsAt', 'endsAt'])
    if (rule[field] !== undefined && !isDate(rule[field]))
      return `${field} of a rule must be a date, got ${describeValue(rule[field])}`;
  if (every !== undefined && !(typeof every === 'number' && every >= MIN_INTERVAL_MS && every < Infinity))
    return `an interval must be at least ${MIN_INTERVAL_MS} ms, got ${describeValue(every)}`;
  if (!isRecord(constraints))
    return `the constraints of a rule must be an object, got ${describeValue(constraints)}`;
  for (const [field, values] of Object.entries(constraints)) {
    const isField = (CRON_FIELDS as readonly string[]).includes(field);
    if (!isField || !Array.isArray(values) || !values.every((value) => typeof value === 'number'))
      return `the constraints of a rule must be lists of numbers by ${CRON_FIELDS.join(', ')}, got ${field}: ${describeValue(values)}`;
  }
  if (!Array.isArray(overridable))
    return `overridable of a rule must be a list, got ${describeValue(overridable)}`;
  if (between !== undefined && !isTwoTimes(between))
    return `between of a rule must be two times like '09:00' and '17:30', got ${describeValue(between)}`;
  if (!Array.isArray(except) || !except.every((day) => typeof day === 'string'))
    return `except of a rule must be a list of days like '2026-12-24' or '12-25', got ${describeValue(except)}`;
  return undefined;
}

function isDate(value: unknown): boolean {
  return value instanceof Date && isWithinYears(value);
}

function isTwoTimes(value: unknown): boolean {
  return (
    Array.isArray(value) && value.length === 2 && value.every((time) => secondsOfDay(time) !== undefined)
  );
}

function createSearch(rule: Rule, anchor: Date): SegmentSearch {
  const fields = compileRule(rule);
  if (rule.every !== undefined)
    return searchInterval(fields, rule.every, (rule.startsAt ?? anchor).getTime());
  return fields.isFixed ? searchFixed(fields) : searchRecurring(fields);
}
