import assert from 'node:assert/strict';
import { SnoozeJob, type JobContext } from '../../../src/index.js';
import { createStore } from '../../../src/store/store.js';
import { aJob } from '../../support/factories/job.js';
import { manualScheduler, withoutRenewalThread } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { nextEvent, recordEvents, signal } from '../../support/events.js';
import { START } from '../../support/instants.js';

describe('cancelling a job', () => {
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
    it(`ends a ${status} job at once, and it never runs`, async () => {
      const { scheduler } = manualScheduler(database);
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

  it('aborts the signal of a running job with the reason, and the job ends CANCELLED', async () => {
    const { scheduler } = manualScheduler(database);
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

  it('in another process reaches the worker at its next poll', async () => {
    const owner = database.scheduler({ ...withoutRenewalThread, pollInterval: '50ms' });
    const started = nextEvent(owner, 'job:start');
    const cancelled = nextEvent(owner, 'job:cancelled');
    owner.registerHandler('work', async (_, job) => aborted(job));
    const other = database.scheduler(withoutRenewalThread);
    const { id } = await other.dispatch('work');
    await owner.start();
    await started;
    assert.deepEqual(await other.cancel(id, 'enough'), { answer: 'requested' });
    assert.equal((await cancelled).reason, 'enough');
    const job = await other.getJob(id);
    assert.deepEqual([job?.status, job?.result], ['CANCELLED', null]);
    assert.deepEqual(await other.cancel(id), { answer: 'alreadyFinished', status: 'CANCELLED' });
  });

  it('twice keeps the first reason', async () => {
    const { scheduler, clock } = manualScheduler(database);
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

  it('has no effect on a handler that completes before it sees the request', async () => {
    const { scheduler, clock } = manualScheduler(database);
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
    it(`is not undone by ${name}`, async () => {
      const { scheduler, clock } = manualScheduler(database);
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

  it('ends a job at once that waits for its next attempt', async () => {
    const { scheduler, clock } = manualScheduler(database);
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

  it('leaves a finished or unknown job alone, and the result says so', async () => {
    const { scheduler } = manualScheduler(database);
    for (const status of ['COMPLETED', 'FAILED', 'CANCELLED'] as const) {
      const job = aJob({ status });
      await database.collections.jobs.insertOne(job);
      assert.deepEqual(await scheduler.cancel(job._id), { answer: 'alreadyFinished', status });
      assert.deepEqual(await database.collections.jobs.findOne({ _id: job._id }), job);
    }
    assert.deepEqual(await scheduler.cancel('nobody'), { answer: 'notFound' });
  });

  it('removes a prefetched job, and the jobs next to it run', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread, concurrency: 1 });
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

  it('gives up after 20 conflicts with other changes and says what to do', async () => {
    const { jobs } = database.collections;
    const job = aJob();
    await jobs.insertOne(job);
    let tries = 0;
    // Other processes start the job before each cancel and put it back before each request.
    const restless = new Proxy(jobs, {
      get(target, property) {
        if (property === 'findOneAndUpdate') {
          return async (...args: Parameters<typeof jobs.findOneAndUpdate>) => {
            assert.ok(++tries < 1000, 'there is no limit');
            await target.updateOne({ _id: job._id }, { $set: { status: 'RUNNING' } });
            return target.findOneAndUpdate(...args);
          };
        }
        if (property === 'updateOne') {
          return async (...args: Parameters<typeof jobs.updateOne>) => {
            await target.updateOne({ _id: job._id }, { $set: { status: 'SCHEDULED' } });
            return target.updateOne(...args);
          };
        }
        const value: unknown = Reflect.get(target, property, target);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
    const store = createStore({ ...database.collections, jobs: restless });
    await assert.rejects(store.cancel(job._id, null, START), {
      code: 'WRONG_STATE',
      message: `job '${job._id}' was changed by others 20 times during this call: try again`,
    });
    assert.equal(tries, 20);
  });
});
