import assert from 'node:assert/strict';
import type { Scheduler } from '../../../src/index.js';
import { countEvents, nextEvent, recordEvents } from '../../support/events.js';
import { withFailPoint } from '../../support/fail-point.js';
import { withoutRenewalThread } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';

describe('settling', () => {
  const database = useSharedDatabase();

  /** A worker with one slot and two due jobs. */
  async function workerWithTwoJobs(settle: 'batched' | 'immediate'): Promise<Scheduler> {
    const scheduler = database.scheduler({ ...withoutRenewalThread, concurrency: 1 });
    scheduler.registerHandler('work', () => undefined, { settle });
    await scheduler.dispatchMany([
      { taskType: 'work', options: { key: 'first' } },
      { taskType: 'work', options: { key: 'second' } },
    ]);
    return scheduler;
  }

  it('lets the next job start before the outcome of the previous one is written [B3]', async () => {
    const scheduler = await workerWithTwoJobs('batched');
    const started = countEvents(scheduler, 'job:start', 2);
    const completed = countEvents(scheduler, 'job:complete', 2);
    // Claims of one job are not updates, so only outcomes cannot be written.
    await withFailPoint(database, { commands: ['update'], how: 'noConnection' }, async () => {
      await scheduler.start();
      await started;
    });
    await completed;
  });

  it('with settle: immediate writes the outcome before the next job starts', async () => {
    const scheduler = await workerWithTwoJobs('immediate');
    const events = recordEvents(scheduler, 'job:start', 'job:complete');
    const completed = countEvents(scheduler, 'job:complete', 2);
    await withFailPoint(database, { commands: ['update'], how: 200 }, async () => {
      await scheduler.start();
      await completed;
    });
    assert.deepEqual(
      events.map(({ name, event }) => `${name} ${(event as { jobId: string }).jobId}`),
      [
        'job:start work=first',
        'job:complete work=first',
        'job:start work=second',
        'job:complete work=second',
      ],
    );
  });

  it('keeps an outcome until the user may write again', async () => {
    const scheduler = await workerWithTwoJobs('batched');
    const completed = countEvents(scheduler, 'job:complete', 2);
    const denied = nextEvent(
      scheduler,
      'worker:error',
      ({ operation, failures }) => operation === 'settle' && failures === 5,
    );
    await withFailPoint(database, { commands: ['update'], how: 'denied' }, async () => {
      await scheduler.start();
      await denied;
    });
    assert.deepEqual((await completed).map(({ jobId }) => jobId).sort(), ['work=first', 'work=second']);
  });

  it('with settle: immediate runs all due jobs of a pass in one slot', async () => {
    const scheduler = database.scheduler({ concurrency: 1 });
    scheduler.registerHandler('work', () => undefined, { settle: 'immediate' });
    await scheduler.dispatchMany(Array.from({ length: 5 }, () => ({ taskType: 'work' })));
    assert.equal(await scheduler.run(), 5);
  });
});
