import { Scheduler, type JobContext } from '../../../src/index.js';

const scheduler = new Scheduler({ uri: 'mongodb://localhost' });

// refused: a handle that was not awaited
scheduler.dispatch('work').id;
const handle = await scheduler.dispatch('work');
// refused: a handle is no thenable
handle.then(() => 1);
// refused: a draft is no thenable
scheduler.delay('1h').then(() => 1);
// refused: nobody changes the id of a job
handle.id = 'another';
// refused: the token of a lock is its owner's
(await scheduler.getJob('a'))?.lockToken;

export function handler(payload: unknown, job: JobContext): void {
  // refused: a job is read, not written
  job.attempt = 1;
  // refused: nor its fence
  job.fence++;
  // refused: nor its payload
  job.payload = payload;
  // refused: nor its status
  job.status = 'COMPLETED';
  // refused: progress is a number
  void job.reportProgress('half');
}
