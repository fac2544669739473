import type { ExecutionDocument } from '../domain/execution.js';
import { bounded, MOST_TIME } from './bounded.js';
import type { Collections } from './models.js';
import { EXPIRY_INDEX } from './schema-parts.js';

export interface RecentOutcome {
  queue: string;
  outcome: ExecutionDocument['outcome'];
  count: number;
}

export interface RecentOutcomes {
  outcomes: RecentOutcome[];
  /** From here on all are counted: later than asked when there were more than `most`. */
  since: Date;
}

interface Group {
  _id: { queue: string; outcome: ExecutionDocument['outcome'] };
  count: number;
  first: Date;
}

/** Attempts that ended since the instant, the newest `most` of them, by queue and outcome. */
export async function countRecentOutcomes(
  c: Collections,
  since: Date,
  most: number,
): Promise<RecentOutcomes> {
  const pipeline = [
    // The order in which they ended, as long as all processes keep rows for the same time: there is no other index.
    { $sort: { expiresAt: -1 } },
    { $limit: most },
    { $match: { finishedAt: { $gte: since } } },
    {
      $group: {
        _id: { queue: '$queue', outcome: '$outcome' },
        count: { $sum: 1 },
        first: { $min: '$finishedAt' },
      },
    },
  ];
  const groups = await bounded('counting recent attempts', () =>
    c.executions.aggregate<Group>(pipeline, { hint: EXPIRY_INDEX, maxTimeMS: MOST_TIME }).toArray(),
  );
  const total = groups.reduce((sum, { count }) => sum + count, 0);
  const first = Math.min(...groups.map((group) => group.first.getTime()));
  return {
    outcomes: groups.map(({ _id, count }) => ({ ..._id, count })),
    since: total < most ? since : new Date(first),
  };
}
