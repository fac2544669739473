import type { mongo } from 'mongoose';
import { groupBy } from '../domain/group-by.js';
import type { JobDocument } from '../domain/job.js';
import { TRANSITIONS } from '../domain/transitions.js';
import type { Collections } from './models.js';

export interface Begun {
  jobId: string;
  token: string;
  startedAt: Date;
}

/** Marks buffered jobs RUNNING that have started in memory. What was settled or lost meanwhile is left alone. */
export async function markBegun(c: Collections, begun: readonly Begun[]): Promise<void> {
  const statements = [...groupBy(begun, ({ token }) => token).values()].map(statement);
  await c.jobs.bulkWrite(statements, { ordered: false });
}

/** One start for all of a token, the earliest: they came out of one buffer within milliseconds. */
function statement(begun: readonly [Begun, ...Begun[]]): mongo.AnyBulkWriteOperation<JobDocument> {
  const startedAt = new Date(Math.min(...begun.map((one) => one.startedAt.getTime())));
  return {
    updateMany: {
      filter: {
        _id: { $in: begun.map(({ jobId }) => jobId) },
        lockToken: begun[0].token,
        status: { $in: [...TRANSITIONS.begin.from] },
      },
      update: { $set: { status: TRANSITIONS.begin.to, startedAt }, $min: { firstStartedAt: startedAt } },
      hint: { _id: 1 },
    },
  };
}
