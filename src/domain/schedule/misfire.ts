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

/**
 * The last `count` occurrences from `first` up to `end`, exclusive. Searches backwards in growing steps. A step that
 * contains many more (a rule may match every second of one month) is halved instead of being read: no step reads more
 * than twice the count.
 */
function lastBefore(occurrences: Occurrences, first: Date, end: Date, count: number): Date[] {
  if (count === 0 || end <= first) return [];
  const enough = 2 * count;
  let tooEarly: Date | undefined;
  let tooLate = end;
  let from = later(first, new Date(end.getTime() - 60_000));
  for (;;) {
    const found = take(occurrencesWithin(occurrences, from, before(end)), enough + 1);
    const isComplete = found.length <= enough;
    if (isComplete && (found.length >= count || from <= first)) return found.slice(-count);
    if (isComplete) tooLate = from;
    else tooEarly = from;
    from =
      tooEarly === undefined
        ? later(first, new Date(2 * from.getTime() - end.getTime()))
        : new Date(Math.floor((tooEarly.getTime() + tooLate.getTime()) / 2));
  }
}

function take(dates: Iterable<Date>, max: number): Date[] {
  const taken: Date[] = [];
  for (const date of dates) if (taken.push(date) >= max) break;
  return taken;
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
