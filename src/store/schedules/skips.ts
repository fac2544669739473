import type { mongo } from 'mongoose';
import type { SkipDocument } from '../../domain/schedule/schedule.js';
import { rejectedWrites } from '../mongo-errors.js';
import { MAX_QUERY_MS, withTimeLimit } from '../query-limits.js';
import type { Collections } from '../schema/collections.js';

/** Records occurrences that did not become jobs; existing records stay. Returns those the server rejected, by id. */
export async function recordSkips(
  c: Collections,
  skips: readonly SkipDocument[],
): Promise<Map<string, Error>> {
  try {
    await c.skips.insertMany([...skips], { ordered: false });
    return new Map();
  } catch (error) {
    const rejected = rejectedWrites(error).filter(({ isDuplicate }) => !isDuplicate);
    return new Map(rejected.map((write) => [skips[write.index]?._id ?? '', write.error]));
  }
}

/** Newest first. */
export async function findSkips(c: Collections, scheduleId: string, limit: number): Promise<SkipDocument[]> {
  return find(c, { scheduleId }, limit);
}

/** The last skips that begin at or before `at`; one of them may cover it. */
export async function findSkipsAt(c: Collections, scheduleId: string, at: Date): Promise<SkipDocument[]> {
  return find(c, { scheduleId, at: { $lte: at } }, 10);
}

function find(c: Collections, filter: mongo.Filter<SkipDocument>, limit: number): Promise<SkipDocument[]> {
  return withTimeLimit('reading skips', () =>
    c.skips.find(filter, { sort: { at: -1 }, limit, maxTimeMS: MAX_QUERY_MS }).toArray(),
  );
}
