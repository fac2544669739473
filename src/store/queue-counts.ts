import type { JobStatus } from '../domain/job.js';
import { bounded, MOST_TIME } from './bounded.js';
import type { Count } from './list-jobs.js';
import { CLAIM_KEYS, FINISHED_INDEX, LOCKS_INDEX, PENDING_INDEX, type Collections } from './models.js';

const INDEX_OF: Record<Exclude<JobStatus, 'SCHEDULED'>, string> = {
  PENDING: PENDING_INDEX,
  QUEUED: LOCKS_INDEX,
  RUNNING: LOCKS_INDEX,
  COMPLETED: FINISHED_INDEX,
  FAILED: FINISHED_INDEX,
  CANCELLED: FINISHED_INDEX,
};

/** Jobs of a status by queue: of `most` of them, the newest finished ones. */
export async function countByQueue(
  c: Collections,
  status: Exclude<JobStatus, 'SCHEDULED'>,
  most: number,
): Promise<{ total: Count; byQueue: ReadonlyMap<string, number> }> {
  const hint = INDEX_OF[status];
  const pipeline = [
    { $match: { status } },
    ...(hint === FINISHED_INDEX ? [{ $sort: { finishedAt: -1 } }] : []),
    { $limit: most + 1 },
    { $group: { _id: '$queue', count: { $sum: 1 } } },
  ];
  const groups = await bounded(`counting ${status} jobs`, () =>
    c.jobs.aggregate<{ _id: string; count: number }>(pipeline, { hint, maxTimeMS: MOST_TIME }).toArray(),
  );
  const total = groups.reduce((sum, { count }) => sum + count, 0);
  return {
    total: { count: Math.min(total, most), atLeast: total > most },
    byQueue: new Map(groups.map(({ _id, count }) => [_id, Math.min(count, most)])),
  };
}

/** Jobs of the queue that are due. The server skips from one task type and priority to the next: what is not due is not read. */
export async function countDue(
  c: Collections,
  queue: string,
  now: Date,
  most: number,
  patience = MOST_TIME,
): Promise<Count> {
  const filter = { status: 'SCHEDULED', queue, nextRunAt: { $lte: now } } as const;
  const options = { hint: CLAIM_KEYS, limit: most + 1, maxTimeMS: patience };
  const count = await bounded('counting due jobs', () => c.jobs.countDocuments(filter, options));
  return { count: Math.min(count, most), atLeast: count > most };
}

/** All jobs there are, as far as the server knows without counting. */
export async function estimateJobs(c: Collections): Promise<number> {
  return c.jobs.estimatedDocumentCount({ maxTimeMS: MOST_TIME });
}
