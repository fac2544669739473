import { DAY_MS } from '../duration.js';
import { ChronosError } from '../errors.js';
import { integer, parse } from '../validation.js';
import { searchFixed, searchRecurring, type SegmentSearch, searchInterval } from './occurrence-search.js';
import { compileRule, type Rule } from './rule.js';
import { zoneSegments } from './time-zone.js';

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

/** Rules also come from the database, where other programs may have written them. */
function assertWellFormed(rule: Rule): void {
  if (typeof rule.timezone !== 'string' || rule.timezone === '') {
    throw new ChronosError('INVALID_SCHEDULE', 'a rule needs a time zone');
  }
  for (const date of [rule.startsAt, rule.endsAt]) {
    if (date !== undefined && !(date instanceof Date && !Number.isNaN(date.getTime()))) {
      throw new ChronosError('INVALID_SCHEDULE', 'startsAt and endsAt of a rule must be dates');
    }
  }
  if (rule.every !== undefined && !(rule.every >= 1)) {
    throw new ChronosError('INVALID_SCHEDULE', `an interval must be at least 1 ms, got ${rule.every}`);
  }
}

function createSearch(rule: Rule, anchor: Date): SegmentSearch {
  const fields = compileRule(rule);
  if (rule.every !== undefined)
    return searchInterval(fields, rule.every, (rule.startsAt ?? anchor).getTime());
  return fields.isFixed ? searchFixed(fields) : searchRecurring(fields);
}
