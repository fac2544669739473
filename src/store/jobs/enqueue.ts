import type { JobDocument } from '../../domain/job/job.js';
import { isDuplicateKey, isResultUnknown, rejectedWrites } from '../mongo-errors.js';
import type { Collections } from '../schema/collections.js';
import { readJob, toJobId, toStoredId, toStoredIds, toStoredJob } from './stored-job.js';

const MAX_TRIES = 3;

export interface Enqueued {
  job: JobDocument;
  /** True if a job with this id existed before; `job` is that one. */
  duplicate: boolean;
}

/** One job of a bulk insert: created, a duplicate of an earlier job, or rejected by the server. */
export type BulkResult = { id: string; duplicate: boolean } | { id: string; error: Error };

/** Retries after a lost reply: the nonce tells our own earlier insert from another job with the same id. */
export async function enqueue(c: Collections, job: JobDocument): Promise<Enqueued> {
  for (let tries = 1; ; tries++) {
    try {
      await c.jobs.insertOne(toStoredJob(job));
      return { job, duplicate: false };
    } catch (error) {
      if (isDuplicateKey(error)) {
        const existing = await c.jobs.findOne({ _id: toStoredId(job._id) });
        // If the existing job was pruned before it was read, insert again.
        if (existing !== null) return { job: readJob(existing), duplicate: existing.nonce !== job.nonce };
        if (tries === MAX_TRIES) throw error;
      } else if (!isResultUnknown(error) || tries === MAX_TRIES) throw error;
    }
  }
}

/** Inserts jobs in one round trip. A duplicate or rejected job does not stop the others. */
export async function enqueueMany(c: Collections, jobs: readonly JobDocument[]): Promise<BulkResult[]> {
  for (let tries = 1; ; tries++) {
    try {
      await c.jobs.insertMany(jobs.map(toStoredJob), { ordered: false });
      return jobs.map((job) => ({ id: job._id, duplicate: false }));
    } catch (error) {
      if (!isResultUnknown(error)) return toBulkResults(c, jobs, error);
      if (tries === MAX_TRIES) throw error;
    }
  }
}

async function toBulkResults(
  c: Collections,
  jobs: readonly JobDocument[],
  error: unknown,
): Promise<BulkResult[]> {
  const rejected = new Map(rejectedWrites(error).map((write) => [write.index, write]));
  const duplicateIds = jobs.filter((_, index) => rejected.get(index)?.isDuplicate).map((job) => job._id);
  const existing = await c.jobs
    .find({ _id: { $in: toStoredIds(duplicateIds) } }, { projection: { nonce: 1 } })
    .toArray();
  const nonces = new Map(existing.map((job) => [toJobId(job._id), job.nonce]));
  return jobs.map((job, index) => {
    const write = rejected.get(index);
    if (write === undefined) return { id: job._id, duplicate: false };
    if (write.isDuplicate) return { id: job._id, duplicate: nonces.get(job._id) !== job.nonce };
    return { id: job._id, error: write.error };
  });
}
