import type { mongo } from 'mongoose';
import type { Collections } from './models.js';

export type ScheduleNews = 'open' | 'change' | 'quiet';

/** How long the server waits before it says that nothing happened: shorter than the socket's time-out. */
const QUIET_AFTER = 5000;

/**
 * Follows changes of definitions: new schedules, changed ones, removed ones. What decisions write does not count.
 * Ends when the signal is aborted, throws when the stream breaks.
 */
export async function* watchSchedules(
  c: Collections,
  signal: AbortSignal,
): AsyncGenerator<ScheduleNews, void> {
  // From before the first look on: what changes while the stream opens is in it.
  const { operationTime } = await c.schedules.db.command({ ping: 1 });
  yield 'open';
  const stream = c.schedules.watch(
    [
      {
        $match: {
          $or: [
            { operationType: { $in: ['insert', 'delete', 'replace'] } },
            { operationType: 'update', 'updateDescription.updatedFields.rev': { $exists: true } },
          ],
        },
      },
      { $project: { operationType: 1 } },
    ],
    {
      maxAwaitTimeMS: QUIET_AFTER,
      readConcern: { level: 'majority' },
      ...(operationTime !== undefined && { startAtOperationTime: operationTime as mongo.Timestamp }),
    },
  );
  const close = (): void => void stream.close().catch(() => undefined);
  signal.addEventListener('abort', close);
  try {
    while (!signal.aborted) yield (await stream.tryNext()) === null ? 'quiet' : 'change';
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener('abort', close);
    await stream.close().catch(() => undefined);
  }
}
