import type { mongo } from 'mongoose';
import type { ScheduleDocument } from '../domain/schedule.js';
import { DUE_SCHEDULES_INDEX, OWING_SCHEDULES_INDEX, type Collections } from './models.js';

/** The schedules a process may decide on. */
export interface ScheduleScope {
  /** Definitions it has in code; stored ones are anybody's. */
  names: readonly string[];
  environment: string;
  /** Documents it cannot read. */
  except: readonly string[];
}

/** Active schedules with an occurrence that nobody has decided on, the oldest first. */
export async function findDueSchedules(
  c: Collections,
  scope: ScheduleScope,
  now: Date,
  limit: number,
): Promise<ScheduleDocument[]> {
  const filter = { ...withinScope(scope), isActive: true, nextRunAt: { $lte: now } };
  return c.schedules.find(filter, { hint: DUE_SCHEDULES_INDEX, sort: { nextRunAt: 1 }, limit }).toArray();
}

/** Schedules with decisions from before the instant that are not carried out: a run waits, or somebody died over it. */
export async function findOwingSchedules(
  c: Collections,
  scope: ScheduleScope,
  before: Date,
  limit: number,
): Promise<ScheduleDocument[]> {
  const filter = { ...withinScope(scope), 'owed.since': { $lte: before } };
  return c.schedules.find(filter, { hint: OWING_SCHEDULES_INDEX, limit }).toArray();
}

/** When the next schedule becomes due. */
export async function nextScheduleAt(c: Collections, scope: ScheduleScope): Promise<Date | null> {
  const filter = { ...withinScope(scope), isActive: true, nextRunAt: { $ne: null } };
  const options = {
    hint: DUE_SCHEDULES_INDEX,
    sort: { nextRunAt: 1 },
    projection: { nextRunAt: 1 },
  } as const;
  return (await c.schedules.findOne(filter, options))?.nextRunAt ?? null;
}

function withinScope({ names, environment, except }: ScheduleScope): mongo.Filter<ScheduleDocument> {
  return {
    $or: [{ owner: 'api' }, { _id: { $in: [...names] } }],
    // No restriction, or this one among them.
    environments: { $in: [[], environment] },
    ...(except.length > 0 && { _id: { $nin: [...except] } }),
  };
}
