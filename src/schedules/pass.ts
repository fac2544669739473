import { DEFAULT_QUEUE } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import type { JobDocument } from '../domain/job.js';
import { plan, planTrigger, type Plan } from '../domain/plan.js';
import { occurrencesOf, type Occurrences } from '../domain/rule.js';
import { occurrenceId, type OwedSkip, type ScheduleDocument } from '../domain/schedule.js';
import type { Store } from '../store/store.js';
import { jobOf, releasable, type Decided, type Decisions } from './decisions.js';
import type { Definition } from './definition.js';
import { isMeantFor, type Definitions } from './definitions.js';
import { newSchedule } from './new-schedule.js';

/** How far back a pass looks from a time it is given: system cron calls it once a minute. */
const TICK = 60_000;
/** Others may decide on a schedule at the same moment. */
const MOST_TRIES = 5;

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
  store: Pick<Store, 'findSchedule' | 'findJob'>;
  clock: Clock;
  definitions: Definitions;
  decisions: Decisions;
  environment: string;
  runInPlace: (job: JobDocument) => Promise<boolean>;
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
      entries.push(...(this.#refused(definition) ?? (await this.#evaluate(definition, at))));
    }
    return entries;
  }

  /** The same without writing anything: what would run. */
  async preview(at: Date | undefined): Promise<PassEntry[]> {
    const { store, clock, decisions, definitions } = this.#parts;
    const now = clock.now();
    const entries: PassEntry[] = [];
    for (const definition of definitions.inOrder()) {
      const { name, schedule: said, hash } = definition;
      const schedule = (await store.findSchedule(name)) ?? newSchedule(name, 'code', said, hash, now);
      const refused = this.#refused(definition) ?? inactive(schedule);
      if (refused !== undefined) entries.push(...refused);
      else {
        const active = (await decisions.activeRuns([schedule])).get(name) ?? null;
        const made =
          at === undefined
            ? plan(schedule, occurrences(schedule), active, now)
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
      const schedule = await store.findSchedule(name);
      if (schedule === null) return [...entries, entry(name, 'skipped', 'removed meanwhile')];
      const refused = inactive(schedule);
      if (refused !== undefined) return entries.length > 0 ? entries : refused;
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
      if (at !== undefined || !carried.some(({ result }) => result === 'run' || result === 'failed'))
        return entries;
    }
    return entries.length > 0
      ? entries
      : [entry(name, 'skipped', 'decided by another process at the same moment')];
  }

  async #decide(
    schedule: ScheduleDocument,
    at: Date | undefined,
    now: Date,
  ): Promise<{ decided: Decided | undefined; lost: boolean }> {
    const { decisions } = this.#parts;
    if (at === undefined) {
      const isDue = (schedule.nextRunAt !== null && schedule.nextRunAt <= now) || schedule.owed.length > 0;
      if (!isDue) return { decided: undefined, lost: false };
      const { won, lost } = await decisions.decide([schedule], now);
      return { decided: won[0], lost: lost > 0 };
    }
    const active = (await decisions.activeRuns([schedule])).get(schedule._id) ?? null;
    const frozen = frozenPlan(schedule, active, at);
    if (frozen === undefined) return { decided: undefined, lost: false };
    const [decided] = await decisions.store([{ schedule, plan: frozen }]);
    return { decided, lost: decided === undefined };
  }

  async #enqueue({ name }: Definition, decided: Decided, now: Date): Promise<PassEntry[]> {
    const runs = releasable(decided.schedule, decided.plan.owed, decided.plan.active);
    const made = new Set((await this.#parts.decisions.carryOut([decided], now)).map(({ _id }) => _id));
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
    const { decisions } = this.#parts;
    const { schedule, plan: made } = decided;
    const entries: PassEntry[] = [];
    for (const run of releasable(schedule, made.owed, made.active)) {
      const job = jobOf(schedule, run, now);
      const once = { ...job, queue: DEFAULT_QUEUE, nextRunAt: run.at, retries: { ...job.retries, max: 1 } };
      entries.push(await this.#runOne(name, once));
      await decisions.conclude(schedule, [], [run.id]);
    }
    const skips = skipsOf(made);
    await decisions.conclude(schedule, skips, []);
    return [...entries, ...skips.map((skip) => skippedEntry(name, skip))];
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

/** What is due at a time that is given: the last occurrence of the minute that ends with it. */
function frozenPlan(
  schedule: ScheduleDocument,
  active: Parameters<typeof planTrigger>[2],
  at: Date,
): Plan | undefined {
  const all = occurrences(schedule);
  let due: Date | undefined;
  for (let next = all.next(new Date(at.getTime() - TICK)); next !== null && next <= at; next = all.next(next))
    due = next;
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

function occurrences({ rule, anchor }: ScheduleDocument): Occurrences {
  return rule === null ? { next: () => null } : occurrencesOf(rule, anchor);
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
  return waits ? entry(schedule._id, 'skipped', 'waits for the run before it to end') : notDue(schedule);
}

function notDue({ _id, nextRunAt }: ScheduleDocument): PassEntry {
  return entry(_id, 'skipped', nextRunAt === null ? 'not due' : `not due until ${nextRunAt.toISOString()}`);
}

function skippedEntry(name: string, { id, at, reason, runningFor }: OwedSkip): PassEntry {
  const seconds = Math.round((runningFor ?? 0) / 1000);
  const why =
    reason === 'overlap'
      ? `single-instance job '${name}' is already running: still running for ${seconds} s`
      : reason;
  return entry(name, 'skipped', why, id, at);
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
