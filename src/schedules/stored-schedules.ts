import { randomUUID } from 'node:crypto';
import {
  readPause,
  readScheduleQuery,
  type PauseOptions,
  type ScheduleQueryOptions,
} from '../config/call-options.js';
import { ChronosError } from '../domain/errors.js';
import { checkScheduleId } from '../domain/names.js';
import { hashOf, type ScheduleDocument, type SkipDocument } from '../domain/schedule.js';
import { jsonText } from '../domain/text.js';
import { newJobId } from '../store/bson.js';
import type { Store } from '../store/store.js';
import { untilFirst } from './contention.js';
import { checkSchedule, faultsOf, type CheckingParts, type NewSchedule } from './given-schedule.js';
import { changedSchedule, newSchedule, recountedFrom } from './new-schedule.js';
import { findReadable, unreadable } from './readable.js';
import { RunsOnDemand, type RunsOnDemandParts } from './runs-on-demand.js';
import { patched, type SchedulePatch } from './schedule-patch.js';
import { scheduleView, type StoredSchedule } from './schedule-view.js';

/** Schedules in the order of their ids, and the id after which the next page begins. */
export interface SchedulePage {
  schedules: StoredSchedule[];
  next: string | null;
}

export interface StoredSchedulesParts extends CheckingParts, Omit<RunsOnDemandParts, 'store' | 'context'> {
  store: RunsOnDemandParts['store'] &
    Pick<Store, 'insertSchedule' | 'changeSchedule' | 'deleteSchedule' | 'listSchedules' | 'findSkips'>;
  /** The schedules changed: whoever materialises in this process need not wait for the stream. */
  nudge: () => void;
}

type Change = Partial<ScheduleDocument> & Pick<ScheduleDocument, 'decision'>;

/** Schedules at run time: added, changed, paused and triggered by people and programs, followed by every worker. */
export class StoredSchedules {
  readonly onDemand: RunsOnDemand;
  readonly #parts: StoredSchedulesParts;

  constructor(parts: StoredSchedulesParts) {
    this.#parts = parts;
    this.onDemand = new RunsOnDemand(parts);
  }

  async add(input: NewSchedule): Promise<string> {
    const { store, clock, nudge } = this.#parts;
    const { id = newJobId(), isActive = true, ...given } = objectOf(input, 'addSchedule()');
    const now = clock.now();
    const faults = [...faultsOf(() => checkScheduleId(id)), ...faultsOf(() => checkIsActive(isActive))];
    const request = { where: 'addSchedule()', anchor: now, faults };
    const definition = await checkSchedule(this.#parts, given, request);
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
    const { isActive, ...changes } = withoutUndefined(objectOf(patch, 'updateSchedule()'));
    if (isActive != null) checkIsActive(isActive);
    const hasChanges = Object.keys(changes).length > 0;
    if (hasChanges) {
      const found = await this.#change(id, async (schedule, now) => {
        if (schedule.owner === 'code') throw inCode(id);
        const { given, loose } = patched(schedule, changes);
        const request = { where: 'updateSchedule()', anchor: schedule.anchor, loose };
        const definition = await checkSchedule(this.#parts, given, request);
        return changedSchedule(schedule, definition, hashOf(definition), now);
      });
      if (!found) return false;
    }
    if (isActive == null) return hasChanges || (await findReadable(this.#parts.store, id)) !== null;
    return isActive ? this.resume(id) : this.pause(id, { reason: 'isActive: false' });
  }

  async remove(id: string): Promise<boolean> {
    checkScheduleId(id);
    const removed = await this.#parts.store.deleteSchedule(id);
    this.#parts.nudge();
    return removed;
  }

  async get(id: string): Promise<StoredSchedule | null> {
    const schedule = await findReadable(this.#parts.store, id);
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

  /** False when there is no such schedule. */
  async #change(
    id: string,
    change: (schedule: ScheduleDocument, now: Date) => Change | Promise<Change>,
  ): Promise<boolean> {
    const { store, clock, nudge } = this.#parts;
    return untilFirst(id, async () => {
      const schedule = await findReadable(store, id);
      if (schedule === null) return false;
      const isFirst = await store.changeSchedule(schedule, await change(schedule, clock.now()));
      if (isFirst) nudge();
      return isFirst || undefined;
    });
  }

  #view(schedule: ScheduleDocument): StoredSchedule {
    const { context, clock } = this.#parts;
    return scheduleView(schedule, context.timezone, clock.now());
  }
}

function objectOf<T extends object>(value: T, where: string): T {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw new ChronosError(
    'INVALID_ARGUMENT',
    `${where} takes an object, got ${value === null ? 'null' : typeof value}`,
  );
}

function checkIsActive(isActive: unknown): void {
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
