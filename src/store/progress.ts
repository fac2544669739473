import type { Progress } from '../domain/job.js';
import type { Collections } from './models.js';

/** False when the lock is gone: a zombie's progress changes nothing. */
export async function saveProgress(
  c: Collections,
  jobId: string,
  token: string,
  progress: Progress,
): Promise<boolean> {
  const { matchedCount } = await c.jobs.updateOne({ _id: jobId, lockToken: token }, { $set: { progress } });
  return matchedCount === 1;
}
