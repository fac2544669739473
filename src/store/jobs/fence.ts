import type { mongo } from 'mongoose';
import { type JobDocument, LOCKED_STATUSES } from '../../domain/job/job.js';
import { groupBy } from '../../domain/language.js';
import type { Collections } from '../schema/collections.js';

/** What a claim writes into the jobs it locks. The token is a UUID that is never used again. */
export interface LockGrant {
  token: string;
  workerId: string;
  lockedUntil: Date;
}

/** Every write that ends the ownership of a job sets these. */
export const NO_LOCK = { lockedBy: null, lockedUntil: null, lockToken: null } as const;

/**
 * The filter of every write that needs the lock: it matches only while the job is locked under this token, so that a
 * worker that lost its lock changes nothing. Without ids it matches all jobs of the token.
 *
 * One filter never has several tokens: a job that this process lost and claimed again would match under its old lock.
 */
export function ownedBy(token: string, ids?: string | readonly string[]): mongo.Filter<JobDocument> {
  return {
    ...(ids !== undefined && { _id: typeof ids === 'string' ? ids : { $in: [...ids] } }),
    lockToken: token,
    status: { $in: [...LOCKED_STATUSES] },
  };
}

/** The items in groups of one token each, for one statement per token. */
export function byToken<T extends { token: string }>(items: readonly T[]): [T, ...T[]][] {
  return [...groupBy(items, ({ token }) => token).values()];
}

export type Tokens = Pick<JobDocument, 'lockToken' | 'settledToken' | 'cancelRequested'>;

/** Reads which tokens jobs have now, for fenced writes that matched fewer jobs than expected. By job id. */
export async function readTokens(
  c: Collections,
  ids: readonly string[],
  readConcern: 'local' | 'majority',
): Promise<Map<string, Tokens>> {
  const projection = { lockToken: 1, settledToken: 1, cancelRequested: 1 } as const;
  const found = await c.jobs
    .find({ _id: { $in: [...ids] } }, { projection, hint: { _id: 1 }, readConcern })
    .toArray();
  return new Map(found.map((job) => [job._id, job]));
}
