import type { StoredError } from './errors.js';
import type { OutcomeKind } from './outcome.js';

/** One attempt of a job, as it is kept in the execution log. */
export interface ExecutionDocument {
  /** `<job>:<fence>`: at most one row for each time the job was owned. */
  _id: string;
  jobId: string;
  taskType: string;
  queue: string;
  attempt: number;
  fence: number;
  lockToken: string;
  workerId: string;
  startedAt: Date;
  finishedAt: Date;
  /** Milliseconds. */
  duration: number;
  outcome: OutcomeKind | 'crashed';
  error: StoredError | null;
  log: string[];
  expiresAt: Date;
}

export function executionId(jobId: string, fence: number): string {
  return `${jobId}:${fence}`;
}
