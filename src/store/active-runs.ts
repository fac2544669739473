import type { JobDocument } from '../domain/job.js';
import type { Collections } from './models.js';

export type Run = Pick<
  JobDocument,
  '_id' | 'status' | 'createdAt' | 'firstStartedAt' | 'startedAt' | 'finishedAt'
>;

/** Those of the jobs that exist, finished or not. */
export async function findRuns(c: Collections, ids: readonly string[]): Promise<Map<string, Run>> {
  const projection = { status: 1, createdAt: 1, firstStartedAt: 1, startedAt: 1, finishedAt: 1 } as const;
  const found = await c.jobs
    .find<Run>({ _id: { $in: [...ids] } }, { projection, hint: { _id: 1 } })
    .toArray();
  return new Map(found.map((run) => [run._id, run]));
}
