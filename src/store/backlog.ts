import type { mongo } from 'mongoose';
import type { JobDocument } from '../domain/job.js';
import { MAX_TIME_EXPIRED, MOST_COUNTED } from './bounded.js';
import { CLAIM_KEYS, NEXT_DUE_INDEX, type Collections } from './models.js';

/** What takes longer is given up: it is asked for regularly. Milliseconds. */
const PATIENCE = 250;

/** What is due in a queue and not taken. */
export interface QueueBacklog {
  queue: string;
  /** How many, up to 10,000. */
  waiting: number;
  /** When the oldest of them was due; null when there is none. */
  oldest: Date | null;
  /** For how long that was, in milliseconds by the database's clock; 0 when there is none. */
  age: number;
}

/** One queue after the other: this is no reason to keep the server busy. One that takes too long keeps no other out. */
export async function findBacklog(
  c: Collections,
  queues: readonly string[],
  now: Date,
): Promise<QueueBacklog[]> {
  const found: QueueBacklog[] = [];
  for (const queue of queues) {
    const one = await backlogOf(c, queue, now).catch(unlessInTime(undefined));
    if (one !== undefined) found.push(one);
  }
  return found;
}

async function backlogOf(c: Collections, queue: string, now: Date): Promise<QueueBacklog> {
  const due: mongo.Filter<JobDocument> = { status: 'SCHEDULED', queue, nextRunAt: { $lte: now } };
  const bounds = { hint: CLAIM_KEYS, maxTimeMS: PATIENCE };
  // By this index, future jobs and those of other queues are stepped over, whatever their number.
  const first = await c.jobs.findOne(due, { ...bounds, projection: { nextRunAt: 1 } });
  if (first === null) return { queue, waiting: 0, oldest: null, age: 0 };
  const [waiting, oldest] = await Promise.all([
    c.jobs.countDocuments(due, { ...bounds, limit: MOST_COUNTED }).catch(unlessInTime(MOST_COUNTED)),
    findOldest(c, queue, first.nextRunAt).catch(unlessInTime(first.nextRunAt)),
  ]);
  return { queue, waiting, oldest, age: now.getTime() - oldest.getTime() };
}

/** Across task types and priorities only the order of time helps; where much older jobs of other queues wait, it takes too long. */
async function findOldest(c: Collections, queue: string, until: Date): Promise<Date> {
  const job = await c.jobs.findOne(
    { status: 'SCHEDULED', queue, nextRunAt: { $lte: until } },
    { sort: { nextRunAt: 1 }, hint: NEXT_DUE_INDEX, maxTimeMS: PATIENCE, projection: { nextRunAt: 1 } },
  );
  return job?.nextRunAt ?? until;
}

function unlessInTime<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if ((error as { code?: unknown }).code === MAX_TIME_EXPIRED) return instead;
    throw error;
  };
}
