import type { ExecutionDocument } from '../domain/execution.js';
import { DUPLICATE_KEY, isWriteReport } from './faults.js';
import type { Collections } from './models.js';

/** Adds rows for attempts whose outcome is confirmed. A row that is there already is left: one per (job, fence). */
export async function logExecutions(c: Collections, rows: ExecutionDocument[]): Promise<void> {
  try {
    await c.executions.insertMany(rows, { ordered: false });
  } catch (error) {
    if (!isWriteReport(error) || [error.writeErrors].flat().some(({ code }) => code !== DUPLICATE_KEY))
      throw error;
  }
}
