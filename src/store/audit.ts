import type { AuditFilterOptions } from '../config/query-options.js';
import type { AuditDocument } from './documents.js';
import { bounded } from './bounded.js';
import { AUDIT_INDEX, type Collections } from './models.js';
import { pageByTime, type Place } from './pages.js';

export async function addAudit(c: Collections, entry: AuditDocument): Promise<void> {
  await c.audit.insertOne(entry);
}

export interface AuditQuery {
  filter: AuditFilterOptions;
  after: Place | undefined;
  limit: number;
}

/** The newest first. A filter is looked for along the way: people make few changes in 90 days. */
export async function listAudit(c: Collections, query: AuditQuery): Promise<AuditDocument[]> {
  const request = { ...query, direction: -1, hint: AUDIT_INDEX, projection: {} } as const;
  return bounded('this list of audit entries', () => pageByTime(c.audit, 'at', request));
}
