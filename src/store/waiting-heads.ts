import { mongo } from 'mongoose';
import type { JobDocument } from '../domain/job.js';
import { bounded, MOST_TIME } from './bounded.js';
import { CLAIM_KEYS, type Collections } from './models.js';

/** The job of a (queue, task type, priority) that is due first, now or later. */
export type WaitingHead = Pick<JobDocument, '_id' | 'queue' | 'taskType' | 'priority' | 'nextRunAt'>;

export interface WaitingHeads {
  heads: WaitingHead[];
  /** These are all there are. */
  isComplete: boolean;
}

const PROJECTION = { queue: 1, taskType: 1, priority: 1, nextRunAt: 1 } as const;

/**
 * One for each queue, task type and priority that has waiting jobs, up to `most`, or until that takes too long. Each costs
 * one look into the index of claims, however many jobs are behind it: grouping them all would read them all.
 */
export async function findWaitingHeads(
  c: Collections,
  most: number,
  isOver: () => boolean = () => false,
): Promise<WaitingHeads> {
  const heads: WaitingHead[] = [];
  const before = new mongo.MinKey();
  let min: mongo.Document = {
    queue: before,
    taskType: before,
    priority: before,
    nextRunAt: before,
    _id: before,
  };
  while (heads.length < most && !isOver()) {
    const options = { hint: CLAIM_KEYS, min, projection: PROJECTION, maxTimeMS: MOST_TIME } as const;
    const head = await bounded('looking for waiting jobs', () =>
      c.jobs.findOne<WaitingHead>({ status: 'SCHEDULED' }, options),
    );
    if (head === null) return { heads, isComplete: true };
    heads.push(head);
    const { queue, taskType, priority } = head;
    min = { queue, taskType, priority, nextRunAt: new mongo.MaxKey(), _id: new mongo.MaxKey() };
  }
  return { heads, isComplete: false };
}
