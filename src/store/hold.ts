import type { JobStatus } from '../domain/job.js';
import { TRANSITIONS } from '../domain/transitions.js';
import type { Collections } from './models.js';

/** `status` is what the job is instead; null when there is no such job. */
export type HoldAnswer = { changed: true } | { changed: false; status: JobStatus | null };

export async function hold(
  c: Collections,
  jobId: string,
  reason: string | null,
  now: Date,
): Promise<HoldAnswer> {
  return change(c, jobId, { from: TRANSITIONS.hold.from[0], to: TRANSITIONS.hold.to }, { reason, at: now });
}

export async function unhold(c: Collections, jobId: string): Promise<HoldAnswer> {
  return change(c, jobId, { from: TRANSITIONS.unhold.from[0], to: TRANSITIONS.unhold.to }, null);
}

async function change(
  c: Collections,
  jobId: string,
  { from, to }: { from: JobStatus; to: JobStatus },
  held: { reason: string | null; at: Date } | null,
): Promise<HoldAnswer> {
  const { matchedCount } = await c.jobs.updateOne(
    { _id: jobId, status: from },
    { $set: { status: to, held } },
  );
  if (matchedCount === 1) return { changed: true };
  const job = await c.jobs.findOne({ _id: jobId }, { projection: { status: 1 } });
  return { changed: false, status: job?.status ?? null };
}
