import type { mongo } from 'mongoose';
import type { ScheduleDocument } from '../../domain/schedule/schedule.js';
import { MAX_QUERY_MS, withTimeLimit } from '../query-limits.js';
import type { Collections } from '../schema/collections.js';
import { DUE_SCHEDULES_INDEX, PENDING_SCHEDULES_INDEX } from '../schema/schedule-schemas.js';

/** The schedules that a process may plan. */
export interface ScheduleScope {
  /** Its definitions in code. Every process may plan the schedules of the API. */
  names: readonly string[];
  environment: string;
  /** Malformed documents. */
  except: readonly string[];
}

/** Active schedules with an unplanned occurrence up to `until`, oldest first. */
export async function findDueSchedules(
  c: Collections,
  scope: ScheduleScope,
  until: Date,
  limit: number,
): Promise<ScheduleDocument[]> {
  const filter = { ...withinScope(scope), isActive: true, nextRunAt: { $lte: until } };
  return c.schedules.find(filter, { hint: DUE_SCHEDULES_INDEX, sort: { nextRunAt: 1 }, limit }).toArray();
}

/** The due time of the next schedule after `after`. */
export async function nextScheduleAt(
  c: Collections,
  scope: ScheduleScope,
  after: Date,
): Promise<Date | null> {
  const filter = { ...withinScope(scope), isActive: true, nextRunAt: { $gt: after } };
  const options = {
    hint: DUE_SCHEDULES_INDEX,
    sort: { nextRunAt: 1 },
    projection: { nextRunAt: 1 },
  } as const;
  return (await c.schedules.findOne(filter, options))?.nextRunAt ?? null;
}

/**
 * Schedules with entries that have been pending since `before` or earlier: a run waits for another one, or a process
 * crashed. Ordered by id, starting after `after`, so that many waiting schedules do not hide the others.
 */
export async function findPendingSchedules(
  c: Collections,
  scope: ScheduleScope,
  before: Date,
  after: string,
  limit: number,
): Promise<ScheduleDocument[]> {
  const filter = { $and: [withinScope(scope), { _id: { $gt: after } }], 'pending.since': { $lte: before } };
  return c.schedules.find(filter, { hint: PENDING_SCHEDULES_INDEX, sort: { _id: 1 }, limit }).toArray();
}

function withinScope({ names, environment, except }: ScheduleScope): mongo.Filter<ScheduleDocument> {
  return {
    $or: [{ owner: 'api' }, { _id: { $in: [...names] } }],
    // An empty list means every environment.
    environments: { $in: [[], environment] },
    ...(except.length > 0 && { _id: { $nin: [...except] } }),
  };
}

/**
 * Schedules that the queries above never find, because a field that they select by has the wrong type; except those
 * that are disabled already. Without an index: reads all schedules, within the time limit.
 */
export async function findUnselectableSchedules(c: Collections, limit: number): Promise<ScheduleDocument[]> {
  const isNot = (...types: string[]): object => ({ $not: { $type: types } });
  const filter = {
    disabledReason: isNot('string'),
    $or: [
      { _id: isNot('string') },
      { owner: { $nin: ['code', 'api'] } },
      { isActive: isNot('bool') },
      { nextRunAt: isNot('date', 'null') },
      { environments: isNot('array') },
      { environments: { $elemMatch: isNot('string') } },
    ],
  } as unknown as mongo.Filter<ScheduleDocument>;
  return withTimeLimit('reading the schedules', () =>
    c.schedules.find(filter, { limit, maxTimeMS: MAX_QUERY_MS }).toArray(),
  );
}

export type UnhealthySchedule = Pick<ScheduleDocument, '_id' | 'nextRunAt' | 'disabledReason'>;

/** Active schedules with an unplanned occurrence up to `before`, oldest first. */
export async function findLateSchedules(
  c: Collections,
  before: Date,
  limit: number,
): Promise<UnhealthySchedule[]> {
  const filter = { isActive: true, nextRunAt: { $lte: before } };
  return find(c, filter, limit, { hint: DUE_SCHEDULES_INDEX, sort: { nextRunAt: 1 } });
}

/** Where the jobs of active schedules go, the next due first. */
export async function findScheduleTargets(
  c: Collections,
  limit: number,
): Promise<Pick<ScheduleDocument, '_id' | 'taskType' | 'queue'>[]> {
  const options = {
    hint: DUE_SCHEDULES_INDEX,
    sort: { nextRunAt: 1 },
    limit,
    maxTimeMS: MAX_QUERY_MS,
  } as const;
  const projection = { taskType: 1, queue: 1 } as const;
  return withTimeLimit('reading the schedules', () =>
    c.schedules.find({ isActive: true }, { ...options, projection }).toArray(),
  );
}

/** Schedules with an invalid rule or a malformed document. Without an index: reads all schedules, within the time limit. */
export async function findDisabledSchedules(c: Collections, limit: number): Promise<UnhealthySchedule[]> {
  return find(c, { disabledReason: { $type: 'string' } }, limit, {});
}

/** Schedules with entries that have been pending since `before` or earlier. */
export async function findLongPending(
  c: Collections,
  before: Date,
  limit: number,
): Promise<UnhealthySchedule[]> {
  return find(c, { 'pending.since': { $lte: before } }, limit, { hint: PENDING_SCHEDULES_INDEX });
}

function find(
  c: Collections,
  filter: mongo.Filter<ScheduleDocument>,
  limit: number,
  options: mongo.FindOptions,
): Promise<UnhealthySchedule[]> {
  const projection = { nextRunAt: 1, disabledReason: 1 } as const;
  return withTimeLimit('reading the schedules', () =>
    c.schedules
      .find<UnhealthySchedule>(filter, { ...options, projection, limit, maxTimeMS: MAX_QUERY_MS })
      .toArray(),
  );
}
