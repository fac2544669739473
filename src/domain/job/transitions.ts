import { FINISHED_STATUSES as FINISHED, type JobStatus, LOCKED_STATUSES as LOCKED } from './job.js';

/** A legal change of the status of a job. */
export interface Transition {
  readonly from: readonly JobStatus[];
  readonly to: JobStatus;
  /** Added to the fence: 1 if the owner changes. */
  readonly fence: 0 | 1;
  readonly meaning: string;
}

/**
 * Every legal change of a job's status. The store builds its filters and updates from this table, the invariant checker
 * compares histories with it, and docs/lifecycle.md shows it.
 */
export const TRANSITIONS = {
  claim: { from: ['SCHEDULED'], to: 'RUNNING', fence: 1, meaning: 'a worker claims it into a free slot' },
  buffer: { from: ['SCHEDULED'], to: 'QUEUED', fence: 1, meaning: 'a worker prefetches it' },
  begin: { from: ['QUEUED'], to: 'RUNNING', fence: 0, meaning: 'a prefetched job has started' },
  complete: { from: LOCKED, to: 'COMPLETED', fence: 0, meaning: 'the handler returned' },
  fail: {
    from: LOCKED,
    to: 'FAILED',
    fence: 0,
    meaning: 'the last attempt failed, or its error is not retried',
  },
  retryLater: { from: LOCKED, to: 'SCHEDULED', fence: 0, meaning: 'an attempt failed, another follows' },
  snooze: { from: LOCKED, to: 'SCHEDULED', fence: 0, meaning: 'the handler asked to run later' },
  stopRunning: {
    from: LOCKED,
    to: 'CANCELLED',
    fence: 0,
    meaning: 'its worker cancelled it, because the handler or a person asked for it',
  },
  skip: { from: LOCKED, to: 'CANCELLED', fence: 0, meaning: 'a filter skipped it' },
  release: { from: LOCKED, to: 'SCHEDULED', fence: 1, meaning: 'its worker released it unfinished' },
  expireClaimed: {
    from: LOCKED,
    to: 'CANCELLED',
    fence: 0,
    meaning: 'a worker claimed it after it had expired',
  },
  expire: {
    from: ['PENDING', 'SCHEDULED'],
    to: 'CANCELLED',
    fence: 1,
    meaning: 'it expired before a worker claimed it',
  },
  cancel: {
    from: ['PENDING', 'SCHEDULED', 'QUEUED'],
    to: 'CANCELLED',
    fence: 1,
    meaning: 'a person cancelled it before it ran',
  },
  reject: {
    from: ['PENDING', 'SCHEDULED', ...LOCKED],
    to: 'FAILED',
    fence: 1,
    meaning: 'its stored document is malformed',
  },
  recover: { from: LOCKED, to: 'SCHEDULED', fence: 1, meaning: 'its lock expired' },
  recoverFailed: {
    from: ['RUNNING'],
    to: 'FAILED',
    fence: 1,
    meaning: 'its lock expired, and it crashed too often or exceeded `maxRunningTime`',
  },
  recoverCancelled: {
    from: LOCKED,
    to: 'CANCELLED',
    fence: 1,
    meaning: 'its lock expired after a cancel was requested',
  },
  hold: { from: ['SCHEDULED'], to: 'PENDING', fence: 0, meaning: 'a person holds it' },
  unhold: { from: ['PENDING'], to: 'SCHEDULED', fence: 0, meaning: 'a person lets it run again' },
  wait: {
    from: LOCKED,
    to: 'PENDING',
    fence: 1,
    meaning: 'a worker claimed it while another run of its single-instance schedule was active',
  },
  endWait: { from: ['PENDING'], to: 'SCHEDULED', fence: 0, meaning: 'the run that it waited for has ended' },
  retry: { from: FINISHED, to: 'SCHEDULED', fence: 1, meaning: 'a person runs a finished job again' },
} as const satisfies Record<string, Transition>;

/** The name of a transition, such as `claim`. */
export type TransitionName = keyof typeof TRANSITIONS;
