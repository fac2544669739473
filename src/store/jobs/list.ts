import type { mongo } from 'mongoose';
import type { JobFilterOptions } from '../../config/query-options.js';
import type { JobDocument, JobStatus } from '../../domain/job/job.js';
import { pageById, pageByTime, type PagePosition, type PageQuery } from '../pagination.js';
import { MAX_QUERY_MS, withTimeLimit } from '../query-limits.js';
import type { Collections } from '../schema/collections.js';
import { CLAIM_KEYS, STATUS_INDEX } from '../schema/job-schemas.js';
import { type Count, toCount } from './counts.js';
import { findWaitingQueues } from './due.js';

export interface JobFilter extends JobFilterOptions {
  /** Excludes newer jobs, so that paging through a growing list ends. */
  createdUntil?: Date;
}

/** Payloads and results may be large. */
const LIST_PROJECTION = { payload: 0, result: 0, 'error.stack': 0 } as const;

interface TimeOrder {
  time: 'nextRunAt' | 'createdAt' | 'queuedAt' | 'finishedAt';
  direction: 1 | -1;
}

const FINISHED_ORDER: TimeOrder = { time: 'finishedAt', direction: -1 };
// Not the order of the index, but there are few locked jobs to sort.
const LOCKED_ORDER: TimeOrder = { time: 'queuedAt', direction: 1 };

const ORDER_OF: Record<JobStatus, TimeOrder> = {
  PENDING: { time: 'createdAt', direction: -1 },
  SCHEDULED: { time: 'nextRunAt', direction: 1 },
  QUEUED: LOCKED_ORDER,
  RUNNING: LOCKED_ORDER,
  COMPLETED: FINISHED_ORDER,
  FAILED: FINISHED_ORDER,
  CANCELLED: FINISHED_ORDER,
};

/** A filter by task type names all queues only if there are at most this many. */
const MAX_QUEUES = 100;

const ADVICE = 'narrow it with a status, a schedule or the beginning of an id';

/**
 * SCHEDULED jobs in the order they are due, locked jobs with the oldest claim first, other jobs with the newest first.
 * Without a status, of one schedule, or by id prefix: by id, descending, which for generated ids means newest first.
 * Conditions that the index does not contain are checked on the documents.
 */
export async function listJobs(
  c: Collections,
  { filter, after, limit }: PageQuery<JobFilter>,
): Promise<JobDocument[]> {
  const page = async (): Promise<JobDocument[]> => {
    const status = orderingStatus(filter);
    const query = await toIndexedQuery(c, filter);
    const request = { filter: query, projection: LIST_PROJECTION, limit, after } as const;
    if (status === undefined) return pageById(c.jobs, { ...request, direction: -1, hint: { _id: 1 } });
    const { time, direction } = ORDER_OF[status];
    // The sizes of the queues decide whether the index by time or by queue is better: leave it to the planner.
    const planned = status === 'SCHEDULED' && query.queue !== undefined;
    const hint = STATUS_INDEX[status];
    return pageByTime(c.jobs, time, { ...request, direction, ...(!planned && { hint }) });
  };
  return withTimeLimit('this list of jobs', page, ADVICE);
}

/** The position of a page that ends with this job. */
export function positionOf(filter: JobFilter, job: JobDocument): PagePosition {
  const status = orderingStatus(filter);
  return { at: status === undefined ? null : job[ORDER_OF[status].time], id: job._id };
}

/** False if the position comes from a list in another order. */
export function isPositionIn(filter: JobFilter, position: PagePosition): boolean {
  return (orderingStatus(filter) === undefined) === (position.at === null);
}

export async function countJobs(c: Collections, filter: JobFilter, max: number): Promise<Count> {
  const status = orderingStatus(filter);
  const count = async (): Promise<number> => {
    const query = await toIndexedQuery(c, filter);
    const byQueue = status === 'SCHEDULED' && query.queue !== undefined;
    const hint = status === undefined ? { _id: 1 } : byQueue ? CLAIM_KEYS : STATUS_INDEX[status];
    return c.jobs.countDocuments(query, { hint, limit: max + 1, maxTimeMS: MAX_QUERY_MS });
  };
  return toCount(await withTimeLimit('counting jobs', count, ADVICE), max);
}

/** The status whose order and index the list has; undefined if it is ordered by id. */
function orderingStatus({ status, schedule, idPrefix }: JobFilter): JobStatus | undefined {
  return schedule === undefined && idPrefix === undefined ? status : undefined;
}

/** The claim index starts with the queue, so a query by task type alone also names all queues, if there are few. */
async function toIndexedQuery(c: Collections, filter: JobFilter): Promise<mongo.Filter<JobDocument>> {
  const query = toQuery(filter);
  const { taskType, queue } = filter;
  if (orderingStatus(filter) !== 'SCHEDULED' || taskType === undefined || queue !== undefined) return query;
  const { queues, isComplete } = await findWaitingQueues(c, MAX_QUEUES, () => false);
  return isComplete ? { ...query, queue: { $in: queues } } : query;
}

function toQuery(filter: JobFilter): mongo.Filter<JobDocument> {
  const { schedule, idPrefix, createdUntil, ...exact } = filter;
  const ranges = [
    ...(schedule === undefined ? [] : [{ $or: [beginsWith(`${schedule}@`), beginsWith(`${schedule}+`)] }]),
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
