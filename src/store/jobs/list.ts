import type { mongo } from 'mongoose';
import type { JobFilterOptions } from '../../config/query-options.js';
import type { JobDocument } from '../../domain/job/job.js';
import { JOB_STATES, type JobState } from '../../domain/job/state.js';
import { type IdOrder, pageById, pageByTime, type PagePosition, type PageQuery } from '../pagination.js';
import { MAX_QUERY_MS, withTimeLimit } from '../query-limits.js';
import type { Collections } from '../schema/collections.js';
import { CLAIM_KEYS, TAGS_INDEX, USER_INDEX } from '../schema/job-schemas.js';
import { type Count, toCount } from './counts.js';
import { exceptOccurrencesSince } from './delete.js';
import { findWaitingQueues } from './due.js';
import { inState, STATE_LISTS } from './state-query.js';
import { compareJobIds, readJob, type StoredJob, toStoredId } from './stored-job.js';

export interface JobFilter extends JobFilterOptions {
  /** Excludes newer jobs, so that paging through a growing list ends. */
  createdUntil?: Date;
  /** Excludes jobs of schedules that finished after this time: they must not be deleted yet. */
  exceptOccurrencesSince?: Date;
}

/** Payloads and results may be large. */
const LIST_PROJECTION = { payload: 0, result: 0, 'error.stack': 0 } as const;

/** A filter by task type names all queues only if there are at most this many. */
const MAX_QUEUES = 100;

const ADVICE = 'narrow it with a state, a schedule or the beginning of an id';

/**
 * Jobs that are not claimed yet in the order they are due, locked jobs with the oldest claim first, other jobs with the
 * newest first. Without a state, or of one schedule, user, tag or id prefix: by id, descending, which for generated ids
 * means newest first. Conditions that the index does not contain are checked on the documents.
 */
export async function listJobs(
  c: Collections,
  { filter, after, limit }: PageQuery<JobFilter>,
  now: Date,
): Promise<JobDocument[]> {
  const page = async (): Promise<JobDocument[]> => {
    const state = orderingState(filter);
    const query = await toIndexedQuery(c, filter, now);
    const request = {
      ...{ filter: query, projection: LIST_PROJECTION, limit, after },
      ...{
        read: (document: object) => readJob(document as StoredJob),
        idOrder: JOB_ID_ORDER,
        includeMalformed: true as const,
      },
    };
    if (state === undefined) return pageById(c.jobs, { ...request, direction: -1, hint: idHint(filter) });
    const { index, time, direction } = STATE_LISTS[state];
    // The sizes of the queues decide whether the index by time or by queue is better: leave it to the planner.
    const planned = isClaimable(state) && query.queue !== undefined;
    return pageByTime(c.jobs, time, { ...request, direction, ...(!planned && { hint: index }) });
  };
  return withTimeLimit('this list of jobs', page, ADVICE);
}

/** The position of a page that ends with this job. */
export function positionOf(filter: JobFilter, job: JobDocument): PagePosition {
  const state = orderingState(filter);
  return { at: state === undefined ? null : job[STATE_LISTS[state].time], id: job._id };
}

/** False if the position comes from a list in another order. */
export function isPositionIn(filter: JobFilter, position: PagePosition): boolean {
  return (orderingState(filter) === undefined) === (position.at === null);
}

export async function countJobs(c: Collections, filter: JobFilter, max: number, now: Date): Promise<Count> {
  const state = orderingState(filter);
  const count = async (): Promise<number> => {
    const query = await toIndexedQuery(c, filter, now);
    const byQueue = state !== undefined && isClaimable(state) && query.queue !== undefined;
    const hint = state === undefined ? idHint(filter) : byQueue ? CLAIM_KEYS : STATE_LISTS[state].index;
    return c.jobs.countDocuments(query, { hint, limit: max + 1, maxTimeMS: MAX_QUERY_MS });
  };
  return toCount(await withTimeLimit('counting jobs', count, ADVICE), max);
}

/** The state whose order and index the list has; undefined if it is ordered by id. */
function orderingState({ state, schedule, idPrefix, userId, tag }: JobFilter): JobState | undefined {
  const hasOwnIndex = [schedule, idPrefix, userId, tag].some((condition) => condition !== undefined);
  return hasOwnIndex ? undefined : state;
}

/** The index of a list that is ordered by id. */
function idHint({ schedule, idPrefix, userId, tag }: JobFilter): string | { _id: 1 } {
  if (schedule !== undefined || idPrefix !== undefined) return { _id: 1 };
  if (userId !== undefined) return USER_INDEX;
  return tag === undefined ? { _id: 1 } : TAGS_INDEX;
}

/** Jobs in these states are in the claim index. Retrying jobs have a smaller index of their own. */
function isClaimable(state: JobState): boolean {
  return JOB_STATES[state].status === 'SCHEDULED' && state !== 'retrying';
}

/** The claim index starts with the queue, so a query by task type alone also names all queues, if there are few. */
async function toIndexedQuery(
  c: Collections,
  filter: JobFilter,
  now: Date,
): Promise<mongo.Filter<StoredJob>> {
  const query = toQuery(filter, now);
  const { taskType, queue } = filter;
  const state = orderingState(filter);
  if (state === undefined || !isClaimable(state) || taskType === undefined || queue !== undefined)
    return query;
  const { queues, isComplete } = await findWaitingQueues(c, MAX_QUEUES, () => false);
  return isComplete ? { ...query, queue: { $in: queues } } : query;
}

function toQuery(filter: JobFilter, now: Date): mongo.Filter<StoredJob> {
  const { state, schedule, idPrefix, createdUntil, tag, exceptOccurrencesSince: since, ...exact } = filter;
  const conditions = [
    ...(schedule === undefined ? [] : [{ $or: [beginsWith(`${schedule}@`), beginsWith(`${schedule}+`)] }]),
    ...(idPrefix === undefined ? [] : [beginsWith(idPrefix)]),
    ...(since === undefined ? [] : [exceptOccurrencesSince(since)]),
  ];
  return {
    ...exact,
    ...(state !== undefined && inState(state, now)),
    ...(tag !== undefined && { tags: tag }),
    ...(schedule !== undefined && { schedule }),
    ...(createdUntil !== undefined && { createdAt: { $not: { $gt: createdUntil } } }),
    ...(conditions.length > 0 && { $and: conditions }),
  };
}

/** The upper bound of text ends in the last Unicode character. */
function beginsWith(prefix: string): mongo.Filter<StoredJob> {
  const ofText = { _id: { $gte: prefix, $lt: `${prefix}\u{10ffff}` } };
  if (!/^[0-9a-f]{1,24}$/.test(prefix)) return ofText;
  const range = { $gte: toStoredId(prefix.padEnd(24, '0')), $lte: toStoredId(prefix.padEnd(24, 'f')) };
  return { $or: [ofText, { _id: range }] };
}

/** Conditions on an id match only ids of the same type, and MongoDB sorts text before ObjectIds. */
const JOB_ID_ORDER: IdOrder = {
  compare: compareJobIds,
  beyond: (direction, id) => {
    const stored = toStoredId(id);
    const sameType = direction === 1 ? { $gt: stored } : { $lt: stored };
    const isText = typeof stored === 'string';
    if (isText === (direction === -1)) return [sameType];
    return [sameType, { $type: isText ? 'objectId' : 'string' }];
  },
};
