import { type Occurrences, occurrencesWithin } from '../calendar/occurrences.js';
import { pendingRun, pendingSkip } from './pending.js';
import { occurrenceId, type PendingRun, type PendingSkip, type ScheduleDocument } from './schedule.js';

/** An occurrence that is at most this late is not a misfire. */
const ON_TIME_MS = 60_000;
/** Skipped occurrences are counted up to this number. */
const MAX_COUNTED = 1000;

/** The occurrences up to now that still run, and those that the misfire policy skips. */
export function selectDueRuns(
  { _id, isActive, nextRunAt, misfire }: Pick<ScheduleDocument, '_id' | 'isActive' | 'nextRunAt' | 'misfire'>,
  occurrences: Occurrences,
  now: Date,
): { runs: PendingRun[]; skips: PendingSkip[] } {
  if (!isActive || nextRunAt === null || nextRunAt > now) return { runs: [], skips: [] };
  const onTimeFrom = new Date(now.getTime() - ON_TIME_MS);
  const onTime = [...occurrencesWithin(occurrences, later(nextRunAt, onTimeFrom), now)];
  const oldest = later(nextRunAt, new Date(now.getTime() - misfire.within));
  const maxLateRuns = misfire.policy === 'skip' ? 0 : misfire.policy === 'once' ? 1 : misfire.cap;
  const late = lastBefore(occurrences, oldest, onTimeFrom, maxLateRuns);
  const due = [...late, ...onTime];
  const until = due[0] ?? onTimeFrom;
  const runs = due.map((at) => pendingRun(_id, at, now));
  if (until <= nextRunAt) return { runs, skips: [] };
  const count = countBefore(occurrences, nextRunAt, until);
  const skipped = { at: nextRunAt, until, count, reason: 'misfire' } as const;
  return { runs, skips: [pendingSkip(occurrenceId(_id, nextRunAt), skipped, null, now)] };
}

/** The last `count` occurrences from `first` up to `end`, exclusive. Searches backwards in growing steps. */
function lastBefore(occurrences: Occurrences, first: Date, end: Date, count: number): Date[] {
  if (count === 0 || end <= first) return [];
  for (let span = 60_000; ; span *= 2) {
    const from = later(first, new Date(end.getTime() - span));
    const found = [...occurrencesWithin(occurrences, from, before(end))];
    if (found.length >= count || from <= first) return found.slice(-count);
  }
}

/** How many occurrences there are from `first` up to `end`, exclusive; null if more than MAX_COUNTED. */
function countBefore(occurrences: Occurrences, first: Date, end: Date): number | null {
  const found = occurrencesWithin(occurrences, first, before(end));
  for (let count = 0; count <= MAX_COUNTED; count++) if (found.next().done === true) return count;
  return null;
}

function before(instant: Date): Date {
  return new Date(instant.getTime() - 1);
}

function later(a: Date, b: Date): Date {
  return a > b ? a : b;
}
