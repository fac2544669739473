import { type JobDocument, type JobStatus, newJob } from '../../../src/domain/job/job.js';

const NOW = new Date('2026-01-01T00:00:00Z');

/** The fields that a claim sets. */
function lock(status: 'QUEUED' | 'RUNNING'): Partial<JobDocument> {
  const started = status === 'RUNNING';
  return {
    status,
    fence: 1,
    lockedBy: 'worker',
    lockedUntil: new Date(NOW.getTime() + 60_000),
    lockToken: 'token',
    queuedAt: NOW,
    startedAt: started ? NOW : null,
    ...(started && { firstStartedAt: NOW }),
  };
}

const FILLED: Record<JobStatus, Partial<JobDocument>> = {
  PENDING: { held: { reason: null, at: NOW } },
  SCHEDULED: {},
  QUEUED: lock('QUEUED'),
  RUNNING: lock('RUNNING'),
  COMPLETED: { fence: 1, startedAt: NOW, firstStartedAt: NOW, finishedAt: NOW },
  FAILED: { fence: 1, attempts: 3, startedAt: NOW, firstStartedAt: NOW, finishedAt: NOW },
  CANCELLED: { fence: 1, cancelKind: 'cancelled', finishedAt: NOW },
};

let count = 0;

/** A job with the fields that its status requires, due at the start of the manual clock. */
export function aJob(fields: Partial<JobDocument> = {}): JobDocument {
  const status = fields.status ?? 'SCHEDULED';
  return {
    ...newJob({
      _id: `job-${String(++count).padStart(4, '0')}`,
      taskType: 'work',
      queue: 'default',
      priority: 100,
      payload: null,
      nextRunAt: NOW,
      createdAt: NOW,
      retries: null,
      timeout: null,
      maxRunningTime: null,
      nonce: 'nonce',
    }),
    status,
    ...FILLED[status],
    ...fields,
  };
}
