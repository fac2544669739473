import type { mongo } from 'mongoose';
import type { SkipDocument } from '../../domain/schedule/schedule.js';
import { DUPLICATE_KEY, isPartialWriteError } from '../mongo-errors.js';
import { MAX_QUERY_MS, withTimeLimit } from '../query-limits.js';
import type { Collections } from '../schema/collections.js';

/** Records occurrences that did not become jobs. A skip that is recorded already stays. Returns the rejected ones. */
export async function recordSkips(
  c: Collections,
  skips: readonly SkipDocument[],
): Promise<Map<string, Error>> {
  try {
    await c.skips.insertMany([...skips], { ordered: false });
    return new Map();
  } catch (error) {
    if (!isPartialWriteError(error)) throw error;
    const failures = [error.writeErrors].flat().filter(({ code }) => code !== DUPLICATE_KEY);
    return new Map(
      failures.map(({ index, errmsg }) => [
        skips[index]?._id ?? '',
        new Error(errmsg ?? 'rejected by the server'),
      ]),
    );
  }
}

/** Newest first. */
export async function findSkips(c: Collections, scheduleId: string, limit: number): Promise<SkipDocument[]> {
  return find(c, { scheduleId }, limit);
}

/** The last skips that begin until `at`; one of them may cover it. */
export async function findSkipsAt(c: Collections, scheduleId: string, at: Date): Promise<SkipDocument[]> {
  return find(c, { scheduleId, at: { $lte: at } }, 10);
}

function find(c: Collections, filter: mongo.Filter<SkipDocument>, limit: number): Promise<SkipDocument[]> {
  return withTimeLimit('reading skips', () =>
    c.skips.find(filter, { sort: { at: -1 }, limit, maxTimeMS: MAX_QUERY_MS }).toArray(),
  );
}
