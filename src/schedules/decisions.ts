import { randomUUID } from 'node:crypto';
import { ChronosError, toError } from '../domain/errors.js';
import { releasable } from '../domain/overlaps.js';
import { skipsOf } from '../domain/owed.js';
import { plan, type Plan } from '../domain/plan.js';
import type { ScheduleDocument } from '../domain/schedule.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { Store } from '../store/store.js';
import { occurrencesIn, see } from './seen-schedule.js';

export interface DecisionsParts {
  store: Pick<Store, 'decideSchedules' | 'findRuns' | 'changeSchedule'>;
  events: EventBus;
}

/** A schedule after a decision about it that took effect. */
export interface Decided {
  schedule: ScheduleDocument;
  plan: Plan;
}

/** What came of looking at schedules. */
export interface DecisionRound {
  /** Where nobody else was first. */
  won: Decided[];
  /** How many others were first with. */
  lost: number;
  /** Those that nothing can be decided about here, or that the server refuses to write. */
  hopeless: string[];
}

/**
 * Decides what schedules owe. One compare-and-set stores the decision before anything comes of it, and from then on
 * anybody can carry it out: dying in between loses nothing.
 */
export class Decisions {
  readonly #parts: DecisionsParts;

  constructor(parts: DecisionsParts) {
    this.#parts = parts;
  }

  /** Looks at each schedule and stores what that comes to, unless it comes to nothing. One that fails stops no other. */
  async decide(schedules: readonly ScheduleDocument[], now: Date): Promise<DecisionRound> {
    const hopeless: string[] = [];
    const decided: Decided[] = [];
    for (const { schedule, active, isStale } of await see(this.#parts.store, schedules)) {
      try {
        const made = plan(schedule, occurrencesIn(schedule), active, now);
        if (isStale || changesSomething(schedule, made)) decided.push({ schedule, plan: made });
      } catch (thrown) {
        if (!(await this.#disable(schedule, toError(thrown), now))) hopeless.push(schedule._id);
      }
    }
    const { won, lost, refused } = await this.store(decided);
    return { won, lost, hopeless: [...hopeless, ...refused] };
  }

  /** Stores decisions, also such as were made elsewhere by the same rules; `won` are those that took effect. */
  async store(decided: readonly Decided[]): Promise<{ won: Decided[]; lost: number; refused: string[] }> {
    const { store, events } = this.#parts;
    if (decided.length === 0) return { won: [], lost: 0, refused: [] };
    const { won, refused } = await store.decideSchedules(randomUUID(), decided);
    for (const [scheduleId, error] of refused) this.#report(`decide on ${scheduleId}`, error);
    const lost = decided.length - won.size - refused.size;
    events.emit('schedule:decided', { won: won.size, lost, refused: refused.size });
    if (lost > 0) events.emit('schedule:contended', { won: won.size, lost });
    return {
      won: decided.filter(({ schedule }) => won.has(schedule._id)),
      lost,
      refused: [...refused.keys()],
    };
  }

  /**
   * True when that is the end of it. A rule that is wrong disables its schedule, with the reason, until somebody changes
   * it. Any other trouble may be this process's alone, like a time zone that it does not know: others may still run it.
   */
  async #disable(schedule: ScheduleDocument, error: Error, now: Date): Promise<boolean> {
    const { store, events } = this.#parts;
    if (!(error instanceof ChronosError)) {
      this.#report(`decide on ${schedule._id}`, error);
      return false;
    }
    const disabledReason = error.message;
    const fields = { isActive: false, disabledReason, decision: randomUUID(), updatedAt: now };
    if (await store.changeSchedule(schedule, fields)) {
      events.emit('schedule:disabled', { scheduleId: schedule._id, reason: disabledReason });
    }
    return true;
  }

  #report(operation: string, error: Error): void {
    this.#parts.events.emit('worker:trouble', { operation, error, failures: 1, retryIn: 0 });
  }
}

/** Also when a run waits to be inserted: whoever decided it may be gone. */
function changesSomething(schedule: ScheduleDocument, made: Plan): boolean {
  return (
    skipsOf(made.owed).length > 0 ||
    releasable(schedule, made).length > 0 ||
    made.active !== schedule.active ||
    made.cancel !== null ||
    made.nextRunAt?.getTime() !== schedule.nextRunAt?.getTime() ||
    made.owed.length !== schedule.owed.length
  );
}
