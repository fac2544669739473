import type { JobStatus } from './job.js';

export interface Transition {
  readonly from: readonly JobStatus[];
  readonly to: JobStatus;
  /** How much the fence rises. One on every change of owner, zero otherwise. */
  readonly fence: 0 | 1;
  readonly meaning: string;
}

/**
 * Every way a job may change its status. The store builds its filters and updates from this table, the
 * invariant checker replays histories against it, and docs/lifecycle.md shows it.
 */
export const TRANSITIONS = {
  claim: { from: ['SCHEDULED'], to: 'RUNNING', fence: 1, meaning: 'a worker takes it into a free slot' },
  buffer: { from: ['SCHEDULED'], to: 'QUEUED', fence: 1, meaning: 'a worker takes it into its buffer' },
  begin: { from: ['QUEUED'], to: 'RUNNING', fence: 0, meaning: 'a buffered job has started' },
  complete: { from: ['QUEUED', 'RUNNING'], to: 'COMPLETED', fence: 0, meaning: 'the handler returned' },
  fail: { from: ['QUEUED', 'RUNNING'], to: 'FAILED', fence: 0, meaning: 'the last attempt failed' },
  retryLater: {
    from: ['QUEUED', 'RUNNING'],
    to: 'SCHEDULED',
    fence: 0,
    meaning: 'an attempt failed, another follows',
  },
  snooze: {
    from: ['QUEUED', 'RUNNING'],
    to: 'SCHEDULED',
    fence: 0,
    meaning: 'the handler asked to run later',
  },
  stopRunning: {
    from: ['QUEUED', 'RUNNING'],
    to: 'CANCELLED',
    fence: 0,
    meaning: 'the owner cancelled it, asked by the handler or by a person',
  },
  skip: {
    from: ['QUEUED', 'RUNNING'],
    to: 'CANCELLED',
    fence: 0,
    meaning: 'a filter of its definition said no',
  },
  giveBack: {
    from: ['QUEUED', 'RUNNING'],
    to: 'SCHEDULED',
    fence: 1,
    meaning: 'the owner returned it unfinished',
  },
  cancel: {
    from: ['PENDING', 'SCHEDULED', 'QUEUED'],
    to: 'CANCELLED',
    fence: 1,
    meaning: 'a person cancelled it before it ran',
  },
  recover: { from: ['QUEUED', 'RUNNING'], to: 'SCHEDULED', fence: 1, meaning: 'its lock expired' },
  recoverFailed: { from: ['RUNNING'], to: 'FAILED', fence: 1, meaning: 'its lock expired once too often' },
  recoverCancelled: {
    from: ['QUEUED', 'RUNNING'],
    to: 'CANCELLED',
    fence: 1,
    meaning: 'its lock expired after a cancel was requested',
  },
  hold: { from: ['SCHEDULED'], to: 'PENDING', fence: 0, meaning: 'a person took it out of play' },
  unhold: { from: ['PENDING'], to: 'SCHEDULED', fence: 0, meaning: 'a person put it back into play' },
  retry: {
    from: ['COMPLETED', 'FAILED', 'CANCELLED'],
    to: 'SCHEDULED',
    fence: 1,
    meaning: 'a person asked to run a finished job again',
  },
} as const satisfies Record<string, Transition>;

export type TransitionName = keyof typeof TRANSITIONS;

/** The transitions that explain a change of status with this rise of the fence; none means it was illegal. */
export function explainChange(from: JobStatus, to: JobStatus, fenceRise: number): TransitionName[] {
  const names = Object.keys(TRANSITIONS) as TransitionName[];
  return names.filter((name) => {
    const transition: Transition = TRANSITIONS[name];
    return transition.from.includes(from) && transition.to === to && transition.fence === fenceRise;
  });
}
