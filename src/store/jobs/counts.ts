import type { Clock } from '../../domain/clock.js';
import type { JobState } from '../../domain/job/state.js';
import { isQueryTimeout, MAX_COUNTED, MAX_QUERY_MS, withTimeLimit } from '../query-limits.js';
import type { Collections } from '../schema/collections.js';
import { CLAIM_KEYS } from '../schema/job-schemas.js';
import { findOldestDue } from './due.js';
import { inState, STATE_LISTS } from './state-query.js';

/** `atLeast`: there are more, but counting stopped here. */
export interface Count {
  count: number;
  atLeast: boolean;
}

/** `found` was counted with a limit of `max + 1`. */
export function toCount(found: number, max: number): Count {
  return { count: Math.min(found, max), atLeast: found > max };
}

/** The states that are counted for all queues together; `countDue` and `countLater` count the others. */
export type CountedState = Exclude<JobState, 'waiting' | 'delayed'>;

/** Jobs in a state by queue. At most `max` are counted; of finished jobs, the newest. `total` includes malformed ones without a queue. */
export async function countByQueue(
  c: Collections,
  state: CountedState,
  max: number,
  now: Date,
): Promise<{ total: Count; byQueue: ReadonlyMap<string, number> }> {
  const { index: hint, time } = STATE_LISTS[state];
  const pipeline = [
    { $match: inState(state, now) },
    ...(time === 'finishedAt' ? [{ $sort: { finishedAt: -1 } }] : []),
    { $limit: max + 1 },
    { $group: { _id: '$queue', count: { $sum: 1 } } },
  ];
  const groups = await withTimeLimit(`counting ${state} jobs`, () =>
    c.jobs.aggregate<{ _id: unknown; count: number }>(pipeline, { hint, maxTimeMS: MAX_QUERY_MS }).toArray(),
  );
  const total = groups.reduce((sum, { count }) => sum + count, 0);
  return {
    total: toCount(total, max),
    byQueue: new Map(
      groups.flatMap(({ _id, count }) => (typeof _id === 'string' ? [[_id, Math.min(count, max)]] : [])),
    ),
  };
}

/** Due jobs of a queue. The scan skips from one task type and priority to the next, past jobs that are not due. */
export async function countDue(
  c: Collections,
  queue: string,
  now: Date,
  max: number,
  timeBudgetMs = MAX_QUERY_MS,
): Promise<Count> {
  const filter = { status: 'SCHEDULED', queue, nextRunAt: { $lte: now } } as const;
  const options = { hint: CLAIM_KEYS, limit: max + 1, maxTimeMS: timeBudgetMs };
  const count = await withTimeLimit('counting due jobs', () => c.jobs.countDocuments(filter, options));
  return toCount(count, max);
}

/** Jobs of a queue that are due later: delayed or retrying. */
export async function countLater(c: Collections, queue: string, now: Date, max: number): Promise<Count> {
  const filter = { status: 'SCHEDULED', queue, nextRunAt: { $gt: now } } as const;
  const options = { hint: CLAIM_KEYS, limit: max + 1, maxTimeMS: MAX_QUERY_MS };
  return toCount(await withTimeLimit('counting jobs', () => c.jobs.countDocuments(filter, options)), max);
}

/** All stored jobs, from the server's metadata. */
export async function estimateJobs(c: Collections): Promise<number> {
  return c.jobs.estimatedDocumentCount({ maxTimeMS: MAX_QUERY_MS });
}

/** Time limit per queue. The backlog is read regularly, so a slow read is dropped. */
const BACKLOG_BUDGET_MS = 250;
/** (task type, priority) pairs per queue; each needs its own query. */
const MAX_PAIRS = 500;

/** The jobs of a queue that are due and not claimed. */
export interface QueueBacklog {
  queue: string;
  /** The number of jobs, up to 10,000. */
  waiting: number;
  /** When the oldest of them became due; null if there are none. */
  oldest: Date | null;
  /** Milliseconds since then, by the database's clock; 0 if there are none. */
  age: number;
}

/** Reads one queue after the other, to keep the load on the server low. Queues that take too long are left out. */
export async function findBacklog(
  c: Collections,
  queues: readonly string[],
  clock: Pick<Clock, 'now' | 'monotonic'>,
): Promise<QueueBacklog[]> {
  const found: QueueBacklog[] = [];
  for (const queue of queues) {
    const backlog = await findQueueBacklog(c, queue, clock);
    if (backlog !== undefined) found.push(backlog);
  }
  return found;
}

/** Undefined if nothing was found in time. */
async function findQueueBacklog(
  c: Collections,
  queue: string,
  clock: Pick<Clock, 'now' | 'monotonic'>,
): Promise<QueueBacklog | undefined> {
  const now = clock.now();
  const end = clock.monotonic() + BACKLOG_BUDGET_MS;
  const { oldestDue, isComplete } = await findOldestDue(c, {
    queue,
    now,
    max: MAX_PAIRS,
    isTimeUp: () => clock.monotonic() > end,
    timeBudgetMs: BACKLOG_BUDGET_MS,
  });
  if (oldestDue.length === 0) return isComplete ? { queue, waiting: 0, oldest: null, age: 0 } : undefined;
  const oldest = new Date(Math.min(...oldestDue.map(({ nextRunAt }) => nextRunAt.getTime())));
  const waiting = await countDue(c, queue, now, MAX_COUNTED, BACKLOG_BUDGET_MS).catch((error: unknown) => {
    if (isQueryTimeout(error)) return { count: MAX_COUNTED };
    throw error;
  });
  return { queue, waiting: waiting.count, oldest, age: now.getTime() - oldest.getTime() };
}
