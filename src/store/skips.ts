import type { mongo } from 'mongoose';
import type { SkipDocument } from '../domain/schedule.js';
import { bounded, MOST_TIME } from './bounded.js';
import { DUPLICATE_KEY, isWriteReport } from './faults.js';
import type { Collections } from './models.js';

/** Records occurrences that did not become jobs; one that is recorded already is left as it is. Returns what was refused. */
export async function recordSkips(
  c: Collections,
  skips: readonly SkipDocument[],
): Promise<Map<string, Error>> {
  try {
    await c.skips.insertMany([...skips], { ordered: false });
    return new Map();
  } catch (error) {
    if (!isWriteReport(error)) throw error;
    const failures = [error.writeErrors].flat().filter(({ code }) => code !== DUPLICATE_KEY);
    return new Map(
      failures.map(({ index, errmsg }) => [
        skips[index]?._id ?? '',
        new Error(errmsg ?? 'refused by the server'),
      ]),
    );
  }
}

/** The last ones first. */
export async function findSkips(c: Collections, scheduleId: string, limit: number): Promise<SkipDocument[]> {
  return find(c, { scheduleId }, limit);
}

/** Records that may cover the instant: the last few that begin up to it. */
export async function findSkipsAt(c: Collections, scheduleId: string, at: Date): Promise<SkipDocument[]> {
  return find(c, { scheduleId, at: { $lte: at } }, 10);
}

function find(c: Collections, filter: mongo.Filter<SkipDocument>, limit: number): Promise<SkipDocument[]> {
  return bounded('reading what was skipped', () =>
    c.skips.find(filter, { sort: { at: -1 }, limit, maxTimeMS: MOST_TIME }).toArray(),
  );
}
