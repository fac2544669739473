import assert from 'node:assert/strict';
import type { Scheduler } from '../../../src/index.js';
import { aJob } from '../../support/factories/job.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { timeAfter, START } from '../../support/instants.js';

const YEAR = 365 * 86_400_000;

describe('dispatch()', () => {
  const database = useSharedDatabase();

  async function dueAt(scheduler: Scheduler, id: string): Promise<Date | undefined> {
    return (await scheduler.getJob(id))?.nextRunAt;
  }

  it('stores a complete job, due at once, in the queue default with priority 100', async () => {
    const { scheduler } = manualScheduler(database);
    const { id, duplicate } = await scheduler.dispatch('work', { a: 1 });
    assert.equal(duplicate, false);
    assert.deepEqual(await scheduler.getJob(id), {
      id,
      taskType: 'work',
      queue: 'default',
      priority: 100,
      payload: { a: 1 },
      state: 'waiting',
      status: 'SCHEDULED',
      nextRunAt: START,
      createdAt: START,
      fence: 0,
      attempts: 0,
      crashes: 0,
      lostWhileQueued: 0,
      retries: null,
      timeout: null,
      maxRunningTime: null,
      schedule: null,
      scheduledFor: null,
      userId: null,
      tags: [],
      expiresAt: null,
      keepUntil: null,
      held: null,
      skipReason: null,
      cancelRequested: null,
      lockedBy: null,
      lockedUntil: null,
      settledBy: null,
      queuedAt: null,
      firstStartedAt: null,
      startedAt: null,
      finishedAt: null,
      progress: null,
      result: null,
      resultCut: false,
      error: null,
      trace: null,
      invalid: null,
    });
  });

  describe('the run time', () => {
    it('is a delay or an instant in the options [J7]', async () => {
      const { scheduler } = manualScheduler(database);
      const delayed = await scheduler.dispatch('work', null, { delay: '10m' });
      const timed = await scheduler.dispatch('work', null, { at: timeAfter(90_000) });
      assert.deepEqual(await dueAt(scheduler, delayed.id), timeAfter(600_000));
      assert.deepEqual(await dueAt(scheduler, timed.id), timeAfter(90_000));
    });

    it('is set by a draft, in any order of calls, without changing earlier drafts [J7]', async () => {
      const { scheduler } = manualScheduler(database);
      const base = scheduler.delay('1h').args({ to: 'all' });
      const first = await base.dispatch('emails');
      const second = await base.at(timeAfter(5000)).queue('fast').priority(1).key('k').dispatch('emails');
      const third = await scheduler.at(timeAfter(9000)).delay('2h').dispatch('emails');
      const fourth = await scheduler.args({ to: 'one' }).delay('1s').dispatch('emails');
      const again = await base.dispatch('emails');

      for (const { id } of [first, again]) {
        const job = await scheduler.getJob(id);
        assert.deepEqual(
          [job?.nextRunAt, job?.payload, job?.queue],
          [timeAfter(3_600_000), { to: 'all' }, 'default'],
        );
      }
      const job = await scheduler.getJob(second.id);
      assert.deepEqual(
        [job?.id, job?.nextRunAt, job?.payload, job?.queue, job?.priority],
        ['emails=k', timeAfter(5000), { to: 'all' }, 'fast', 1],
      );
      assert.deepEqual(await dueAt(scheduler, third.id), timeAfter(7_200_000));
      assert.deepEqual((await scheduler.getJob(fourth.id))?.payload, { to: 'one' });
    });

    it('can be changed with the handle until a worker claims the job [J7]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      scheduler.registerHandler('work', () => undefined);
      const handle = await scheduler.dispatch('work');
      const delayed = { result: 'changed', state: 'delayed' };
      assert.deepEqual(await handle.delay('10s'), delayed);
      assert.deepEqual(await dueAt(scheduler, handle.id), timeAfter(10_000));
      assert.equal(await scheduler.run(), 0);
      assert.deepEqual(await handle.at('2026-01-01 00:00:20'), delayed);
      assert.deepEqual(await dueAt(scheduler, handle.id), timeAfter(20_000));
      clock.advance(10_000);
      assert.equal(await scheduler.run(), 0);
      assert.deepEqual(await handle.at(clock.now()), { result: 'changed', state: 'waiting' });
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(await handle.delay('1s'), { result: 'refused', state: 'completed' });
    });

    it('cannot be changed after a worker has claimed the job, and the result has its state [J7]', async () => {
      const { scheduler } = manualScheduler(database);
      const handle = await scheduler.dispatch('work', null, { key: 'k' });
      for (const [status, state] of [
        ['QUEUED', 'prefetched'],
        ['RUNNING', 'running'],
        ['FAILED', 'failed'],
        ['CANCELLED', 'cancelled'],
      ] as const) {
        const job = aJob({ _id: handle.id, status });
        await database.collections.jobs.replaceOne({ _id: handle.id }, job);
        assert.deepEqual(await handle.at(timeAfter(1)), { result: 'refused', state });
        assert.deepEqual(await handle.delay(1), { result: 'refused', state });
        assert.deepEqual(await database.collections.jobs.findOne({ _id: handle.id }), job);
      }
      await database.collections.jobs.deleteOne({ _id: handle.id });
      assert.deepEqual(await handle.delay(1), { result: 'notFound', state: null });
    });

    it('without a time zone is in the time zone of the scheduler', async () => {
      const { scheduler } = manualScheduler(database, { timezone: 'Europe/Berlin' });
      const summer = await scheduler.dispatch('work', null, { at: '2026-07-01 12:00' });
      assert.deepEqual(await dueAt(scheduler, summer.id), new Date('2026-07-01T10:00:00Z'));
      await summer.at('2026-12-01 12:00');
      assert.deepEqual(await dueAt(scheduler, summer.id), new Date('2026-12-01T11:00:00Z'));
    });

    it('is exact to the millisecond for delays of years [J16]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      scheduler.registerHandler('work', () => undefined);
      const { id } = await scheduler.dispatch('work', null, { delay: 20 * YEAR });
      assert.deepEqual(await dueAt(scheduler, id), timeAfter(20 * YEAR));
      clock.advance(20 * YEAR - 1);
      assert.equal(await scheduler.run(), 0);
      clock.advance(1);
      assert.equal(await scheduler.run(), 1);
    });
  });

  describe('options', () => {
    it('are all checked at once, and nothing is stored when one is wrong', async () => {
      const { scheduler } = manualScheduler(database);
      const options = { priority: 1001, queue: { $ne: 1 }, delay: '5 minutes', colour: 'red', prioritY: 1 };
      await assert.rejects(scheduler.dispatch('work', null, options as never), (error: Error) => {
        assert.equal((error as { code?: string }).code, 'INVALID_ARGUMENT');
        for (const part of ['.priority must be', '.queue must be', '.delay must be', '.colour is not'])
          assert.match(error.message, new RegExp(part.replaceAll('.', '\\.')));
        assert.match(error.message, /prioritY is not an option \(did you mean 'priority'\?\)/);
        return true;
      });
      await assert.rejects(scheduler.dispatch('work', null, { at: START, delay: 1 }), {
        message: /exclude each other/,
      });
      assert.equal(await database.collections.jobs.countDocuments(), 0);
    });

    it('are stored with the job', async () => {
      const { scheduler } = manualScheduler(database);
      const retries = { max: 5, base: '2s', cap: '60s', jitter: 'full' } as const;
      const options = { retries, timeout: '2m', maxRunningTime: '1h', priority: 0, queue: 'mail' };
      const { id } = await scheduler.dispatch('work', null, options);
      const job = await scheduler.getJob(id);
      assert.deepEqual(job?.retries, { max: 5, base: 2000, cap: 60_000, jitter: 'full' });
      assert.deepEqual([job?.timeout, job?.maxRunningTime], [120_000, 3_600_000]);
      assert.deepEqual([job?.priority, job?.queue], [0, 'mail']);
    });
  });

  describe('with query operators instead of strings', () => {
    const invalid = [{ $ne: null }, { $gt: '' }, ['a'], null, undefined, 7, true, '', 'a\0b'];
    const calls: Record<string, (scheduler: Scheduler, value: never) => Promise<unknown>> = {
      getJob: (scheduler, id) => scheduler.getJob(id),
      getExecutions: (scheduler, id) => scheduler.getExecutions(id),
      cancel: (scheduler, id) => scheduler.cancel(id),
      retry: (scheduler, id) => scheduler.retry(id),
      hold: (scheduler, id) => scheduler.hold(id),
      unhold: (scheduler, id) => scheduler.unhold(id),
      'dispatch by task type': (scheduler, type: string) => scheduler.dispatch(type),
      'dispatchMany by task type': async (scheduler, taskType) => {
        const [result] = await scheduler.dispatchMany([{ taskType }]);
        throw (result as { error: Error }).error;
      },
    };
    for (const [name, call] of Object.entries(calls)) {
      it(`${name} rejects the value and changes nothing`, async () => {
        const { scheduler } = manualScheduler(database);
        const job = aJob({ status: 'SCHEDULED' });
        await database.collections.jobs.insertOne(job);
        for (const value of invalid)
          await assert.rejects(call(scheduler, value as never), { code: 'INVALID_ARGUMENT' });
        assert.deepEqual(await database.collections.jobs.find().toArray(), [job]);
      });
    }

    for (const option of ['key', 'queue'] as const) {
      it(`the option ${option} rejects the value`, async () => {
        const { scheduler } = manualScheduler(database);
        for (const value of invalid.filter((one) => one !== undefined))
          await assert.rejects(scheduler.dispatch('work', null, { [option]: value }), {
            code: 'INVALID_ARGUMENT',
          });
        assert.equal(await database.collections.jobs.countDocuments(), 0);
      });
    }
  });

  it('resolves to a handle that is not a thenable', async () => {
    const { scheduler } = manualScheduler(database);
    const handle = await scheduler.dispatch('work');
    assert.equal('then' in handle, false);
    assert.equal('then' in scheduler.delay(1), false);
    assert.equal(await Promise.resolve(handle), handle);
  });
});
