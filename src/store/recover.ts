import type { StoredError } from '../domain/errors.js';
import { LOCKED_STATUSES, type JobDocument } from '../domain/job.js';
import { TRANSITIONS, type Transition } from '../domain/transitions.js';
import { NO_LOCK } from './lock-fields.js';
import { LOCKS_INDEX, type Collections } from './models.js';

/** What the sweep decided about a job whose lock expired. */
export interface Recovery {
  transition: 'recover' | 'recoverFailed' | 'recoverCancelled';
  nextRunAt: Date;
  error: StoredError | null;
  /** The worker that sweeps. */
  by: string;
}

/** Jobs whose lock expired before `now`, the longest ago first. Reads the locked jobs only. */
export async function findExpired(c: Collections, now: Date, limit: number): Promise<JobDocument[]> {
  return c.jobs
    .find(
      { status: { $in: [...LOCKED_STATUSES] }, lockedUntil: { $lt: now } },
      { hint: LOCKS_INDEX, sort: { lockedUntil: 1 }, limit },
    )
    .toArray();
}

/**
 * Takes an expired job from its owner. The filter repeats the token, the status and the expiry, or it would steal
 * a lock that was renewed a moment ago. False when somebody else was first.
 */
export async function recover(
  c: Collections,
  job: JobDocument,
  { transition, nextRunAt, error, by }: Recovery,
  now: Date,
): Promise<boolean> {
  const { to, fence }: Transition = TRANSITIONS[transition];
  const { modifiedCount } = await c.jobs.updateOne(
    {
      _id: job._id,
      lockToken: job.lockToken,
      status: job.status,
      lockedUntil: { $lt: now },
      // Decided from what was read: a request to cancel that came since must be seen by the next sweep.
      ...(transition !== 'recoverCancelled' && { cancelRequested: null }),
    },
    {
      $set: {
        status: to,
        ...NO_LOCK,
        ...(to === 'SCHEDULED' ? { nextRunAt } : { finishedAt: now, settledBy: by }),
        ...(error !== null && { error }),
      },
      $inc: { fence, ...(job.status === 'RUNNING' ? { crashes: 1 } : { abandoned: 1 }) },
      // A claim alone is no start: it may be given back. One that ran until its lock expired is.
      ...(job.status === 'RUNNING' && job.startedAt !== null && { $min: { firstStartedAt: job.startedAt } }),
    },
    { hint: { _id: 1 } },
  );
  return modifiedCount === 1;
}
