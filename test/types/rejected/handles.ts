import { Scheduler, type JobContext } from '../../../src/index.js';

const scheduler = new Scheduler({ uri: 'mongodb://localhost' });

// rejected: a field of a handle that was not awaited
scheduler.dispatch('work').id;
const handle = await scheduler.dispatch('work');
// rejected: a handle as a thenable
handle.then(() => 1);
// rejected: a draft as a thenable
scheduler.delay('1h').then(() => 1);
// rejected: changing the id of a handle
handle.id = 'another';
// rejected: a handle without an id
scheduler.job();
// rejected: a field of a result, whose type is unknown
(await scheduler.job('a').result()).sent;
// rejected: a timeout that is not a duration
await scheduler.job('a').wait({ timeout: true });
// rejected: reading the lock token of a job
(await scheduler.getJob('a'))?.lockToken;

export function handler(payload: unknown, job: JobContext): void {
  // rejected: a handler that changes the attempt of its job
  job.attempt = 1;
  // rejected: a handler that changes the fence of its job
  job.fence++;
  // rejected: a handler that changes the payload of its job
  job.payload = payload;
  // rejected: a handler that changes the status of its job
  job.status = 'COMPLETED';
  // rejected: progress that is not a number
  void job.reportProgress('half');
}
