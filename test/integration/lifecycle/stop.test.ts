import assert from 'node:assert/strict';
import type { ChronosError, JobContext } from '../../../src/index.js';
import {
  manualScheduler,
  withoutRenewalThread,
  advanceUntilSettled,
} from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { countEvents, nextEvent, recordEvents, signal } from '../../support/events.js';
import { timeAfter } from '../../support/instants.js';
import { waitUntil } from '../../support/wait-until.js';

const LOCKED = { $or: [{ lockedBy: { $ne: null } }, { lockToken: { $ne: null } }] };

describe('stop()', () => {
  const database = useSharedDatabase();

  function aborted({ signal }: JobContext): Promise<ChronosError> {
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        resolve(signal.reason as ChronosError);
      });
    });
  }

  it('waits for running handlers, claims nothing more and leaves nothing locked [C12]', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread, concurrency: 3 });
    const release = signal();
    const started = countEvents(scheduler, 'job:start', 3);
    const events = recordEvents(scheduler, 'job:start', 'job:complete', 'worker:state');
    scheduler.registerHandler('work', async () => release.promise);
    await scheduler.dispatchMany(Array.from({ length: 10 }, () => ({ taskType: 'work' })));
    await scheduler.start();
    await started;
    const stopping = scheduler.stop();
    release.fire();
    assert.deepEqual(await stopping, { left: [] });
    const { jobs } = database.collections;
    assert.equal(await jobs.countDocuments({ status: 'COMPLETED' }), 3);
    assert.equal(await jobs.countDocuments({ status: 'SCHEDULED', attempts: 0, crashes: 0 }), 7);
    assert.equal(await jobs.countDocuments(LOCKED), 0);
    assert.deepEqual(
      events.map(({ name }) => name).slice(-5),
      ['worker:state', 'job:complete', 'job:complete', 'job:complete', 'worker:state'],
      'the state is Stopped only after the last outcome was written',
    );
  });

  it('releases prefetched jobs with nothing counted [C12]', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread, concurrency: 1 });
    const release = signal();
    const blocking = signal();
    scheduler.registerHandler('quick', () => undefined);
    scheduler.registerHandler('block', () => {
      blocking.fire();
      return release.promise;
    });
    const trained = countEvents(scheduler, 'job:complete', 300);
    await scheduler.start();
    await scheduler.dispatchMany(Array.from({ length: 300 }, () => ({ taskType: 'quick' })));
    await trained;
    // Used to short handlers, it takes one into its slot and the next ones into its buffer.
    await scheduler.dispatchMany([
      { taskType: 'block', options: { priority: 1 } },
      ...Array.from({ length: 20 }, () => ({ taskType: 'quick', options: { priority: 2 } })),
    ]);
    await blocking.promise;
    const { jobs } = database.collections;
    const count = (filter: object): Promise<number> => jobs.countDocuments(filter);
    await waitUntil('jobs wait in the buffer', async () => (await count({ status: 'QUEUED' })) > 0);
    const stopping = scheduler.stop();
    await waitUntil('they are given back', async () => (await count({ fence: 2, status: 'SCHEDULED' })) > 0);
    release.fire();
    await stopping;
    const left = await jobs.find({ status: { $ne: 'COMPLETED' } }).toArray();
    assert.ok(left.length > 0);
    for (const job of left) {
      assert.deepEqual([job.status, job.attempts, job.crashes, job.lostWhileQueued], ['SCHEDULED', 0, 0, 0]);
    }
    assert.equal(await jobs.countDocuments(LOCKED), 0);
  });

  it('aborts handlers that do not end in time and releases their jobs with nothing counted [C12] [F8]', async () => {
    const { scheduler, clock } = manualScheduler(database, { timeoutGrace: '5s' });
    const givenBack = nextEvent(scheduler, 'job:givenBack');
    const reason = signal<{ error: ChronosError; at: Date }>();
    scheduler.registerHandler('work', async (_, job) => {
      const error = await aborted(job);
      reason.fire({ error, at: clock.now() });
      throw error;
    });
    await scheduler.start();
    const started = nextEvent(scheduler, 'job:start');
    const { id } = await scheduler.dispatch('work', null, { retries: { max: 1 } });
    await advanceUntilSettled(clock, started, 1);
    const report = await advanceUntilSettled(clock, scheduler.stop('20s'), 250);
    assert.deepEqual(report, { left: [] });
    const { error, at } = await reason.promise;
    assert.equal(error.message, 'the worker is stopping');
    // Its grace, 5 s, is kept back from the 20 s.
    assert.ok(at >= timeAfter(15_000) && at < timeAfter(19_000), at.toISOString());
    assert.equal((await givenBack).jobId, id);
    const job = await database.collections.jobs.findOne({ _id: id });
    assert.deepEqual(
      [job?.status, job?.attempts, job?.crashes, job?.fence, job?.lockToken],
      ['SCHEDULED', 0, 0, 2, null],
    );
    assert.deepEqual(
      (await database.collections.executions.find({ jobId: id }).toArray()).map(({ outcome }) => outcome),
      ['givenBack'],
    );
  });

  it('gives up on a handler that ignores its signal and returns what it left [C12] [F8]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const release = signal();
    scheduler.registerHandler('deaf', () => release.promise);
    scheduler.registerHandler('good', () => undefined);
    await scheduler.start();
    const started = nextEvent(scheduler, 'job:start');
    const { id } = await scheduler.dispatch('deaf');
    await advanceUntilSettled(clock, started, 1);
    await scheduler.dispatch('good');
    const { left } = await advanceUntilSettled(clock, scheduler.stop('2s'), 100);
    assert.deepEqual(left, [{ id, taskType: 'deaf' }]);
    assert.ok(clock.now() < timeAfter(20_000), clock.now().toISOString());
    assert.equal(scheduler.state, 'Stopped');
    // Its lock runs out by itself, and the sweep of another worker recovers it.
    const job = await database.collections.jobs.findOne({ _id: id });
    assert.equal(job?.status, 'RUNNING');
    release.fire();
  });

  it('aborts at once with stop(0) [C12]', async () => {
    const scheduler = database.scheduler(withoutRenewalThread);
    scheduler.registerHandler('work', async (_, job) => {
      throw await aborted(job);
    });
    await scheduler.start();
    const started = nextEvent(scheduler, 'job:start');
    const { id } = await scheduler.dispatch('work');
    await started;
    const { left } = await scheduler.stop(0);
    const job = await database.collections.jobs.findOne({ _id: id });
    // Its outcome was still written, or it is named as left.
    if (job?.status !== 'SCHEDULED') assert.deepEqual(left, [{ id, taskType: 'work' }]);
  });

  it('ignores the name of a signal and rejects anything else that is not a duration [C12]', async () => {
    const { scheduler } = manualScheduler(database);
    await scheduler.start();
    for (const bad of ['soon', 'SIGNIFICANT?', -1, NaN, {}, null])
      await assert.rejects(async () => scheduler.stop(bad as never), { code: 'INVALID_ARGUMENT' });
    assert.equal(scheduler.state, 'Running');
    assert.deepEqual(await scheduler.stop('SIGTERM'), { left: [] });
    await scheduler.start();
    assert.deepEqual(await scheduler.stop('SIGINT'), { left: [] });
  });

  it('leaves released jobs for a worker that starts again [C12]', async () => {
    const scheduler = database.scheduler(withoutRenewalThread);
    let runs = 0;
    scheduler.registerHandler('work', async (_, job) => {
      if (++runs === 1) throw await aborted(job);
    });
    await scheduler.start();
    const started = nextEvent(scheduler, 'job:start');
    const { id } = await scheduler.dispatch('work');
    await started;
    await scheduler.stop('500ms');
    const complete = nextEvent(scheduler, 'job:complete');
    await scheduler.start();
    const { jobId, attempt, fence } = await complete;
    assert.deepEqual({ jobId, attempt, fence }, { jobId: id, attempt: 1, fence: 3 });
  });

  it('leaves no thread and no connection open [C12]', async () => {
    // The real thing: renewal in its thread, by the database's clock.
    const scheduler = database.scheduler();
    const before = await connections();
    scheduler.registerHandler('work', () => undefined);
    const complete = nextEvent(scheduler, 'job:complete');
    await scheduler.start();
    await scheduler.dispatch('work');
    await complete;
    await scheduler.withLock('report', () => undefined);
    assert.ok((await connections()) > before);
    await scheduler.stop();
    assert.deepEqual(
      process.getActiveResourcesInfo().filter((name) => ['MessagePort', 'Worker'].includes(name)),
      [],
    );
    await waitUntil('the server has no connection of it', async () => (await connections()) <= before);
  });

  /** As the server sees them. */
  async function connections(): Promise<number> {
    const found = await database.connection
      .getClient()
      .db('admin')
      .aggregate([
        { $currentOp: { allUsers: true, idleConnections: true } },
        { $match: { appName: 'chronos' } },
      ])
      .toArray();
    return found.length;
  }
});
