import type { Clock } from '../domain/clock.js';
import { groupBy } from '../domain/group-by.js';
import type { JobDocument } from '../domain/job.js';
import { releasable } from '../domain/overlaps.js';
import { skipsOf } from '../domain/owed.js';
import type { OwedSkip, ScheduleDocument } from '../domain/schedule.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { Store } from '../store/store.js';
import type { Decided } from './decisions.js';
import { jobOf } from './job-of-run.js';

export interface FulfilmentParts {
  store: Pick<Store, 'dropOwed' | 'enqueueMany' | 'recordSkips'>;
  clock: Clock;
  events: EventBus;
  /** How long records of skipped occurrences are kept, in milliseconds. */
  skipRetention: number;
  /** Asks a run to make way for a newer one. */
  cancel: (jobId: string, reason: string) => Promise<unknown>;
  nudge: () => void;
}

/**
 * Carries out what was decided: inserts the jobs that are owed, records the skips, and takes both off the list. Anybody
 * may, and doing it twice makes no second job, because an occurrence is the job's id.
 */
export class Fulfilment {
  readonly #parts: FulfilmentParts;

  constructor(parts: FulfilmentParts) {
    this.#parts = parts;
  }

  /** Inserts the jobs that may run now, records skips, and takes both off the list. Returns the jobs it made. */
  async carryOut(decided: readonly Decided[], now: Date): Promise<JobDocument[]> {
    const runs = decided.flatMap(({ schedule, plan }) =>
      releasable(schedule, plan).map((run) => ({ schedule, run })),
    );
    const { made, refused } = await this.#insert(runs.map(({ schedule, run }) => jobOf(schedule, run, now)));
    await this.#drop(
      'run',
      runs.filter(({ run }) => !refused.has(run.id)).map(({ schedule, run }) => [schedule._id, run.id]),
    );
    await this.concludeRest(decided);
    return made;
  }

  /** What is left of a decision besides its runs: skips to record, a run that has to make way. */
  async concludeRest(decided: readonly Decided[]): Promise<void> {
    await this.#record(
      decided.flatMap(({ schedule, plan: { owed } }) => skipsOf(owed).map((skip) => ({ schedule, skip }))),
    );
    for (const { plan } of decided) {
      if (plan.cancel !== null) {
        await this.#parts.cancel(plan.cancel, 'replaced by a newer run of its schedule');
      }
    }
  }

  /** A run that was inserted elsewhere. */
  async dropRun(schedule: ScheduleDocument, runId: string): Promise<void> {
    await this.#drop('run', [[schedule._id, runId]]);
  }

  /** What cannot be inserted stays on the list and is tried again; it keeps none of the others. */
  async #insert(jobs: readonly JobDocument[]): Promise<{ made: JobDocument[]; refused: Set<string> }> {
    const { store, events, clock, nudge } = this.#parts;
    const made: JobDocument[] = [];
    const refused = new Set<string>();
    if (jobs.length === 0) return { made, refused };
    const results = await store.enqueueMany(jobs).catch((error: unknown) => {
      events.emit('schedule:pushed', { pushed: 0, failed: jobs.length });
      throw error;
    });
    for (const [index, job] of jobs.entries()) {
      const result = results[index];
      if (result === undefined || 'error' in result) {
        refused.add(job._id);
        this.#report(`insert ${job._id}`, result?.error ?? new Error('no answer'));
      } else if (!result.duplicate) made.push(job);
    }
    events.emit('schedule:pushed', { pushed: made.length, failed: refused.size });
    for (const { _id: jobId, schedule, scheduledFor } of made) {
      if (schedule === null || scheduledFor === null) continue;
      const late = clock.now().getTime() - scheduledFor.getTime();
      events.emit('schedule:due', { scheduleId: schedule, jobId, scheduledFor, late });
    }
    if (made.length > 0) nudge();
    return { made, refused };
  }

  /** One that the server will not keep is reported and let go: it would be tried for ever. */
  async #record(skips: readonly { schedule: ScheduleDocument; skip: OwedSkip }[]): Promise<void> {
    const { store, events, skipRetention } = this.#parts;
    if (skips.length === 0) return;
    const refused = await store.recordSkips(
      skips.map(({ schedule, skip: { kind: _, id, ...skip } }) => ({
        _id: id,
        scheduleId: schedule._id,
        ...skip,
        expiresAt: new Date(skip.since.getTime() + skipRetention),
      })),
    );
    for (const [id, error] of refused) this.#report(`record the skip of ${id}`, error);
    await this.#drop(
      'skip',
      skips.map(({ schedule, skip }) => [schedule._id, skip.id]),
    );
    for (const { schedule, skip } of skips) {
      const { at: from, until, count, reason, runningFor } = skip;
      events.emit('schedule:skipped', { scheduleId: schedule._id, from, until, count, reason, runningFor });
    }
  }

  async #drop(kind: 'run' | 'skip', entries: readonly (readonly [string, string])[]): Promise<void> {
    if (entries.length === 0) return;
    const bySchedule = groupBy(entries, ([scheduleId]) => scheduleId);
    await this.#parts.store.dropOwed(
      [...bySchedule].map(([scheduleId, group]) => ({ scheduleId, kind, ids: group.map(([, id]) => id) })),
    );
  }

  #report(operation: string, error: Error): void {
    this.#parts.events.emit('worker:trouble', { operation, error, failures: 1, retryIn: 0 });
  }
}
