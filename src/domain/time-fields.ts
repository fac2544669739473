const SECOND = 1000;
const DAY = 86_400_000;

/** What clock and calendar have to show for a rule to match. Values are sorted. */
export interface TimeFields {
  readonly seconds: readonly number[];
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  /** 1–12. */
  readonly months: readonly number[];
  /** Asked for days of these months only. The date is a wall date, read with its UTC methods. */
  readonly isDay: (date: Date) => boolean;
  /** Stretches of the day, first and last second, within which it has to be; in order. */
  readonly windows: readonly TimeWindow[];
}

/** The first and the last second of the day that count. */
export type TimeWindow = readonly [first: number, last: number];

export const WHOLE_DAY: TimeWindow = [0, DAY / SECOND - 1];

/**
 * The first wall time from `from` on, up to `limit`, that matches. Wall times are what clocks and calendars show,
 * as if it were UTC, in milliseconds; matches are whole seconds.
 */
export function nextWall(fields: TimeFields, from: number, limit: number): number | undefined {
  let day = Math.floor(from / DAY) * DAY;
  let second = Math.ceil((from - day) / SECOND);
  while (day <= limit) {
    const date = new Date(day);
    if (!fields.months.includes(date.getUTCMonth() + 1)) {
      day = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
      second = 0;
      continue;
    }
    const found = fields.isDay(date) ? nextSecondOfDay(fields, second) : undefined;
    if (found !== undefined) return day + found * SECOND <= limit ? day + found * SECOND : undefined;
    day += DAY;
    second = 0;
  }
  return undefined;
}

/** Whether any of the times of the day that lie `apart` milliseconds from one another, that of `wall` among them, matches. */
export function isEverTime(fields: TimeFields, wall: number, apart: number): boolean {
  if (apart <= SECOND) return true;
  for (let time = ((wall % apart) + apart) % apart; time < DAY; time += apart) {
    const second = Math.floor(time / SECOND);
    if (nextSecondOfDay(fields, second) === second) return true;
  }
  return false;
}

function nextSecondOfDay(fields: TimeFields, from: number): number | undefined {
  for (const [first, last] of fields.windows) {
    const found = firstTime(fields, Math.max(from, first));
    if (found !== undefined && found <= last) return found;
  }
  return undefined;
}

function firstTime({ hours, minutes, seconds }: TimeFields, from: number): number | undefined {
  for (const hour of hours) {
    if (hour * 3600 + 3599 < from) continue;
    for (const minute of minutes) {
      const start = hour * 3600 + minute * 60;
      if (start + 59 < from) continue;
      for (const second of seconds) if (start + second >= from) return start + second;
    }
  }
  return undefined;
}
