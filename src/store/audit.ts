import type { AuditDocument } from './documents.js';
import { bounded } from './bounded.js';
import { AUDIT_INDEX, type Collections } from './models.js';
import { pageByTime, type Place } from './pages.js';

export async function addAudit(c: Collections, entry: AuditDocument): Promise<void> {
  await c.audit.insertOne(entry);
}

/** The newest first. */
export async function listAudit(
  c: Collections,
  after: Place | undefined,
  limit: number,
): Promise<AuditDocument[]> {
  const request = { filter: {}, direction: -1, hint: AUDIT_INDEX, projection: {}, limit, after } as const;
  return bounded('this list of audit entries', () => pageByTime(c.audit, 'at', request));
}
