import { FIRST_YEAR, isWithinYears, LAST_YEAR, zoneOffset } from './calendar/time-zone.js';
import { DAY_MS } from './duration.js';
import { ChronosError, describeValue } from './errors.js';
import { isDateObject } from './language.js';

/** A date, or text: ISO 8601 with its zone, or `'2026-11-01 03:15'` in the application's time zone. */
export type Instant = Date | string;

const LOCAL = /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,3}))?)?)?$/;
const ZONED = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})$/;

export function parseInstant(value: unknown, timezone: string, name: string): Date {
  const isDate = isDateObject(value);
  const date = isDate
    ? new Date(Date.prototype.getTime.call(value))
    : typeof value === 'string'
      ? readInstant(value, timezone)
      : undefined;
  if (date !== undefined && isWithinYears(date)) return date;
  const isOutside = date !== undefined && !Number.isNaN(date.getTime());
  const received =
    isDate && !isOutside ? 'an invalid date' : isOutside ? describeDate(date) : describeValue(value);
  const range = isOutside ? ` in the years ${FIRST_YEAR} to ${LAST_YEAR}` : '';
  throw new ChronosError(
    'INVALID_ARGUMENT',
    `${name} must be a Date or a text like '2026-11-01 03:15' or '2026-11-01T03:15:00Z'${range}, got ${received}`,
  );
}

function describeDate(date: Date): string {
  return `'${date.toISOString()}'`;
}

/** Undefined if the text is not an instant. */
export function readInstant(text: string, timezone: string): Date | undefined {
  if (ZONED.test(text)) return parseWallTime(text.slice(0, 10)) === undefined ? undefined : new Date(text);
  const wall = parseWallTime(text);
  return wall === undefined ? undefined : new Date(wallToInstant(wall, timezone));
}

/** The wall time in the text, as if it were UTC. */
function parseWallTime(text: string): number | undefined {
  const match = LOCAL.exec(text);
  if (match === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map((part) => Number(part ?? 0));
  const millisecond = Number((match[7] ?? '0').padEnd(3, '0'));
  const wall = new Date(Date.UTC(year, month - 1, day, hour, minute, second, millisecond));
  // Date.UTC turns the 31st of February into March and the year 99 into 1999: reject both.
  const exists =
    wall.getUTCFullYear() === year && wall.getUTCMonth() === month - 1 && wall.getUTCDate() === day;
  return exists && hour <= 23 && minute <= 59 && second <= 59 ? wall.getTime() : undefined;
}

/** The instant of a wall time in the zone. A time that does not exist when clocks go forward moves past the change. */
function wallToInstant(wall: number, timezone: string): number {
  const before = wall - zoneOffset(wall - DAY_MS, timezone);
  const after = wall - zoneOffset(wall + DAY_MS, timezone);
  const shows = (candidate: number): boolean => candidate + zoneOffset(candidate, timezone) === wall;
  return [before, after].find(shows) ?? before;
}
