import { occurrencesWithin, type Occurrences } from './occurrences.js';
import { owedRun, owedSkip } from './owed.js';
import { occurrenceId, type OwedRun, type OwedSkip, type ScheduleDocument } from './schedule.js';

/** Up to this late, in milliseconds, an occurrence is on time. */
const ON_TIME = 60_000;
/** Skipped occurrences are counted up to here. */
const MOST_COUNTED = 1000;

/** The occurrences up to now that have to run, and what the misfire policy leaves out. */
export function dueOf(
  { _id, nextRunAt, misfire }: Pick<ScheduleDocument, '_id' | 'nextRunAt' | 'misfire'>,
  occurrences: Occurrences,
  now: Date,
): { runs: OwedRun[]; skips: OwedSkip[] } {
  if (nextRunAt === null || nextRunAt > now) return { runs: [], skips: [] };
  const onTimeFrom = new Date(now.getTime() - ON_TIME);
  const onTime = [...occurrencesWithin(occurrences, later(nextRunAt, onTimeFrom), now)];
  const oldest = later(nextRunAt, new Date(now.getTime() - misfire.within));
  const most = misfire.policy === 'skip' ? 0 : misfire.policy === 'once' ? 1 : misfire.cap;
  const madeUp = lastBefore(occurrences, oldest, onTimeFrom, most);
  const kept = [...madeUp, ...onTime];
  const until = kept[0] ?? onTimeFrom;
  const runs = kept.map((at) => owedRun(_id, at, now));
  if (until <= nextRunAt) return { runs, skips: [] };
  const count = countBefore(occurrences, nextRunAt, until);
  const missed = { at: nextRunAt, until, count, reason: 'misfire' } as const;
  return { runs, skips: [owedSkip(occurrenceId(_id, nextRunAt), missed, null, now)] };
}

/** The last `count` occurrences from `first` up to `end`, exclusive: looked for backwards in growing steps. */
function lastBefore(occurrences: Occurrences, first: Date, end: Date, count: number): Date[] {
  if (count === 0 || end <= first) return [];
  for (let span = 60_000; ; span *= 2) {
    const from = later(first, new Date(end.getTime() - span));
    const found = [...occurrencesWithin(occurrences, from, before(end))];
    if (found.length >= count || from <= first) return found.slice(-count);
  }
}

/** How many there are from `first` up to `end`, exclusive; null when they are too many to count. */
function countBefore(occurrences: Occurrences, first: Date, end: Date): number | null {
  const found = occurrencesWithin(occurrences, first, before(end));
  for (let count = 0; count <= MOST_COUNTED; count++) if (found.next().done === true) return count;
  return null;
}

function before(instant: Date): Date {
  return new Date(instant.getTime() - 1);
}

function later(a: Date, b: Date): Date {
  return a > b ? a : b;
}
