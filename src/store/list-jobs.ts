import type { mongo } from 'mongoose';
import type { JobFilterOptions } from '../config/query-options.js';
import type { JobDocument, JobStatus } from '../domain/job.js';
import { bounded, MOST_TIME } from './bounded.js';
import { findWaitingQueues } from './due-heads.js';
import {
  CLAIM_KEYS,
  FINISHED_INDEX,
  LOCKS_INDEX,
  NEXT_DUE_INDEX,
  PENDING_INDEX,
  type Collections,
} from './models.js';
import { pageById, pageByTime, type Place } from './pages.js';

export interface JobFilter extends JobFilterOptions {
  /** Those that existed at this instant: a list that is walked while others dispatch comes to an end. */
  createdUntil?: Date;
}

/** A number, which is only a lower bound where counting stopped. */
export interface Count {
  count: number;
  atLeast: boolean;
}

/** What a list leaves out: payloads and results may be large. */
const LISTED = { payload: 0, result: 0, 'error.stack': 0 } as const;

/** By which field, in which direction and with which index the jobs of a status are listed. */
type Order = 'id' | keyof typeof ORDERS;

const ORDERS = {
  due: { time: 'nextRunAt', direction: 1, hint: NEXT_DUE_INDEX },
  pending: { time: 'createdAt', direction: -1, hint: PENDING_INDEX },
  // As many as there are slots and buffers in all workers: they may be sorted.
  locked: { time: 'queuedAt', direction: 1, hint: LOCKS_INDEX },
  finished: { time: 'finishedAt', direction: -1, hint: FINISHED_INDEX },
} as const;

const ORDER_OF: Record<JobStatus, keyof typeof ORDERS> = {
  PENDING: 'pending',
  SCHEDULED: 'due',
  QUEUED: 'locked',
  RUNNING: 'locked',
  COMPLETED: 'finished',
  FAILED: 'finished',
  CANCELLED: 'finished',
};

export interface JobQuery {
  filter: JobFilter;
  after: Place | undefined;
  limit: number;
}

/** Of more queues than these a task type is not looked for one by one. */
const MOST_QUEUES = 100;

/** What the indexes have. */
const ADVICE = 'ask for less, with a status, a schedule or the beginning of an id';

/**
 * Those that wait in the order they are due, those that run with the longest first, finished ones with the newest
 * first. Of a schedule, by the beginning of their ids, and without a status: by id, backwards, which for ids made here
 * is the newest first. Conditions that the index of the status does not have are checked on the documents.
 */
export async function listJobs(c: Collections, { filter, after, limit }: JobQuery): Promise<JobDocument[]> {
  const page = async (): Promise<JobDocument[]> => {
    const order = orderOf(filter);
    const query = await narrowed(c, filter);
    const request = { filter: query, projection: LISTED, limit, after } as const;
    if (order === 'id') return pageById(c.jobs, { ...request, direction: -1, hint: { _id: 1 } });
    const { time, direction, hint } = ORDERS[order];
    // A queue with little beside one with much, or the other way round: here the planner knows better.
    const isOpen = order === 'due' && query.queue !== undefined;
    return pageByTime(c.jobs, time, { ...request, direction, ...(!isOpen && { hint }) });
  };
  return bounded('this list of jobs', page, ADVICE);
}

/** Where the list goes on after this job. */
export function placeOf(filter: JobFilter, job: JobDocument): Place {
  const order = orderOf(filter);
  return { at: order === 'id' ? null : job[ORDERS[order].time], id: job._id };
}

/** Whether a place belongs to the order that the filter is listed in. */
export function isPlaceIn(filter: JobFilter, place: Place): boolean {
  return (orderOf(filter) === 'id') === (place.at === null);
}

export async function countJobs(c: Collections, filter: JobFilter, most: number): Promise<Count> {
  const order = orderOf(filter);
  const find = async (): Promise<number> => {
    const query = await narrowed(c, filter);
    const byQueue = filter.status === 'SCHEDULED' && query.queue !== undefined;
    const hint = order === 'id' ? { _id: 1 } : byQueue ? CLAIM_KEYS : ORDERS[order].hint;
    return c.jobs.countDocuments(query, { hint, limit: most + 1, maxTimeMS: MOST_TIME });
  };
  const count = await bounded('counting jobs', find, ADVICE);
  return { count: Math.min(count, most), atLeast: count > most };
}

function orderOf({ status, schedule, idPrefix }: JobFilter): Order {
  return status === undefined || schedule !== undefined || idPrefix !== undefined ? 'id' : ORDER_OF[status];
}

/** The index of claims knows the task types of waiting jobs, in each queue: all queues are named, where they are not too many. */
async function narrowed(c: Collections, filter: JobFilter): Promise<mongo.Filter<JobDocument>> {
  const query = queryOf(filter);
  if (orderOf(filter) !== 'due' || filter.taskType === undefined || filter.queue !== undefined) return query;
  const { queues, isComplete } = await findWaitingQueues(c, MOST_QUEUES, () => false);
  return isComplete ? { ...query, queue: { $in: queues } } : query;
}

function queryOf(filter: JobFilter): mongo.Filter<JobDocument> {
  const { schedule, idPrefix, createdUntil, ...exact } = filter;
  const ranges = [
    ...(schedule === undefined ? [] : [{ $or: [beginsWith(`${schedule}@`), beginsWith(`${schedule}!`)] }]),
    ...(idPrefix === undefined ? [] : [beginsWith(idPrefix)]),
  ];
  return {
    ...exact,
    ...(schedule !== undefined && { schedule }),
    ...(createdUntil !== undefined && { createdAt: { $lte: createdUntil } }),
    ...(ranges.length > 0 && { $and: ranges }),
  };
}

/** Up to the last character there is. */
function beginsWith(prefix: string): { _id: object } {
  return { _id: { $gte: prefix, $lt: `${prefix}\u{10ffff}` } };
}
