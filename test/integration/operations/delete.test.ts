import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { DEFAULTS } from '../../../src/config/options.js';
import type { JobDocument } from '../../../src/domain/job/job.js';
import { pendingRun } from '../../../src/domain/schedule/pending.js';
import type { BulkProgress } from '../../../src/index.js';
import { JobActions } from '../../../src/jobs/job-actions.js';
import { changeMany, emptyQueue } from '../../../src/operations/bulk.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { createStore } from '../../../src/store/store.js';
import { recordEvents } from '../../support/events.js';
import { aJob } from '../../support/factories/job.js';
import { timeAfter } from '../../support/instants.js';
import { ManualClock } from '../../support/manual-clock.js';
import { manualScheduler, withoutRenewalThread } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';

const HOUR = 3_600_000;
const UNCHANGED = { requested: 0, refused: {}, isAborted: false };

describe('deleting jobs', () => {
  const database = useSharedDatabase();

  async function insert(...jobs: JobDocument[]): Promise<void> {
    await database.collections.jobs.insertMany(jobs);
  }

  async function storedIds(): Promise<string[]> {
    return (await database.collections.jobs.find().sort({ _id: 1 }).toArray()).map(({ _id }) => _id);
  }

  const anOccurrence = (fields: Partial<JobDocument> = {}): JobDocument => {
    const job = aJob({ schedule: 'nightly', scheduledFor: timeAfter(0), ...fields });
    return { ...job, _id: `nightly@${job._id}` };
  };

  /** Changes the jobs after they were listed and before they are deleted. */
  function depsWith(changeAfterListing: () => Promise<unknown>) {
    const store = createStore(database.stored);
    const overtaken = {
      ...store,
      listJobs: async (...query: Parameters<typeof store.listJobs>) => {
        const found = await store.listJobs(...query);
        if (found.length > 0) await changeAfterListing();
        return found;
      },
    };
    const engine = { wake: () => undefined, cancelLocal: () => undefined };
    const waiter = { wait: () => Promise.reject(new Error('not used')) };
    const deps = { store: overtaken, clock: new ManualClock(), events: new EventBus('worker') };
    return { ...deps, jobs: new JobActions({ ...deps, engine, waiter, options: DEFAULTS }) };
  }

  describe('one by one', () => {
    it('removes a finished job and the rows of its attempts; its key is free again', async () => {
      const { scheduler } = manualScheduler(database);
      scheduler.registerHandler('mail', () => 'sent');
      const { id } = await scheduler.dispatch('mail', null, { key: 'k' });
      await scheduler.run();
      assert.deepEqual(await scheduler.delete(id), { result: 'changed', state: null });
      assert.equal(await scheduler.getJob(id), null);
      assert.deepEqual(await scheduler.getExecutions(id), []);
      assert.equal((await scheduler.dispatch('mail', null, { key: 'k' })).duplicate, false);
      await scheduler.run();
      assert.equal((await scheduler.getExecutions(id)).length, 1);
    });

    it('refuses a job that is not finished, and says in which state it is', async () => {
      const { scheduler } = manualScheduler(database);
      const jobs = {
        waiting: aJob(),
        delayed: aJob({ nextRunAt: timeAfter(1) }),
        retrying: aJob({ nextRunAt: timeAfter(1), attempts: 1 }),
        held: aJob({ status: 'PENDING' }),
        blocked: aJob({ status: 'PENDING', held: null }),
        prefetched: aJob({ status: 'QUEUED' }),
        running: aJob({ status: 'RUNNING' }),
      };
      await insert(...Object.values(jobs));
      for (const [state, { _id }] of Object.entries(jobs))
        assert.deepEqual(await scheduler.delete(_id), { result: 'refused', state });
      assert.deepEqual(await scheduler.delete('nobody'), { result: 'notFound', state: null });
      assert.equal((await storedIds()).length, 7);
    });

    it('refuses the job of a schedule until an hour after it finished', async () => {
      const { scheduler, clock } = manualScheduler(database);
      const job = anOccurrence({ status: 'COMPLETED', finishedAt: timeAfter(0) });
      await insert(job);
      clock.advance(HOUR);
      assert.deepEqual(await scheduler.delete(job._id), { result: 'refused', state: 'completed' });
      clock.advance(1);
      assert.deepEqual(await scheduler.delete(job._id), { result: 'changed', state: null });
    });
  });

  describe('by filter', () => {
    it('deletes finished jobs in chunks, with progress, and nothing else', async () => {
      const { operations } = manualScheduler(database).scheduler;
      const kept = [
        aJob({ taskType: 'mail' }),
        aJob({ taskType: 'mail', status: 'RUNNING' }),
        aJob({ taskType: 'other', status: 'COMPLETED' }),
      ];
      await insert(
        ...kept,
        ...Array.from({ length: 250 }, (_, index) =>
          aJob({ taskType: 'mail', status: 'COMPLETED', fence: index % 3 }),
        ),
        aJob({ taskType: 'mail', status: 'FAILED' }),
        ...(['cancelled', 'skipped', 'expired'] as const).map((cancelKind) =>
          aJob({ taskType: 'mail', status: 'CANCELLED', cancelKind }),
        ),
      );
      const progress: BulkProgress[] = [];
      const filter = { taskType: 'mail' };
      assert.equal((await operations.countMatching(filter, 'delete')).count, 254);
      assert.equal((await operations.countMatching({ ...filter, state: 'failed' }, 'delete')).count, 1);
      const change = await operations.deleteJobs(filter, { onProgress: (so) => progress.push(so) });
      assert.deepEqual(change, { matched: 254, changed: 254, ...UNCHANGED });
      assert.deepEqual(
        progress.map(({ changed }) => changed),
        [1, 201, 251, 252, 253, 254],
      );
      assert.deepEqual(await storedIds(), kept.map(({ _id }) => _id).sort());
    });

    it('leaves out jobs of schedules that finished within the last hour, and does not count them', async () => {
      const { scheduler, clock } = manualScheduler(database);
      const { operations } = scheduler;
      clock.advance(2 * HOUR);
      const recent = anOccurrence({ status: 'FAILED', finishedAt: timeAfter(HOUR + 1) });
      await insert(recent, anOccurrence({ status: 'FAILED', finishedAt: timeAfter(HOUR - 1) }));
      for (const filter of [{}, { schedule: 'nightly' }, { state: 'failed' as const }])
        assert.equal((await operations.countMatching(filter, 'delete')).count, 1);
      assert.equal((await operations.deleteJobs({})).changed, 1);
      assert.deepEqual(await storedIds(), [recent._id]);
    });

    it('does not delete a job that was retried in the meantime, even if it has finished again', async () => {
      const [retried, repeated, gone, same] = Array.from({ length: 4 }, () => aJob({ status: 'FAILED' }));
      await insert(retried!, repeated!, gone!, same!);
      const { jobs } = database.collections;
      const deps = depsWith(async () => {
        await jobs.updateOne({ _id: retried!._id }, { $set: { status: 'SCHEDULED' }, $inc: { fence: 1 } });
        await jobs.updateOne({ _id: repeated!._id }, { $inc: { fence: 2 } });
        await jobs.deleteOne({ _id: gone!._id });
      });
      assert.deepEqual(await changeMany(deps, 'delete', { state: 'failed' }), {
        ...{ matched: 4, changed: 1, requested: 0, isAborted: false },
        refused: { waiting: 1, failed: 1, notFound: 1 },
      });
      assert.deepEqual(await storedIds(), [retried!._id, repeated!._id].sort());
    });

    it('rejects filters for jobs that are not finished', async () => {
      const { operations } = manualScheduler(database).scheduler;
      for (const call of [
        () => operations.deleteJobs({ state: 'waiting' }),
        () => operations.countMatching({ state: 'running' }, 'delete'),
      ])
        await assert.rejects(call, {
          code: 'INVALID_ARGUMENT',
          message: /deleteJobs\(\): state must be one of failed, completed/,
        });
    });
  });

  describe('emptying a queue', () => {
    it('deletes the jobs that no worker has claimed, and cancels those of schedules', async () => {
      const { scheduler } = manualScheduler(database);
      const events = recordEvents(scheduler, 'job:cancelled');
      const queue = 'mail';
      const occurrence = anOccurrence({ queue });
      const kept = [
        aJob({ queue, status: 'RUNNING' }),
        aJob({ queue, status: 'QUEUED' }),
        aJob({ queue, status: 'COMPLETED' }),
        aJob({ queue: 'other' }),
        occurrence,
      ];
      await insert(
        ...kept,
        aJob({ queue }),
        aJob({ queue, nextRunAt: timeAfter(1) }),
        aJob({ queue, nextRunAt: timeAfter(1), attempts: 1, fence: 1 }),
        aJob({ queue, status: 'PENDING' }),
        aJob({ queue, status: 'PENDING', held: null }),
      );
      const { operations } = scheduler;
      assert.deepEqual(await operations.countMatching({ queue }, 'empty'), { count: 6, atLeast: false });
      assert.deepEqual(await operations.emptyQueue(queue), {
        ...{ matched: 6, changed: 6, cancelled: 1 },
        ...UNCHANGED,
      });
      assert.deepEqual(await storedIds(), kept.map(({ _id }) => _id).sort());
      const cancelled = await scheduler.getJob(occurrence._id);
      assert.deepEqual(
        [cancelled?.state, cancelled?.cancelRequested?.reason],
        ['cancelled', 'the queue was emptied'],
      );
      assert.deepEqual(
        events.map(({ event }) => (event as { jobId: string }).jobId),
        [occurrence._id],
      );
    });

    it('does not let a worker that planned the same occurrence create it again', async () => {
      const { scheduler, clock } = manualScheduler(database);
      await scheduler.addSchedule({ id: 'hourly', taskType: 'report', cron: '0 * * * *', queue: 'reports' });
      clock.advance(HOUR);
      const [created] = (await scheduler.operations.collect()).jobs;
      const { jobs, schedules } = database.collections;
      // As a worker leaves it that froze between the plan and the insert.
      const run = pendingRun('hourly', created?.scheduledFor ?? clock.now(), clock.now());
      assert.equal(run.id, created?.id);
      await schedules.updateOne({ _id: 'hourly' }, { $set: { pending: [run] } });
      await scheduler.operations.emptyQueue('reports');
      clock.advance(10_000);
      assert.deepEqual((await scheduler.operations.collect()).jobs, []);
      assert.deepEqual((await schedules.findOne({ _id: 'hourly' }))?.pending, []);
      assert.deepEqual(
        (await jobs.find().toArray()).map(({ _id, status }) => [_id, status]),
        [[created?.id, 'CANCELLED']],
      );
    });

    it('does not touch a job that a worker claims in the meantime', async () => {
      const [claimed, ended, same] = Array.from({ length: 3 }, () => aJob());
      const occurrence = anOccurrence();
      await insert(claimed!, ended!, same!, occurrence);
      const { jobs } = database.collections;
      const deps = depsWith(async () => {
        const running = { $set: { status: 'RUNNING' as const }, $inc: { fence: 1 } };
        await jobs.updateMany({ _id: { $in: [claimed!._id, occurrence._id] } }, running);
        // Claimed and released.
        await jobs.updateOne({ _id: ended!._id }, { $inc: { fence: 2 } });
      });
      assert.deepEqual(await emptyQueue(deps, 'default'), {
        ...{ matched: 4, changed: 1, requested: 0, cancelled: 0, isAborted: false },
        refused: { running: 2, waiting: 1 },
      });
      assert.equal(await jobs.countDocuments({ cancelRequested: { $ne: null } }), 0);
    });

    it('removes or leaves each job as a whole while workers claim them', async () => {
      const workers = [1, 2].map(() => database.scheduler({ ...withoutRenewalThread, concurrency: 4 }));
      const operator = database.scheduler(withoutRenewalThread);
      for (const worker of workers) worker.registerHandler('work', () => pause(5));
      await operator.dispatchMany(Array.from({ length: 1000 }, () => ({ taskType: 'work' })));
      await Promise.all(workers.map((worker) => worker.start()));
      const { changed } = await operator.operations.emptyQueue('default');
      await Promise.all(workers.map((worker) => worker.stop('10s')));
      const { jobs, executions } = database.collections;
      assert.ok(changed > 0);
      // Jobs that were released when the workers stopped are still waiting.
      const left = await jobs.countDocuments({ status: 'SCHEDULED' });
      const completed = await jobs.countDocuments({ status: 'COMPLETED' });
      assert.equal(changed + completed + left, 1000);
      assert.equal(await executions.countDocuments(), completed);
    });

    it('rejects a queue that is not a name', async () => {
      const { operations } = manualScheduler(database).scheduler;
      for (const queue of ['', undefined, { $ne: '' }])
        await assert.rejects(operations.emptyQueue(queue as string), {
          code: 'INVALID_ARGUMENT',
          message: /emptyQueue\(\) queue must/,
        });
    });
  });
});
