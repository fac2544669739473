import { groupBy } from '../domain/group-by.js';
import { LOCKED_STATUSES } from '../domain/job.js';
import type { Collections } from './models.js';

/** A lock to keep: on a job, or a named one. */
export interface Lease {
  kind: 'job' | 'named';
  id: string;
  token: string;
  /** Milliseconds the lock holds from each renewal. */
  length: number;
}

/** Prolongs the leases by id and token, never by worker; returns those that are gone. */
export async function renew(c: Collections, leases: readonly Lease[], now: Date): Promise<Lease[]> {
  const jobs = leases.filter(({ kind }) => kind === 'job');
  const named = leases.filter(({ kind }) => kind === 'named');
  const [goneJobs, goneNamed] = await Promise.all([renewJobs(c, jobs, now), renewNamed(c, named, now)]);
  return [...goneJobs, ...goneNamed];
}

async function renewJobs(c: Collections, leases: readonly Lease[], now: Date): Promise<Lease[]> {
  if (leases.length === 0) return [];
  // One statement per token, like settling: a lock taken anew by this very process is another lock.
  const groups = [...groupBy(leases, ({ token, length }) => `${token}:${length}`).values()];
  const statements = groups.map((group) => ({
    updateMany: {
      filter: {
        _id: { $in: group.map(({ id }) => id) },
        lockToken: group[0].token,
        status: { $in: [...LOCKED_STATUSES] },
      },
      update: { $set: { lockedUntil: new Date(now.getTime() + group[0].length) } },
      hint: { _id: 1 },
    },
  }));
  const { matchedCount } = await c.jobs.bulkWrite(statements, { ordered: false });
  if (matchedCount === leases.length) return [];
  // A shortfall is not a loss yet: the job may have been settled by this process meanwhile.
  const found = await c.jobs
    .find(
      { _id: { $in: leases.map(({ id }) => id) } },
      { projection: { lockToken: 1, settledToken: 1 }, hint: { _id: 1 } },
    )
    .toArray();
  const tokens = new Map(found.map((job) => [job._id, job]));
  return leases.filter(({ id, token }) => {
    const job = tokens.get(id);
    return job?.lockToken !== token && job?.settledToken !== token;
  });
}

async function renewNamed(c: Collections, leases: readonly Lease[], now: Date): Promise<Lease[]> {
  const renewed = await Promise.all(
    leases.map(({ id, token, length }) =>
      c.locks.updateOne(
        { _id: id, lockToken: token },
        { $set: { lockedUntil: new Date(now.getTime() + length) } },
      ),
    ),
  );
  return leases.filter((_, index) => renewed[index]?.matchedCount === 0);
}
