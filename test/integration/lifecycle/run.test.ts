import assert from 'node:assert/strict';
import { SnoozeJob } from '../../../src/index.js';
import { aJob } from '../../support/factories/job.js';
import { manualScheduler, withoutRenewalThread } from '../../support/manual-scheduler.js';
import { collectionName, useDatabase } from '../../support/database.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { nextEvent } from '../../support/events.js';
import { withFailPoint } from '../../support/fail-point.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';

describe('run()', () => {
  const database = useSharedDatabase();

  it('runs as many due jobs as requested, 32 by default, and returns the count [J13]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('work', () => undefined);
    await scheduler.dispatchMany(Array.from({ length: 50 }, () => ({ taskType: 'work' })));
    await scheduler.dispatch('work', null, { delay: '1h' });
    assert.equal(await scheduler.run(7), 7);
    assert.equal(await scheduler.run(), 32);
    assert.equal(await scheduler.run(), 11);
    assert.equal(await scheduler.run(), 0);
    assert.equal(await database.collections.jobs.countDocuments({ status: 'COMPLETED' }), 50);
  });

  it('resolves after the jobs are settled [J13]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('work', () => flushEventLoop(20));
    await scheduler.dispatchMany(Array.from({ length: 12 }, () => ({ taskType: 'work' })));
    await scheduler.run();
    const { jobs, executions } = database.collections;
    assert.equal(await jobs.countDocuments({ status: 'COMPLETED', lockedBy: null }), 12);
    assert.equal(await executions.countDocuments({ outcome: 'completed' }), 12);
  });

  it('runs at most `concurrency` jobs at once [C1]', async () => {
    const { scheduler } = manualScheduler(database, { concurrency: 3 });
    let running = 0;
    let peak = 0;
    scheduler.registerHandler('work', async () => {
      peak = Math.max(peak, ++running);
      await flushEventLoop(50);
      running--;
    });
    await scheduler.dispatchMany(Array.from({ length: 20 }, () => ({ taskType: 'work' })));
    assert.equal(await scheduler.run(), 20);
    assert.equal(peak, 3);
  });

  it('runs the other jobs when one fails [Y8]', async () => {
    const { scheduler } = manualScheduler(database, { concurrency: 2 });
    scheduler.registerHandler('good', () => undefined);
    scheduler.registerHandler('bad', () => {
      throw new Error('broken');
    });
    scheduler.registerHandler('worse', () => Promise.reject(new Error('broken')));
    for (let i = 0; i < 5; i++)
      await scheduler.dispatchMany(
        ['bad', 'good', 'worse'].map((taskType) => ({ taskType, options: { retries: { max: 1 } } })),
      );
    assert.equal(await scheduler.run(), 15);
    const { jobs } = database.collections;
    assert.equal(await jobs.countDocuments({ taskType: 'good', status: 'COMPLETED' }), 5);
    assert.equal(await jobs.countDocuments({ taskType: { $ne: 'good' }, status: 'FAILED' }), 10);
  });

  it('runs every due crash suspect, one at a time [J13]', async () => {
    const { scheduler } = manualScheduler(database, { concurrency: 4 });
    let running = 0;
    let peak = 0;
    scheduler.registerHandler('work', async (_, job) => {
      if (job.crashes === 0) return;
      peak = Math.max(peak, ++running);
      await flushEventLoop(20);
      running--;
    });
    await database.collections.jobs.insertMany([
      ...Array.from({ length: 5 }, () => aJob({ crashes: 1 })),
      ...Array.from({ length: 5 }, () => aJob()),
    ]);
    assert.equal(await scheduler.run(), 10);
    assert.equal(peak, 1);
  });

  it('ends even if a job snoozes for 0 ms again and again [J13]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('snoozes', () => {
      throw new SnoozeJob(0);
    });
    await scheduler.dispatch('snoozes');
    const count = await scheduler.run(10);
    assert.ok(count >= 1 && count <= 10, String(count));
  });

  it('shares the jobs with another pass that runs at the same time [J13]', async () => {
    const schedulers = [manualScheduler(database).scheduler, manualScheduler(database).scheduler];
    const starts: string[] = [];
    for (const scheduler of schedulers)
      scheduler.registerHandler('work', (_, job) => void starts.push(job.id));
    await schedulers[0]!.dispatchMany(Array.from({ length: 60 }, () => ({ taskType: 'work' })));
    let ran = 0;
    for (let i = 0; i < 10 && ran < 60; i++)
      ran += (await Promise.all(schedulers.map((one) => one.run(20)))).reduce((a, b) => a + b);
    assert.equal(ran, 60);
    assert.equal(new Set(starts).size, 60);
    assert.equal(starts.length, 60);
  });

  it('resolves when it is stopped while it connects or installs [J13]', async () => {
    const slowInstall = { commands: ['listIndexes'], how: 500 } as const;
    for (const isConnected of [false, true]) {
      const { scheduler } = manualScheduler(database);
      if (isConnected) await scheduler.getJob('none');
      await withFailPoint(database, slowInstall, async (entered) => {
        const running = scheduler.run();
        running.catch(() => undefined);
        if (isConnected) await entered();
        await scheduler.stop();
        assert.equal(await running, 0);
      });
      await withFailPoint(database, slowInstall, async (entered) => {
        const pass = scheduler.runOnce();
        pass.catch(() => undefined);
        if (isConnected) await entered();
        await scheduler.stop();
        const { entries, executed, isComplete } = await pass;
        assert.deepEqual([entries, executed, isComplete], [[], 0, false]);
      });
    }
  });

  it('rejects a batch that is not a positive integer [J13]', async () => {
    const { scheduler } = manualScheduler(database);
    for (const batch of [0, -1, 1.5, NaN, '5', { $gt: 0 }])
      await assert.rejects(scheduler.run(batch as number), { code: 'INVALID_ARGUMENT' });
  });
});

describe('install()', () => {
  const database = useDatabase();

  it('creates collections, indexes and validators, also from many processes at once and repeatedly [J13]', async () => {
    const schedulers = Array.from({ length: 4 }, () => manualScheduler(database).scheduler);
    await database.connection.dropDatabase();
    await Promise.all(schedulers.map((scheduler) => scheduler.install()));
    await schedulers[0]!.install();

    const { jobs } = database.collections;
    const indexes = await jobs.indexes();
    assert.deepEqual(
      indexes.map(({ name, key, partialFilterExpression }) => ({ name, key, partialFilterExpression })),
      [
        { name: '_id_', key: { _id: 1 }, partialFilterExpression: undefined },
        {
          name: 'claim',
          key: { queue: 1, taskType: 1, priority: 1, nextRunAt: 1, _id: 1 },
          partialFilterExpression: { status: 'SCHEDULED' },
        },
        {
          name: 'locks',
          key: { lockedUntil: 1 },
          partialFilterExpression: { status: { $in: ['QUEUED', 'RUNNING'] } },
        },
        { name: 'next_due', key: { nextRunAt: 1 }, partialFilterExpression: { status: 'SCHEDULED' } },
        {
          name: 'finished',
          key: { status: 1, finishedAt: 1 },
          partialFilterExpression: { status: { $in: ['COMPLETED', 'FAILED', 'CANCELLED'] } },
        },
        {
          name: 'cancelled',
          key: { cancelKind: 1, finishedAt: 1 },
          partialFilterExpression: { status: 'CANCELLED' },
        },
        {
          name: 'retrying',
          key: { nextRunAt: 1 },
          partialFilterExpression: {
            status: 'SCHEDULED',
            $or: [{ attempts: { $gt: 0 } }, { crashes: { $gt: 0 } }],
          },
        },
        { name: 'pending', key: { createdAt: 1 }, partialFilterExpression: { status: 'PENDING' } },
        {
          name: 'expires',
          key: { expiresAt: 1 },
          partialFilterExpression: {
            expiresAt: { $exists: true },
            status: { $in: ['PENDING', 'SCHEDULED'] },
          },
        },
        {
          name: 'keep_until',
          key: { keepUntil: 1 },
          partialFilterExpression: { keepUntil: { $exists: true } },
        },
        {
          name: 'waiting',
          key: { waitingFor: 1, priority: 1, nextRunAt: 1, _id: 1 },
          partialFilterExpression: { waitingFor: { $exists: true } },
        },
        { name: 'user', key: { userId: 1, _id: 1 }, partialFilterExpression: { userId: { $gt: '' } } },
        { name: 'tags', key: { tags: 1, _id: 1 }, partialFilterExpression: { tags: { $exists: true } } },
      ],
    );
    await assert.rejects(jobs.insertOne({ ...aJob(), nextRunAt: 'soon' as never }), /validation/);
    await jobs.insertOne(aJob());
  });
});

describe('install() into existing collections', () => {
  const database = useDatabase();

  it('rejects a collection with foreign documents and leaves it unchanged [J13]', async () => {
    const { connection } = database;
    await connection.db?.dropCollection(collectionName('jobs'));
    const jobs = connection.collection(collectionName('jobs'));
    await jobs.insertOne({ title: 'engineer', status: 'COMPLETED', finishedAt: new Date(0) });
    await assert.rejects(database.scheduler().start(), {
      code: 'COLLECTION_TAKEN',
      message: /choose another prefix .*, or use a separate database/,
    });
    assert.equal(await jobs.countDocuments(), 1);
    await jobs.insertOne({ title: 'carpenter' });
  });

  it('accepts a collection into which jobs were dispatched before it was installed [J13]', async () => {
    await database.connection.db?.dropCollection(collectionName('jobs'));
    const scheduler = database.scheduler({ taskHandlers: { work: () => 'done' } });
    const { id } = await scheduler.dispatch('work');
    assert.equal(await scheduler.run(), 1);
    assert.equal((await scheduler.getJob(id))?.result, 'done');
  });
});

describe('forever()', () => {
  const database = useSharedDatabase();

  it('works until it is stopped and resolves to what was left [J13]', async () => {
    // Not a manual clock, because the polls after a dispatch are throttled by a few milliseconds.
    const scheduler = database.scheduler(withoutRenewalThread);
    scheduler.registerHandler('work', () => undefined);
    const listeners = process.listenerCount('SIGTERM');
    const complete = nextEvent(scheduler, 'job:complete');
    const running = nextEvent(scheduler, 'worker:state', ({ state }) => state === 'Running');
    const over = scheduler.forever();
    await running;
    await scheduler.dispatch('work');
    await complete;
    await scheduler.stop();
    assert.deepEqual(await over, { left: [] });
    assert.equal(process.listenerCount('SIGTERM'), listeners);
  });
});
