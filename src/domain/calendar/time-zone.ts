const SECOND_MS = 1000;
const WEEK_MS = 7 * 86_400_000;

/** A period during which the UTC offset of a zone does not change. All values in milliseconds. */
export interface ZoneSegment {
  readonly start: number;
  readonly end: number;
  /** How far local time is ahead of UTC. */
  readonly offset: number;
  /** The offset just before `start`. */
  readonly previousOffset: number;
}

const formats = new Map<string, Intl.DateTimeFormat>();
const years = new Map<string, Map<number, readonly ZoneSegment[]>>();

export function isTimezone(value: unknown): value is string {
  if (typeof value !== 'string' || value === '') return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: value });
    return true;
  } catch {
    return false;
  }
}

/** How far local time is ahead of UTC at the instant. */
export function zoneOffset(instant: number, timezone: string): number {
  const year = segmentsOfYear(new Date(instant).getUTCFullYear(), timezone);
  return year.find(({ end }) => instant < end)?.offset ?? 0;
}

/** The segments of the zone, endless, starting with the one that contains the instant. A new year starts a new segment. */
export function* zoneSegments(instant: number, timezone: string): Generator<ZoneSegment, never> {
  for (let year = new Date(instant).getUTCFullYear(); ; year++) {
    for (const segment of segmentsOfYear(year, timezone)) if (instant < segment.end) yield segment;
  }
}

/** Cached: Intl is slow, and the offsets of a year do not change. */
function segmentsOfYear(year: number, timezone: string): readonly ZoneSegment[] {
  const known = years.get(timezone) ?? new Map<number, readonly ZoneSegment[]>();
  years.set(timezone, known);
  const segments = known.get(year) ?? findSegments(Date.UTC(year, 0), Date.UTC(year + 1, 0), timezone);
  known.set(year, segments);
  return segments;
}

/** Would miss two changes within a week that cancel out; no zone has that. */
function findSegments(from: number, to: number, timezone: string): ZoneSegment[] {
  const segments: ZoneSegment[] = [];
  let start = from;
  let previousOffset = askOffset(from - SECOND_MS, timezone);
  let offset = askOffset(from, timezone);
  for (let probe = from; probe < to;) {
    const next = Math.min(probe + WEEK_MS, to);
    const last = next - SECOND_MS;
    if (askOffset(last, timezone) !== offset) {
      // The change may be at `probe` itself: the last second known to have the offset is the one before.
      const end = findChange(probe - SECOND_MS, last, offset, timezone);
      segments.push({ start, end, offset, previousOffset });
      previousOffset = offset;
      offset = askOffset(end, timezone);
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
    if (askOffset(middle * SECOND_MS, timezone) === offset) low = middle;
    else high = middle;
  }
  return high * SECOND_MS;
}

function askOffset(instant: number, timezone: string): number {
  const parts = formatOf(timezone).formatToParts(instant);
  const part = (type: string): number => Number(parts.find((entry) => entry.type === type)?.value);
  const wall = Date.UTC(
    part('year'),
    part('month') - 1,
    part('day'),
    part('hour'),
    part('minute'),
    part('second'),
  );
  return wall - Math.floor(instant / SECOND_MS) * SECOND_MS;
}

function formatOf(timezone: string): Intl.DateTimeFormat {
  const known = formats.get(timezone);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  formats.set(timezone, format);
  return format;
}
