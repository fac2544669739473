import type { SkipDocument } from '../domain/schedule.js';
import { DUPLICATE_KEY, isWriteReport } from './faults.js';
import type { Collections } from './models.js';

/** Records occurrences that did not become jobs. One that is recorded already is left as it is. */
export async function recordSkips(c: Collections, skips: readonly SkipDocument[]): Promise<void> {
  try {
    await c.skips.insertMany([...skips], { ordered: false });
  } catch (error) {
    if (!isWriteReport(error) || [error.writeErrors].flat().some(({ code }) => code !== DUPLICATE_KEY))
      throw error;
  }
}

/** The last ones first. */
export async function findSkips(c: Collections, scheduleId: string, limit: number): Promise<SkipDocument[]> {
  return c.skips.find({ scheduleId }, { sort: { at: -1 }, limit }).toArray();
}
