import type { mongo } from 'mongoose';
import { type JobDocument, LOCKED_STATUSES } from '../../domain/job/job.js';
import { groupBy } from '../../domain/language.js';
import type { Collections } from '../schema/collections.js';
import { readSomeFields, type StoredJob, toStoredId, toStoredIds } from './stored-job.js';

/** The lock of a claim, or of a holder of a named lock. The token is a UUID that is never reused. */
export interface LockGrant {
  token: string;
  workerId: string;
  lockedUntil: Date;
}

/** Unset by every write that ends the ownership of a job. */
export const LOCK_FIELDS = { lockedBy: '', lockedUntil: '', lockToken: '' } as const;

/**
 * The filter of every write that needs the lock: it matches only while the job is locked with this token, so that a
 * worker that lost its lock changes nothing. Without ids it matches all jobs of the token.
 *
 * Never put several tokens in one filter: a write for an old lock would match a job that this process lost and claimed
 * again.
 */
export function ownedBy(token: string, ids?: string | readonly string[]): mongo.Filter<StoredJob> {
  return {
    ...(ids !== undefined && { _id: typeof ids === 'string' ? toStoredId(ids) : { $in: toStoredIds(ids) } }),
    lockToken: token,
    status: { $in: [...LOCKED_STATUSES] },
  };
}

/** Groups items for one statement per token. */
export function byToken<T extends { token: string }>(items: readonly T[]): [T, ...T[]][] {
  return [...groupBy(items, ({ token }) => token).values()];
}

/** Who owns a job now, or has settled it. */
export type Ownership = Pick<
  JobDocument,
  'status' | 'lockToken' | 'settledToken' | 'settledTokens' | 'cancelRequested'
>;

/** Whether `ownedBy` matches the job. */
export function isOwnedBy(job: Ownership | undefined, token: string): boolean {
  return job?.lockToken === token && (LOCKED_STATUSES as readonly string[]).includes(job.status);
}

/** Whether the holder of this lock has settled the job, also if a later attempt has been settled since. */
export function isSettledBy(job: Ownership | undefined, token: string): boolean {
  return job?.settledToken === token || job?.settledTokens?.includes(token) === true;
}

/** By job id, for fenced writes that matched fewer jobs than expected. */
export async function readOwnership(
  c: Collections,
  ids: readonly string[],
  readConcern: 'local' | 'majority',
): Promise<Map<string, Ownership>> {
  const projection = {
    ...{ status: 1, lockToken: 1, settledToken: 1, settledTokens: 1, cancelRequested: 1 },
  } as const;
  const found = await c.jobs
    .find({ _id: { $in: toStoredIds(ids) } }, { projection, hint: { _id: 1 }, readConcern })
    .toArray();
  return new Map(
    found.map((document) => {
      const job = readSomeFields(document);
      // Fenced writes that reschedule a job need it to be null, so a malformed request counts as one without a reason.
      const cancelRequested =
        document.cancelRequested == null ? null : (job.cancelRequested ?? { reason: null, at: new Date(0) });
      return [job._id, { ...job, cancelRequested }];
    }),
  );
}
