import assert from 'node:assert/strict';
import { DEFAULTS } from '../../src/config/options.js';
import type { JobDocument } from '../../src/domain/job.js';
import { Sweeper } from '../../src/maintenance/sweeper.js';
import { EventBus } from '../../src/runtime/event-bus.js';
import { createStore, type Store } from '../../src/store/store.js';
import { aJob } from '../support/a-job.js';
import { byHand, inProcess, passTime } from '../support/by-hand.js';
import { useSharedDatabase } from '../support/shared-database.js';
import { nextEvent, recordEvents, signal } from '../support/events.js';
import { after, START } from '../support/instants.js';
import { ManualClock } from '../support/manual-clock.js';

const NO_JITTER = { retries: { base: '1s', jitter: 'none' } } as const;

describe('the sweep', () => {
  const database = useSharedDatabase();

  /** A job whose worker has not been heard of for a second, when the manual clock begins. */
  async function expired(fields: Partial<JobDocument> = {}): Promise<JobDocument> {
    const startedAt = after(-60_000);
    const job = aJob({
      status: 'RUNNING',
      lockedBy: 'a dead worker',
      lockedUntil: after(-1000),
      nextRunAt: startedAt,
      startedAt,
      firstStartedAt: startedAt,
      fence: 4,
      ...fields,
    });
    await database.collections.jobs.insertOne(job);
    return job;
  }

  function find({ _id }: JobDocument): Promise<JobDocument | null> {
    return database.collections.jobs.findOne({ _id });
  }

  it('C9 a job that was RUNNING counts a crash and runs again after the backoff', async () => {
    const job = await expired();
    const { scheduler, clock } = byHand(database, NO_JITTER);
    const events = recordEvents(scheduler, 'job:stalled', 'job:failed', 'job:cancelled');
    // A pass sweeps first; there is no handler for the job here.
    assert.equal(await scheduler.run(), 0);

    const now = await find(job);
    assert.deepEqual(
      [now?.status, now?.crashes, now?.attempts, now?.abandoned, now?.fence],
      ['SCHEDULED', 1, 0, 0, 5],
    );
    assert.deepEqual([now?.nextRunAt, now?.lockedBy, now?.lockToken], [after(1000), null, null]);
    assert.deepEqual(events, [
      {
        name: 'job:stalled',
        event: {
          jobId: job._id,
          taskType: 'work',
          lockedBy: 'a dead worker',
          crashes: 1,
          status: 'SCHEDULED',
          nextRunAt: after(1000),
        },
      },
    ]);
    const [row, ...others] = await scheduler.getExecutions(job._id);
    assert.deepEqual(others, []);
    assert.deepEqual(
      [row?._id, row?.outcome, row?.workerId, row?.attempt, row?.fence, row?.error?.code],
      [`${job._id}:4`, 'crashed', 'a dead worker', 1, 4, 'JOB_CRASHED'],
    );
    assert.deepEqual([row?.startedAt, row?.finishedAt, row?.duration], [after(-60_000), START, 60_000]);

    scheduler.registerHandler('work', () => 'this time');
    assert.equal(await scheduler.run(), 0);
    clock.advance(1000);
    assert.equal(await scheduler.run(), 1);
    assert.deepEqual([(await find(job))?.status, (await find(job))?.crashes], ['COMPLETED', 1]);
  });

  it('C9 the third crash is the last: FAILED, with its row and its events', async () => {
    const job = await expired({ crashes: 2, attempts: 1 });
    const { scheduler } = byHand(database, NO_JITTER);
    const events = recordEvents(scheduler, 'job:stalled', 'job:failed');
    await scheduler.run();

    const now = await find(job);
    assert.deepEqual(
      [now?.status, now?.crashes, now?.attempts, now?.error?.code],
      ['FAILED', 3, 1, 'JOB_CRASHED'],
    );
    assert.deepEqual([now?.finishedAt, now?.fence, now?.settledBy], [START, 5, scheduler.workerId]);
    assert.deepEqual(
      events.map(({ name }) => name),
      ['job:stalled', 'job:failed'],
    );
    const { error, ...failed } = events[1]!.event as { error: Error };
    assert.match(error.message, /was running 3 times when its worker died/);
    assert.deepEqual(failed, {
      jobId: job._id,
      taskType: 'work',
      queue: 'default',
      attempt: 2,
      fence: 4,
      willRetry: false,
      nextRunAt: null,
      duration: 60_000,
    });
    assert.deepEqual(
      (await scheduler.getExecutions(job._id)).map(({ outcome }) => outcome),
      ['crashed'],
    );
  });

  it('C9 maxCrashes can be set', async () => {
    const job = await expired();
    await byHand(database, { maxCrashes: 1 }).scheduler.run();
    assert.equal((await find(job))?.status, 'FAILED');
  });

  it('C9 a job that was QUEUED comes back at once, with nothing counted but that it was abandoned', async () => {
    const job = await expired({ status: 'QUEUED', startedAt: null });
    const { scheduler } = byHand(database);
    const stalled = nextEvent(scheduler, 'job:stalled');
    await scheduler.run();
    const now = await find(job);
    assert.deepEqual(
      [now?.status, now?.abandoned, now?.crashes, now?.attempts, now?.fence],
      ['SCHEDULED', 1, 0, 0, 5],
    );
    assert.deepEqual(now?.nextRunAt, job.nextRunAt);
    assert.deepEqual((await stalled).crashes, 0);
    assert.deepEqual(await scheduler.getExecutions(job._id), []);
  });

  for (const status of ['QUEUED', 'RUNNING'] as const) {
    it(`C9 a ${status} job that a person wants cancelled ends CANCELLED`, async () => {
      const job = await expired({ status, cancelRequested: { reason: 'enough', at: START } });
      const { scheduler } = byHand(database);
      const cancelled = nextEvent(scheduler, 'job:cancelled');
      await scheduler.run();
      const now = await find(job);
      assert.deepEqual([now?.status, now?.finishedAt], ['CANCELLED', START]);
      assert.deepEqual(await cancelled, { jobId: job._id, taskType: 'work', reason: 'enough' });
    });
  }

  it('C9 a job that passed its maxRunningTime is not run again', async () => {
    const job = await expired({ maxRunningTime: 30_000 });
    await byHand(database).scheduler.run();
    const now = await find(job);
    assert.deepEqual([now?.status, now?.error?.code], ['FAILED', 'JOB_RAN_TOO_LONG']);
  });

  it('C9 a lock that holds is left alone', async () => {
    const job = await expired({ lockedUntil: START });
    await byHand(database).scheduler.run();
    assert.deepEqual(await find(job), job);
  });

  it('C9 several sweeps at once recover a job once', async () => {
    const jobs = await Promise.all(Array.from({ length: 20 }, () => expired()));
    const schedulers = Array.from({ length: 4 }, () => byHand(database).scheduler);
    const events = schedulers.flatMap((scheduler) => [recordEvents(scheduler, 'job:stalled')]);
    await Promise.all(schedulers.map((scheduler) => scheduler.run()));
    for (const job of jobs) {
      const now = await find(job);
      assert.deepEqual([now?.status, now?.crashes, now?.fence], ['SCHEDULED', 1, 5]);
    }
    assert.equal(events.flat().length, 20);
    assert.equal(await database.collections.executions.countDocuments(), 20);
  });

  it('C9 periodically, at sweepInterval', async () => {
    const { scheduler, clock } = byHand(database, { sweepInterval: '30s' });
    await scheduler.start();
    const job = await expired({ lockedUntil: after(1000) });
    const stalled = nextEvent(scheduler, 'job:stalled');
    await passTime(clock, stalled, 500);
    assert.ok(clock.now() >= after(30_000) && clock.now() < after(55_000), clock.now().toISOString());
    assert.equal((await find(job))?.status, 'SCHEDULED');
  });

  it('C9 a recovered job runs in the process that swept it, without waiting for a poll', async () => {
    const job = await expired({ lockedUntil: new Date(1), nextRunAt: new Date(1) });
    const options = { ...inProcess, pollInterval: '1h', retries: { base: 0 } } as const;
    const scheduler = database.scheduler(options);
    const complete = nextEvent(scheduler, 'job:complete');
    scheduler.registerHandler('work', () => undefined);
    await scheduler.start();
    assert.equal((await complete).jobId, job._id);
  });

  describe('beside owners that live', () => {
    const clock = new ManualClock();

    function sweeper(store: Store): Sweeper {
      const options = { ...DEFAULTS, lockTimeout: 60_000 };
      return new Sweeper({
        clock,
        events: new EventBus(),
        random: () => 0,
        workerId: 'sweeper',
        store,
        options,
      });
    }

    it('C9 a lock renewed a moment ago is not stolen', async () => {
      const job = await expired();
      const store = createStore(database.collections);
      const renewal = { kind: 'job', id: job._id, token: job.lockToken!, length: 60_000 } as const;
      const late: Store = {
        ...store,
        // The owner's renewal comes in between the sweep's two steps.
        findExpired: async (...query) => {
          const found = await store.findExpired(...query);
          assert.deepEqual(await store.renew([renewal], clock.now()), []);
          return found;
        },
      };
      await sweeper(late).runOnce();
      assert.deepEqual(await find(job), { ...job, lockedUntil: after(60_000) });
    });

    it('C9 a request to cancel that comes in between is not overlooked', async () => {
      const job = await expired();
      const store = createStore(database.collections);
      const late: Store = {
        ...store,
        findExpired: async (...query) => {
          const found = await store.findExpired(...query);
          assert.deepEqual(await store.cancel(job._id, 'enough', clock.now()), { answer: 'requested' });
          return found;
        },
      };
      await sweeper(late).runOnce();
      assert.equal((await find(job))?.status, 'RUNNING');
      await sweeper(store).runOnce();
      assert.equal((await find(job))?.status, 'CANCELLED');
    });

    it('C9 after trouble it waits a third of the lock time, so that they settle first', async () => {
      const job = await expired();
      const store = createStore(database.collections);
      const sweep = sweeper(store);
      sweep.noticeOutage();
      assert.equal(await sweep.runOnce(), 20_000);
      assert.deepEqual(await find(job), job);
      assert.equal(await sweep.runOnce(), DEFAULTS.sweepInterval);
      assert.equal((await find(job))?.status, 'SCHEDULED');
    });

    it('C9 every crash is logged, also when the sweeps of one process overlap', async () => {
      const first = await expired();
      const store = createStore(database.collections);
      const logs = [1, 2].map(() => ({ begun: signal(), release: signal() }));
      const waiting = logs.values();
      let onRecover = async (_: JobDocument): Promise<void> => undefined;
      const sweep = sweeper({
        ...store,
        recover: async (job, ...rest) => {
          await onRecover(job);
          return store.recover(job, ...rest);
        },
        logExecutions: async (rows) => {
          const { value: log } = waiting.next();
          log?.begun.fire();
          await log?.release.promise;
          return store.logExecutions(rows);
        },
      });
      const one = sweep.runOnce();
      await logs[0]!.begun.promise;
      const other = sweep.runOnce();
      await logs[1]!.begun.promise;
      logs[0]!.release.fire();
      await one;
      // The other has logged the same row when there is a new one.
      const [second, third] = [await expired(), await expired()];
      onRecover = async ({ _id }) => {
        if (_id !== third._id) return;
        logs[1]!.release.fire();
        await other;
      };
      await sweep.runOnce();
      const rows = await database.collections.executions.find().toArray();
      assert.deepEqual(rows.map(({ jobId }) => jobId).sort(), [first._id, second._id, third._id]);
    });

    it('C9 more than a batch is recovered without waiting for the next sweep', async () => {
      await database.collections.jobs.insertMany(
        Array.from({ length: 120 }, () => aJob({ status: 'QUEUED', lockedUntil: after(-1) })),
      );
      const sweep = sweeper(createStore(database.collections));
      assert.equal(await sweep.runOnce(), 0);
      assert.equal(await sweep.runOnce(), DEFAULTS.sweepInterval);
      assert.equal(await database.collections.jobs.countDocuments({ status: 'QUEUED' }), 0);
    });
  });
});
