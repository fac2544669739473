import assert from 'node:assert/strict';
import { OutageMonitor } from '../../../src/runtime/outage-monitor.js';
import { DEFAULTS } from '../../../src/config/options.js';
import { executionRow } from '../../../src/domain/job/execution.js';
import type { JobDocument } from '../../../src/domain/job/job.js';
import type { Scheduler } from '../../../src/index.js';
import { Sweeper } from '../../../src/maintenance/sweeper.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import type { WorkerDocument } from '../../../src/store/schema/system-schemas.js';
import { createStore, type Store } from '../../../src/store/store.js';
import { aJob } from '../../support/factories/job.js';
import { aRegistry } from '../../support/factories/handler-registry.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { manualScheduler, withoutRenewalThread } from '../../support/manual-scheduler.js';
import { nextEvent, recordEvents, signal } from '../../support/events.js';
import { timeAfter, START } from '../../support/instants.js';
import { ManualClock } from '../../support/manual-clock.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { nextMeasurement } from '../../support/measurements.js';
import { noInvalidJobs } from '../../support/no-invalid-jobs.js';
import { waitUntil } from '../../support/wait-until.js';

const NO_JITTER = { retries: { base: '1s', jitter: 'none' } } as const;

/** Owns the expired locks. */
const WORKER = 'the owner';

/** A job of the owner whose lock expired a minute before the manual clock starts. */
const LOCKED = { status: 'RUNNING', lockedBy: WORKER, lockedUntil: timeAfter(-60_000), fence: 4 } as const;

describe('Sweeper', () => {
  const database = useSharedDatabase();

  /** Inserts a job whose lock expired a second before the manual clock starts. */
  async function insertExpired(fields: Partial<JobDocument> = {}): Promise<JobDocument> {
    const startedAt = timeAfter(-60_000);
    const job = aJob({
      status: 'RUNNING',
      lockedBy: WORKER,
      queuedAt: startedAt,
      lockedUntil: timeAfter(-1000),
      nextRunAt: startedAt,
      startedAt,
      firstStartedAt: startedAt,
      fence: 4,
      ...fields,
    });
    await database.collections.jobs.insertOne(job);
    return job;
  }

  async function insertWorker(fields: Pick<WorkerDocument, 'heartbeatAt' | 'state'>): Promise<void> {
    await database.collections.workers.insertOne({
      ...{ _id: WORKER, host: 'host', pid: 1, version: '1', queues: [], taskTypes: [] },
      ...{ concurrency: 1, running: 0, queueSlots: [], isDraining: false, drainRequested: false },
      ...{ startedAt: timeAfter(-3_600_000), clockError: null, warnings: [] },
      expiresAt: timeAfter(86_400_000),
      ...fields,
    });
  }

  function find({ _id }: JobDocument): Promise<JobDocument | null> {
    return database.collections.jobs.findOne({ _id });
  }

  it('counts a crash of a RUNNING job and schedules it after the backoff [C9]', async () => {
    const job = await insertExpired();
    const { scheduler, clock } = manualScheduler(database, NO_JITTER);
    const events = recordEvents(scheduler, 'job:stalled', 'job:failed', 'job:cancelled');
    // A pass sweeps first. There is no handler for the job.
    assert.equal(await scheduler.run(), 0);

    const now = await find(job);
    assert.deepEqual(
      [now?.status, now?.crashes, now?.attempts, now?.lostWhileQueued, now?.fence],
      ['SCHEDULED', 1, 0, 0, 5],
    );
    assert.deepEqual([now?.nextRunAt, now?.lockedBy, now?.lockToken], [timeAfter(1000), null, null]);
    assert.deepEqual(events, [
      {
        name: 'job:stalled',
        event: {
          jobId: job._id,
          taskType: 'work',
          lockedBy: WORKER,
          crashes: 1,
          status: 'SCHEDULED',
          nextRunAt: timeAfter(1000),
        },
      },
    ]);
    const [row, ...others] = await scheduler.getExecutions(job._id);
    assert.deepEqual(others, []);
    assert.deepEqual(
      [row?.id, row?.outcome, row?.workerId, row?.attempt, row?.fence, row?.error?.code],
      [`${job._id}:4`, 'crashed', WORKER, 1, 4, 'JOB_CRASHED'],
    );
    assert.deepEqual([row?.startedAt, row?.finishedAt, row?.duration], [timeAfter(-60_000), START, 60_000]);

    scheduler.registerHandler('work', () => 'this time');
    assert.equal(await scheduler.run(), 0);
    clock.advance(1000);
    assert.equal(await scheduler.run(), 1);
    assert.deepEqual([(await find(job))?.status, (await find(job))?.crashes], ['COMPLETED', 1]);
  });

  it('uses the retries of the job for the backoff, then those of the handler [C9]', async () => {
    const [plain, own] = [await insertExpired(), await insertExpired({ retries: { base: 3000 } })];
    const { scheduler } = manualScheduler(database, NO_JITTER);
    scheduler.registerHandler('work', () => undefined, { retries: { base: '7s' } });
    await scheduler.run();
    assert.deepEqual(
      [(await find(plain))?.nextRunAt, (await find(own))?.nextRunAt],
      [timeAfter(7000), timeAfter(3000)],
    );
  });

  it('ends a job FAILED at the third crash, with an execution row and events [C9]', async () => {
    const job = await insertExpired({ crashes: 2, attempts: 1 });
    const { scheduler } = manualScheduler(database, NO_JITTER);
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
    assert.match(error.message, /lost its connection while it ran the job; it crashed 3 times/);
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

  it('uses the configured maxCrashes [C9]', async () => {
    const job = await insertExpired();
    await manualScheduler(database, { maxCrashes: 1 }).scheduler.run();
    assert.equal((await find(job))?.status, 'FAILED');
  });

  it('reschedules a QUEUED job at once and counts only that it was lost while queued [C9]', async () => {
    const job = await insertExpired({ status: 'QUEUED', startedAt: null });
    const { scheduler } = manualScheduler(database);
    const stalled = nextEvent(scheduler, 'job:stalled');
    await scheduler.run();
    const now = await find(job);
    assert.deepEqual(
      [now?.status, now?.lostWhileQueued, now?.crashes, now?.attempts, now?.fence],
      ['SCHEDULED', 1, 0, 0, 5],
    );
    assert.deepEqual(now?.nextRunAt, job.nextRunAt);
    assert.deepEqual((await stalled).crashes, 0);
    assert.deepEqual(await scheduler.getExecutions(job._id), []);
  });

  for (const status of ['QUEUED', 'RUNNING'] as const) {
    it(`ends a ${status} job with a cancel request CANCELLED [C9]`, async () => {
      const job = await insertExpired({ status, cancelRequested: { reason: 'enough', at: START } });
      const { scheduler } = manualScheduler(database);
      const cancelled = nextEvent(scheduler, 'job:cancelled');
      await scheduler.run();
      const now = await find(job);
      assert.deepEqual([now?.status, now?.finishedAt], ['CANCELLED', START]);
      assert.deepEqual(await cancelled, { jobId: job._id, taskType: 'work', reason: 'enough' });
    });
  }

  describe('if the owner is alive', () => {
    for (const status of ['RUNNING', 'QUEUED'] as const) {
      it(`counts nothing against a ${status} job and lets it run again [C9]`, async () => {
        const job = await insertExpired({ status, crashes: 2 });
        await insertWorker({ state: 'Running', heartbeatAt: START });
        const { scheduler } = manualScheduler(database);
        const stalled = nextEvent(scheduler, 'job:stalled');
        scheduler.registerHandler('other', () => undefined);
        await scheduler.run();
        const now = await find(job);
        assert.deepEqual(
          [now?.status, now?.crashes, now?.lostWhileQueued, now?.fence],
          ['SCHEDULED', 2, 0, job.fence + 1],
        );
        assert.equal((await stalled).crashes, 2);
        const rows = await scheduler.getExecutions(job._id);
        assert.deepEqual(
          rows.map(({ outcome, error }) => [outcome, error?.code]),
          status === 'RUNNING' ? [['lost', 'LOCK_LOST']] : [],
        );
      });
    }

    for (const pass of ['run', 'runOnce'] as const) {
      it(`counts nothing against a job of ${pass}() in a process that is still running [C9]`, async () => {
        const { scheduler: owner } = manualScheduler(database);
        const released = signal();
        owner.registerHandler('work', () => released.promise);
        const { id } = await owner.dispatch('work');
        const started = nextEvent(owner, 'job:start');
        const ran = owner[pass]();
        await started;
        const { workers, jobs } = database.collections;
        await waitUntil(
          'the pass sends heartbeats',
          async () => (await workers.findOne({ state: 'Running' })) !== null,
        );
        assert.deepEqual((await owner.operations.listWorkers()).items, [], 'it is no worker');
        await jobs.updateOne({ _id: id }, { $set: { status: 'RUNNING', lockedUntil: timeAfter(-1000) } });
        const { scheduler: other } = manualScheduler(database);
        other.registerHandler('other', () => undefined);
        await other.run();
        assert.equal((await other.getJob(id))?.crashes, 0);
        assert.deepEqual(
          (await other.getExecutions(id)).map(({ outcome }) => outcome),
          ['lost'],
        );
        released.fire();
        await ran;
        const ended = await workers.findOne({ _id: owner.workerId });
        assert.deepEqual([ended?.state, ended?.expiresAt], ['Stopped', START]);
      });
    }

    it('is not overwritten by a pass with the same id [C9]', async () => {
      await insertWorker({ state: 'Running', heartbeatAt: START });
      const { workers } = database.collections;
      const before = await workers.findOne();
      const { scheduler } = manualScheduler(database, { workerId: WORKER });
      await scheduler.run();
      await scheduler.stop();
      assert.deepEqual(await workers.find().toArray(), [before]);
    });

    it('waits for its next heartbeat if that is not due yet [C9]', async () => {
      const job = await insertExpired();
      await insertWorker({ state: 'Running', heartbeatAt: timeAfter(-5000) });
      const { scheduler, clock } = manualScheduler(database, { heartbeatInterval: '10s' });
      scheduler.registerHandler('other', () => undefined);
      await scheduler.run();
      assert.equal((await find(job))?.status, 'RUNNING');
      clock.advance(30_000);
      await scheduler.run();
      const now = await find(job);
      assert.deepEqual([now?.status, now?.crashes], ['SCHEDULED', 1]);
    });
  });

  it('does not run a job again that exceeded its maxRunningTime [C9]', async () => {
    const job = await insertExpired({ maxRunningTime: 30_000 });
    await manualScheduler(database).scheduler.run();
    const now = await find(job);
    assert.deepEqual([now?.status, now?.error?.code], ['FAILED', 'JOB_RAN_TOO_LONG']);
  });

  it('does not change a job whose lock has not expired [C9]', async () => {
    const job = await insertExpired({ lockedUntil: START });
    await manualScheduler(database).scheduler.run();
    assert.deepEqual(await find(job), job);
  });

  it('recovers a job once when several sweeps run at the same time [C9]', async () => {
    const jobs = await Promise.all(Array.from({ length: 20 }, () => insertExpired()));
    const schedulers = Array.from({ length: 4 }, () => manualScheduler(database).scheduler);
    const events = schedulers.flatMap((scheduler) => [recordEvents(scheduler, 'job:stalled')]);
    await Promise.all(schedulers.map((scheduler) => scheduler.run()));
    for (const job of jobs) {
      const now = await find(job);
      assert.deepEqual([now?.status, now?.crashes, now?.fence], ['SCHEDULED', 1, 5]);
    }
    assert.equal(events.flat().length, 20);
    assert.equal(await database.collections.executions.countDocuments(), 20);
  });

  describe('after a worker died', () => {
    /** A process that sweeps; its clock is two minutes after the last heartbeat of the dead worker. */
    async function sweep(): Promise<Scheduler> {
      const { scheduler, clock } = manualScheduler(database);
      clock.advance(120_000);
      scheduler.registerHandler('work', () => undefined);
      await scheduler.run();
      return scheduler;
    }

    const insertDead = (state: 'Running' | 'Stopped' = 'Running'): Promise<void> =>
      insertWorker({ state, heartbeatAt: START });

    async function insertSettled(fields: Partial<JobDocument>): Promise<JobDocument> {
      const job = aJob({
        ...{ status: 'COMPLETED', fence: 2, settledBy: WORKER, settledToken: 'token' },
        ...{ queuedAt: timeAfter(4000), startedAt: timeAfter(4000), finishedAt: timeAfter(5000) },
        ...fields,
      });
      await database.collections.jobs.insertOne(job);
      return job;
    }

    it('completes the rows that it could not write, once, and marks them [C10]', async () => {
      await insertDead();
      const completed = await insertSettled({ attempts: 1 });
      const error = { name: 'Error', message: 'broken', code: null, stack: null };
      const failed = await insertSettled({ status: 'FAILED', attempts: 3, error });
      const scheduler = await sweep();
      assert.deepEqual(await scheduler.getExecutions(completed._id), [
        {
          ...{ id: `${completed._id}:2`, jobId: completed._id, taskType: 'work', queue: 'default' },
          ...{ attempt: 2, fence: 2, workerId: WORKER, outcome: 'completed', error: null, log: [] },
          ...{ startedAt: timeAfter(4000), finishedAt: timeAfter(5000), duration: 1000 },
          reconstructed: true,
        },
      ]);
      const [row] = await scheduler.getExecutions(failed._id);
      assert.deepEqual([row?.attempt, row?.outcome, row?.error], [3, 'failed', error]);

      await database.collections.executions.deleteMany({});
      await sweep();
      assert.equal(await database.collections.executions.countDocuments(), 0, 'checked once per death');
    });

    it('keeps rows that exist, and adds none for jobs that others settled [C10]', async () => {
      await insertDead();
      const other = await insertSettled({ settledBy: 'a live worker' });
      const earlier = await insertSettled({ finishedAt: timeAfter(-60_000) });
      const swept = await insertSettled({
        status: 'FAILED',
        error: { name: 'ChronosError', message: 'crashed', code: 'JOB_CRASHED', stack: null },
      });
      const logged = await insertSettled({});
      await createStore(database.stored).logExecutions([
        executionRow(logged, {
          ...{ lockToken: 'token', workerId: WORKER, startedAt: START, finishedAt: START, duration: 0 },
          ...{ outcome: 'completed', error: null, log: ['a line'] },
        }),
      ]);
      const scheduler = await sweep();
      for (const { _id } of [other, earlier, swept]) assert.deepEqual(await scheduler.getExecutions(_id), []);
      const [row] = await scheduler.getExecutions(logged._id);
      assert.deepEqual([row?.log, row?.reconstructed], [['a line'], undefined]);
    });

    it('adds no rows for a worker that stopped: it has written them all', async () => {
      await insertDead('Stopped');
      const job = await insertSettled({});
      const scheduler = await sweep();
      assert.deepEqual(await scheduler.getExecutions(job._id), []);
    });
  });

  it('runs at sweepInterval [C9]', async () => {
    const { scheduler, clock } = manualScheduler(database, { sweepInterval: '30s' });
    const firstSweep = nextMeasurement(scheduler, 'round', ({ operation }) => operation === 'sweep');
    await scheduler.start();
    await firstSweep;
    await flushEventLoop();
    const job = await insertExpired({ lockedUntil: timeAfter(1000) });
    const stalled = nextEvent(scheduler, 'job:stalled');
    clock.advance(29_999);
    await flushEventLoop();
    assert.deepEqual(await find(job), job);
    clock.advance(1);
    await stalled;
    assert.equal((await find(job))?.status, 'SCHEDULED');
  });

  it('wakes the worker of its process, which starts the recovered job without a poll [C9]', async () => {
    const job = await insertExpired({ lockedUntil: new Date(1), nextRunAt: new Date(1) });
    const options = { ...withoutRenewalThread, pollInterval: '1h', retries: { base: 0 } } as const;
    const scheduler = database.scheduler(options);
    const complete = nextEvent(scheduler, 'job:complete');
    scheduler.registerHandler('work', () => undefined);
    await scheduler.start();
    assert.equal((await complete).jobId, job._id);
  });

  describe('while other workers are alive', () => {
    const clock = new ManualClock();

    function sweeper(store: Store, outages = new OutageMonitor(clock, 60_000)): Sweeper {
      const options = { ...DEFAULTS, lockTimeout: 60_000 };
      return new Sweeper({
        clock,
        events: new EventBus('worker'),
        random: () => 0,
        workerId: 'sweeper',
        registry: aRegistry(),
        store,
        outages,
        options,
        engine: { wake: () => undefined },
        invalidJobs: noInvalidJobs,
      });
    }

    it('does not take a lock that is renewed during the sweep [C9]', async () => {
      const job = await insertExpired();
      const store = createStore(database.stored);
      const renewal = { kind: 'job', id: job._id, token: job.lockToken!, length: 60_000 } as const;
      const late: Store = {
        ...store,
        // The owner renews between the two steps of the sweep.
        findExpiredLocks: async (...query) => {
          const found = await store.findExpiredLocks(...query);
          assert.deepEqual(await store.renew([renewal], clock.now()), []);
          return found;
        },
      };
      await sweeper(late).runOnce();
      assert.deepEqual(await find(job), { ...job, lockedUntil: timeAfter(60_000) });
    });

    it('does not miss a cancel request that arrives during the sweep [C9]', async () => {
      const job = await insertExpired();
      const store = createStore(database.stored);
      const late: Store = {
        ...store,
        findExpiredLocks: async (...query) => {
          const found = await store.findExpiredLocks(...query);
          assert.deepEqual(await store.cancel(job._id, 'enough', clock.now()), {
            result: 'requested',
            state: 'running',
          });
          return found;
        },
      };
      await sweeper(late).runOnce();
      assert.equal((await find(job))?.status, 'RUNNING');
      await sweeper(store).runOnce();
      assert.equal((await find(job))?.status, 'CANCELLED');
    });

    it('recovers others although MongoDB rejects the recovery of the oldest hundred, and does not repeat it at once [C9]', async () => {
      const rejected = Array.from({ length: 100 }, () => aJob(LOCKED));
      await database.collections.jobs.insertMany(rejected);
      const healthy = await insertExpired();
      const ids = new Set(rejected.map(({ _id }) => _id));
      const store = createStore(database.stored);
      const rejecting: Store = {
        ...store,
        recover: async (job, ...rest) => {
          if (ids.has(job._id)) throw new Error('the document is too large');
          return store.recover(job, ...rest);
        },
      };
      const sweep = sweeper(rejecting);
      assert.equal(await sweep.runOnce(), DEFAULTS.sweepInterval);
      assert.equal((await find(healthy))?.status, 'RUNNING');
      assert.equal(await sweep.runOnce(), DEFAULTS.sweepInterval);
      assert.equal((await find(healthy))?.status, 'SCHEDULED');
    });

    it('waits for a third of the lock time after an outage, so that workers can settle first [C9]', async () => {
      const job = await insertExpired();
      const store = createStore(database.stored);
      const outages = new OutageMonitor(clock, 60_000);
      const sweep = sweeper(store, outages);
      outages.recordFailure();
      assert.equal(await sweep.runOnce(), 20_000);
      assert.deepEqual(await find(job), job);
      assert.equal(await sweep.runOnce(), DEFAULTS.sweepInterval);
      assert.equal((await find(job))?.status, 'SCHEDULED');
    });

    it('logs every crash when sweeps of one process overlap [C9]', async () => {
      const first = await insertExpired();
      const store = createStore(database.stored);
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
      // The second sweep has logged the same row when this one has a new row.
      const [second, third] = [await insertExpired(), await insertExpired()];
      onRecover = async ({ _id }) => {
        if (_id !== third._id) return;
        logs[1]!.release.fire();
        await other;
      };
      await sweep.runOnce();
      const rows = await database.collections.executions.find().toArray();
      assert.deepEqual(rows.map(({ jobId }) => jobId).sort(), [first._id, second._id, third._id]);
    });

    it('recovers more than one batch without waiting for the next sweep [C9]', async () => {
      await database.collections.jobs.insertMany(
        Array.from({ length: 120 }, () => aJob({ status: 'QUEUED', lockedUntil: timeAfter(-1) })),
      );
      const sweep = sweeper(createStore(database.stored));
      assert.equal(await sweep.runOnce(), 0);
      assert.equal(await sweep.runOnce(), DEFAULTS.sweepInterval);
      assert.equal(await database.collections.jobs.countDocuments({ status: 'QUEUED' }), 0);
    });
  });
});
