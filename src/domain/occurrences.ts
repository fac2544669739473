import { ChronosError } from './errors.js';
import type { Rule } from './rule.js';
import { fieldsOf } from './rule-fields.js';
import { fixedTimes, openTimes, steps, type SegmentSearch } from './segment-search.js';
import { zoneSegments } from './time-zone.js';

/** The occurrences of a rule. */
export interface Occurrences {
  /** The first one after the instant, or null when there is none within five years. */
  next(after: Date): Date | null;
}

const FIVE_YEARS = 5 * 366 * 86_400_000;
const MOST_PREVIEWED = 10_000;

/** Reads the rule once, for any number of questions. `anchor` is where `every` counts from. Throws INVALID_SCHEDULE. */
export function occurrencesOf(rule: Rule, anchor: Date): Occurrences {
  assertReadable(rule);
  const find = searchOf(rule, anchor);
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

/** Those from `first` to `last`, both included, looked up one by one as they are asked for. */
export function* occurrencesWithin(
  occurrences: Occurrences,
  first: Date,
  last: Date,
): Generator<Date, undefined> {
  const before = new Date(first.getTime() - 1);
  for (let at = occurrences.next(before); at !== null && at <= last; at = occurrences.next(at)) yield at;
}

/** Rules come from the database as well, where anybody may have written them. */
function assertReadable(rule: Rule): void {
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
}

function searchOf(rule: Rule, anchor: Date): SegmentSearch {
  const fields = fieldsOf(rule);
  if (rule.every !== undefined) return steps(fields, rule.every, (rule.startsAt ?? anchor).getTime());
  return fields.isFixed ? fixedTimes(fields) : openTimes(fields);
}
