// Every event has its own payload type.
import { Scheduler } from '../../../src/index.js';

const scheduler = new Scheduler({ uri: 'mongodb://localhost/app' });

scheduler
  .on('job:start', ({ jobId, taskType, attempt, fence }) => `${jobId} ${taskType} ${attempt + fence}`)
  .on('job:complete', ({ result, duration }) => [result satisfies unknown, duration.toFixed()])
  .on('job:failed', ({ error, willRetry, nextRunAt }) =>
    willRetry ? nextRunAt?.toISOString() : error.message,
  )
  .once('job:cancelled', async ({ reason }) => Promise.resolve(reason?.length))
  .on('worker:state', ({ state, previous }) => state === 'Running' && previous === 'Starting')
  .on('worker:error', ({ operation, failures, retryIn }) => `${operation} ${failures} ${retryIn}`)
  .off('listener:error', ({ event, error }) => `${event} ${error.message}`);
