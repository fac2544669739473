import { randomUUID } from 'node:crypto';
import {
  readPause,
  readScheduleQuery,
  type PauseOptions,
  type ScheduleQueryOptions,
} from '../config/call-options.js';
import { optionsError } from '../config/options-error.js';
import { BASES, optionsOf } from '../config/rule-options.js';
import type { ScheduleContext } from '../config/rule-readers.js';
import { resolveSchedule, type ScheduleOptions } from '../config/schedule-options.js';
import { checkedPayload } from '../dispatch/checked-payload.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError, toError } from '../domain/errors.js';
import { parseInstant, type Instant } from '../domain/instant.js';
import { checkScheduleId, checkTaskType } from '../domain/names.js';
import { planBackfill, planTrigger } from '../domain/plan.js';
import { occurrencesOf } from '../domain/occurrences.js';
import type { Rule } from '../domain/rule.js';
import {
  hashOf,
  occurrenceId,
  type OwedRun,
  type ScheduleDefinition,
  type ScheduleDocument,
  type SkipDocument,
} from '../domain/schedule.js';
import { jsonText } from '../domain/text.js';
import { newJobId } from '../store/bson.js';
import type { Store } from '../store/store.js';
import type { HandlerRegistry } from '../worker/handler-registry.js';
import { applySchema } from '../worker/payload-schema.js';
import type { Decisions } from './decisions.js';
import type { Fulfilment } from './fulfilment.js';
import { see, type Seen } from './seen-schedule.js';
import { assertRuns } from './definition.js';
import { changedSchedule, newSchedule, recountedFrom } from './new-schedule.js';
import { unreadable } from './readable.js';
import { scheduleView, type StoredSchedule } from './schedule-view.js';

/** Several people may change a schedule at once; each tries this often to be the last. */
const MOST_TRIES = 20;
const MOST_BACKFILLED = 1000;

/** A schedule that is stored at run time. */
export interface NewSchedule extends ScheduleOptions {
  /** What its jobs run. */
  taskType: string;
  /** Default: one that is generated. */
  id?: string;
  payload?: unknown;
  /** Default true; false stores it paused. */
  isActive?: boolean;
}

/** What changes; null takes something back. */
export type SchedulePatch = { [K in keyof Omit<NewSchedule, 'id'>]?: NewSchedule[K] | null };

/** `jobId` runs now, or waits in line where runs must not overlap. */
export type TriggerAnswer =
  | { triggered: true; jobId: string }
  | { triggered: false; reason: 'running'; jobId: string; runningFor: number }
  | { triggered: false; reason: 'notFound' };

/** How many occurrences there were, and how many of them had a job already. */
/** Schedules in the order of their ids, and the id after which the next page begins. */
export interface SchedulePage {
  schedules: StoredSchedule[];
  next: string | null;
}

export interface BackfillAnswer {
  occurrences: number;
  existing: number;
}

export interface StoredSchedulesParts {
  store: Pick<
    Store,
    | 'insertSchedule'
    | 'findSchedule'
    | 'changeSchedule'
    | 'deleteSchedule'
    | 'listSchedules'
    | 'findSkips'
    | 'findRuns'
  >;
  clock: Clock;
  registry: HandlerRegistry;
  context: ScheduleContext;
  maxPayloadBytes: number;
  decisions: Decisions;
  fulfilment: Fulfilment;
  /** The schedules changed: whoever materialises in this process need not wait for the stream. */
  nudge: () => void;
  /** A run was put in line: it goes as soon as the one before it ends here. */
  look: (scheduleId: string) => void;
}

interface DefinitionRequest {
  where: string;
  /** Where an interval counts from. */
  anchor: Date;
  /** What was found wrong before. */
  faults: Error[];
  loose?: NonNullable<Rule['loose']>;
}

type Change = Partial<ScheduleDocument> & Pick<ScheduleDocument, 'decision'>;

/** Schedules at run time: added, changed, paused and triggered by people and programs, followed by every worker. */
export class StoredSchedules {
  readonly #parts: StoredSchedulesParts;

  constructor(parts: StoredSchedulesParts) {
    this.#parts = parts;
  }

  async add(input: NewSchedule): Promise<string> {
    const { store, clock, nudge } = this.#parts;
    const { id = newJobId(), isActive = true, ...said } = objectOf(input, 'addSchedule()');
    const now = clock.now();
    const definition = await this.#definition(said, {
      ...{ where: 'addSchedule()', anchor: now },
      faults: [...faultsOf(() => checkScheduleId(id)), ...faultsOf(() => checkFlag(isActive))],
    });
    const schedule = newSchedule(id, 'api', definition, hashOf(definition), now);
    const paused = isActive
      ? {}
      : { isActive: false, paused: { at: now, by: null, reason: 'added inactive' } };
    if (!(await store.insertSchedule({ ...schedule, ...paused }))) {
      throw new ChronosError(
        'SCHEDULE_EXISTS',
        `there is a schedule '${id}' already: change it with updateSchedule() or \`chronos schedules update\``,
      );
    }
    nudge();
    return id;
  }

  async update(id: string, patch: SchedulePatch): Promise<boolean> {
    const { isActive, ...said } = withoutUndefined(objectOf(patch, 'updateSchedule()'));
    if (isActive != null) checkFlag(isActive);
    if (Object.keys(said).length > 0) {
      const found = await this.#change(id, async (schedule, now) => {
        if (schedule.owner === 'code') throw inCode(id);
        const definition = await this.#definition(patched(schedule, said), {
          ...{ where: 'updateSchedule()', anchor: schedule.anchor, faults: [] },
          loose: BASES.some((base) => said[base] != null) ? [] : (schedule.rule?.loose ?? []),
        });
        return changedSchedule(schedule, definition, hashOf(definition), now);
      });
      if (!found) return false;
    }
    if (isActive == null) return Object.keys(said).length > 0 || (await this.#find(id)) !== null;
    return isActive ? this.resume(id) : this.pause(id, { reason: 'isActive: false' });
  }

  async remove(id: string): Promise<boolean> {
    checkScheduleId(id);
    const removed = await this.#parts.store.deleteSchedule(id);
    this.#parts.nudge();
    return removed;
  }

  async get(id: string): Promise<StoredSchedule | null> {
    const schedule = await this.#find(id);
    return schedule === null ? null : this.#view(schedule);
  }

  /** In the order of their ids; those that cannot be read are left out. */
  async list(query: ScheduleQueryOptions = {}): Promise<StoredSchedule[]> {
    return (await this.page(query)).schedules;
  }

  /** The same with the id after which the next page begins; null when this is the last one. */
  async page(query: ScheduleQueryOptions = {}): Promise<SchedulePage> {
    const read = readScheduleQuery(query);
    const found = await this.#parts.store.listSchedules(read);
    return {
      schedules: found
        .filter((schedule) => unreadable(schedule) === undefined)
        .map((schedule) => this.#view(schedule)),
      next: found.length < read.limit ? null : (found.at(-1)?._id ?? null),
    };
  }

  /** No more occurrences until `resume`. Runs that exist go on. False when there is no such schedule. */
  async pause(id: string, options: PauseOptions = {}): Promise<boolean> {
    const { by = null, reason = null } = readPause(options);
    return this.#change(id, (_, now) => ({
      isActive: false,
      paused: { at: now, by, reason },
      decision: randomUUID(),
      updatedAt: now,
    }));
  }

  /** Goes on from now: what was due meanwhile is recorded as skipped. */
  async resume(id: string): Promise<boolean> {
    return this.#change(id, (schedule, now) => ({
      isActive: schedule.enabled && schedule.disabledReason === null,
      paused: null,
      decision: randomUUID(),
      updatedAt: now,
      ...(schedule.paused !== null && recountedFrom(schedule, schedule, now, 'paused')),
    }));
  }

  /** Runs it once now, besides its occurrences, by the rules of its overlap policy. Also while it is paused. */
  async trigger(id: string): Promise<TriggerAnswer> {
    const { decisions, fulfilment, clock } = this.#parts;
    for (let tries = 1; tries <= MOST_TRIES; tries++) {
      const seen = await this.#see(id);
      if (seen === null) return { triggered: false, reason: 'notFound' };
      const { schedule, active } = seen;
      const now = clock.now();
      const jobId = `${id}!${randomUUID()}`;
      const plan = planTrigger(schedule, jobId, active, now);
      if (plan === null) {
        // Nothing runs, but a run is in line.
        const inTheWay = active ?? schedule.owed.find(({ kind }) => kind === 'run');
        const runningFor = now.getTime() - (inTheWay?.since ?? now).getTime();
        return { triggered: false, reason: 'running', jobId: inTheWay?.id ?? '', runningFor };
      }
      const { won } = await decisions.store([{ schedule, plan }]);
      if (won.length === 0) continue;
      await fulfilment.carryOut(won, now);
      this.#parts.look(id);
      return { triggered: true, jobId };
    }
    throw contended(id);
  }

  /** Makes the jobs of past occurrences that have none, from one instant to another, both included. */
  async backfill(id: string, from: Instant, to: Instant): Promise<BackfillAnswer> {
    const { decisions, fulfilment, clock, store, context } = this.#parts;
    const first = parseInstant(from, context.timezone, 'backfill() from');
    const last = parseInstant(to, context.timezone, 'backfill() to');
    for (let tries = 1; tries <= MOST_TRIES; tries++) {
      const seen = await this.#see(id);
      if (seen === null) {
        throw new ChronosError('SCHEDULE_NOT_FOUND', `there is no schedule '${id}' to backfill`);
      }
      const { schedule, active } = seen;
      const now = clock.now();
      const runs = occurrencesBetween(schedule, first, last < now ? last : now, now);
      const existing = await store.findRuns(runs.map(({ id: jobId }) => jobId));
      const missing = runs.filter((run) => !existing.has(run.id));
      const answer = { occurrences: runs.length, existing: existing.size };
      if (missing.length === 0) return answer;
      const { won } = await decisions.store([{ schedule, plan: planBackfill(schedule, missing, active) }]);
      if (won.length === 0) continue;
      await fulfilment.carryOut(won, now);
      this.#parts.look(id);
      return answer;
    }
    throw contended(id);
  }

  /** Occurrences that did not become jobs, the last first, as long as they are kept. */
  async skips(id: string, limit = 100): Promise<SkipDocument[]> {
    checkScheduleId(id);
    if (!Number.isInteger(limit) || limit < 1 || limit > 1000) {
      throw new ChronosError(
        'INVALID_ARGUMENT',
        `getSkips() limit must be a whole number from 1 to 1000, got ${String(limit)}`,
      );
    }
    return this.#parts.store.findSkips(id, limit);
  }

  async #see(id: string): Promise<Seen | null> {
    const schedule = await this.#find(id);
    return schedule === null ? null : ((await see(this.#parts.store, [schedule]))[0] ?? null);
  }

  async #find(id: string): Promise<ScheduleDocument | null> {
    checkScheduleId(id);
    const schedule = await this.#parts.store.findSchedule(id);
    const reason = schedule === null ? undefined : unreadable(schedule);
    if (reason === undefined) return schedule;
    throw new ChronosError('INVALID_SCHEDULE', `the stored schedule '${id}' cannot be read: ${reason}`);
  }

  /** False when there is no such schedule. */
  async #change(
    id: string,
    change: (schedule: ScheduleDocument, now: Date) => Change | Promise<Change>,
  ): Promise<boolean> {
    const { store, clock, nudge } = this.#parts;
    for (let tries = 1; tries <= MOST_TRIES; tries++) {
      const schedule = await this.#find(id);
      if (schedule === null) return false;
      if (await store.changeSchedule(schedule, await change(schedule, clock.now()))) {
        nudge();
        return true;
      }
    }
    throw contended(id);
  }

  /** Checks all of it, and names every fault in one error. */
  async #definition(
    said: Omit<NewSchedule, 'id' | 'isActive'>,
    { where, anchor, faults, loose = [] }: DefinitionRequest,
  ): Promise<ScheduleDefinition> {
    const { context, clock, registry, maxPayloadBytes } = this.#parts;
    const { taskType, payload = null, ...options } = said;
    let copy: unknown = null;
    let resolved: ReturnType<typeof resolveSchedule> | undefined;
    const all = [
      ...faults,
      ...faultsOf(() => checkTaskType(taskType)),
      ...faultsOf(() => (copy = checkedPayload(`the payload of ${where}`, payload, maxPayloadBytes))),
      ...faultsOf(() => (resolved = resolveSchedule(options, context, where, loose))),
    ];
    if (resolved?.rule === null) {
      all.push(new ChronosError('INVALID_SCHEDULE', `${where} needs a rule: cron, fields, symbol or every`));
    }
    if (all.length > 0 || resolved === undefined) throw together(all);
    assertRuns(where, resolved.rule, clock.now(), resolved.rule?.startsAt ?? anchor);
    const schema = registry.get(taskType)?.options.schema;
    if (schema !== undefined) await applySchema(taskType, schema, copy);
    return { ...resolved, taskType, payload: copy };
  }

  #view(schedule: ScheduleDocument): StoredSchedule {
    const { context, clock } = this.#parts;
    return scheduleView(schedule, context.timezone, clock.now());
  }
}

function occurrencesBetween(schedule: ScheduleDocument, first: Date, last: Date, now: Date): OwedRun[] {
  if (schedule.rule === null) return [];
  const occurrences = occurrencesOf(schedule.rule, schedule.anchor);
  const runs: OwedRun[] = [];
  for (
    let at = occurrences.next(new Date(first.getTime() - 1));
    at !== null && at <= last;
    at = occurrences.next(at)
  ) {
    if (runs.length === MOST_BACKFILLED) {
      throw new ChronosError(
        'INVALID_ARGUMENT',
        `backfill() makes at most ${MOST_BACKFILLED} jobs at once, and there are more occurrences from ${first.toISOString()} to ${last.toISOString()}: take a shorter time`,
      );
    }
    runs.push({ kind: 'run', id: occurrenceId(schedule._id, at), at, since: now });
  }
  return runs;
}

/** What was said about the schedule so far, with the patch over it. A new base takes the place of the old one. */
function patched(
  schedule: ScheduleDocument,
  patch: Omit<SchedulePatch, 'isActive'>,
): Omit<NewSchedule, 'id' | 'isActive'> {
  const { taskType, payload, rule, queue, priority, retries, timeout, maxRunningTime } = schedule;
  const { misfire, overlap, jitter, maxRuns, enabled, environments, userId } = schedule;
  const before = {
    ...{ taskType, payload, queue, priority, retries, timeout, maxRunningTime },
    ...{ misfire, overlap, jitter, maxRuns, enabled, environments, userId },
    ...(rule !== null && optionsOf(rule)),
  };
  const replaced = BASES.some((base) => patch[base] != null)
    ? Object.fromEntries(BASES.map((base) => [base, null]))
    : {};
  const merged = Object.entries({ ...before, ...replaced, ...patch }).filter(([, value]) => value !== null);
  return Object.fromEntries(merged) as unknown as Omit<NewSchedule, 'id' | 'isActive'>;
}

function objectOf<T extends object>(value: T, where: string): T {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw new ChronosError(
    'INVALID_ARGUMENT',
    `${where} takes an object, got ${value === null ? 'null' : typeof value}`,
  );
}

/** One error is thrown as it is; several become one that names all of them. */
function together(errors: readonly Error[]): Error {
  const [only] = errors;
  if (errors.length === 1 && only !== undefined) return only;
  return optionsError(
    'INVALID_SCHEDULE',
    errors.map(({ message }) => message),
  );
}

/** What it throws, if it does. */
function faultsOf(check: () => unknown): Error[] {
  try {
    check();
    return [];
  } catch (thrown) {
    return [toError(thrown)];
  }
}

function checkFlag(isActive: unknown): void {
  if (typeof isActive === 'boolean') return;
  throw new ChronosError('INVALID_SCHEDULE', `isActive must be true or false, got ${jsonText(isActive)}`);
}

function withoutUndefined<T extends object>(patch: T): T {
  return Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined)) as T;
}

function inCode(id: string): ChronosError {
  return new ChronosError(
    'SCHEDULE_IN_CODE',
    `the schedule '${id}' is defined in code: change it there. Pausing and resuming it works from anywhere`,
  );
}

function contended(id: string): ChronosError {
  return new ChronosError(
    'WRONG_STATE',
    `the schedule '${id}' changed ${MOST_TRIES} times while this call looked at it: try again`,
  );
}
