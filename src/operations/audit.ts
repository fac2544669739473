import {
  type AuditEntry,
  type AuditFilterOptions,
  type Page,
  type PageOptions,
  parseAuditEntry,
  parseAuditQuery,
} from '../config/query-options.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError, type ErrorCode } from '../domain/errors.js';
import { newJobId } from '../store/bson.js';
import { readPage } from '../store/pagination.js';
import type { AuditDocument } from '../store/schema/system-schemas.js';
import type { Store } from '../store/store.js';
import type { BulkProgress } from './bulk.js';

const RETENTION_MS = 90 * 86_400_000;

/** A stored audit entry: who changed what, and when. */
export type AuditView = Omit<AuditDocument, '_id' | 'expiresAt'> & { id: string };

/** Resolves when the write is acknowledged by a majority. */
export async function addAudit(
  store: Pick<Store, 'addAudit'>,
  clock: Clock,
  input: AuditEntry,
): Promise<AuditView> {
  const at = clock.now();
  const entry: AuditDocument = {
    ...{ _id: newJobId(), at, expiresAt: new Date(at.getTime() + RETENTION_MS) },
    ...{ target: null, filter: null, counts: null, requestId: null },
    ...parseAuditEntry(input),
  };
  await store.addAudit(entry);
  return toAuditView(entry);
}

/** Newest first. */
export async function listAudit(
  store: Pick<Store, 'listAudit'>,
  query: AuditFilterOptions & PageOptions,
): Promise<Page<AuditView>> {
  const { items, next } = await readPage(
    parseAuditQuery(query),
    (one) => store.listAudit(one),
    ({ at, _id }) => ({ at, id: _id }),
  );
  return { items: items.map(toAuditView), next };
}

function toAuditView({ _id, expiresAt: _expiresAt, ...fields }: AuditDocument): AuditView {
  return { id: _id, ...fields };
}

/** The target of a change, and how many documents it changed. */
export type AuditDetails = Pick<AuditEntry, 'target' | 'filter' | 'counts'>;

export interface AuditedChange<A> {
  operations: { audit(entry: AuditEntry): Promise<unknown> };
  who: string;
  /** The HTTP API and the CLI use the same name for the same change. */
  action: string;
  requestId: string;
  /** Details that are known before the change, such as its target. */
  before: AuditDetails;
  change: () => Promise<A>;
  /** Details that are known after the change, such as counts. */
  after: (result: A) => AuditDetails | 'refused';
}

/** After one of these errors it is certain that nothing was changed. */
const NO_CHANGE_CODES: ReadonlySet<ErrorCode> = new Set([
  'INVALID_ARGUMENT',
  'INVALID_OPTIONS',
  'INVALID_PAYLOAD',
  'INVALID_JOB',
  'INVALID_SCHEDULE',
  'SCHEDULE_NEVER_RUNS',
  'JOB_NOT_FOUND',
  'SCHEDULE_NOT_FOUND',
  'WORKER_NOT_FOUND',
  'SCHEDULE_EXISTS',
  'SCHEDULE_IN_CODE',
  'SCHEDULE_FROZEN',
  'WRONG_STATE',
  'LOCK_HELD',
]);

/**
 * Records the attempt, makes the change, then records its result. No change is made without an entry. If an attempt has
 * no second entry with the same request id, the process or the database failed in between and the result is unknown.
 */
export async function withAudit<A>(options: AuditedChange<A>): Promise<{ result: A; isRecorded: boolean }> {
  const { operations, who, action, requestId, before, change, after } = options;
  const record = (step: string, details: AuditDetails): Promise<unknown> =>
    operations.audit({ who, action: `${action}${step}`, requestId, ...details });
  await record(':attempted', before).catch(throwUnwritable);
  let result: A;
  try {
    result = await change();
  } catch (error) {
    // After any other error the result is unknown, so the attempt stays without a second entry.
    if (error instanceof ChronosError && NO_CHANGE_CODES.has(error.code)) {
      await succeeds(record(':refused', before));
    }
    throw error;
  }
  const details = after(result);
  const recorded = details === 'refused' ? record(':refused', before) : record('', { ...before, ...details });
  return { result, isRecorded: await succeeds(recorded) };
}

/** The audit details of a bulk change. */
export function bulkCounts(change: BulkProgress & { cancelled?: number }): AuditDetails {
  const { matched, changed, requested, refused, cancelled } = change;
  const refusedTotal = Object.values(refused).reduce((total, count) => total + count, 0);
  const counts = { matched, changed, requested, refused: refusedTotal };
  return { counts: cancelled === undefined ? counts : { ...counts, cancelled } };
}

/** A ChronosError is thrown as it is: it already explains the problem (no connection, an invalid id). */
function throwUnwritable(cause: unknown): never {
  if (cause instanceof ChronosError) throw cause;
  const message = 'no change made: the audit entry could not be written';
  throw new ChronosError('AUDIT_UNWRITABLE', message, { cause });
}

/** Does not reject: after the change is made, an error would only make the caller repeat it. */
function succeeds(work: Promise<unknown>): Promise<boolean> {
  return work.then(
    () => true,
    () => false,
  );
}
