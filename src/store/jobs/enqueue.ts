import type { mongo } from 'mongoose';
import type { JobDocument } from '../../domain/job/job.js';
import { DUPLICATE_KEY, isDuplicateKey, isPartialWriteError, isResultUnknown } from '../mongo-errors.js';
import type { Collections } from '../schema/collections.js';

const MAX_TRIES = 3;

export interface Enqueued {
  job: JobDocument;
  /** True if a job with this id existed before; `job` is that one. */
  duplicate: boolean;
}

/** What happened to one job of a bulk insert: it was created, existed before, or was rejected by the server. */
export type BulkResult = { id: string; duplicate: boolean } | { id: string; error: Error };

/** Inserts a job once, however often it is tried: the nonce distinguishes our own insert, whose reply was lost, from a duplicate. */
export async function enqueue(c: Collections, job: JobDocument): Promise<Enqueued> {
  for (let tries = 1; ; tries++) {
    try {
      await c.jobs.insertOne(job);
      return { job, duplicate: false };
    } catch (error) {
      if (isDuplicateKey(error)) {
        const existing = await c.jobs.findOne({ _id: job._id });
        // If the existing job was pruned before it was read, insert again.
        if (existing !== null) return { job: existing, duplicate: existing.nonce !== job.nonce };
        if (tries === MAX_TRIES) throw error;
      } else if (!isResultUnknown(error) || tries === MAX_TRIES) throw error;
    }
  }
}

/** Inserts jobs in one round trip. A duplicate or rejected job does not stop the others. */
export async function enqueueMany(c: Collections, jobs: readonly JobDocument[]): Promise<BulkResult[]> {
  for (let tries = 1; ; tries++) {
    try {
      await c.jobs.insertMany([...jobs], { ordered: false });
      return jobs.map((job) => ({ id: job._id, duplicate: false }));
    } catch (error) {
      if (isPartialWriteError(error)) return toBulkResults(c, jobs, error);
      if (!isResultUnknown(error) || tries === MAX_TRIES) throw error;
    }
  }
}

async function toBulkResults(
  c: Collections,
  jobs: readonly JobDocument[],
  error: mongo.MongoBulkWriteError,
): Promise<BulkResult[]> {
  const failures = new Map([error.writeErrors].flat().map((failure) => [failure.index, failure]));
  const duplicateIds = jobs
    .filter((_, index) => failures.get(index)?.code === DUPLICATE_KEY)
    .map((job) => job._id);
  const existing = await c.jobs.find({ _id: { $in: duplicateIds } }, { projection: { nonce: 1 } }).toArray();
  const nonces = new Map(existing.map((job) => [job._id, job.nonce]));
  return jobs.map((job, index) => {
    const failure = failures.get(index);
    if (failure === undefined) return { id: job._id, duplicate: false };
    if (failure.code === DUPLICATE_KEY) return { id: job._id, duplicate: nonces.get(job._id) !== job.nonce };
    return { id: job._id, error: new Error(failure.errmsg ?? 'rejected by the server') };
  });
}
