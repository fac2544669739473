import type { ScheduleDocument } from '../domain/schedule.js';
import { bounded, MOST_TIME } from './bounded.js';
import { isDuplicateKey } from './faults.js';
import type { Collections } from './models.js';

/** False when there is one of this id already. */
export async function insertSchedule(c: Collections, schedule: ScheduleDocument): Promise<boolean> {
  try {
    await c.schedules.insertOne(schedule);
    return true;
  } catch (error) {
    if (isDuplicateKey(error)) return false;
    throw error;
  }
}

/**
 * Writes fields of a schedule if nobody has decided on it or changed it since it was read, and voids every decision
 * under way.
 */
export async function changeSchedule(
  c: Collections,
  read: Pick<ScheduleDocument, '_id' | 'decision'>,
  fields: Partial<ScheduleDocument> & Pick<ScheduleDocument, 'decision'>,
): Promise<boolean> {
  const { matchedCount } = await c.schedules.updateOne(
    { _id: read._id, decision: read.decision },
    { $set: fields, $inc: { rev: 1 } },
  );
  return matchedCount === 1;
}

export async function deleteSchedule(c: Collections, id: string): Promise<boolean> {
  return (await c.schedules.deleteOne({ _id: id })).deletedCount === 1;
}

export async function findSchedule(c: Collections, id: string): Promise<ScheduleDocument | null> {
  return c.schedules.findOne({ _id: id });
}

/** A person who waits is told when it takes too long; a worker that starts rather waits. */
export interface Waiting {
  isPerson?: boolean;
}

export async function findSchedules(
  c: Collections,
  ids: readonly string[],
  waiting: Waiting = {},
): Promise<ScheduleDocument[]> {
  return bounded('reading the schedules of code', () =>
    c.schedules.find({ _id: { $in: [...ids] } }, limitFor(waiting)).toArray(),
  );
}

export interface ScheduleQuery {
  owner?: 'code' | 'api';
  userId?: string;
  taskType?: string;
  isActive?: boolean;
  /** Those whose id comes after this one. */
  after?: string;
  limit: number;
}

/** In the order of their ids. */
export async function listSchedules(c: Collections, query: ScheduleQuery): Promise<ScheduleDocument[]> {
  const { after, limit, ...exact } = query;
  const filter = { ...exact, ...(after !== undefined && { _id: { $gt: after } }) };
  return c.schedules.find(filter, { sort: { _id: 1 }, limit }).toArray();
}

/** Schedules of code that is not in `known`. */
export async function findForeignDefinitions(
  c: Collections,
  known: readonly string[],
  waiting: Waiting = {},
): Promise<string[]> {
  const filter = { owner: 'code', _id: { $nin: [...known] } } as const;
  const found = await bounded('looking for schedules of other code', () =>
    c.schedules.find(filter, { projection: { _id: 1 }, ...limitFor(waiting) }).toArray(),
  );
  return found.map(({ _id }) => _id);
}

function limitFor({ isPerson = false }: Waiting): { maxTimeMS?: number } {
  return isPerson ? { maxTimeMS: MOST_TIME } : {};
}
