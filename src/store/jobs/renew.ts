import { groupBy } from '../../domain/language.js';
import type { Collections } from '../schema/collections.js';
import { byToken, isOwnedBy, isSettledBy, ownedBy, readOwnership } from './fence.js';

/** A lock to renew: the lock of a job, or a named lock. */
export interface Lease {
  kind: 'job' | 'named';
  id: string;
  token: string;
  /** Milliseconds from each renewal until the lock expires. */
  length: number;
}

/** Extends leases by id and token, never by worker id. Returns the leases that were lost. */
export async function renew(c: Collections, leases: readonly Lease[], now: Date): Promise<Lease[]> {
  const jobs = leases.filter(({ kind }) => kind === 'job');
  const named = leases.filter(({ kind }) => kind === 'named');
  const [lostJobs, lostNamed] = await Promise.all([renewJobs(c, jobs, now), renewNamed(c, named, now)]);
  return [...lostJobs, ...lostNamed];
}

async function renewJobs(c: Collections, leases: readonly Lease[], now: Date): Promise<Lease[]> {
  if (leases.length === 0) return [];
  const groups = byToken(leases).flatMap((group) => [...groupBy(group, ({ length }) => length).values()]);
  const statements = groups.map((group) => {
    const [{ token, length }] = group;
    const filter = ownedBy(token, idsOf(group));
    return { updateMany: { filter, update: { $set: lockedFor(length, now) }, hint: { _id: 1 } } };
  });
  const { matchedCount } = await c.jobs.bulkWrite(statements, { ordered: false });
  if (matchedCount === leases.length) return [];
  // A job that this process has settled in the meantime is not lost.
  const found = await readOwnership(c, idsOf(leases), 'local');
  return leases.filter(
    ({ id, token }) => !isOwnedBy(found.get(id), token) && !isSettledBy(found.get(id), token),
  );
}

async function renewNamed(c: Collections, leases: readonly Lease[], now: Date): Promise<Lease[]> {
  const renewed = await Promise.all(
    leases.map(({ id, token, length }) =>
      c.locks.updateOne({ _id: id, lockToken: token }, { $set: lockedFor(length, now) }),
    ),
  );
  return leases.filter((_, index) => renewed[index]?.matchedCount === 0);
}

function lockedFor(length: number, now: Date): { lockedUntil: Date } {
  return { lockedUntil: new Date(now.getTime() + length) };
}

function idsOf(leases: readonly Lease[]): string[] {
  return leases.map(({ id }) => id);
}
