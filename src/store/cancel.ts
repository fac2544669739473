import { isFinished, type FinishedStatus } from '../domain/job.js';
import { TRANSITIONS } from '../domain/transitions.js';
import { NO_LOCK } from './lock-fields.js';
import type { Collections } from './models.js';

/** `requested`: it runs, and its worker has been asked; the job ends CANCELLED when its handler heeds its signal. */
export type CancelAnswer =
  | { answer: 'cancelled'; taskType: string }
  | { answer: 'requested' }
  | { answer: 'alreadyFinished'; status: FinishedStatus }
  | { answer: 'notFound' };

/** Cancels a job that does not run; asks for it when it does. Tries again when the job changed in between. */
export async function cancel(
  c: Collections,
  jobId: string,
  reason: string | null,
  now: Date,
): Promise<CancelAnswer> {
  const cancelRequested = { reason, at: now };
  for (;;) {
    const waiting = await c.jobs.findOneAndUpdate(
      { _id: jobId, status: { $in: [...TRANSITIONS.cancel.from] } },
      {
        $set: { status: TRANSITIONS.cancel.to, ...NO_LOCK, cancelRequested, finishedAt: now, held: null },
        $inc: { fence: TRANSITIONS.cancel.fence },
      },
      { projection: { taskType: 1 } },
    );
    if (waiting !== null) return { answer: 'cancelled', taskType: waiting.taskType };
    const running = await c.jobs.updateOne(
      { _id: jobId, status: 'RUNNING', cancelRequested: null },
      { $set: { cancelRequested } },
    );
    if (running.matchedCount === 1) return { answer: 'requested' };
    const job = await c.jobs.findOne({ _id: jobId }, { projection: { status: 1, cancelRequested: 1 } });
    if (job === null) return { answer: 'notFound' };
    if (isFinished(job.status)) return { answer: 'alreadyFinished', status: job.status };
    if (job.status === 'RUNNING' && job.cancelRequested !== null) return { answer: 'requested' };
  }
}

/** Those of the jobs that somebody wants cancelled, with the reason given. */
export async function findCancelRequests(
  c: Collections,
  ids: readonly string[],
): Promise<Map<string, string | null>> {
  const found = await c.jobs
    .find(
      { _id: { $in: [...ids] }, cancelRequested: { $ne: null } },
      { projection: { cancelRequested: 1 }, hint: { _id: 1 } },
    )
    .toArray();
  return new Map(found.map((job) => [job._id, job.cancelRequested?.reason ?? null]));
}
