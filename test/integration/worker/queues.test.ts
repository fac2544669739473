import assert from 'node:assert/strict';
import { manualScheduler, withoutRenewalThread } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { countEvents, nextEvent } from '../../support/events.js';

describe('queues and task types', () => {
  const database = useSharedDatabase();

  it('a worker serves only the queues it is configured for [J11]', async () => {
    const { scheduler: all } = manualScheduler(database, { queues: ['default', 'mail', 'reports'] });
    const { scheduler: some } = manualScheduler(database, { queues: ['mail', 'reports'] });
    const served: string[] = [];
    for (const scheduler of [all, some])
      scheduler.registerHandler('work', (_, job) => void served.push(job.queue));
    for (const queue of ['default', 'mail', 'other', 'reports']) await some.dispatch('work', null, { queue });
    assert.equal(await some.run(), 2);
    assert.deepEqual(served.splice(0).sort(), ['mail', 'reports']);
    assert.equal(await all.run(), 1);
    assert.deepEqual(served, ['default']);
    assert.equal(await database.collections.jobs.countDocuments({ queue: 'other', status: 'SCHEDULED' }), 1);
  });

  it('a worker serves the queue `default` when no queues are configured [J11]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('work', () => undefined);
    await scheduler.dispatch('work');
    await scheduler.dispatch('work', null, { queue: 'other' });
    assert.equal(await scheduler.run(), 1);
  });

  it('workers with different handlers each take the jobs they have handlers for [J18]', async () => {
    const mailer = database.scheduler(withoutRenewalThread);
    const reporter = database.scheduler(withoutRenewalThread);
    mailer.registerHandler('mail', () => 'mailer');
    reporter.registerHandler('report', () => 'reporter');
    await Promise.all([mailer.start(), reporter.start()]);
    const mailed = countEvents(mailer, 'job:complete', 10);
    const reported = countEvents(reporter, 'job:complete', 10);
    await mailer.dispatchMany(
      Array.from({ length: 20 }, (_, i) => ({ taskType: i % 2 === 0 ? 'mail' : 'report' })),
    );
    assert.deepEqual(new Set((await mailed).map(({ taskType }) => taskType)), new Set(['mail']));
    assert.deepEqual(new Set((await reported).map(({ taskType }) => taskType)), new Set(['report']));
  });

  it('a job of an unknown task type waits unchanged for a worker that has the handler [J18]', async () => {
    const first = database.scheduler(withoutRenewalThread);
    first.registerHandler('known', () => undefined);
    await first.start();
    const { id } = await first.dispatch('unknown');
    const known = await first.dispatch('known');
    await known.wait();
    const waiting = await first.getJob(id);
    assert.deepEqual([waiting?.status, waiting?.fence, waiting?.attempts], ['SCHEDULED', 0, 0]);

    const second = database.scheduler(withoutRenewalThread);
    second.registerHandler('unknown', () => 'found');
    const complete = nextEvent(second, 'job:complete');
    await second.start();
    assert.equal((await complete).jobId, id);
  });

  it('a handler that is registered while the worker runs gets jobs without a poll [J18]', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread, pollInterval: '1h' });
    await scheduler.start();
    const { id } = await scheduler.dispatch('late');
    const complete = nextEvent(scheduler, 'job:complete');
    scheduler.registerHandler('late', () => undefined);
    assert.equal((await complete).jobId, id);
  });

  it('a worker runs jobs by priority, then by run time, then by id, not in the order of dispatch [J10]', async () => {
    const { scheduler, clock } = manualScheduler(database, { concurrency: 1 });
    const order: unknown[] = [];
    scheduler.registerHandler('work', (payload) => void order.push(payload));
    await scheduler.dispatch('work', 6, { priority: 1000 });
    await scheduler.dispatch('work', 3, { delay: 20, key: 'a' });
    await scheduler.dispatch('work', 4, { delay: 20, key: 'b' });
    await scheduler.dispatch('work', 5, { delay: 30, key: 'c' });
    await scheduler.dispatch('work', 2, { delay: 10, key: 'z' });
    await scheduler.dispatch('work', 1, { priority: 0, delay: 50 });
    clock.advance(100);
    assert.equal(await scheduler.run(), 6);
    assert.deepEqual(order, [1, 2, 3, 4, 5, 6]);
  });
});
