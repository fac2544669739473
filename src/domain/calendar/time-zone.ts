import { DAY_MS } from '../duration.js';
import { memoize } from '../language.js';

const SECOND_MS = 1000;
const WEEK_MS = 7 * DAY_MS;

/** A period during which the UTC offset of a zone does not change. All values in milliseconds. */
export interface ZoneSegment {
  readonly start: number;
  readonly end: number;
  /** How far local time is ahead of UTC. */
  readonly offset: number;
  /** The offset just before `start`. */
  readonly previousOffset: number;
}

/** No name of a zone is longer, and Intl copies the whole text into its error. */
const MAX_NAME_LENGTH = 100;
/** There are about 600 zones, but each has many spellings: Intl ignores case. */
const MAX_ZONES = 1000;
/** Years per zone. A schedule needs a few; a preview may start in any year. */
const MAX_YEARS = 200;

export function isTimezone(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_NAME_LENGTH && isKnown(value);
}

const isKnown = memoize((timeZone: string): boolean => {
  try {
    new Intl.DateTimeFormat('en', { timeZone });
    return true;
  } catch {
    return false;
  }
}, MAX_ZONES);

export const FIRST_YEAR = 1000;
export const LAST_YEAR = 9999;

/** Dates outside of these years are mistakes, and the calendar cannot compute with all of them. */
export function isWithinYears(date: Date): boolean {
  const year = date.getUTCFullYear();
  return year >= FIRST_YEAR && year <= LAST_YEAR;
}

/** How far local time is ahead of UTC at the instant. */
export function zoneOffset(instant: number, timezone: string): number {
  const segments = segmentsByYear(timezone)(new Date(instant).getUTCFullYear());
  return segments.find(({ end }) => instant < end)?.offset ?? 0;
}

/** The segments of the zone, endless, starting with the one that contains the instant. A new year starts a new segment. */
export function* zoneSegments(instant: number, timezone: string): Generator<ZoneSegment, never> {
  for (let year = new Date(instant).getUTCFullYear(); ; year++) {
    for (const segment of segmentsByYear(timezone)(year)) if (instant < segment.end) yield segment;
  }
}

/** Cached: Intl is slow, and the offsets of a year do not change. */
const segmentsByYear = memoize(
  (timezone: string) =>
    memoize((year: number) => findSegments(Date.UTC(year, 0), Date.UTC(year + 1, 0), timezone), MAX_YEARS),
  MAX_ZONES,
);

/** Would miss two changes within a week that cancel each other out; no zone has that. */
function findSegments(from: number, to: number, timezone: string): ZoneSegment[] {
  const segments: ZoneSegment[] = [];
  let start = from;
  let previousOffset = computeOffset(from - SECOND_MS, timezone);
  let offset = computeOffset(from, timezone);
  for (let probe = from; probe < to;) {
    const next = Math.min(probe + WEEK_MS, to);
    const last = next - SECOND_MS;
    if (computeOffset(last, timezone) !== offset) {
      // The change may be at `probe` itself: the last second known to have the offset is the one before.
      const end = findChange(probe - SECOND_MS, last, offset, timezone);
      segments.push({ start, end, offset, previousOffset });
      previousOffset = offset;
      offset = computeOffset(end, timezone);
      start = end;
      probe = end;
    } else probe = next;
  }
  segments.push({ start, end: to, offset, previousOffset });
  return segments;
}

/** Binary search for the first second after `before` with another offset. */
function findChange(before: number, after: number, offset: number, timezone: string): number {
  let low = before / SECOND_MS;
  let high = after / SECOND_MS;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (computeOffset(middle * SECOND_MS, timezone) === offset) low = middle;
    else high = middle;
  }
  return high * SECOND_MS;
}

function computeOffset(instant: number, timezone: string): number {
  const parts = formatIn(timezone).formatToParts(instant);
  const get = (type: string): number => Number(parts.find((part) => part.type === type)?.value);
  const wall = Date.UTC(get('year'), get('month') - 1, get('day'), get('hour'), get('minute'), get('second'));
  return wall - Math.floor(instant / SECOND_MS) * SECOND_MS;
}

const DATE = { year: 'numeric', month: 'numeric', day: 'numeric' } as const;
const TIME = { hour: 'numeric', minute: 'numeric', second: 'numeric', hourCycle: 'h23' } as const;
const formatIn = memoize(
  (timeZone: string) => new Intl.DateTimeFormat('en-US', { timeZone, ...DATE, ...TIME }),
  MAX_ZONES,
);
