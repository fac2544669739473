import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import { parseInstant, type Instant } from '../domain/instant.js';
import { checkScheduleId } from '../domain/names.js';
import { occurrencesOf } from '../domain/occurrences.js';
import { occurrenceId, type ScheduleDocument } from '../domain/schedule.js';
import { unreadable } from '../schedules/readable.js';
import type { Store } from '../store/store.js';

/** Occurrences in one piece: `backfill()` takes up to five times as many, should the schedule change meanwhile. */
const PIECE = 200;
const MOST = 20_000;

export interface BackfillPreview {
  occurrences: number;
  /** Of these: those that have a job already. */
  existing: number;
  /** What to call `backfill()` with, one after the other: none of them has more occurrences than it takes at once. */
  pieces: { from: Date; to: Date }[];
}

export interface PreviewParts {
  store: Pick<Store, 'findRuns' | 'findSchedule'>;
  clock: Clock;
  timezone: string;
}

/** What a backfill from one instant to another, both included, would come to. */
export async function previewBackfill(
  { store, clock, timezone }: PreviewParts,
  id: string,
  from: Instant,
  to: Instant,
): Promise<BackfillPreview> {
  checkScheduleId(id);
  const first = parseInstant(from, timezone, 'previewBackfill() from');
  const last = parseInstant(to, timezone, 'previewBackfill() to');
  const schedule = await store.findSchedule(id);
  if (schedule === null)
    throw new ChronosError('SCHEDULE_NOT_FOUND', `there is no schedule '${id}' to backfill`);
  const fault = unreadable(schedule);
  if (fault !== undefined)
    throw new ChronosError('INVALID_SCHEDULE', `the stored schedule '${id}' cannot be read: ${fault}`);
  const now = clock.now();
  const preview: BackfillPreview = { occurrences: 0, existing: 0, pieces: [] };
  for (const times of piecesOf(schedule, first, last < now ? last : now)) {
    const runs = await store.findRuns(times.map((at) => occurrenceId(id, at)));
    preview.occurrences += times.length;
    preview.existing += runs.size;
    preview.pieces.push({ from: times[0] ?? first, to: times.at(-1) ?? last });
    if (preview.occurrences > MOST) throw tooMany(first, last);
  }
  return preview;
}

function* piecesOf(schedule: ScheduleDocument, first: Date, last: Date): Generator<Date[]> {
  if (schedule.rule === null) return;
  const occurrences = occurrencesOf(schedule.rule, schedule.anchor);
  let piece: Date[] = [];
  let at = occurrences.next(new Date(first.getTime() - 1));
  for (; at !== null && at <= last; at = occurrences.next(at)) {
    if (piece.push(at) < PIECE) continue;
    yield piece;
    piece = [];
  }
  if (piece.length > 0) yield piece;
}

function tooMany(first: Date, last: Date): ChronosError {
  return new ChronosError(
    'INVALID_ARGUMENT',
    `a backfill makes at most ${MOST} jobs, and there are more occurrences from ${first.toISOString()} to ${last.toISOString()}: take a shorter time`,
  );
}
