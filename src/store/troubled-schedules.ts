import type { mongo } from 'mongoose';
import type { ScheduleDocument } from '../domain/schedule.js';
import { bounded, MOST_TIME } from './bounded.js';
import type { Collections } from './models.js';
import { DUE_SCHEDULES_INDEX, OWING_SCHEDULES_INDEX } from './schedule-models.js';

export type TroubledSchedule = Pick<ScheduleDocument, '_id' | 'nextRunAt' | 'disabledReason'>;

/** Active ones with an occurrence from before the instant that nobody has decided on, the oldest first. */
export async function findLateSchedules(
  c: Collections,
  before: Date,
  limit: number,
): Promise<TroubledSchedule[]> {
  const filter = { isActive: true, nextRunAt: { $lte: before } };
  return find(c, filter, limit, { hint: DUE_SCHEDULES_INDEX, sort: { nextRunAt: 1 } });
}

/** Those whose rule cannot be read. No index has these: a pass over the schedules, which ends with the time limit. */
export async function findDisabledSchedules(c: Collections, limit: number): Promise<TroubledSchedule[]> {
  return find(c, { disabledReason: { $type: 'string' } }, limit, {});
}

/** Those with a run or skip that was decided before the instant and is not carried out. */
export async function findLongOwing(
  c: Collections,
  before: Date,
  limit: number,
): Promise<TroubledSchedule[]> {
  return find(c, { 'owed.since': { $lte: before } }, limit, { hint: OWING_SCHEDULES_INDEX });
}

function find(
  c: Collections,
  filter: mongo.Filter<ScheduleDocument>,
  limit: number,
  options: mongo.FindOptions,
): Promise<TroubledSchedule[]> {
  const projection = { nextRunAt: 1, disabledReason: 1 } as const;
  return bounded('looking at the schedules', () =>
    c.schedules
      .find<TroubledSchedule>(filter, { ...options, projection, limit, maxTimeMS: MOST_TIME })
      .toArray(),
  );
}
