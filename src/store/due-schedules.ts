import type { mongo } from 'mongoose';
import type { ScheduleDocument } from '../domain/schedule.js';
import type { Collections } from './models.js';
import { DUE_SCHEDULES_INDEX, OWING_SCHEDULES_INDEX } from './schedule-models.js';

/** The schedules a process may decide on. */
export interface ScheduleScope {
  /** Definitions it has in code; stored ones are anybody's. */
  names: readonly string[];
  environment: string;
  /** Documents it cannot read. */
  except: readonly string[];
}

/** Active schedules with an occurrence up to the instant that nobody has decided on, the oldest first. */
export async function findDueSchedules(
  c: Collections,
  scope: ScheduleScope,
  until: Date,
  limit: number,
): Promise<ScheduleDocument[]> {
  const filter = { ...withinScope(scope), isActive: true, nextRunAt: { $lte: until } };
  return c.schedules.find(filter, { hint: DUE_SCHEDULES_INDEX, sort: { nextRunAt: 1 }, limit }).toArray();
}

/** When the next schedule becomes due after the instant. */
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
 * Schedules with decisions from before the instant that are not carried out: a run waits, or somebody died over it.
 * By id from `after` on, so that many that only wait do not hide the others.
 */
export async function findOwingSchedules(
  c: Collections,
  scope: ScheduleScope,
  before: Date,
  after: string,
  limit: number,
): Promise<ScheduleDocument[]> {
  const filter = { $and: [withinScope(scope), { _id: { $gt: after } }], 'owed.since': { $lte: before } };
  return c.schedules.find(filter, { hint: OWING_SCHEDULES_INDEX, sort: { _id: 1 }, limit }).toArray();
}

function withinScope({ names, environment, except }: ScheduleScope): mongo.Filter<ScheduleDocument> {
  return {
    $or: [{ owner: 'api' }, { _id: { $in: [...names] } }],
    // No restriction, or this one among them.
    environments: { $in: [[], environment] },
    ...(except.length > 0 && { _id: { $nin: [...except] } }),
  };
}
