import type { Clock } from '../domain/clock.js';
import { isTooSlow, MOST_COUNTED } from './bounded.js';
import { findDueHeads } from './due-heads.js';
import type { Collections } from './models.js';
import { countDue } from './queue-counts.js';

/** Milliseconds. What takes longer is given up: it is asked for regularly. */
const PATIENCE = 250;
/** Task types and priorities of a queue that are looked at one by one. */
const MOST_HEADS = 500;

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
  clock: Pick<Clock, 'now' | 'monotonic'>,
): Promise<QueueBacklog[]> {
  const found: QueueBacklog[] = [];
  for (const queue of queues) {
    const one = await backlogOf(c, queue, clock);
    if (one !== undefined) found.push(one);
  }
  return found;
}

/** Undefined when nothing was found out in time. */
async function backlogOf(
  c: Collections,
  queue: string,
  clock: Pick<Clock, 'now' | 'monotonic'>,
): Promise<QueueBacklog | undefined> {
  const now = clock.now();
  const end = clock.monotonic() + PATIENCE;
  const isOver = (): boolean => clock.monotonic() > end;
  const { heads, isComplete } = await findDueHeads(c, {
    ...{ queue, now, most: MOST_HEADS, isOver, patience: PATIENCE },
  });
  if (heads.length === 0) return isComplete ? { queue, waiting: 0, oldest: null, age: 0 } : undefined;
  const oldest = new Date(Math.min(...heads.map(({ nextRunAt }) => nextRunAt.getTime())));
  const waiting = await countDue(c, queue, now, MOST_COUNTED, PATIENCE).catch((error: unknown) => {
    if (isTooSlow(error)) return { count: MOST_COUNTED };
    throw error;
  });
  return { queue, waiting: waiting.count, oldest, age: now.getTime() - oldest.getTime() };
}
