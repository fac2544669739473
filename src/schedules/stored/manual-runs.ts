import { randomUUID } from 'node:crypto';
import type { ResolvedOptions } from '../../config/options.js';
import { occurrencesOf, occurrencesWithin } from '../../domain/calendar/occurrences.js';
import type { Clock } from '../../domain/clock.js';
import { ChronosError } from '../../domain/errors.js';
import { assertScheduleId } from '../../domain/identifiers.js';
import { type Instant, parseInstant } from '../../domain/instant.js';
import { pendingRun, runsOf } from '../../domain/schedule/pending.js';
import { planBackfill, planTrigger } from '../../domain/schedule/plan.js';
import { occurrenceId, type ScheduleDocument } from '../../domain/schedule/schedule.js';
import { retryOnConflict } from '../../runtime/retry.js';
import type { Store } from '../../store/store.js';
import type { PlanExecutor } from '../enqueue/plan-executor.js';
import type { ScheduleEnqueuer } from '../enqueue/schedule-enqueuer.js';
import { loadSnapshot, type PlannedSchedule, type SchedulePlanner } from '../enqueue/schedule-planner.js';
import { findValidSchedule } from './stored-schedule-check.js';

const MAX_BACKFILLED = 1000;
const MAX_PREVIEWED = 20_000;
/** Occurrences per piece of a preview. Far below MAX_BACKFILLED: if the rule changes, a piece may contain more of them. */
const PIECE_SIZE = 200;

/**
 * `jobId` is the new job, which may wait for the active run to end; otherwise the run in the way, which is running or
 * waiting to start.
 */
export type TriggerResult =
  | { triggered: true; jobId: string }
  | { triggered: false; reason: 'running'; jobId: string; runningFor: number }
  | { triggered: false; reason: 'waiting'; jobId: string }
  | { triggered: false; reason: 'notFound' };

/** What `backfill()` found in its period. */
export interface BackfillResult {
  occurrences: number;
  /** How many of them already had a job. */
  existing: number;
}

/** What a backfill would create. */
export interface BackfillPreview extends BackfillResult {
  /** Periods for `backfill()`, one call each: none has more occurrences than one call accepts. */
  pieces: { from: Date; to: Date }[];
}

export interface ManualRunsDeps {
  store: Pick<Store, 'findSchedule' | 'findRunStates'>;
  clock: Clock;
  options: Pick<ResolvedOptions, 'timezone'>;
  planner: SchedulePlanner;
  executor: PlanExecutor;
  enqueuer: Pick<ScheduleEnqueuer, 'checkSchedule'>;
}

/** Runs that a person or the application requests. They are planned and executed like scheduled runs. */
export class ManualRuns {
  readonly #deps: ManualRunsDeps;

  constructor(deps: ManualRunsDeps) {
    this.#deps = deps;
  }

  /** Adds one run now, even while the schedule is paused. Its overlap policy applies. */
  async trigger(id: string): Promise<TriggerResult> {
    assertScheduleId(id);
    const { store, clock, executor } = this.#deps;
    return retryOnConflict(`the schedule '${id}'`, async (): Promise<TriggerResult | undefined> => {
      const found = await findValidSchedule(store, id);
      if (found === null) return { triggered: false, reason: 'notFound' };
      const now = clock.now();
      const jobId = `${id}+${randomUUID()}`;
      if (found.singleInstance) {
        // Like a dispatched run: the worker that claims it lets it wait if another run is active.
        await executor.insertRun(found, { kind: 'run', id: jobId, at: now, since: now }, now);
        return { triggered: true, jobId };
      }
      const { schedule, active } = await loadSnapshot(store, found);
      const plan = planTrigger(schedule, jobId, active, now);
      if (plan === null) {
        // If no run is active, the first pending one is about to start.
        const blocking = active?.id ?? runsOf(schedule.pending)[0]?.id ?? '';
        if (active?.hasStarted !== true) return { triggered: false, reason: 'waiting', jobId: blocking };
        const runningFor = now.getTime() - active.since.getTime();
        return { triggered: false, reason: 'running', jobId: blocking, runningFor };
      }
      return (await this.#execute({ schedule, plan }, now)) ? { triggered: true, jobId } : undefined;
    });
  }

  /** Creates the missing jobs of past occurrences from one instant to another, both included. */
  async backfill(id: string, from: Instant, to: Instant): Promise<BackfillResult> {
    assertScheduleId(id);
    const { clock, store, options } = this.#deps;
    const first = parseInstant(from, options.timezone, 'backfill() from');
    const last = parseInstant(to, options.timezone, 'backfill() to');
    return retryOnConflict(`the schedule '${id}'`, async () => {
      const found = await findScheduleToBackfill(store, id);
      const now = clock.now();
      const times: Date[] = [];
      for (const at of pastOccurrences(found, first, last, now)) {
        if (times.push(at) > MAX_BACKFILLED) throw tooMany('backfill()', MAX_BACKFILLED, first, last);
      }
      const runs = times.map((at) => pendingRun(id, at, now));
      const existing = await store.findRunStates(runs.map((run) => run.id));
      const missing = runs.filter((run) => !existing.has(run.id));
      const result = { occurrences: runs.length, existing: existing.size };
      if (missing.length === 0) return result;
      const { schedule, active } = await loadSnapshot(store, found);
      const plan = planBackfill(schedule, missing, active);
      return (await this.#execute({ schedule, plan }, now)) ? result : undefined;
    });
  }

  /** What `backfill()` would do. */
  async previewBackfill(id: string, from: Instant, to: Instant): Promise<BackfillPreview> {
    assertScheduleId(id);
    const { clock, store, options } = this.#deps;
    const first = parseInstant(from, options.timezone, 'previewBackfill() from');
    const last = parseInstant(to, options.timezone, 'previewBackfill() to');
    const schedule = await findScheduleToBackfill(store, id);
    const preview: BackfillPreview = { occurrences: 0, existing: 0, pieces: [] };
    for (const times of inPieces(pastOccurrences(schedule, first, last, clock.now()))) {
      const runs = await store.findRunStates(times.map((at) => occurrenceId(id, at)));
      preview.occurrences += times.length;
      preview.existing += runs.size;
      preview.pieces.push({ from: times[0] ?? first, to: times.at(-1) ?? last });
      if (preview.occurrences > MAX_PREVIEWED) throw tooMany('a backfill', MAX_PREVIEWED, first, last);
    }
    return preview;
  }

  /** False if another process changed the schedule first. */
  async #execute(planned: PlannedSchedule, now: Date): Promise<boolean> {
    const { planner, executor, enqueuer } = this.#deps;
    const { stored } = await planner.store([planned]);
    if (stored.length === 0) return false;
    await executor.execute(stored, now);
    enqueuer.checkSchedule(planned.schedule._id);
    return true;
  }
}

async function findScheduleToBackfill(
  store: Pick<Store, 'findSchedule'>,
  id: string,
): Promise<ScheduleDocument> {
  const schedule = await findValidSchedule(store, id);
  if (schedule !== null) return schedule;
  throw new ChronosError('SCHEDULE_NOT_FOUND', `there is no schedule '${id}' to backfill`);
}

function pastOccurrences(
  { rule, anchor }: ScheduleDocument,
  first: Date,
  last: Date,
  now: Date,
): Iterable<Date> {
  return rule === null ? [] : occurrencesWithin(occurrencesOf(rule, anchor), first, last < now ? last : now);
}

function* inPieces(times: Iterable<Date>): Generator<Date[]> {
  let piece: Date[] = [];
  for (const at of times) {
    if (piece.push(at) < PIECE_SIZE) continue;
    yield piece;
    piece = [];
  }
  if (piece.length > 0) yield piece;
}

function tooMany(what: string, max: number, first: Date, last: Date): ChronosError {
  return new ChronosError(
    'INVALID_ARGUMENT',
    `${what} creates at most ${max} jobs, but there are more occurrences from ${first.toISOString()} to ${last.toISOString()}: choose a shorter period`,
  );
}
