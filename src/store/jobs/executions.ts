import type { ExecutionFilterOptions } from '../../config/query-options.js';
import {
  type AttemptKey,
  type ExecutionDocument,
  executionId,
  hasLastRow,
  lastRowIds,
  type SettledJob,
} from '../../domain/job/execution.js';
import type { JobDocument } from '../../domain/job/job.js';
import { rejectedWrites } from '../mongo-errors.js';
import { pageByTime, type PageQuery } from '../pagination.js';
import { MAX_QUERY_MS, withTimeLimit } from '../query-limits.js';
import type { Collections } from '../schema/collections.js';
import { EXPIRY_INDEX } from '../schema/fields.js';
import { FINISHED_INDEX } from '../schema/job-schemas.js';
import { readExecution, type StoredExecution, toStoredExecution } from './stored-execution.js';
import { readSomeFields } from './stored-job.js';

// There is no index by job, because every attempt would pay for it: the attempts of a job are found by the prefix of
// their ids.

/** Adds rows of attempts whose outcome is confirmed. A row that exists stays as it is: one per (job, fence). */
export async function logExecutions(c: Collections, rows: readonly ExecutionDocument[]): Promise<void> {
  try {
    await c.executions.insertMany(rows.map(toStoredExecution), { ordered: false });
  } catch (error) {
    if (rejectedWrites(error).some(({ isDuplicate }) => !isDuplicate)) throw error;
  }
}

export async function findExecution(c: Collections, id: string): Promise<ExecutionDocument | null> {
  const found = await c.executions.findOne({ _id: id });
  return found === null ? null : readExecution(found);
}

/** Deletes the rows of deleted jobs. The ids are known: there is at most one row per fence. */
export async function deleteExecutionsOf(
  c: Collections,
  jobs: readonly Pick<JobDocument, '_id' | 'fence'>[],
): Promise<void> {
  const ids = jobs.flatMap(({ _id, fence }) =>
    Array.from({ length: Math.min(fence, MAX_EXECUTIONS) }, (_, index) => executionId(_id, fence - index)),
  );
  if (ids.length > 0) await c.executions.deleteMany({ _id: { $in: ids } }, { hint: { _id: 1 } });
}

/** Those of the rows that exist. */
export async function findAttemptKeys(c: Collections, ids: readonly string[]): Promise<AttemptKey[]> {
  const projection = { jobId: 1, fence: 1, lockToken: 1, outcome: 1 } as const;
  return withTimeLimit('reading the last attempts of jobs', () =>
    c.executions
      .find<AttemptKey>({ _id: { $in: [...ids] } }, { projection, hint: { _id: 1 }, maxTimeMS: MAX_QUERY_MS })
      .toArray(),
  );
}

const SETTLED_FIELDS = {
  ...{ taskType: 1, queue: 1, status: 1, fence: 1, attempts: 1, error: 1, cancelKind: 1 },
  ...{ startedAt: 1, finishedAt: 1, settledToken: 1, settledBy: 1 },
} as const satisfies Record<Exclude<keyof SettledJob, '_id'>, 1>;

/** Up to `limit` jobs that a worker finished in this time and whose last attempt has no row. */
export async function findUnloggedJobs(
  c: Collections,
  workerId: string,
  { from, to }: { from: Date; to: Date },
  limit: number,
): Promise<SettledJob[]> {
  const filter = {
    status: { $in: ['COMPLETED', 'FAILED'] },
    finishedAt: { $gte: from, $lte: to },
    settledBy: workerId,
  } as const;
  const options = { projection: SETTLED_FIELDS, hint: FINISHED_INDEX, limit, maxTimeMS: MAX_QUERY_MS };
  const jobs = (await c.jobs.find(filter, options).toArray()).map(readSomeFields);
  const unlogged: SettledJob[] = [];
  for (let at = 0; at < jobs.length; at += MAX_EXECUTIONS) {
    const some = jobs.slice(at, at + MAX_EXECUTIONS);
    const rows = new Map((await findAttemptKeys(c, some.flatMap(lastRowIds))).map((row) => [row._id, row]));
    const rowsOf = (job: SettledJob): AttemptKey[] =>
      lastRowIds(job)
        .map((id) => rows.get(id))
        .filter((row) => row !== undefined);
    unlogged.push(...some.filter((job) => !hasLastRow(job, rowsOf(job))));
  }
  return unlogged;
}

const MAX_EXECUTIONS = 1000;

/** The last attempts of a job, oldest first. Sorted by the fence, because the id `:10` comes before `:9`. */
export async function findExecutions(c: Collections, jobId: string): Promise<ExecutionDocument[]> {
  const options = { hint: { _id: 1 }, limit: MAX_EXECUTIONS, maxTimeMS: MAX_QUERY_MS };
  const newestFirst = await withTimeLimit('reading the attempts of a job', () =>
    c.executions.find(attemptsOf(jobId), { ...options, sort: { fence: -1 } }).toArray(),
  );
  return newestFirst.reverse().map(readExecution);
}

/** Newest first. Conditions other than the job are checked row by row, until the page is full. */
export async function listExecutions(
  c: Collections,
  { filter, after, limit }: PageQuery<ExecutionFilterOptions>,
): Promise<ExecutionDocument[]> {
  const { jobId, ...exact } = filter;
  return withTimeLimit(
    'this list of executions',
    () =>
      pageByTime(c.executions, 'finishedAt', {
        filter: { ...exact, ...(jobId !== undefined && attemptsOf(jobId)) },
        direction: -1,
        hint: jobId === undefined ? EXPIRY_INDEX : { _id: 1 },
        projection: { log: 0, 'error.stack': 0 },
        limit,
        after,
        read: (row) => readExecution(row as StoredExecution),
      }),
    'filter by job, or use a filter that matches more attempts',
  );
}

/** With `jobId` too: the id of another job may begin with this one and a colon. */
function attemptsOf(jobId: string): { _id: { $gt: string; $lt: string }; jobId: string } {
  return { _id: { $gt: `${jobId}:`, $lt: `${jobId};` }, jobId };
}

type QueueOutcome = Pick<ExecutionDocument, 'queue' | 'outcome'>;

export interface RecentOutcomes {
  outcomes: (QueueOutcome & { count: number })[];
  /** All attempts since then are counted. Later than requested if there were more than `max`. */
  since: Date;
}

/** Counts the attempts that ended since `since`, by queue and outcome; only the newest `max`. */
export async function countRecentOutcomes(c: Collections, since: Date, max: number): Promise<RecentOutcomes> {
  const pipeline = [
    { $match: { finishedAt: { $gte: since } } },
    { $sort: { finishedAt: -1 } },
    { $limit: max },
    {
      $group: {
        _id: { queue: '$queue', outcome: '$outcome' },
        count: { $sum: 1 },
        first: { $min: '$finishedAt' },
      },
    },
  ];
  const groups = await withTimeLimit('counting recent attempts', () =>
    c.executions
      .aggregate<{ _id: QueueOutcome; count: number; first: Date }>(pipeline, {
        hint: EXPIRY_INDEX,
        maxTimeMS: MAX_QUERY_MS,
      })
      .toArray(),
  );
  const total = groups.reduce((sum, { count }) => sum + count, 0);
  const first = Math.min(...groups.map((group) => group.first.getTime()));
  return {
    outcomes: groups.map(({ _id, count }) => ({ ..._id, count })),
    since: total < max ? since : new Date(first),
  };
}
