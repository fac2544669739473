import { randomUUID } from 'node:crypto';
import {
  type PauseOptions,
  parsePauseOptions,
  parseScheduleQuery,
  parseSkipQuery,
  type ScheduleQueryOptions,
} from '../../config/method-options.js';
import type { ResolvedOptions } from '../../config/options.js';
import type { Page, PageOptions } from '../../config/query-options.js';
import { nextRuns, occurrencesOf } from '../../domain/calendar/occurrences.js';
import { ChronosError } from '../../domain/errors.js';
import { assertScheduleId } from '../../domain/identifiers.js';
import { type Instant, parseInstant } from '../../domain/instant.js';
import { waitingBehind } from '../../domain/schedule/pending.js';
import { hashOf, type ScheduleDocument, type SkipDocument } from '../../domain/schedule/schedule.js';
import { copyOptions, flag, parse } from '../../domain/validation.js';
import { retryOnConflict } from '../../runtime/retry.js';
import { newJobId } from '../../store/bson.js';
import { readPage } from '../../store/pagination.js';
import type { Store } from '../../store/store.js';
import type { ScheduleEnqueuer } from '../enqueue/schedule-enqueuer.js';
import {
  applyDefinition,
  isCurrent,
  newSchedule,
  restartFrom,
  type ScheduleChange,
} from './schedule-document.js';
import {
  applyPatch,
  attempt,
  type NewSchedule,
  parseScheduleInput,
  type ScheduleInputDeps,
  type SchedulePatch,
  type ScheduleUpsert,
} from './schedule-input.js';
import { findValidSchedule, idText, type ShownSchedule, toShownSchedule } from './stored-schedule-check.js';

/** A schedule as the application sees it. */
export type StoredSchedule = Omit<ScheduleDocument, '_id' | 'hash' | 'decision' | 'pending'> & {
  readonly id: string;
  /** Runs that wait for the current one to end. */
  readonly waiting: number;
  /**
   * What is wrong with the stored document; null if it is valid. Only in lists, where fields that cannot be shown have a
   * default instead. Workers disable such a schedule.
   */
  readonly invalid: string | null;
  /** The next `count` occurrences after `from` (default: now), even if the schedule is not active. */
  nextRuns(count: number, from?: Instant): Date[];
};

/** What `upsertSchedule()` did with a schedule. */
export interface UpsertResult {
  id: string;
  /** `unchanged`: the stored definition is the same, and nothing was written. */
  result: 'created' | 'updated' | 'unchanged';
}

/** Occurrences that did not become jobs. */
export type SkipView = Omit<SkipDocument, '_id' | 'scheduleId' | 'expiresAt'>;

export interface StoredSchedulesDeps extends ScheduleInputDeps {
  store: Pick<
    Store,
    'findSchedule' | 'insertSchedule' | 'changeSchedule' | 'deleteSchedule' | 'listSchedules' | 'listSkips'
  >;
  options: Pick<ResolvedOptions, 'maxPayloadBytes' | 'timezone'>;
  enqueuer: Pick<ScheduleEnqueuer, 'onSchedulesChanged'>;
}

/** Adds, changes, pauses and lists schedules at run time. All workers read them from the database. */
export class StoredSchedules {
  readonly #deps: StoredSchedulesDeps;

  constructor(deps: StoredSchedulesDeps) {
    this.#deps = deps;
  }

  async add(input: NewSchedule): Promise<string> {
    const { store, clock, enqueuer } = this.#deps;
    const {
      id = newJobId(),
      isActive = true,
      ...settings
    } = copyOptions(input, 'the schedule for addSchedule()');
    const now = clock.now();
    const errors: Error[] = [];
    attempt(errors, () => assertScheduleId(id));
    attempt(errors, () => parse(flag, isActive, 'isActive', 'INVALID_SCHEDULE'));
    const context = { where: 'addSchedule()', anchor: now, errors };
    const definition = await parseScheduleInput(this.#deps, settings, context);
    const schedule = newSchedule(id, 'api', definition, hashOf(definition), now);
    const pause = { isActive: false, paused: { at: now, by: null, reason: 'added inactive' } };
    if (!(await store.insertSchedule({ ...schedule, ...(!isActive && pause) }))) {
      throw new ChronosError(
        'SCHEDULE_EXISTS',
        `there is already a schedule '${id}': change it with updateSchedule() or \`chronos schedules update\``,
      );
    }
    enqueuer.onSchedulesChanged();
    return id;
  }

  /** Stores the schedule, or changes its definition if it differs. A paused schedule stays paused. */
  async upsert(input: ScheduleUpsert): Promise<UpsertResult> {
    const { store, clock, enqueuer } = this.#deps;
    const where = 'upsertSchedule()';
    const upsert = copyOptions(input, `the schedule for ${where}`);
    const { id, ...settings } = upsert;
    assertUpsertable(upsert);
    assertScheduleId(id);
    return retryOnConflict(`the schedule '${id}'`, async (): Promise<UpsertResult | undefined> => {
      const schedule = await findValidSchedule(store, id);
      if (schedule !== null) assertNotInCode(schedule);
      const now = clock.now();
      const context = { where, anchor: schedule?.anchor ?? now };
      const definition = await parseScheduleInput(this.#deps, settings, context);
      const hash = hashOf(definition);
      if (schedule !== null && isCurrent(schedule, hash)) return { id, result: 'unchanged' };
      const isStored =
        schedule === null
          ? await store.insertSchedule(newSchedule(id, 'api', definition, hash, now))
          : await store.changeSchedule(schedule, applyDefinition(schedule, definition, hash, now));
      if (!isStored) return undefined;
      enqueuer.onSchedulesChanged();
      return { id, result: schedule === null ? 'created' : 'updated' };
    });
  }

  async update(id: string, patch: SchedulePatch): Promise<boolean> {
    const { isActive, ...changes } = withoutUndefined(copyOptions(patch, 'the patch for updateSchedule()'));
    if (isActive != null) parse(flag, isActive, 'isActive', 'INVALID_SCHEDULE');
    const hasChanges = Object.keys(changes).length > 0;
    if (hasChanges) {
      const found = await this.#change(id, async (schedule, now) => {
        assertNotInCode(schedule);
        const { input, overridable } = applyPatch(schedule, changes);
        const context = { where: 'updateSchedule()', anchor: schedule.anchor, overridable };
        const definition = await parseScheduleInput(this.#deps, input, context);
        return applyDefinition(schedule, definition, hashOf(definition), now);
      });
      if (!found) return false;
    }
    if (isActive == null) return hasChanges || (await findValidSchedule(this.#deps.store, id)) !== null;
    return isActive ? this.resume(id) : this.pause(id, { reason: 'isActive: false' });
  }

  async remove(id: string): Promise<boolean> {
    assertScheduleId(id);
    const { store, enqueuer } = this.#deps;
    const removed = await store.deleteSchedule(id);
    enqueuer.onSchedulesChanged();
    return removed;
  }

  async get(id: string): Promise<StoredSchedule | null> {
    const schedule = await findValidSchedule(this.#deps.store, id);
    return schedule === null ? null : this.#view({ schedule, invalid: null });
  }

  /** In the order of their ids. Malformed schedules are marked: `invalid`. */
  async list(query: ScheduleQueryOptions = {}): Promise<Page<StoredSchedule>> {
    const { items, next } = await readPage(
      parseScheduleQuery(query),
      (one) => this.#deps.store.listSchedules(one),
      (schedule) => ({ at: null, id: idText(schedule) }),
      ({ at }) => at === null,
    );
    // Ids of other types follow all strings; a cursor cannot continue after them.
    const isLast = typeof items.at(-1)?._id !== 'string';
    return {
      items: items.map((document) => this.#view(toShownSchedule(document))),
      next: isLast ? null : next,
    };
  }

  /** Creates no more runs until `resume`; existing jobs still run. False if there is no such schedule. */
  async pause(id: string, options: PauseOptions = {}): Promise<boolean> {
    const { by = null, reason = null } = parsePauseOptions(options);
    return this.#change(id, (_, now) => ({
      isActive: false,
      paused: { at: now, by, reason },
      decision: randomUUID(),
      updatedAt: now,
    }));
  }

  /** Continues from now: occurrences during the pause are recorded as skipped. */
  async resume(id: string): Promise<boolean> {
    return this.#change(id, (schedule, now) => ({
      isActive: schedule.enabled && schedule.disabledReason === null,
      paused: null,
      decision: randomUUID(),
      updatedAt: now,
      ...(schedule.paused !== null && restartFrom(schedule, schedule, now, 'paused')),
    }));
  }

  /** Occurrences that did not become jobs, the latest first, within the retention time. */
  async skips(id: string, query: PageOptions = {}): Promise<Page<SkipView>> {
    assertScheduleId(id);
    const { items, next } = await readPage(
      { ...parseSkipQuery(query), filter: { scheduleId: id } },
      (one) => this.#deps.store.listSkips(one),
      ({ at, _id }) => ({ at, id: _id }),
    );
    return { items: items.map(toSkipView), next };
  }

  /** False if there is no such schedule. */
  async #change(
    id: string,
    change: (schedule: ScheduleDocument, now: Date) => ScheduleChange | Promise<ScheduleChange>,
  ): Promise<boolean> {
    assertScheduleId(id);
    const { store, clock, enqueuer } = this.#deps;
    return retryOnConflict(`the schedule '${id}'`, async () => {
      const schedule = await findValidSchedule(store, id);
      if (schedule === null) return false;
      const isChanged = await store.changeSchedule(schedule, await change(schedule, clock.now()));
      if (isChanged) enqueuer.onSchedulesChanged();
      return isChanged || undefined;
    });
  }

  #view({ schedule, invalid }: ShownSchedule): StoredSchedule {
    const { _id, hash: _hash, decision: _decision, pending, ...fields } = schedule;
    const { options, clock } = this.#deps;
    const now = clock.now();
    return {
      id: _id,
      ...fields,
      waiting: waitingBehind(fields.active, pending).length,
      invalid,
      nextRuns(count, from) {
        const start = from === undefined ? now : parseInstant(from, options.timezone, 'nextRuns() from');
        const { rule, anchor, maxRuns, runs } = fields;
        const left = Math.max(0, (maxRuns ?? Infinity) - runs);
        return rule === null ? [] : nextRuns(occurrencesOf(rule, anchor), count, start, left);
      },
    };
  }
}

function toSkipView({ _id, scheduleId, expiresAt, ...fields }: SkipDocument): SkipView {
  return fields;
}

function assertUpsertable({ id, ...rest }: object & { id?: unknown }): void {
  if (id === undefined) {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      'upsertSchedule() needs an id: without one, every start of the program would store another schedule',
    );
  }
  if ('isActive' in rest) {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      'upsertSchedule() does not take isActive, because it never pauses or resumes: use pauseSchedule() or resumeSchedule()',
    );
  }
}

function withoutUndefined<T extends object>(patch: T): T {
  return Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined)) as T;
}

function assertNotInCode({ _id, owner }: ScheduleDocument): void {
  if (owner !== 'code') return;
  throw new ChronosError(
    'SCHEDULE_IN_CODE',
    `the schedule '${_id}' is defined in code: change it there. It can be paused and resumed from anywhere`,
  );
}
