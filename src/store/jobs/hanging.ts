import type { ExecutionDocument } from '../../domain/job/execution.js';
import type { JobDocument } from '../../domain/job/job.js';
import { isQueryTimeout, MAX_QUERY_MS, withTimeLimit } from '../query-limits.js';
import type { Collections } from '../schema/collections.js';
import { EXPIRY_INDEX } from '../schema/fields.js';
import { CLAIM_KEYS, LOCKS_INDEX } from '../schema/job-schemas.js';
import { readSomeFields } from './stored-job.js';

// Reads that tell whether work hangs. Every worker repeats them, so each has a short time limit; what could not be read in
// time counts as not hanging.
const MAX_READ_MS = 250;
/** Of the execution log, the newest rows. */
const MAX_ROWS = 2000;

/** The average duration of the attempts that completed last, by task type. */
export async function findUsualDurations(c: Collections): Promise<ReadonlyMap<string, number>> {
  const pipeline = [
    { $sort: { finishedAt: -1 } },
    { $limit: MAX_ROWS },
    { $match: { outcome: 'completed' } },
    { $group: { _id: '$taskType', duration: { $avg: '$duration' } } },
  ];
  const options = { hint: EXPIRY_INDEX, maxTimeMS: MAX_READ_MS };
  const groups = await unlessTooSlow([], () =>
    c.executions.aggregate<{ _id: string; duration: number }>(pipeline, options).toArray(),
  );
  return new Map(groups.map(({ _id, duration }) => [_id, duration]));
}

/** A queue with a job that has been due for long, and the time at which that became due. */
export interface OverdueQueue {
  queue: string;
  dueAt: Date;
}

export interface OverdueQuery {
  queues: readonly string[];
  taskTypes: readonly string[];
  dueBefore: Date;
}

/** Those of the queues in which a job of these task types was due before that time. One read of the claim index each. */
export async function findOverdueQueues(
  c: Collections,
  { queues, taskTypes, dueBefore }: OverdueQuery,
): Promise<OverdueQueue[]> {
  const found: OverdueQueue[] = [];
  for (const queue of queues) {
    const nextRunAt = { $lte: dueBefore };
    const filter = { status: 'SCHEDULED', queue, taskType: { $in: [...taskTypes] }, nextRunAt } as const;
    const options = { hint: CLAIM_KEYS, projection: { nextRunAt: 1 }, maxTimeMS: MAX_READ_MS };
    const job = await unlessTooSlow(null, () => c.jobs.findOne(filter, options));
    if (job !== null) found.push({ queue, dueAt: readSomeFields(job).nextRunAt });
  }
  return found;
}

/** Those of the queues in which no attempt has ended since that time. */
export async function findIdleQueues(
  c: Collections,
  queues: readonly string[],
  since: Date,
): Promise<string[]> {
  const idle: string[] = [];
  for (const queue of queues) {
    const options = { hint: EXPIRY_INDEX, projection: { _id: 1 }, maxTimeMS: MAX_READ_MS };
    const found = await unlessTooSlow(undefined, () =>
      c.executions.findOne<Pick<ExecutionDocument, '_id'>>({ queue, finishedAt: { $gte: since } }, options),
    );
    if (found === null) idle.push(queue);
  }
  return idle;
}

/** A handler that is running in any process. */
export type RunningJob = Pick<JobDocument, '_id' | 'taskType' | 'timeout' | 'startedAt'>;

export async function findRunningJobs(c: Collections, limit: number): Promise<RunningJob[]> {
  const projection = { taskType: 1, timeout: 1, startedAt: 1 } as const;
  const options = { projection, hint: LOCKS_INDEX, limit, maxTimeMS: MAX_QUERY_MS };
  const found = await withTimeLimit('reading the running jobs', () =>
    c.jobs.find({ status: 'RUNNING' }, options).toArray(),
  );
  return found.map(readSomeFields);
}

async function unlessTooSlow<T>(otherwise: T, read: () => Promise<T>): Promise<T> {
  try {
    return await withTimeLimit('looking for work that hangs', read);
  } catch (error) {
    if (isQueryTimeout(error)) return otherwise;
    throw error;
  }
}
