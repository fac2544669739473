import { randomUUID } from 'node:crypto';
import { type JobDocument, newJob } from '../../src/domain/job/job.js';
import { newJobId } from '../../src/store/bson.js';

/** A job like those that dispatch() creates. */
export function sampleJob(index: number): JobDocument {
  const now = new Date();
  return newJob({
    ...{ _id: newJobId(), taskType: 'noop', queue: 'default', priority: 100, payload: { index } },
    ...{ nextRunAt: now, createdAt: now, retries: null, timeout: null, maxRunningTime: null },
    nonce: randomUUID(),
  });
}
