import type { mongo } from 'mongoose';
import type { JobFilterOptions } from '../../config/query-options.js';
import type { JobDocument, JobStatus } from '../../domain/job/job.js';
import { pageById, pageByTime, type PagePosition } from '../pagination.js';
import { MAX_QUERY_MS, withTimeLimit } from '../query-limits.js';
import type { Collections } from '../schema/collections.js';
import {
  CLAIM_KEYS,
  FINISHED_INDEX,
  LOCKS_INDEX,
  NEXT_DUE_INDEX,
  PENDING_INDEX,
} from '../schema/job-schemas.js';
import { type Count, toCount } from './counts.js';
import { findWaitingQueues } from './due.js';

export interface JobFilter extends JobFilterOptions {
  /** Only jobs created until then, so that paging through a growing list ends. */
  createdUntil?: Date;
}

/** Payloads and results may be large. */
const LIST_PROJECTION = { payload: 0, result: 0, 'error.stack': 0 } as const;

/** The field, direction and index by which jobs are listed. */
const ORDERS = {
  due: { time: 'nextRunAt', direction: 1, hint: NEXT_DUE_INDEX },
  pending: { time: 'createdAt', direction: -1, hint: PENDING_INDEX },
  // Not the order of the index, but there are few locked jobs to sort.
  locked: { time: 'queuedAt', direction: 1, hint: LOCKS_INDEX },
  finished: { time: 'finishedAt', direction: -1, hint: FINISHED_INDEX },
} as const;

type TimeOrder = keyof typeof ORDERS;

const ORDER_OF: Record<JobStatus, TimeOrder> = {
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
  after: PagePosition | undefined;
  limit: number;
}

/** With more queues than this, a task type is not searched queue by queue. */
const MAX_QUEUES = 100;

const ADVICE = 'narrow it with a status, a schedule or the beginning of an id';

/**
 * Waiting jobs in the order they are due, running jobs with the longest first, finished jobs with the newest first.
 * Without a status, of one schedule, or by prefix: by id, descending, which for generated ids means newest first.
 * Conditions that the index does not have are checked on the documents.
 */
export async function listJobs(c: Collections, { filter, after, limit }: JobQuery): Promise<JobDocument[]> {
  const page = async (): Promise<JobDocument[]> => {
    const order = orderOf(filter);
    const query = await toIndexedQuery(c, filter);
    const request = { filter: query, projection: LIST_PROJECTION, limit, after } as const;
    if (order === 'id') return pageById(c.jobs, { ...request, direction: -1, hint: { _id: 1 } });
    const { time, direction, hint } = ORDERS[order];
    // Whether the index by time or the one by queue is better depends on the sizes of the queues: the planner knows.
    const leaveToPlanner = order === 'due' && query.queue !== undefined;
    return pageByTime(c.jobs, time, { ...request, direction, ...(!leaveToPlanner && { hint }) });
  };
  return withTimeLimit('this list of jobs', page, ADVICE);
}

/** The position after this job. */
export function positionOf(filter: JobFilter, job: JobDocument): PagePosition {
  const order = orderOf(filter);
  return { at: order === 'id' ? null : job[ORDERS[order].time], id: job._id };
}

/** Whether the position comes from a list in the same order. */
export function isPositionIn(filter: JobFilter, position: PagePosition): boolean {
  return (orderOf(filter) === 'id') === (position.at === null);
}

export async function countJobs(c: Collections, filter: JobFilter, max: number): Promise<Count> {
  const order = orderOf(filter);
  const count = async (): Promise<number> => {
    const query = await toIndexedQuery(c, filter);
    const byQueue = filter.status === 'SCHEDULED' && query.queue !== undefined;
    const hint = order === 'id' ? { _id: 1 } : byQueue ? CLAIM_KEYS : ORDERS[order].hint;
    return c.jobs.countDocuments(query, { hint, limit: max + 1, maxTimeMS: MAX_QUERY_MS });
  };
  return toCount(await withTimeLimit('counting jobs', count, ADVICE), max);
}

function orderOf({ status, schedule, idPrefix }: JobFilter): TimeOrder | 'id' {
  return status === undefined || schedule !== undefined || idPrefix !== undefined ? 'id' : ORDER_OF[status];
}

/** The claim index has the task type after the queue, so a query by task type alone names all queues, if they are few. */
async function toIndexedQuery(c: Collections, filter: JobFilter): Promise<mongo.Filter<JobDocument>> {
  const query = toQuery(filter);
  if (orderOf(filter) !== 'due' || filter.taskType === undefined || filter.queue !== undefined) return query;
  const { queues, isComplete } = await findWaitingQueues(c, MAX_QUEUES, () => false);
  return isComplete ? { ...query, queue: { $in: queues } } : query;
}

function toQuery(filter: JobFilter): mongo.Filter<JobDocument> {
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

/** The upper bound ends in the last Unicode character. */
function beginsWith(prefix: string): { _id: object } {
  return { _id: { $gte: prefix, $lt: `${prefix}\u{10ffff}` } };
}
