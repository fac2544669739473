import type { mongo } from 'mongoose';
import { sampleJob } from './sample-job.js';

const CHUNK = 50_000;
const DAY = 86_400_000;

/** Finished jobs and jobs of the future, so many of each, made by the server itself. */
export async function fillWithOthers(
  db: mongo.Db,
  count: number,
  log: (line: string) => void,
): Promise<void> {
  const { _id, ...fields } = sampleJob(0);
  const now = new Date();
  const finished = { status: 'COMPLETED', finishedAt: now, fence: 2, settledBy: 'somebody' };
  const future = { nextRunAt: new Date(now.getTime() + 30 * DAY) };
  await Promise.all(
    Object.entries({ finished, future }).map(async ([what, others]) => {
      for (let from = 0; from < count; from += CHUNK) {
        const some = Math.min(CHUNK, count - from);
        await db.aggregate(numbered(`${what}-${_id}-`, from, some, { ...fields, ...others })).toArray();
        if ((from + some) % (4 * CHUNK) === 0) log(`${from + some} of ${count} ${what} jobs`);
      }
    }),
  );
}

function numbered(prefix: string, from: number, count: number, fields: object): mongo.BSON.Document[] {
  return [
    { $documents: [{ number: { $range: [from, from + count] } }] },
    { $unwind: '$number' },
    {
      $replaceWith: {
        $mergeObjects: [{ $literal: fields }, { _id: { $concat: [prefix, { $toString: '$number' }] } }],
      },
    },
    { $merge: { into: 'jobs', on: '_id', whenMatched: 'fail', whenNotMatched: 'insert' } },
  ];
}
