import type { Clock } from '../domain/clock.js';
import { toError } from '../domain/errors.js';
import type { JobDocument } from '../domain/job.js';
import { releasable } from '../domain/overlaps.js';
import { runsOf, skipsOf } from '../domain/owed.js';
import type { ScheduleDocument } from '../domain/schedule.js';
import { isUncertain } from '../store/faults.js';
import type { Store } from '../store/store.js';
import type { Decided, Decisions } from './decisions.js';
import { isInline, type Definition } from './definition.js';
import type { Definitions } from './definitions.js';
import { planAt, takenAt } from './given-time.js';
import type { Fulfilment } from './fulfilment.js';
import { jobOf } from './job-of-run.js';
import {
  entry,
  inactive,
  isRunning,
  jobExists,
  refused,
  skipEntry,
  unfit,
  waitingOrNotDue,
  waits,
  type PassEntry,
} from './pass-entry.js';
import { see } from './seen-schedule.js';

/** Others may decide on a schedule at the same moment. */
const MOST_TRIES = 5;

export interface PassParts {
  store: Pick<Store, 'findSchedule' | 'findJob' | 'findRuns'>;
  clock: Clock;
  definitions: Definitions;
  decisions: Decisions;
  fulfilment: Fulfilment;
  environment: string;
  runInPlace: (job: JobDocument) => Promise<boolean>;
  /** Where what is left of an inline run that crashed is found again. */
  inlineQueue: string;
  /** Told to stop: nothing more is begun. */
  isStopped: () => boolean;
}

/**
 * One look at every definition, in the order of their dependencies: those without a queue run in place, one attempt
 * each, the others are enqueued. Their occurrences are the same as a worker's, so each runs once, whoever is first.
 */
export class Pass {
  readonly #parts: PassParts;

  constructor(parts: PassParts) {
    this.#parts = parts;
  }

  /** One that fails never stops the rest. `at`: what is due then, instead of what is due now. */
  async run(at: Date | undefined): Promise<PassEntry[]> {
    const { definitions, environment, isStopped } = this.#parts;
    const entries: PassEntry[] = [];
    for (const definition of definitions.inOrder()) {
      if (isStopped()) break;
      try {
        const reason = refused(definition, environment);
        entries.push(...(reason === undefined ? await this.#evaluate(definition, at) : [reason]));
      } catch (error) {
        if (isStopped()) break;
        // Out of reach of the database nothing can go on; anything else is this definition's own trouble.
        if (isUncertain(error)) throw error;
        entries.push(entry(definition.name, 'failed', toError(error).message));
      }
    }
    return entries;
  }

  async #evaluate(definition: Definition, at: Date | undefined): Promise<PassEntry[]> {
    const { store, clock, isStopped } = this.#parts;
    const { name } = definition;
    const entries: PassEntry[] = [];
    /** A reason for nothing is only worth telling when there was nothing. */
    const orElse = (reason: PassEntry): PassEntry[] => (entries.length > 0 ? entries : [reason]);
    // One time for all: what becomes due while this pass runs is the next one's.
    const now = clock.now();
    // Runs that must not overlap come one by one: when one is through, the next in line may go.
    for (let tries = 0; tries < MOST_TRIES;) {
      if (entries.length > 0 && isStopped()) return entries;
      const schedule = await store.findSchedule(name);
      if (schedule === null) return [...entries, entry(name, 'skipped', 'not registered')];
      const fault = unfit(schedule);
      if (fault !== undefined) return [...entries, fault];
      const reason = inactive(schedule) ?? (at && (await takenAt(store, schedule, at, clock.now())));
      if (reason !== undefined) return orElse(reason);
      const [head] = runsOf(schedule.owed);
      if (entries.length > 0 && head !== undefined && head.at > now) return entries;
      const { decided, lost } = await this.#decide(schedule, at, now);
      if (decided === undefined) {
        if (!lost) return orElse(waitingOrNotDue(schedule));
        tries++;
        continue;
      }
      const carriedOut = isInline(definition)
        ? await this.#runInPlace(name, decided, now)
        : await this.#enqueue(name, decided, now);
      entries.push(...carriedOut);
      const hasRun = isInline(definition) && releasable(decided.schedule, decided.plan).length > 0;
      if (at !== undefined || !hasRun)
        return entries.length > 0 ? entries : [await this.#inTheWay(schedule, now)];
    }
    return orElse(entry(name, 'skipped', 'decided by another process at the same moment'));
  }

  /** Nothing was made and nothing skipped: the current run is of the occurrence itself, or others wait for it. */
  async #inTheWay(schedule: ScheduleDocument, now: Date): Promise<PassEntry> {
    const [seen] = await see(this.#parts.store, [schedule]);
    if (seen?.active == null || schedule.overlap !== 'skip') return waits(schedule._id);
    const { id, since } = seen.active;
    return isRunning(schedule._id, now.getTime() - since.getTime(), id);
  }

  async #decide(
    schedule: ScheduleDocument,
    at: Date | undefined,
    now: Date,
  ): Promise<{ decided: Decided | undefined; lost: boolean }> {
    const { store, decisions } = this.#parts;
    if (at === undefined) {
      const isDue = (schedule.nextRunAt !== null && schedule.nextRunAt <= now) || schedule.owed.length > 0;
      if (!isDue) return { decided: undefined, lost: false };
      const { won, lost } = await decisions.decide([schedule], now);
      return { decided: won[0], lost: lost > 0 };
    }
    const [seen] = await see(store, [schedule]);
    const plan = seen && planAt(seen.schedule, seen.active, at);
    if (seen === undefined || plan === undefined) return { decided: undefined, lost: false };
    const { won } = await decisions.store([{ schedule: seen.schedule, plan }]);
    return { decided: won[0], lost: won.length === 0 };
  }

  async #enqueue(name: string, decided: Decided, now: Date): Promise<PassEntry[]> {
    const { schedule, plan } = decided;
    const made = new Set((await this.#parts.fulfilment.carryOut([decided], now)).map(({ _id }) => _id));
    return [
      ...releasable(schedule, plan).map(({ id, at }) =>
        made.has(id) ? entry(name, 'enqueued', null, id, at) : jobExists(name, id, at),
      ),
      ...skipsOf(plan.owed).map((skip) => skipEntry(name, skip)),
    ];
  }

  async #runInPlace(name: string, decided: Decided, now: Date): Promise<PassEntry[]> {
    const { fulfilment, inlineQueue } = this.#parts;
    const { schedule, plan } = decided;
    await fulfilment.concludeRest([decided]);
    const entries: PassEntry[] = [];
    for (const run of releasable(schedule, plan)) {
      const job = jobOf(schedule, run, now);
      const once = { ...job, queue: inlineQueue, nextRunAt: run.at, retries: { ...job.retries, max: 1 } };
      entries.push(await this.#runOne(name, once));
      await fulfilment.dropRun(schedule, run.id);
    }
    return [...entries, ...skipsOf(plan.owed).map((skip) => skipEntry(name, skip))];
  }

  async #runOne(name: string, job: JobDocument): Promise<PassEntry> {
    const { runInPlace, store } = this.#parts;
    const { _id: id, scheduledFor } = job;
    if (!(await runInPlace(job))) return jobExists(name, id, scheduledFor);
    const ended = await store.findJob(id);
    switch (ended?.status) {
      case 'COMPLETED':
        return entry(name, 'run', null, id, scheduledFor);
      case 'FAILED':
        return entry(name, 'failed', ended.error?.message ?? 'failed', id, scheduledFor);
      case 'CANCELLED': {
        const reason = ended.skipReason === null ? 'cancelled' : `filter: ${ended.skipReason}`;
        return entry(name, 'skipped', reason, id, scheduledFor);
      }
      default:
        return entry(name, 'run', `not finished: ${ended?.status ?? 'gone'}`, id, scheduledFor);
    }
  }
}
