import { NEXT_DUE_INDEX, type Collections } from './models.js';

export interface NextDueQuery {
  queues: readonly string[];
  taskTypes: readonly string[];
  after: Date;
  /** Jobs due later than this do not matter; it bounds how much of the index is read. */
  until: Date;
}

/** When the next job that is not due yet becomes due, if that is soon. */
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
  return job?.nextRunAt ?? null;
}
