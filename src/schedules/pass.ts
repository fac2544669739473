import type { Clock } from '../domain/clock.js';
import { toError } from '../domain/errors.js';
import { LOCKED_STATUSES, type JobDocument, type JobStatus } from '../domain/job.js';
import { plan, planTrigger, type Plan } from '../domain/plan.js';
import { occurrenceId, type OwedSkip, type ScheduleDocument } from '../domain/schedule.js';
import { isUncertain } from '../store/faults.js';
import type { Store } from '../store/store.js';
import type { Decided, Decisions } from './decisions.js';
import type { Fulfilment } from './fulfilment.js';
import { jobOf } from './job-of-run.js';
import { occurrencesIn, see } from './seen-schedule.js';
import { releasable } from '../domain/overlaps.js';
import type { Definition } from './definition.js';
import { isMeantFor, type Definitions } from './definitions.js';
import { changedSchedule, newSchedule } from './new-schedule.js';
import { unreadable } from './readable.js';

/** How far back a pass looks from a time it is given: system cron calls it once a minute. */
const TICK = 60_000;
/** Others may decide on a schedule at the same moment. */
const MOST_TRIES = 5;
const LOCKED: readonly JobStatus[] = LOCKED_STATUSES;
const WAITS = 'waits for the run before it to end';

/** What a pass did about one definition, or one stored schedule. */
export interface PassEntry {
  readonly name: string;
  /** `run` and `failed` in place, `enqueued` for workers, `skipped` for the reason given. */
  readonly result: 'run' | 'failed' | 'enqueued' | 'skipped';
  readonly reason: string | null;
  readonly jobId: string | null;
  readonly scheduledFor: Date | null;
}

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
    const entries: PassEntry[] = [];
    for (const definition of this.#parts.definitions.inOrder()) {
      if (this.#parts.isStopped()) break;
      try {
        entries.push(...(this.#refused(definition) ?? (await this.#evaluate(definition, at))));
      } catch (error) {
        if (this.#parts.isStopped()) break;
        // Out of reach of the database nothing can go on; anything else is this definition's own trouble.
        if (isUncertain(error)) throw error;
        entries.push(entry(definition.name, 'failed', toError(error).message));
      }
    }
    return entries;
  }

  /** The same without writing anything: what would run. */
  async preview(at: Date | undefined): Promise<PassEntry[]> {
    const { store, clock, definitions } = this.#parts;
    const now = clock.now();
    const entries: PassEntry[] = [];
    for (const definition of definitions.inOrder()) {
      const { name, schedule: said, hash } = definition;
      const known = await store.findSchedule(name);
      // As the real pass would register it.
      const stored =
        known === null
          ? newSchedule(name, 'code', said, hash, now)
          : known.hash === hash
            ? known
            : { ...known, ...changedSchedule(known, said, hash, now) };
      const refused = this.#refused(definition) ?? inactive(stored);
      const [seen] = refused === undefined ? await see(store, [stored]) : [];
      if (refused !== undefined) entries.push(...refused);
      else if (seen !== undefined) {
        const { schedule, active } = seen;
        const made =
          at === undefined
            ? plan(schedule, occurrencesIn(schedule), active, now)
            : frozenPlan(schedule, active, at);
        const runs = (made?.owed ?? []).filter((entry) => entry.kind === 'run');
        const skips = (made?.owed ?? []).filter((entry) => entry.kind === 'skip');
        entries.push(
          ...runs.map(({ id, at: due }) =>
            entry(name, isInline(definition) ? 'run' : 'enqueued', null, id, due),
          ),
          ...skips.map((skip) => skippedEntry(name, skip)),
          ...(runs.length + skips.length === 0 ? [notDue(schedule)] : []),
        );
      }
    }
    return entries;
  }

  #refused({ name, schedule }: Definition): PassEntry[] | undefined {
    if (!schedule.enabled) return [entry(name, 'skipped', 'disabled')];
    if (isMeantFor(schedule.environments, this.#parts.environment)) return undefined;
    const wanted = schedule.environments.join(', ');
    return [entry(name, 'skipped', `environment: runs in ${wanted}, this is ${this.#parts.environment}`)];
  }

  async #evaluate(definition: Definition, at: Date | undefined): Promise<PassEntry[]> {
    const { store, clock } = this.#parts;
    const { name } = definition;
    const entries: PassEntry[] = [];
    // One time for all: what becomes due while this pass runs is the next one's.
    const now = clock.now();
    // Runs that must not overlap come one by one: when one is through, the next in line may go.
    for (let tries = 0; tries < MOST_TRIES;) {
      if (entries.length > 0 && this.#parts.isStopped()) return entries;
      const schedule = await store.findSchedule(name);
      if (schedule === null) return [...entries, entry(name, 'skipped', 'not registered')];
      const fault = unreadable(schedule);
      if (fault !== undefined) return [...entries, entry(name, 'skipped', `the stored schedule: ${fault}`)];
      const refused = inactive(schedule) ?? (at && (await this.#taken(schedule, at)));
      if (refused !== undefined) return entries.length > 0 ? entries : refused;
      const head = schedule.owed.find(({ kind }) => kind === 'run');
      if (entries.length > 0 && head !== undefined && head.at > now) return entries;
      const { decided, lost } = await this.#decide(schedule, at, now);
      if (decided === undefined && lost) {
        tries++;
        continue;
      }
      if (decided === undefined) return entries.length > 0 ? entries : [waitingOrNotDue(schedule)];
      const carried = isInline(definition)
        ? await this.#runInPlace(definition, decided, now)
        : await this.#enqueue(definition, decided, now);
      entries.push(...carried);
      const ran = isInline(definition) && releasable(decided.schedule, decided.plan).length > 0;
      if (at === undefined && ran) continue;
      return entries.length > 0 ? entries : [await this.#inTheWay(schedule, now)];
    }
    return entries.length > 0
      ? entries
      : [entry(name, 'skipped', 'decided by another process at the same moment')];
  }

  /** Nothing was made and nothing skipped: the current run is of the occurrence itself, or others wait for it. */
  async #inTheWay(schedule: ScheduleDocument, now: Date): Promise<PassEntry> {
    const [seen] = await see(this.#parts.store, [schedule]);
    if (seen?.active == null || schedule.overlap !== 'skip') return entry(schedule._id, 'skipped', WAITS);
    const { id, since } = seen.active;
    return entry(schedule._id, 'skipped', runningReason(schedule._id, now.getTime() - since.getTime()), id);
  }

  /** The occurrence at a given time has a job already: that is no skip. */
  async #taken(schedule: ScheduleDocument, at: Date): Promise<PassEntry[] | undefined> {
    const due = dueAt(schedule, at);
    const job = due && (await this.#parts.store.findJob(occurrenceId(schedule._id, due)));
    if (due === undefined || job == null) return undefined;
    const since = job.firstStartedAt ?? job.startedAt ?? job.createdAt;
    const running = runningReason(schedule._id, this.#parts.clock.now().getTime() - since.getTime());
    const reason = LOCKED.includes(job.status) ? running : 'its job exists already';
    return [entry(schedule._id, 'skipped', reason, job._id, due)];
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
    const frozen = seen && frozenPlan(seen.schedule, seen.active, at);
    if (seen === undefined || frozen === undefined) return { decided: undefined, lost: false };
    const { won } = await decisions.store([{ schedule: seen.schedule, plan: frozen }]);
    return { decided: won[0], lost: won.length === 0 };
  }

  async #enqueue({ name }: Definition, decided: Decided, now: Date): Promise<PassEntry[]> {
    const runs = releasable(decided.schedule, decided.plan);
    const made = new Set((await this.#parts.fulfilment.carryOut([decided], now)).map(({ _id }) => _id));
    return [
      ...runs.map(({ id, at }) =>
        made.has(id)
          ? entry(name, 'enqueued', null, id, at)
          : entry(name, 'skipped', 'its job exists already', id, at),
      ),
      ...skipsOf(decided.plan).map((skip) => skippedEntry(name, skip)),
    ];
  }

  async #runInPlace({ name }: Definition, decided: Decided, now: Date): Promise<PassEntry[]> {
    const { fulfilment, inlineQueue } = this.#parts;
    const { schedule, plan: made } = decided;
    await fulfilment.concludeRest([decided]);
    const entries: PassEntry[] = [];
    for (const run of releasable(schedule, made)) {
      const job = jobOf(schedule, run, now);
      const once = { ...job, queue: inlineQueue, nextRunAt: run.at, retries: { ...job.retries, max: 1 } };
      entries.push(await this.#runOne(name, once));
      await fulfilment.dropRun(schedule, run.id);
    }
    return [...entries, ...skipsOf(made).map((skip) => skippedEntry(name, skip))];
  }

  async #runOne(name: string, job: JobDocument): Promise<PassEntry> {
    const { runInPlace, store } = this.#parts;
    const { _id: id, scheduledFor } = job;
    if (!(await runInPlace(job))) return entry(name, 'skipped', 'its job exists already', id, scheduledFor);
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

/** The last occurrence of the minute that ends with a given time. */
function dueAt(schedule: ScheduleDocument, at: Date): Date | undefined {
  const all = occurrencesIn(schedule);
  let due: Date | undefined;
  for (
    let next = all.next(new Date(at.getTime() - TICK));
    next !== null && next <= at;
    next = all.next(next)
  ) {
    due = next;
  }
  return due;
}

/** What is due at a time that is given, by the rules of the overlap policy. */
function frozenPlan(
  schedule: ScheduleDocument,
  active: Parameters<typeof planTrigger>[2],
  at: Date,
): Plan | undefined {
  const due = dueAt(schedule, at);
  if (due === undefined) return undefined;
  const id = occurrenceId(schedule._id, due);
  const made = planTrigger(schedule, id, active, due);
  if (made !== null) return made;
  const { nextRunAt, lastRunAt, runs, owed } = schedule;
  const runningFor = active === null ? null : Math.max(0, at.getTime() - active.since.getTime());
  const skip: OwedSkip = {
    ...{ kind: 'skip', id, at: due, until: new Date(due.getTime() + 1), count: 1, reason: 'overlap' },
    ...{ activeId: active?.id ?? null, runningFor, since: at },
  };
  return { nextRunAt, lastRunAt, runs, owed: [...owed, skip], active: schedule.active, cancel: null };
}

function isInline({ schedule }: Definition): boolean {
  return schedule.queue === null;
}

function skipsOf({ owed }: Plan): OwedSkip[] {
  return owed.filter((entry) => entry.kind === 'skip');
}

function inactive({ _id, paused, disabledReason }: ScheduleDocument): PassEntry[] | undefined {
  if (disabledReason !== null) return [entry(_id, 'skipped', `disabled: ${disabledReason}`)];
  if (paused !== null) return [entry(_id, 'skipped', `paused: ${paused.reason ?? 'no reason given'}`)];
  return undefined;
}

function waitingOrNotDue(schedule: ScheduleDocument): PassEntry {
  const waits = schedule.owed.some(({ kind }) => kind === 'run');
  return waits ? entry(schedule._id, 'skipped', WAITS) : notDue(schedule);
}

function notDue({ _id, nextRunAt }: ScheduleDocument): PassEntry {
  return entry(_id, 'skipped', nextRunAt === null ? 'not due' : `not due until ${nextRunAt.toISOString()}`);
}

function skippedEntry(name: string, { id, at, reason, runningFor }: OwedSkip): PassEntry {
  return entry(name, 'skipped', reason === 'overlap' ? runningReason(name, runningFor ?? 0) : reason, id, at);
}

function runningReason(name: string, runningFor: number): string {
  const seconds = Math.max(0, Math.round(runningFor / 1000));
  return `single-instance job '${name}' is already running: still running for ${seconds} s`;
}

function entry(
  name: string,
  result: PassEntry['result'],
  reason: string | null,
  jobId: string | null = null,
  scheduledFor: Date | null = null,
): PassEntry {
  return { name, result, reason, jobId, scheduledFor };
}
