import type { FinishedStatus, JobStatus } from '../domain/job.js';
import { TRANSITIONS } from '../domain/transitions.js';
import type { Collections } from './models.js';

/** `status` is what the job is instead of finished; null when there is no such job. */
export type RetryAnswer = { retried: true } | { retried: false; status: JobStatus | null };

/**
 * Runs a finished job again, as if it were new. The execution log keeps what happened before. `from`: only if it ended
 * like this; whoever retries what failed must not run again what somebody else has brought to its end meanwhile.
 */
export async function retry(
  c: Collections,
  jobId: string,
  now: Date,
  from: readonly FinishedStatus[] = TRANSITIONS.retry.from,
): Promise<RetryAnswer> {
  const { matchedCount } = await c.jobs.updateOne(
    { _id: jobId, status: { $in: [...from] } },
    {
      $set: {
        status: TRANSITIONS.retry.to,
        nextRunAt: now,
        attempts: 0,
        crashes: 0,
        abandoned: 0,
        cancelRequested: null,
        skipReason: null,
        startedAt: null,
        finishedAt: null,
        progress: null,
        result: null,
        resultCut: false,
        error: null,
      },
      $unset: { firstStartedAt: '' },
      $inc: { fence: TRANSITIONS.retry.fence },
    },
  );
  if (matchedCount === 1) return { retried: true };
  const job = await c.jobs.findOne({ _id: jobId }, { projection: { status: 1 } });
  return { retried: false, status: job?.status ?? null };
}
