import assert from 'node:assert/strict';
import { SnoozeJob } from '../../../src/index.js';
import { createStore } from '../../../src/store/store.js';
import { aJob } from '../../support/factories/job.js';
import { manualScheduler, withoutRenewalThread } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { blocker, countEvents, nextEvent, recordEvents } from '../../support/events.js';
import { abortReason, throwing } from '../../support/handlers/recording-definition.js';
import { START } from '../../support/instants.js';
import { waitUntil } from '../../support/wait-until.js';

const CANCELLED = { result: 'changed', state: 'cancelled' };

describe('cancelling a job', () => {
  const database = useSharedDatabase();

  for (const status of ['PENDING', 'SCHEDULED', 'QUEUED'] as const) {
    it(`ends a ${status} job at once, and it never runs`, async () => {
      const { scheduler } = manualScheduler(database);
      scheduler.registerHandler('work', () => assert.fail('the job is cancelled'));
      const job = aJob({ status, fence: 3 });
      await database.collections.jobs.insertOne(job);
      const cancelled = nextEvent(scheduler, 'job:cancelled');
      assert.deepEqual(await scheduler.cancel(job._id, 'enough'), CANCELLED);
      assert.deepEqual(await cancelled, { jobId: job._id, taskType: 'work', reason: 'enough' });
      assert.equal(await scheduler.run(), 0);
      const stored = await database.collections.jobs.findOne({ _id: job._id });
      assert.deepEqual(
        [stored?.status, stored?.fence, stored?.lockToken, stored?.held, stored?.finishedAt],
        ['CANCELLED', 4, null, null, START],
      );
      assert.equal(stored?.cancelRequested?.reason, 'enough');
    });
  }

  it('aborts the signal of a running job with the reason, and the job ends CANCELLED', async () => {
    const { scheduler } = manualScheduler(database);
    const started = nextEvent(scheduler, 'job:start');
    const cancelled = nextEvent(scheduler, 'job:cancelled');
    let reason: Error | undefined;
    scheduler.registerHandler('work', async (_, job) => {
      reason = await abortReason(job);
      throw reason;
    });
    const handle = await scheduler.dispatch('work');
    const pass = scheduler.run();
    await started;
    assert.deepEqual(await handle.cancel('enough'), { result: 'requested', state: 'running' });
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
    owner.registerHandler('work', (_, job) => abortReason(job));
    const other = database.scheduler(withoutRenewalThread);
    const { id } = await other.dispatch('work');
    await owner.start();
    await started;
    assert.deepEqual(await other.cancel(id, 'enough'), { result: 'requested', state: 'running' });
    assert.equal((await cancelled).reason, 'enough');
    const job = await other.getJob(id);
    assert.deepEqual([job?.status, job?.result], ['CANCELLED', null]);
    assert.deepEqual(await other.cancel(id), { result: 'refused', state: 'cancelled' });
  });

  it('twice keeps the first reason', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const other = database.scheduler({ clock });
    scheduler.registerHandler('work', async (_, job) => {
      assert.deepEqual(await other.cancel(job.id, 'first'), { result: 'requested', state: 'running' });
      assert.deepEqual(await other.cancel(job.id, 'second'), { result: 'requested', state: 'running' });
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
      assert.deepEqual(await other.cancel(job.id), { result: 'requested', state: 'running' });
      return 'done';
    });
    const { id } = await scheduler.dispatch('work');
    await scheduler.run();
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.result], ['COMPLETED', 'done']);
  });

  const endings = {
    'a failed attempt': throwing(new Error('broken')),
    'a snooze': throwing(new SnoozeJob('1h')),
  };
  for (const [name, end] of Object.entries(endings)) {
    it(`is not undone by ${name}`, async () => {
      const { scheduler, clock } = manualScheduler(database);
      const other = database.scheduler({ clock });
      const events = recordEvents(scheduler, 'job:cancelled', 'job:failed', 'job:snoozed', 'job:lockLost');
      scheduler.registerHandler('work', async (_, job) => {
        // Just before the attempt ends, so that its worker does not see the request.
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

  it('ends a job that waits for its next attempt at once', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.registerHandler('work', throwing(new Error('broken')));
    const handle = await scheduler.dispatch('work', null, { retries: { base: '1s', jitter: 'none' } });
    await scheduler.run();
    assert.deepEqual(await handle.cancel(), CANCELLED);
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
      assert.deepEqual(await scheduler.cancel(job._id), {
        result: 'refused',
        state: status.toLowerCase(),
      });
      assert.deepEqual(await database.collections.jobs.findOne({ _id: job._id }), job);
    }
    assert.deepEqual(await scheduler.cancel('unknown'), { result: 'notFound', state: null });
  });

  it('removes a prefetched job, and the jobs next to it run', async () => {
    // With a manual clock every handler takes 0 ms, so the worker prefetches also on a slow machine.
    const { scheduler } = manualScheduler(database, { concurrency: 1 });
    const { block, entered, release } = blocker();
    scheduler.registerHandler('quick', () => undefined);
    scheduler.registerHandler('block', block);
    const completed = countEvents(scheduler, 'job:complete', 203);
    await scheduler.dispatchMany(Array.from({ length: 200 }, () => ({ taskType: 'quick' })));
    await scheduler.dispatch('block', null, { priority: 200 });
    const last = await Promise.all(
      Array.from({ length: 3 }, () => scheduler.dispatch('quick', null, { priority: 300 })),
    );
    const statuses = async (): Promise<unknown[]> =>
      Promise.all(last.map(async ({ id }) => (await scheduler.getJob(id))?.status));
    await scheduler.start();
    await entered;
    await waitUntil('the last jobs are prefetched', async () =>
      (await statuses()).every((status) => status === 'QUEUED'),
    );
    assert.deepEqual(await last[1]!.cancel(), CANCELLED);
    release();
    await completed;
    assert.deepEqual(await statuses(), ['COMPLETED', 'CANCELLED', 'COMPLETED']);
  });

  it('gives up after 20 conflicts with other changes and asks to try again', async () => {
    const { jobs } = database.stored;
    const job = aJob();
    await jobs.insertOne(job);
    let tries = 0;
    // Another process starts the job before each cancel and reschedules it before each request.
    const contended = new Proxy(jobs, {
      get(target, property) {
        if (property === 'findOneAndUpdate') {
          return async (...args: Parameters<typeof jobs.findOneAndUpdate>) => {
            assert.ok(++tries < 1000, 'the tries are not limited');
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
    const store = createStore({ ...database.stored, jobs: contended });
    await assert.rejects(store.cancel(job._id, null, START), {
      code: 'WRONG_STATE',
      message: `job '${job._id}' was changed by others 20 times during this call: try again`,
    });
    assert.equal(tries, 20);
  });
});
