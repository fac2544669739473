import type { AuditEntry } from '../config/query-options.js';
import { ChronosError, type ErrorCode } from '../domain/errors.js';
import type { BulkProgress } from './bulk.js';
import type { Operations } from './operations.js';

/** What the audit collection keeps of a change beside who and what. */
export type AuditDetails = Pick<AuditEntry, 'target' | 'filter' | 'counts'>;

export interface AuditedChange<A> {
  operations: Pick<Operations, 'audit'>;
  who: string;
  /** What the change is called, by the HTTP API and by the command alike. */
  action: string;
  requestId: string;
  /** Known before: which it is about. */
  before: AuditDetails;
  change: () => Promise<A>;
  /** Known afterwards. */
  after: (answer: A) => AuditDetails | 'refused';
}

/** After these nothing was changed: it was not possible, or not what was asked for. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set([
  'INVALID_ARGUMENT',
  'INVALID_OPTIONS',
  'INVALID_PAYLOAD',
  'INVALID_SCHEDULE',
  'SCHEDULE_NEVER_RUNS',
  'JOB_NOT_FOUND',
  'SCHEDULE_NOT_FOUND',
  'SCHEDULE_EXISTS',
  'SCHEDULE_IN_CODE',
  'SCHEDULE_FROZEN',
  'WRONG_STATE',
  'LOCK_HELD',
]);

/**
 * First that somebody tries, then the change, then what came of it: there is no change that nobody wrote down. An
 * attempt without a second entry of the same request says that the process, or the database, was gone in between.
 */
export async function audited<A>(given: AuditedChange<A>): Promise<{ answer: A; isRecorded: boolean }> {
  const { operations, who, action, requestId, before, change, after } = given;
  const note = (step: string, details: AuditDetails): Promise<unknown> =>
    operations.audit({ who, action: `${action}${step}`, requestId, ...details });
  await note(':attempted', before).catch(unwritable);
  let answer: A;
  try {
    answer = await change();
  } catch (error) {
    // After any other error it is not known what was changed, and the attempt alone says so.
    if (isRefusal(error)) await succeeds(note(':refused', before));
    throw error;
  }
  const details = after(answer);
  const noted = details === 'refused' ? note(':refused', before) : note('', { ...before, ...details });
  return { answer, isRecorded: await succeeds(noted) };
}

/** What is kept of a change of many jobs. */
export function countsOf({ matched, changed, requested, refused }: BulkProgress): AuditDetails {
  const left = Object.values(refused).reduce((total, one) => total + one, 0);
  return { counts: { matched, changed, requested, refused: left } };
}

function isRefusal(error: unknown): boolean {
  return error instanceof ChronosError && REFUSALS.has(error.code);
}

/** Errors of our own say already what is wrong: no connection, or an id that is none. */
function unwritable(cause: unknown): never {
  if (cause instanceof ChronosError) throw cause;
  throw new ChronosError(
    'AUDIT_UNWRITABLE',
    'nothing was changed: that somebody tries could not be written into the audit collection',
    { cause },
  );
}

/** The change is made: failing now would only have it asked for again. */
function succeeds(work: Promise<unknown>): Promise<boolean> {
  return work.then(
    () => true,
    () => false,
  );
}
