import { randomUUID } from 'node:crypto';
import { newJob, type JobDocument } from '../../src/domain/job.js';
import { newJobId } from '../../src/store/bson.js';

/** A job as a dispatch makes it. */
export function sampleJob(index: number): JobDocument {
  const now = new Date();
  return newJob({
    ...{ _id: newJobId(), taskType: 'noop', queue: 'default', priority: 100, payload: { index } },
    ...{ nextRunAt: now, createdAt: now, retries: null, timeout: null, maxRunningTime: null },
    nonce: randomUUID(),
  });
}
