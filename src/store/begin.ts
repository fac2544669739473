import { TRANSITIONS } from '../domain/transitions.js';
import type { Collections } from './models.js';

export interface Begun {
  jobId: string;
  token: string;
  startedAt: Date;
}

/** Marks buffered jobs RUNNING that have started in memory. What was settled or lost meanwhile is left alone. */
export async function markBegun(c: Collections, begun: readonly Begun[]): Promise<void> {
  await c.jobs.bulkWrite(
    begun.map(({ jobId, token, startedAt }) => ({
      updateOne: {
        filter: { _id: jobId, lockToken: token, status: { $in: [...TRANSITIONS.begin.from] } },
        update: { $set: { status: TRANSITIONS.begin.to, startedAt }, $min: { firstStartedAt: startedAt } },
        hint: { _id: 1 },
      },
    })),
    { ordered: false },
  );
}
