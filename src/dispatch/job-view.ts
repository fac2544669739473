import type { JobDocument } from '../domain/job.js';

/** A job as it is shown: without what only its owner needs to know. */
export type JobView = Omit<JobDocument, '_id' | 'lockToken' | 'settledToken' | 'nonce' | 'firstStartedAt'> & {
  id: string;
  firstStartedAt: Date | null;
};

export function viewOf(job: JobDocument): JobView {
  const {
    _id,
    lockToken: _lockToken,
    settledToken: _settledToken,
    nonce: _nonce,
    firstStartedAt,
    ...fields
  } = job;
  return { id: _id, ...fields, firstStartedAt: firstStartedAt ?? null };
}
