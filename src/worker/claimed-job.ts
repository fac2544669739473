import type { JobDocument } from '../domain/job.js';

/** A job this process owns now. */
export interface ClaimedJob {
  job: JobDocument;
  token: string;
  /** Milliseconds the lock holds without renewal. */
  lease: number;
  /** Monotonic time from before the claim was sent. */
  sentAt: number;
}

/** A claim whose jobs do not run here, if it took any. */
export interface DoubtfulClaim {
  token: string;
  /** The jobs it may have taken; undefined when they are not known, and then all of them. */
  ids: readonly string[] | undefined;
  /** Milliseconds its lock holds. */
  lease: number;
}
