import type { JobDocument } from '../domain/job.js';
import { DUPLICATE_KEY, isDuplicateKey, isUncertain, isWriteReport } from './faults.js';
import type { Collections } from './models.js';
import type { mongo } from 'mongoose';

const TRIES = 3;

export interface Enqueued {
  job: JobDocument;
  /** True when a job with this id was there already; `job` is that one. */
  duplicate: boolean;
}

/** One job of a bulk insert: created, there already, or refused by the server. */
export type BulkResult = { id: string; duplicate: boolean } | { id: string; error: Error };

/**
 * Inserts a job, once, however often it is tried: the id and the nonce tell our own insert, whose reply was lost,
 * from somebody else's.
 */
export async function enqueue(c: Collections, job: JobDocument): Promise<Enqueued> {
  for (let tries = 1; ; tries++) {
    try {
      await c.jobs.insertOne(job);
      return { job, duplicate: false };
    } catch (error) {
      if (isDuplicateKey(error)) {
        const existing = await c.jobs.findOne({ _id: job._id });
        // Pruned between the two: insert again.
        if (existing !== null) return { job: existing, duplicate: existing.nonce !== job.nonce };
        if (tries === TRIES) throw error;
      } else if (!isUncertain(error) || tries === TRIES) throw error;
    }
  }
}

/** Inserts many in one round trip, each on its own: a duplicate or a refused one does not stop the others. */
export async function enqueueMany(c: Collections, jobs: readonly JobDocument[]): Promise<BulkResult[]> {
  for (let tries = 1; ; tries++) {
    try {
      await c.jobs.insertMany([...jobs], { ordered: false });
      return jobs.map((job) => ({ id: job._id, duplicate: false }));
    } catch (error) {
      if (isWriteReport(error)) return sortOut(c, jobs, error);
      if (!isUncertain(error) || tries === TRIES) throw error;
    }
  }
}

async function sortOut(
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
    return { id: job._id, error: new Error(failure.errmsg ?? 'refused by the server') };
  });
}
