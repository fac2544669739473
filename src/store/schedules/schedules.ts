import type { mongo } from 'mongoose';
import { randomUUID } from 'node:crypto';
import type { ScheduleFilter } from '../../config/method-options.js';
import type { ScheduleDocument } from '../../domain/schedule/schedule.js';
import { toWritable } from '../../domain/stored-values.js';
import { isDuplicateKey, isRejectedByValidator } from '../mongo-errors.js';
import { pageById, type PageQuery } from '../pagination.js';
import { MAX_QUERY_MS, withTimeLimit } from '../query-limits.js';
import type { Collections } from '../schema/collections.js';

/** False if the id is taken. */
export async function insertSchedule(c: Collections, schedule: ScheduleDocument): Promise<boolean> {
  try {
    await c.schedules.insertOne(schedule);
    return true;
  } catch (error) {
    if (isDuplicateKey(error)) return false;
    throw error;
  }
}

/** Changes a schedule unless it was decided on or changed since it was read. Decisions in progress will fail. */
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

/**
 * Disables a schedule that this version cannot read or plan, unless it was changed since it was read. Sets only these
 * fields and computes nothing from stored ones, so no stored value can make the write fail. A document that the
 * validator of the collection rejects is written without it: every other update of it would be rejected, too.
 */
export async function disableSchedule(
  c: Collections,
  read: Pick<ScheduleDocument, '_id' | 'decision'>,
  disabledReason: string,
  now: Date,
): Promise<boolean> {
  // `$eq`: the id and the decision may be anything, also an object that MongoDB would read as an operator.
  const filter = {
    _id: { $eq: toWritable(read._id) },
    decision: { $eq: toWritable(read.decision ?? null) },
  } as mongo.Filter<ScheduleDocument>;
  const update = { $set: { isActive: false, disabledReason, decision: randomUUID(), updatedAt: now } };
  const write = (options: mongo.UpdateOptions): Promise<mongo.UpdateResult> =>
    c.schedules.updateOne(filter, update, options);
  const { matchedCount } = await write({}).catch((error: unknown) => {
    if (!isRejectedByValidator(error)) throw error;
    return write({ bypassDocumentValidation: true });
  });
  return matchedCount === 1;
}

export async function deleteSchedule(c: Collections, id: string): Promise<boolean> {
  return (await c.schedules.deleteOne({ _id: id })).deletedCount === 1;
}

export async function findSchedule(c: Collections, id: string): Promise<ScheduleDocument | null> {
  return c.schedules.findOne({ _id: id });
}

export interface ReadOptions {
  /** For reads that a person waits for. Without it, as in a worker that starts, only the socket timeout applies. */
  limitTime?: boolean;
}

export async function findSchedules(
  c: Collections,
  ids: readonly string[],
  options: ReadOptions = {},
): Promise<ScheduleDocument[]> {
  return withTimeLimit('reading the schedules defined in code', () =>
    c.schedules.find({ _id: { $in: [...ids] } }, timeLimit(options)).toArray(),
  );
}

/** Ordered by id. */
export async function listSchedules(
  c: Collections,
  query: PageQuery<ScheduleFilter>,
): Promise<ScheduleDocument[]> {
  return withTimeLimit('this list of schedules', () =>
    pageById(c.schedules, { ...query, direction: 1, projection: {}, hint: { _id: 1 } }),
  );
}

/** Ids of schedules that are defined in code but are not in `known`. */
export async function findForeignDefinitions(
  c: Collections,
  known: readonly string[],
  options: ReadOptions = {},
): Promise<string[]> {
  const filter = { owner: 'code', _id: { $nin: [...known] } } as const;
  const found = await withTimeLimit('finding schedules that this code does not define', () =>
    c.schedules.find(filter, { projection: { _id: 1 }, ...timeLimit(options) }).toArray(),
  );
  return found.map(({ _id }) => _id);
}

function timeLimit({ limitTime = false }: ReadOptions): { maxTimeMS?: number } {
  return limitTime ? { maxTimeMS: MAX_QUERY_MS } : {};
}
