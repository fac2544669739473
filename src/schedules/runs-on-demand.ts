import { randomUUID } from 'node:crypto';
import type { ScheduleContext } from '../config/rule-readers.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import { parseInstant, type Instant } from '../domain/instant.js';
import { occurrencesOf, occurrencesWithin } from '../domain/occurrences.js';
import { owedRun, runsOf } from '../domain/owed.js';
import { planBackfill, planTrigger } from '../domain/plan.js';
import type { OwedRun, ScheduleDocument } from '../domain/schedule.js';
import type { Store } from '../store/store.js';
import { untilFirst } from './contention.js';
import type { Decided, Decisions } from './decisions.js';
import type { Fulfilment } from './fulfilment.js';
import { findReadable } from './readable.js';
import { see, type Seen } from './seen-schedule.js';

const MOST_BACKFILLED = 1000;

/** `jobId` runs now, or waits in line where runs must not overlap. */
export type TriggerAnswer =
  | { triggered: true; jobId: string }
  | { triggered: false; reason: 'running'; jobId: string; runningFor: number }
  | { triggered: false; reason: 'notFound' };

/** How many occurrences there were, and how many of them had a job already. */
export interface BackfillAnswer {
  occurrences: number;
  existing: number;
}

export interface RunsOnDemandParts {
  store: Pick<Store, 'findSchedule' | 'findRuns'>;
  clock: Clock;
  context: Pick<ScheduleContext, 'timezone'>;
  decisions: Decisions;
  fulfilment: Fulfilment;
  /** A run was put in line: it goes as soon as the one before it ends here. */
  look: (scheduleId: string) => void;
}

/** Runs of a schedule that a person asks for, decided and carried out like those of its calendar. */
export class RunsOnDemand {
  readonly #parts: RunsOnDemandParts;

  constructor(parts: RunsOnDemandParts) {
    this.#parts = parts;
  }

  /** Runs it once now, besides its occurrences, by the rules of its overlap policy. Also while it is paused. */
  async trigger(id: string): Promise<TriggerAnswer> {
    return untilFirst(id, async (): Promise<TriggerAnswer | undefined> => {
      const seen = await this.#see(id);
      if (seen === null) return { triggered: false, reason: 'notFound' };
      const { schedule, active } = seen;
      const now = this.#parts.clock.now();
      const jobId = `${id}!${randomUUID()}`;
      const plan = planTrigger(schedule, jobId, active, now);
      if (plan === null) {
        // Nothing runs, but a run is in line.
        const inTheWay = active ?? runsOf(schedule.owed)[0];
        const runningFor = now.getTime() - (inTheWay?.since ?? now).getTime();
        return { triggered: false, reason: 'running', jobId: inTheWay?.id ?? '', runningFor };
      }
      return (await this.#take({ schedule, plan }, now)) ? { triggered: true, jobId } : undefined;
    });
  }

  /** Makes the jobs of past occurrences that have none, from one instant to another, both included. */
  async backfill(id: string, from: Instant, to: Instant): Promise<BackfillAnswer> {
    const { clock, store, context } = this.#parts;
    const first = parseInstant(from, context.timezone, 'backfill() from');
    const last = parseInstant(to, context.timezone, 'backfill() to');
    return untilFirst(id, async () => {
      const seen = await this.#see(id);
      if (seen === null) {
        throw new ChronosError('SCHEDULE_NOT_FOUND', `there is no schedule '${id}' to backfill`);
      }
      const { schedule, active } = seen;
      const now = clock.now();
      const runs = runsBetween(schedule, first, last < now ? last : now, now);
      const existing = await store.findRuns(runs.map(({ id: jobId }) => jobId));
      const missing = runs.filter((run) => !existing.has(run.id));
      const answer = { occurrences: runs.length, existing: existing.size };
      if (missing.length === 0) return answer;
      const plan = planBackfill(schedule, missing, active);
      return (await this.#take({ schedule, plan }, now)) ? answer : undefined;
    });
  }

  async #see(id: string): Promise<Seen | null> {
    const { store } = this.#parts;
    const schedule = await findReadable(store, id);
    return schedule === null ? null : ((await see(store, [schedule]))[0] ?? null);
  }

  /** False when somebody else decided on the schedule first. */
  async #take(decided: Decided, now: Date): Promise<boolean> {
    const { decisions, fulfilment, look } = this.#parts;
    const { won } = await decisions.store([decided]);
    if (won.length === 0) return false;
    await fulfilment.carryOut(won, now);
    look(decided.schedule._id);
    return true;
  }
}

function runsBetween(schedule: ScheduleDocument, first: Date, last: Date, now: Date): OwedRun[] {
  if (schedule.rule === null) return [];
  const runs: OwedRun[] = [];
  for (const at of occurrencesWithin(occurrencesOf(schedule.rule, schedule.anchor), first, last)) {
    if (runs.length === MOST_BACKFILLED) {
      throw new ChronosError(
        'INVALID_ARGUMENT',
        `backfill() makes at most ${MOST_BACKFILLED} jobs at once, and there are more occurrences from ${first.toISOString()} to ${last.toISOString()}: take a shorter time`,
      );
    }
    runs.push(owedRun(schedule._id, at, now));
  }
  return runs;
}
