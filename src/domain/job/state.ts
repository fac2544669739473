import { assertNever } from '../language.js';
import type { JobDocument, JobStatus } from './job.js';

export interface StateFacts {
  /** The stored status of a job in this state. */
  readonly status: JobStatus;
  readonly meaning: string;
}

/**
 * What people see and filter by, in the words of other job systems: a status is what the locking protocol needs, and
 * SCHEDULED jobs may be due or not. docs/lifecycle.md shows this table.
 */
export const JOB_STATES = {
  waiting: { status: 'SCHEDULED', meaning: 'due, not claimed yet' },
  delayed: { status: 'SCHEDULED', meaning: 'due later, never failed' },
  retrying: { status: 'SCHEDULED', meaning: 'due later, after a failure or a crash' },
  held: { status: 'PENDING', meaning: 'held by a person' },
  blocked: { status: 'PENDING', meaning: 'waits for another run of its single-instance schedule' },
  prefetched: { status: 'QUEUED', meaning: 'locked by a worker, waits for a free slot there' },
  running: { status: 'RUNNING', meaning: 'its handler is running' },
  completed: { status: 'COMPLETED', meaning: 'its handler returned' },
  failed: { status: 'FAILED', meaning: 'no attempt is left, or none makes sense' },
  cancelled: { status: 'CANCELLED', meaning: 'cancelled by a person or by its handler' },
  skipped: { status: 'CANCELLED', meaning: 'a filter of its task type decided that it does not run' },
  expired: { status: 'CANCELLED', meaning: 'it had not started before it expired' },
} as const satisfies Record<string, StateFacts>;

/** A state of a job, as people see it. */
export type JobState = keyof typeof JOB_STATES;
export const STATE_NAMES = Object.keys(JOB_STATES) as readonly JobState[];

/** The fields that decide the state. */
export type StateFields = Pick<
  JobDocument,
  'status' | 'nextRunAt' | 'attempts' | 'crashes' | 'held' | 'cancelKind'
>;

export function jobState(job: StateFields, now: Date): JobState {
  switch (job.status) {
    case 'PENDING':
      return job.held === null ? 'blocked' : 'held';
    case 'SCHEDULED':
      if (job.nextRunAt <= now) return 'waiting';
      return job.attempts > 0 || job.crashes > 0 ? 'retrying' : 'delayed';
    case 'QUEUED':
      return 'prefetched';
    case 'RUNNING':
      return 'running';
    case 'COMPLETED':
      return 'completed';
    case 'FAILED':
      return 'failed';
    case 'CANCELLED':
      return job.cancelKind ?? 'cancelled';
    default:
      return assertNever(job.status);
  }
}
