import type { SkipDocument } from '../../domain/schedule/schedule.js';
import { rejectedWrites } from '../mongo-errors.js';
import { pageByTime, type PageQuery } from '../pagination.js';
import { MAX_QUERY_MS, withTimeLimit } from '../query-limits.js';
import { SKIPS_INDEX } from '../schema/schedule-schemas.js';
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
export async function listSkips(
  c: Collections,
  query: PageQuery<{ scheduleId: string }>,
): Promise<SkipDocument[]> {
  return withTimeLimit('this list of skips', () =>
    pageByTime(c.skips, 'at', { ...query, direction: -1, projection: {}, hint: SKIPS_INDEX }),
  );
}

/** The last skips that begin at or before `at`; one of them may cover it. */
export async function findSkipsAt(c: Collections, scheduleId: string, at: Date): Promise<SkipDocument[]> {
  const options = { sort: { at: -1 }, limit: 10, maxTimeMS: MAX_QUERY_MS } as const;
  return withTimeLimit('reading skips', () =>
    c.skips.find({ scheduleId, at: { $lte: at } }, options).toArray(),
  );
}
