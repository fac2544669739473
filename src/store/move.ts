import type { JobStatus } from '../domain/job.js';
import type { Collections } from './models.js';

/** `status` is what the job is instead of waiting; null when there is no such job. */
export type MoveAnswer = { moved: true; nextRunAt: Date } | { moved: false; status: JobStatus | null };

/** Changes when a job is due, as long as nobody has claimed it. */
export async function move(c: Collections, jobId: string, nextRunAt: Date): Promise<MoveAnswer> {
  const { matchedCount } = await c.jobs.updateOne(
    { _id: jobId, status: { $in: ['PENDING', 'SCHEDULED'] } },
    { $set: { nextRunAt } },
  );
  if (matchedCount === 1) return { moved: true, nextRunAt };
  const job = await c.jobs.findOne({ _id: jobId }, { projection: { status: 1 } });
  return { moved: false, status: job?.status ?? null };
}
