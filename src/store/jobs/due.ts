import type { mongo } from 'mongoose';
import type { JobDocument } from '../../domain/job/job.js';
import { isQueryTimeout, MAX_QUERY_MS, withTimeLimit } from '../query-limits.js';
import type { Collections } from '../schema/collections.js';
import { CLAIM_KEYS, NEXT_DUE_INDEX } from '../schema/job-schemas.js';
import { readSomeFields, type StoredJob } from './stored-job.js';

export interface NextDueQuery {
  queues: readonly string[];
  taskTypes: readonly string[];
  after: Date;
  /** Limits how much of the index is read. */
  until: Date;
}

/** The due time of the next job, if that is not after `until`. */
export async function nextDueAt(c: Collections, query: NextDueQuery): Promise<Date | null> {
  const job = await c.jobs.findOne(
    {
      status: 'SCHEDULED',
      nextRunAt: { $gt: query.after, $lte: query.until },
      queue: { $in: [...query.queues] },
      taskType: { $in: [...query.taskTypes] },
    },
    { sort: { nextRunAt: 1 }, hint: NEXT_DUE_INDEX, projection: { nextRunAt: 1 } },
  );
  return job === null ? null : readSomeFields(job).nextRunAt;
}

/** The job that became due first, of one queue, task type and priority. */
export type OldestDue = Pick<JobDocument, '_id' | 'queue' | 'taskType' | 'priority' | 'nextRunAt'>;

export interface OldestDueQuery {
  now: Date;
  /** Only this queue. */
  queue?: string;
  max: number;
  isTimeUp: () => boolean;
  /** Milliseconds for each of the queries. */
  timeBudgetMs?: number;
}

const PROJECTION = { queue: 1, taskType: 1, priority: 1, nextRunAt: 1 } as const;

/**
 * The oldest due job of each queue, task type and priority, up to `max`, or until `isTimeUp`. Each is one query on the
 * claim index, which skips all jobs that are not due. A `$group` would read all due jobs.
 */
export async function findOldestDue(
  c: Collections,
  query: OldestDueQuery,
): Promise<{ oldestDue: OldestDue[]; isComplete: boolean }> {
  const { now, queue, max, isTimeUp, timeBudgetMs = MAX_QUERY_MS } = query;
  const oldestDue: OldestDue[] = [];
  while (oldestDue.length < max && !isTimeUp()) {
    const filter = {
      status: 'SCHEDULED',
      nextRunAt: { $lte: now },
      ...after(oldestDue.at(-1), queue),
    } as const;
    const options = { hint: CLAIM_KEYS, sort: CLAIM_KEYS, projection: PROJECTION, maxTimeMS: timeBudgetMs };
    try {
      const job = await withTimeLimit('finding due jobs', () => c.jobs.findOne(filter, options));
      if (job === null) return { oldestDue, isComplete: true };
      oldestDue.push(readSomeFields(job));
    } catch (error) {
      if (isQueryTimeout(error)) break;
      throw error;
    }
  }
  return { oldestDue, isComplete: false };
}

/**
 * Index keys after those of the last job found. The server merges one scan per `$or` branch. Each branch needs a
 * condition on the queue, even one that is always true: otherwise the later fields of the index have no bounds.
 */
function after(last: OldestDue | undefined, onlyQueue: string | undefined): mongo.Filter<StoredJob> {
  if (last === undefined) return { queue: onlyQueue ?? { $gte: '' } };
  const { queue, taskType, priority } = last;
  const inQueue = [
    { queue, taskType, priority: { $gt: priority } },
    { queue, taskType: { $gt: taskType } },
  ];
  return { $or: onlyQueue === undefined ? [...inQueue, { queue: { $gt: queue } }] : inQueue };
}

/** Queues with SCHEDULED jobs, due or not, up to `max`. One query per queue. */
export async function findWaitingQueues(
  c: Collections,
  max: number,
  isTimeUp: () => boolean,
): Promise<{ queues: string[]; isComplete: boolean }> {
  const queues: string[] = [];
  while (queues.length < max && !isTimeUp()) {
    const filter = { status: 'SCHEDULED', queue: { $gt: queues.at(-1) ?? '' } } as const;
    const options = { hint: CLAIM_KEYS, sort: CLAIM_KEYS, projection: { queue: 1 }, maxTimeMS: MAX_QUERY_MS };
    const job = await withTimeLimit('finding queues', () => c.jobs.findOne(filter, options));
    if (job === null) return { queues, isComplete: true };
    queues.push(readSomeFields(job).queue);
  }
  return { queues, isComplete: false };
}
