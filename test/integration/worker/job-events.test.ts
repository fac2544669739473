import assert from 'node:assert/strict';
import type { SchedulerEvents } from '../../../src/index.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { nextEvent, recordEvents } from '../../support/events.js';
import { timeAfter } from '../../support/instants.js';

describe('job events', () => {
  const database = useSharedDatabase();

  it('job:start and job:complete have the documented fields and are emitted in that order [C11]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const events = recordEvents(scheduler, 'job:start', 'job:complete', 'job:failed');
    scheduler.registerHandler('work', () => {
      clock.advance(1500);
      return { sent: true };
    });
    const { id } = await scheduler.dispatch('work', null, { queue: 'default' });
    await scheduler.run();
    const common = { jobId: id, taskType: 'work', queue: 'default', attempt: 1, fence: 1 };
    assert.deepEqual(events, [
      { name: 'job:start', event: { ...common, waited: 0 } },
      { name: 'job:complete', event: { ...common, result: { sent: true }, duration: 1500 } },
    ]);
  });

  it('job:failed is emitted for every failed attempt, with willRetry and nextRunAt [C11]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const events: SchedulerEvents['job:failed'][] = [];
    scheduler.on('job:failed', (event) => events.push(event));
    const thrown = new Error('broken');
    scheduler.registerHandler('work', () => {
      throw thrown;
    });
    const { id } = await scheduler.dispatch('work', null, { retries: { max: 2, jitter: 'none' } });
    await scheduler.run();
    clock.advance(1000);
    await scheduler.run();
    const common = { jobId: id, taskType: 'work', queue: 'default', error: thrown, duration: 0 };
    assert.deepEqual(events, [
      { ...common, attempt: 1, fence: 1, willRetry: true, nextRunAt: timeAfter(1000) },
      { ...common, attempt: 2, fence: 2, willRetry: false, nextRunAt: null },
    ]);
    assert.equal(events[0]?.error, thrown, 'the same object that was thrown');
  });

  it('are emitted after the write they announce [C11]', async () => {
    const { scheduler } = manualScheduler(database);
    const seen: (string | undefined)[] = [];
    const read = async ({ jobId }: { jobId: string }): Promise<void> => {
      seen.push((await database.collections.jobs.findOne({ _id: jobId }))?.status);
    };
    const pending: Promise<void>[] = [];
    scheduler.on('job:complete', (event) => pending.push(read(event)));
    scheduler.on('job:failed', (event) => pending.push(read(event)));
    scheduler.registerHandler('good', () => undefined);
    scheduler.registerHandler('bad', () => Promise.reject(new Error('no')), { retries: { max: 1 } });
    await scheduler.dispatch('good');
    await scheduler.dispatch('bad');
    await scheduler.run();
    await Promise.all(pending);
    assert.deepEqual(seen.sort(), ['COMPLETED', 'FAILED']);
  });

  it('reach the other listeners, and the job continues, when a listener throws or rejects [C11]', async () => {
    const { scheduler } = manualScheduler(database);
    const errors: string[] = [];
    scheduler.on('listener:error', ({ event, error }) => errors.push(`${event}: ${error.message}`));
    scheduler.on('listener:error', () => {
      throw new Error('thrown by the error listener');
    });
    scheduler.on('job:start', () => {
      throw new Error('thrown');
    });
    scheduler.on('job:complete', async () => Promise.reject(new Error('rejected')));
    const complete = nextEvent(scheduler, 'job:complete');
    scheduler.registerHandler('work', () => undefined);
    const { id } = await scheduler.dispatch('work');
    await scheduler.run();
    await complete;
    assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED');
    assert.deepEqual(errors, ['job:start: thrown', 'job:complete: rejected']);
  });

  it('can be subscribed to and unsubscribed from [C11]', async () => {
    const { scheduler } = manualScheduler(database);
    const calls: string[] = [];
    const always = (): void => void calls.push('always');
    const removed = (): void => void calls.push('removed');
    scheduler.on('job:complete', always).once('job:complete', () => calls.push('once'));
    scheduler.on('job:complete', removed).off('job:complete', removed);
    scheduler.registerHandler('work', () => undefined);
    for (let i = 0; i < 2; i++) {
      await scheduler.dispatch('work');
      await scheduler.run();
    }
    assert.deepEqual(calls, ['always', 'once', 'always']);
  });
});
