import {
  readAuditEntry,
  readAuditQuery,
  type AuditEntry,
  type AuditFilterOptions,
  type PageOptions,
} from '../config/query-options.js';
import type { Clock } from '../domain/clock.js';
import { newJobId } from '../store/bson.js';
import type { AuditDocument } from '../store/documents.js';
import type { Store } from '../store/store.js';
import { badCursor, fromCursor, paged } from './cursor.js';

/** How long entries are kept: 90 days, in milliseconds. */
const KEPT = 90 * 86_400_000;

export type AuditView = Omit<AuditDocument, '_id' | 'expiresAt'> & { id: string };

export interface AuditPage {
  entries: AuditView[];
  next: string | null;
}

/** Writes down who did what. Resolves once a majority has it. */
export async function addAudit(
  store: Pick<Store, 'addAudit'>,
  clock: Clock,
  input: AuditEntry,
): Promise<AuditView> {
  const {
    who,
    action,
    target = null,
    filter = null,
    counts = null,
    requestId = null,
  } = readAuditEntry(input);
  const at = clock.now();
  const entry: AuditDocument = {
    ...{ _id: newJobId(), at, who, action, target, filter, counts, requestId },
    expiresAt: new Date(at.getTime() + KEPT),
  };
  await store.addAudit(entry);
  return auditView(entry);
}

/** The newest first. */
export async function listAudit(
  store: Pick<Store, 'listAudit'>,
  query: AuditFilterOptions & PageOptions,
): Promise<AuditPage> {
  const { filter, limit, after: cursor } = readAuditQuery(query);
  const after = fromCursor(cursor);
  if (after?.at === null) throw badCursor();
  const found = await store.listAudit({ filter, after, limit: limit + 1 });
  const { items, next } = paged(found, limit, ({ at, _id }) => ({ at, id: _id }), auditView);
  return { entries: items, next };
}

function auditView({ _id, expiresAt: _expiresAt, ...fields }: AuditDocument): AuditView {
  return { id: _id, ...fields };
}
