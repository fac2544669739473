import type { Progress } from '../../domain/job/job.js';
import { TRANSITIONS } from '../../domain/job/transitions.js';
import type { Collections } from '../schema/collections.js';
import { byToken, ownedBy } from './fence.js';

export interface StartedJob {
  jobId: string;
  token: string;
  startedAt: Date;
}

/** Marks prefetched jobs that have started as RUNNING. Jobs that were settled or lost since then stay unchanged. */
export async function markStarted(c: Collections, started: readonly StartedJob[]): Promise<void> {
  const statements = byToken(started).map((group) => {
    const ids = group.map(({ jobId }) => jobId);
    // The earliest start stands for all jobs of a token: they start within milliseconds.
    const startedAt = new Date(Math.min(...group.map((job) => job.startedAt.getTime())));
    return {
      updateMany: {
        filter: { ...ownedBy(group[0].token, ids), status: { $in: [...TRANSITIONS.begin.from] } },
        update: { $set: { status: TRANSITIONS.begin.to, startedAt }, $min: { firstStartedAt: startedAt } },
        hint: { _id: 1 },
      },
    };
  });
  await c.jobs.bulkWrite(statements, { ordered: false });
}

/** False if the lock is lost. */
export async function saveProgress(
  c: Collections,
  jobId: string,
  token: string,
  progress: Progress,
): Promise<boolean> {
  const { matchedCount } = await c.jobs.updateOne(
    ownedBy(token, jobId),
    { $set: { progress } },
    { hint: { _id: 1 } },
  );
  return matchedCount === 1;
}
