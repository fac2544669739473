import assert from 'node:assert/strict';
import { SnoozeJob, type JobContext } from '../../src/index.js';
import { aJob } from '../support/a-job.js';
import { byHand, inProcess } from '../support/by-hand.js';
import { useSharedDatabase } from '../support/shared-database.js';
import { nextEvent, recordEvents, signal } from '../support/events.js';
import { START } from '../support/instants.js';

describe('cancel', () => {
  const database = useSharedDatabase();

  /** Resolves with the reason when its signal is aborted. */
  function aborted({ signal }: JobContext): Promise<Error> {
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        resolve(signal.reason as Error);
      });
    });
  }

  for (const status of ['PENDING', 'SCHEDULED', 'QUEUED'] as const) {
    it(`a ${status} job is cancelled at once and never runs`, async () => {
      const { scheduler } = byHand(database);
      scheduler.registerHandler('work', () => assert.fail('it is cancelled'));
      const job = aJob({ status, fence: 3 });
      await database.collections.jobs.insertOne(job);
      const cancelled = nextEvent(scheduler, 'job:cancelled');
      assert.equal((await scheduler.cancel(job._id, 'enough')).answer, 'cancelled');
      assert.deepEqual(await cancelled, { jobId: job._id, taskType: 'work', reason: 'enough' });
      assert.equal(await scheduler.run(), 0);
      const now = await database.collections.jobs.findOne({ _id: job._id });
      assert.deepEqual(
        [now?.status, now?.fence, now?.lockToken, now?.held, now?.cancelRequested?.reason, now?.finishedAt],
        ['CANCELLED', 4, null, null, 'enough', START],
      );
    });
  }

  it('a running job is asked: its signal is aborted with the reason, and it ends CANCELLED', async () => {
    const { scheduler } = byHand(database);
    const started = nextEvent(scheduler, 'job:start');
    const cancelled = nextEvent(scheduler, 'job:cancelled');
    let reason: Error | undefined;
    scheduler.registerHandler('work', async (_, job) => {
      reason = await aborted(job);
      throw reason;
    });
    const handle = await scheduler.dispatch('work');
    const pass = scheduler.run();
    await started;
    assert.deepEqual(await handle.cancel('enough'), { answer: 'requested' });
    await pass;
    assert.equal(reason?.message, 'enough');
    assert.equal((await cancelled).reason, 'enough');
    const job = await scheduler.getJob(handle.id);
    assert.deepEqual([job?.status, job?.attempts, job?.fence], ['CANCELLED', 0, 1]);
    assert.deepEqual(
      (await scheduler.getExecutions(handle.id)).map(({ outcome }) => outcome),
      ['cancelled'],
    );
  });

  it('from another process: the owner finds out at its next poll', async () => {
    const owner = database.scheduler({ ...inProcess, pollInterval: '50ms' });
    const started = nextEvent(owner, 'job:start');
    const cancelled = nextEvent(owner, 'job:cancelled');
    owner.registerHandler('work', async (_, job) => aborted(job));
    const other = database.scheduler(inProcess);
    const { id } = await other.dispatch('work');
    await owner.start();
    await started;
    assert.deepEqual(await other.cancel(id, 'enough'), { answer: 'requested' });
    assert.equal((await cancelled).reason, 'enough');
    const job = await other.getJob(id);
    assert.deepEqual([job?.status, job?.result], ['CANCELLED', null]);
    assert.deepEqual(await other.cancel(id), { answer: 'alreadyFinished', status: 'CANCELLED' });
  });

  it('asked twice, the first reason stays', async () => {
    const { scheduler, clock } = byHand(database);
    const other = database.scheduler({ clock });
    scheduler.registerHandler('work', async (_, job) => {
      assert.deepEqual(await other.cancel(job.id, 'first'), { answer: 'requested' });
      assert.deepEqual(await other.cancel(job.id, 'second'), { answer: 'requested' });
      throw new Error('broken');
    });
    const cancelled = nextEvent(scheduler, 'job:cancelled');
    await scheduler.dispatch('work');
    await scheduler.run();
    assert.equal((await cancelled).reason, 'first');
  });

  it('a handler that completes before it hears of the request has completed', async () => {
    const { scheduler, clock } = byHand(database);
    const other = database.scheduler({ clock });
    scheduler.registerHandler('work', async (_, job) => {
      assert.deepEqual(await other.cancel(job.id), { answer: 'requested' });
      return 'done';
    });
    const { id } = await scheduler.dispatch('work');
    await scheduler.run();
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.result], ['COMPLETED', 'done']);
  });

  const comebacks: [string, () => never][] = [
    [
      'a failing attempt',
      () => {
        throw new Error('broken');
      },
    ],
    [
      'a snooze',
      () => {
        throw new SnoozeJob('1h');
      },
    ],
  ];
  for (const [name, end] of comebacks) {
    it(`${name} of a job that somebody wants cancelled does not bring it back`, async () => {
      const { scheduler, clock } = byHand(database);
      const other = database.scheduler({ clock });
      const events = recordEvents(scheduler, 'job:cancelled', 'job:failed', 'job:snoozed', 'job:lockLost');
      scheduler.registerHandler('work', async (_, job) => {
        // The other process asks just before the attempt ends: its owner has not heard of it.
        await other.cancel(job.id, 'enough');
        end();
      });
      const { id } = await scheduler.dispatch('work');
      await scheduler.run();
      const job = await scheduler.getJob(id);
      assert.deepEqual([job?.status, job?.attempts, job?.finishedAt], ['CANCELLED', 0, START]);
      assert.deepEqual(
        events.map(({ name, event }) => [name, (event as { reason?: string }).reason]),
        [['job:cancelled', 'enough']],
      );
    });
  }

  it('a job that waits for its next attempt is cancelled at once', async () => {
    const { scheduler, clock } = byHand(database);
    scheduler.registerHandler('work', () => {
      throw new Error('broken');
    });
    const handle = await scheduler.dispatch('work', null, { retries: { base: '1s', jitter: 'none' } });
    await scheduler.run();
    assert.equal((await handle.cancel()).answer, 'cancelled');
    clock.advance(10_000);
    assert.equal(await scheduler.run(), 0);
    const job = await scheduler.getJob(handle.id);
    assert.deepEqual([job?.status, job?.attempts, job?.fence], ['CANCELLED', 1, 2]);
  });

  it('a finished or unknown job is left, and the answer says so', async () => {
    const { scheduler } = byHand(database);
    for (const status of ['COMPLETED', 'FAILED', 'CANCELLED'] as const) {
      const job = aJob({ status });
      await database.collections.jobs.insertOne(job);
      assert.deepEqual(await scheduler.cancel(job._id), { answer: 'alreadyFinished', status });
      assert.deepEqual(await database.collections.jobs.findOne({ _id: job._id }), job);
    }
    assert.deepEqual(await scheduler.cancel('nobody'), { answer: 'notFound' });
  });

  it('a job in the buffer is cancelled and its neighbours run', async () => {
    const scheduler = database.scheduler({ ...inProcess, concurrency: 1 });
    const release = signal();
    const blocking = signal();
    scheduler.registerHandler('quick', () => undefined);
    scheduler.registerHandler('block', () => {
      blocking.fire();
      return release.promise;
    });
    // Quick ones first, so that the worker learns to buffer.
    await scheduler.dispatchMany(Array.from({ length: 200 }, () => ({ taskType: 'quick' })));
    await scheduler.dispatch('block', null, { priority: 200 });
    const last = await Promise.all(
      Array.from({ length: 3 }, () => scheduler.dispatch('quick', null, { priority: 300 })),
    );
    await scheduler.start();
    await blocking.promise;
    assert.equal((await last[1]!.cancel()).answer, 'cancelled');
    release.fire();
    assert.equal((await last[2]!.wait({ timeout: '10s' })).status, 'COMPLETED');
    assert.equal((await last[0]!.wait({ timeout: '10s' })).status, 'COMPLETED');
    assert.equal((await last[1]!.wait()).status, 'CANCELLED');
  });
});
