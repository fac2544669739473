import { parseInstant, type Instant } from '../domain/instant.js';
import { nextRuns, occurrencesOf } from '../domain/occurrences.js';
import { waitingBehind } from '../domain/owed.js';
import type { ScheduleDocument } from '../domain/schedule.js';

/** A schedule as it is shown. */
export type StoredSchedule = Omit<ScheduleDocument, '_id' | 'hash' | 'decision' | 'owed'> & {
  readonly id: string;
  /** Runs that are decided and wait for the one before them. */
  readonly waiting: number;
  /** The next `count` occurrences after an instant, now unless said; whether it is active or not. */
  nextRuns(count: number, from?: Instant): Date[];
};

export function scheduleView(schedule: ScheduleDocument, timezone: string, now: Date): StoredSchedule {
  const { _id, hash: _hash, decision: _decision, owed, ...fields } = schedule;
  return {
    id: _id,
    ...fields,
    waiting: waitingBehind(fields.active, owed).length,
    nextRuns(count, from) {
      const start = from === undefined ? now : parseInstant(from, timezone, 'nextRuns() from');
      const { rule, anchor, maxRuns, runs } = fields;
      const left = Math.max(0, (maxRuns ?? Infinity) - runs);
      return rule === null ? [] : nextRuns(occurrencesOf(rule, anchor), count, start, left);
    },
  };
}
