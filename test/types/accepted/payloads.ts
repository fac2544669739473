// The payload types of `Scheduler<Payloads>`.
import { Scheduler, type JobHandle } from '../../../src/index.js';

interface Payloads {
  sendEmail: { to: string; subject?: string };
  cleanUp: undefined;
  report: { month: number } | undefined;
}

export const scheduler = new Scheduler<Payloads>({ uri: 'mongodb://localhost/app' });

scheduler
  .registerHandler('sendEmail', async (payload, job) => {
    const to: string = payload.to;
    const signal: AbortSignal = job.signal;
    await job.reportProgress(50, to);
    return { sent: !signal.aborted };
  })
  .registerHandler('cleanUp', (payload) => {
    const nothing: undefined = payload;
    return nothing;
  })
  .registerHandler('report', (payload) => payload?.month, { timeout: '2m', retries: { max: 5, base: '2s' } });

export async function dispatchAll(): Promise<JobHandle[]> {
  return [
    await scheduler.dispatch('sendEmail', { to: 'a' }),
    await scheduler.dispatch(
      'sendEmail',
      { to: 'a', subject: 'b' },
      { delay: '10m', priority: 10, key: 'k' },
    ),
    // A payload that may be undefined is optional.
    await scheduler.dispatch('cleanUp'),
    await scheduler.dispatch('report'),
    await scheduler.dispatch('report', { month: 1 }),
    await scheduler.dispatch('cleanUp', undefined, { queue: 'nightly' }),
  ];
}
