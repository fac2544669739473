import assert from 'node:assert/strict';
import { aJob } from '../../support/factories/job.js';
import { withoutRenewalThread } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { countEvents, signal } from '../../support/events.js';

const LONG_AGO = new Date(1);

describe('crash suspects', () => {
  const database = useSharedDatabase();

  it('run one at a time in a process, each as soon as the previous one has ended', async () => {
    // With such rare polls, every suspect but the first is claimed because a slot became free.
    const scheduler = database.scheduler({ ...withoutRenewalThread, pollInterval: '1h', concurrency: 3 });
    let running = 0;
    let peak = 0;
    scheduler.registerHandler('work', async () => {
      peak = Math.max(peak, ++running);
      await new Promise(setImmediate);
      running--;
    });
    await database.collections.jobs.insertMany([
      ...Array.from({ length: 6 }, () => aJob({ crashes: 1, nextRunAt: LONG_AGO })),
      ...Array.from({ length: 6 }, () => aJob({ lostWhileQueued: 1, nextRunAt: LONG_AGO })),
    ]);
    const complete = countEvents(scheduler, 'job:complete', 12);
    await scheduler.start();
    await complete;
    assert.equal(peak, 1);
  });

  it('do not delay other jobs', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread, pollInterval: '1h', concurrency: 2 });
    const release = signal();
    scheduler.registerHandler('suspicious', () => release.promise);
    scheduler.registerHandler('innocent', () => undefined);
    await database.collections.jobs.insertMany([
      ...Array.from({ length: 5 }, () => aJob({ taskType: 'suspicious', crashes: 1, nextRunAt: LONG_AGO })),
      ...Array.from({ length: 20 }, () => aJob({ taskType: 'innocent', priority: 200, nextRunAt: LONG_AGO })),
    ]);
    const innocent = countEvents(scheduler, 'job:complete', 20);
    await scheduler.start();
    assert.deepEqual(new Set((await innocent).map(({ taskType }) => taskType)), new Set(['innocent']));
    const suspicious = countEvents(scheduler, 'job:complete', 5);
    release.fire();
    await suspicious;
  });

  it('are never prefetched', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread, concurrency: 1 });
    const statuses: (string | undefined)[] = [];
    scheduler.registerHandler('work', () => undefined);
    scheduler.registerHandler('suspicious', async (_, { id }) => {
      statuses.push((await database.collections.jobs.findOne({ _id: id }))?.status);
    });
    await database.collections.jobs.insertMany([
      ...Array.from({ length: 300 }, () => aJob({ nextRunAt: LONG_AGO })),
      ...Array.from({ length: 5 }, () =>
        aJob({ taskType: 'suspicious', lostWhileQueued: 1, priority: 101, nextRunAt: LONG_AGO }),
      ),
      ...Array.from({ length: 300 }, () => aJob({ priority: 102, nextRunAt: LONG_AGO })),
    ]);
    const complete = countEvents(scheduler, 'job:complete', 605);
    await scheduler.start();
    await complete;
    assert.deepEqual(statuses, Array(5).fill('RUNNING'));
  });
});
