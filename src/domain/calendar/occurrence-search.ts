import { DAY_MS } from '../duration.js';
import { memoize } from '../language.js';
import type { ZoneSegment } from './time-zone.js';

// A wall time is what a clock in the zone shows, in milliseconds as if the zone were UTC. Matches are whole seconds.

const SECOND_MS = 1000;

/** Sorted; months are 1–12. */
export type TimeValues = Readonly<Record<'second' | 'minute' | 'hour' | 'month', readonly number[]>>;

/** The wall times that match a rule. */
export interface TimeFields {
  readonly values: TimeValues;
  /** Called only for days of matching months, with the wall date as if it were UTC. */
  readonly isDay: (date: Date) => boolean;
  /** The parts of the day in which a time may match, in order. */
  readonly windows: readonly TimeWindow[];
}

/** Its first and last second of the day, both included. */
export type TimeWindow = readonly [first: number, last: number];

export const WHOLE_DAY: TimeWindow = [0, DAY_MS / SECOND_MS - 1];

/** Finds the first match after one instant and up to another within a segment. All values in milliseconds. */
export type SegmentSearch = (segment: ZoneSegment, after: number, last: number) => number | undefined;

/**
 * Fixed times of day occur once a day, also when clocks change. A segment starts at instant T with offset o after the
 * previous offset p. The wall time line is cut at T + p, where the clocks of the previous segment end, and each fixed
 * time belongs to one segment. A time that is skipped when clocks go forward lies before T + o, the first wall time of
 * the segment, and occurs at T. A time that is shown twice lies before T + p and occurs in the previous segment only.
 */
export function searchFixed(fields: TimeFields): SegmentSearch {
  return ({ start, offset, previousOffset }, after, last) => {
    const firstOwned = start + previousOffset;
    const first = after < start ? firstOwned : Math.max(firstOwned, after + 1 + offset);
    const wall = nextWall(fields, first, last + offset);
    return wall === undefined ? undefined : Math.max(start, wall - offset);
  };
}

/** Frequencies, such as every 5 minutes, occur whenever clocks show a match: twice when clocks go back. */
export function searchRecurring(fields: TimeFields): SegmentSearch {
  return ({ start, offset }, after, last) => {
    const wall = nextWall(fields, Math.max(start, after + 1) + offset, last + offset);
    return wall === undefined ? undefined : wall - offset;
  };
}

/**
 * Intervals are real time from the anchor on; those at matching wall times occur. Within a segment the steps fall on
 * times of day that are a multiple of gcd(interval, day) apart. If none of these matches, the segment is not searched.
 */
export function searchInterval(fields: TimeFields, every: number, anchor: number): SegmentSearch {
  const stepFrom = (instant: number): number =>
    anchor + Math.max(0, Math.ceil((instant - anchor) / every)) * every;
  const apart = greatestCommonDivisor(every, DAY_MS);
  const isPossible = memoize((offset: number) => canEverMatch(fields, anchor + offset, apart));
  return ({ start, offset }, after, last) => {
    if (!isPossible(offset)) return undefined;
    for (let instant = stepFrom(Math.max(start, after + 1)); instant <= last;) {
      const shown = Math.floor((instant + offset) / SECOND_MS) * SECOND_MS;
      const wall = nextWall(fields, shown, last + offset);
      if (wall === undefined) return undefined;
      if (wall === shown) return instant;
      instant = stepFrom(wall - offset);
    }
    return undefined;
  };
}

/** The first matching wall time from `from` to `limit`. */
function nextWall(fields: TimeFields, from: number, limit: number): number | undefined {
  let day = Math.floor(from / DAY_MS) * DAY_MS;
  let second = Math.ceil((from - day) / SECOND_MS);
  while (day <= limit) {
    const date = new Date(day);
    if (!fields.values.month.includes(date.getUTCMonth() + 1)) {
      day = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
      second = 0;
      continue;
    }
    const found = fields.isDay(date) ? nextSecondOfDay(fields, second) : undefined;
    if (found !== undefined) return day + found * SECOND_MS <= limit ? day + found * SECOND_MS : undefined;
    day += DAY_MS;
    second = 0;
  }
  return undefined;
}

/** Whether one of the times of day that are a multiple of `apart` from that of `wall` matches. */
function canEverMatch(fields: TimeFields, wall: number, apart: number): boolean {
  if (apart <= SECOND_MS) return true;
  for (let time = ((wall % apart) + apart) % apart; time < DAY_MS; time += apart) {
    const second = Math.floor(time / SECOND_MS);
    if (nextSecondOfDay(fields, second) === second) return true;
  }
  return false;
}

function nextSecondOfDay(fields: TimeFields, from: number): number | undefined {
  for (const [first, last] of fields.windows) {
    const found = nextSecondInAnyWindow(fields.values, Math.max(from, first));
    if (found !== undefined && found <= last) return found;
  }
  return undefined;
}

function nextSecondInAnyWindow(values: TimeValues, from: number): number | undefined {
  for (const hour of values.hour) {
    if (hour * 3600 + 3599 < from) continue;
    for (const minute of values.minute) {
      const start = hour * 3600 + minute * 60;
      if (start + 59 < from) continue;
      for (const second of values.second) if (start + second >= from) return start + second;
    }
  }
  return undefined;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
