import assert from 'node:assert/strict';
import type { ChronosError } from '../../../src/index.js';
import { manualScheduler, stopAndAbort, withoutRenewalThread } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { blocker, countEvents, nextEvent, recordEvents, signal } from '../../support/events.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { abortReason, untilAborted } from '../../support/handlers/recording-definition.js';
import { waitUntil } from '../../support/wait-until.js';

const LOCKED = { $or: [{ lockedBy: { $ne: null } }, { lockToken: { $ne: null } }] };

describe('stop()', () => {
  const database = useSharedDatabase();

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
    // With a manual clock every handler takes 0 ms, so the worker prefetches also on a slow machine.
    const { scheduler } = manualScheduler(database, { concurrency: 1 });
    const { block, entered, release } = blocker();
    scheduler.registerHandler('quick', () => undefined);
    scheduler.registerHandler('block', block);
    await scheduler.dispatchMany([
      ...Array.from({ length: 300 }, () => ({ taskType: 'quick', options: { priority: 1 } })),
      { taskType: 'block', options: { priority: 2 } },
      ...Array.from({ length: 20 }, () => ({ taskType: 'quick', options: { priority: 3 } })),
    ]);
    await scheduler.start();
    await entered;
    const { jobs } = database.collections;
    const count = (filter: object): Promise<number> => jobs.countDocuments(filter);
    await waitUntil('jobs are prefetched', async () => (await count({ status: 'QUEUED' })) > 0);
    const stopping = scheduler.stop();
    await waitUntil('they are released', async () => (await count({ fence: 2, status: 'SCHEDULED' })) > 0);
    release();
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
    const released = nextEvent(scheduler, 'job:released');
    const started = signal();
    const reasons: ChronosError[] = [];
    scheduler.registerHandler('work', async (_, job) => {
      started.fire();
      reasons.push(await abortReason(job));
      throw reasons[0]!;
    });
    const { id } = await scheduler.dispatch('work', null, { retries: { max: 1 } });
    await scheduler.start();
    await started.promise;
    const stopping = scheduler.stop('20s');
    await flushEventLoop();
    // The last 5 s of the 20 s are for the aborted handlers.
    clock.advance(14_999);
    await flushEventLoop();
    assert.deepEqual(reasons, []);
    clock.advance(1);
    assert.deepEqual(await stopping, { left: [] });
    assert.deepEqual(
      reasons.map(({ message }) => message),
      ['the worker is stopping'],
    );
    assert.equal((await released).jobId, id);
    const job = await database.collections.jobs.findOne({ _id: id });
    assert.deepEqual(
      [job?.status, job?.attempts, job?.crashes, job?.fence, job?.lockToken],
      ['SCHEDULED', 0, 0, 2, null],
    );
    assert.deepEqual(
      (await database.collections.executions.find({ jobId: id }).toArray()).map(({ outcome }) => outcome),
      ['released'],
    );
  });

  it('gives up on a handler that ignores its signal and returns its job [C12] [F8]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const { block, entered, release } = blocker();
    scheduler.registerHandler('ignores', block);
    scheduler.registerHandler('good', () => undefined);
    const complete = nextEvent(scheduler, 'job:complete');
    const { id } = await scheduler.dispatch('ignores');
    await scheduler.dispatch('good');
    await scheduler.start();
    await Promise.all([entered, complete]);
    const stopping = scheduler.stop('2s');
    await flushEventLoop();
    clock.advance(2000);
    assert.deepEqual(await stopping, { left: [{ id, taskType: 'ignores' }] });
    assert.equal(scheduler.state, 'Stopped');
    // Its lock expires, and the sweeper of another worker recovers the job.
    const job = await database.collections.jobs.findOne({ _id: id });
    assert.equal(job?.status, 'RUNNING');
    release();
  });

  it('aborts at once with stop(0) [C12]', async () => {
    const scheduler = database.scheduler(withoutRenewalThread);
    scheduler.registerHandler('work', untilAborted);
    await scheduler.start();
    const started = nextEvent(scheduler, 'job:start');
    const { id } = await scheduler.dispatch('work');
    await started;
    const { left } = await scheduler.stop(0);
    const job = await database.collections.jobs.findOne({ _id: id });
    // Either the outcome was still written, or stop() returns the job.
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
    const { scheduler, clock } = manualScheduler(database);
    const started = signal();
    let runs = 0;
    scheduler.registerHandler('work', async (payload, job) => {
      started.fire();
      if (++runs === 1) await untilAborted(payload, job);
    });
    const { id } = await scheduler.dispatch('work');
    await scheduler.start();
    await started.promise;
    assert.deepEqual(await stopAndAbort(scheduler, clock), { left: [] });
    const complete = nextEvent(scheduler, 'job:complete');
    await scheduler.start();
    const { jobId, attempt, fence } = await complete;
    assert.deepEqual({ jobId, attempt, fence }, { jobId: id, attempt: 1, fence: 3 });
  });

  it('leaves no thread and no connection open [C12]', async () => {
    await waitUntil('earlier schedulers have disconnected', async () => (await connections()) === 0);
    // With the renewal thread and the clock of the database, as in production.
    const scheduler = database.scheduler();
    scheduler.registerHandler('work', () => undefined);
    const complete = nextEvent(scheduler, 'job:complete');
    await scheduler.start();
    await scheduler.dispatch('work');
    await complete;
    await scheduler.withLock('report', () => undefined);
    assert.ok((await connections()) > 0);
    await scheduler.stop();
    assert.deepEqual(
      process.getActiveResourcesInfo().filter((name) => ['MessagePort', 'Worker'].includes(name)),
      [],
    );
    await waitUntil('the scheduler has disconnected', async () => (await connections()) === 0);
  });

  /** Connections of schedulers, as the server reports them. */
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
