import type { mongo } from 'mongoose';
import type { JobDocument } from '../domain/job.js';
import { bounded, isTooSlow, MOST_TIME } from './bounded.js';
import { CLAIM_KEYS, type Collections } from './models.js';

/** The job of a (queue, task type, priority) that became due first. */
export type DueHead = Pick<JobDocument, '_id' | 'queue' | 'taskType' | 'priority' | 'nextRunAt'>;

export interface DueHeads {
  heads: DueHead[];
  /** These are all there are. */
  isComplete: boolean;
}

export interface HeadsQuery {
  now: Date;
  /** Of this queue only. */
  queue?: string;
  most: number;
  isOver: () => boolean;
  /** What one look may take, in milliseconds. */
  patience?: number;
}

const PROJECTION = { queue: 1, taskType: 1, priority: 1, nextRunAt: 1 } as const;

/**
 * One for each queue, task type and priority that has due jobs, up to `most`, or until that takes too long. Each costs one
 * look into the index of claims, however many jobs are behind it, and the server skips what is not due: grouping them would
 * read them all, and in the order of time whatever waits in other queues for longer would be read first.
 */
export async function findDueHeads(c: Collections, query: HeadsQuery): Promise<DueHeads> {
  const { now, queue, most, isOver, patience = MOST_TIME } = query;
  const heads: DueHead[] = [];
  while (heads.length < most && !isOver()) {
    const filter = { status: 'SCHEDULED', nextRunAt: { $lte: now }, ...after(heads.at(-1), queue) } as const;
    const options = { hint: CLAIM_KEYS, sort: CLAIM_KEYS, projection: PROJECTION, maxTimeMS: patience };
    try {
      const head = await bounded('looking for due jobs', () => c.jobs.findOne<DueHead>(filter, options));
      if (head === null) return { heads, isComplete: true };
      heads.push(head);
    } catch (error) {
      if (isTooSlow(error)) break;
      throw error;
    }
  }
  return { heads, isComplete: false };
}

/** The queues with jobs that are SCHEDULED, due or not, up to `most`: one look each. */
export async function findWaitingQueues(
  c: Collections,
  most: number,
  isOver: () => boolean,
): Promise<{ queues: string[]; isComplete: boolean }> {
  const queues: string[] = [];
  while (queues.length < most && !isOver()) {
    const last = queues.at(-1);
    const filter = { status: 'SCHEDULED', ...(last !== undefined && { queue: { $gt: last } }) } as const;
    const options = { hint: CLAIM_KEYS, sort: CLAIM_KEYS, projection: { queue: 1 }, maxTimeMS: MOST_TIME };
    const job = await bounded('looking for queues', () =>
      c.jobs.findOne<Pick<JobDocument, 'queue'>>(filter, options),
    );
    if (job === null) return { queues, isComplete: true };
    queues.push(job.queue);
  }
  return { queues, isComplete: false };
}

/**
 * What comes after all jobs with the queue, task type and priority of this one: the server merges a scan for each part. A
 * condition on the queue, be it none, has to be in each: only then does the index have bounds for what follows.
 */
function after(last: DueHead | undefined, only: string | undefined): mongo.Filter<JobDocument> {
  if (last === undefined) return { queue: only ?? { $gte: '' } };
  const { queue, taskType, priority } = last;
  const inQueue = [
    { queue, taskType, priority: { $gt: priority } },
    { queue, taskType: { $gt: taskType } },
  ];
  return { $or: only === undefined ? [...inQueue, { queue: { $gt: queue } }] : inQueue };
}
