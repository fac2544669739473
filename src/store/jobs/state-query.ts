import type { mongo } from 'mongoose';
import { JOB_STATES, type JobState, type StateFields } from '../../domain/job/state.js';
import { assertNever } from '../../domain/language.js';
import {
  CANCELLED_INDEX,
  FINISHED_INDEX,
  HAS_FAILED,
  LOCKS_INDEX,
  NEXT_DUE_INDEX,
  PENDING_INDEX,
  RETRYING_INDEX,
} from '../schema/job-schemas.js';
import { counterIs, type StoredJob } from './stored-job.js';

/** How jobs in a state are listed: the index that finds them, and their order. */
export interface StateList {
  readonly index: string;
  readonly time: 'nextRunAt' | 'createdAt' | 'queuedAt' | 'finishedAt';
  readonly direction: 1 | -1;
}

const BY_DUE_TIME = { time: 'nextRunAt', direction: 1 } as const;
const BY_CREATION = { index: PENDING_INDEX, time: 'createdAt', direction: -1 } as const;
// Not the order of the index, but there are few locked jobs to sort.
const BY_CLAIM = { index: LOCKS_INDEX, time: 'queuedAt', direction: 1 } as const;
const BY_END = { time: 'finishedAt', direction: -1 } as const;

export const STATE_LISTS: Readonly<Record<JobState, StateList>> = {
  waiting: { index: NEXT_DUE_INDEX, ...BY_DUE_TIME },
  delayed: { index: NEXT_DUE_INDEX, ...BY_DUE_TIME },
  retrying: { index: RETRYING_INDEX, ...BY_DUE_TIME },
  held: BY_CREATION,
  blocked: BY_CREATION,
  prefetched: BY_CLAIM,
  running: BY_CLAIM,
  completed: { index: FINISHED_INDEX, ...BY_END },
  failed: { index: FINISHED_INDEX, ...BY_END },
  cancelled: { index: CANCELLED_INDEX, ...BY_END },
  skipped: { index: CANCELLED_INDEX, ...BY_END },
  expired: { index: CANCELLED_INDEX, ...BY_END },
};

/** Reads what `jobState` needs. */
export const STATE_PROJECTION = {
  ...{ status: 1, nextRunAt: 1, attempts: 1, crashes: 1, held: 1, cancelKind: 1 },
} as const satisfies Record<keyof StateFields, 1>;

/** Matches the jobs for which `jobState` returns this state. */
export function inState(state: JobState, now: Date): mongo.Filter<StoredJob> {
  const { status } = JOB_STATES[state];
  switch (state) {
    case 'waiting':
      return { status, nextRunAt: { $lte: now } };
    case 'delayed':
      return { status, nextRunAt: { $gt: now }, attempts: counterIs(0), crashes: counterIs(0) };
    case 'retrying':
      return { status, nextRunAt: { $gt: now }, ...HAS_FAILED };
    case 'held':
      return { status, held: { $ne: null } };
    case 'blocked':
      return { status, held: null };
    case 'cancelled':
      // Also a document without the field, as `jobState` does.
      return { status, cancelKind: { $in: [state, null] } };
    case 'skipped':
    case 'expired':
      return { status, cancelKind: state };
    case 'prefetched':
    case 'running':
    case 'completed':
    case 'failed':
      return { status };
    default:
      return assertNever(state);
  }
}
