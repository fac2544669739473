import assert from 'node:assert/strict';
import { JobFailedError, type JobHandle, type Scheduler } from '../../../src/index.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { rejectionOf } from '../../support/rejection.js';
import { useSharedDatabase } from '../../support/shared-database.js';

describe('a job handle', () => {
  const database = useSharedDatabase();

  /** A job that another scheduler dispatched, and a handle from a scheduler that has not connected. */
  async function dispatchElsewhere(): Promise<{ worker: Scheduler; handle: JobHandle }> {
    const { scheduler: worker } = manualScheduler(database);
    worker.registerHandler('work', () => 'done');
    const { id } = await worker.dispatch('work');
    return { worker, handle: database.scheduler().job(id) };
  }

  it('refers to any job by its id, and connects when it is first used [J7]', async () => {
    const { worker, handle } = await dispatchElsewhere();
    assert.equal(handle.duplicate, false);
    assert.equal((await handle.get())?.state, 'waiting');
    assert.deepEqual(await handle.hold('later'), { result: 'changed', state: 'held' });
    assert.deepEqual(await handle.unhold(), { result: 'changed', state: 'waiting' });
    assert.deepEqual(await handle.delay('1h'), { result: 'changed', state: 'delayed' });
    assert.deepEqual(await handle.at('2020-01-01'), { result: 'changed', state: 'waiting' });
    assert.equal(await worker.run(), 1);
    assert.deepEqual(
      (await handle.executions()).map(({ id }) => id),
      [`${handle.id}:1`],
    );
    assert.deepEqual(await handle.retry(), { result: 'changed', state: 'waiting' });
    assert.deepEqual(await handle.reschedule({ delay: '1h' }), { result: 'changed', state: 'delayed' });
    assert.deepEqual(await handle.cancel('enough'), { result: 'changed', state: 'cancelled' });
    assert.deepEqual((await handle.wait()).cancelRequested?.reason, 'enough');
  });

  it('is not checked: its methods report that there is no such job', async () => {
    const handle = database.scheduler().job('unknown');
    assert.equal(await handle.get(), null);
    assert.deepEqual(await handle.executions(), []);
    assert.deepEqual(await handle.cancel(), { result: 'notFound', state: null });
    for (const call of [handle.wait(), handle.result()])
      assert.equal((await rejectionOf(call)).code, 'JOB_NOT_FOUND');
  });

  it('needs a valid id', () => {
    const scheduler = database.scheduler();
    for (const id of ['', 7, null, { $ne: '' }, 'a'.repeat(800)])
      assert.throws(() => scheduler.job(id as string), { code: 'INVALID_ARGUMENT', message: /^a job id / });
  });

  it('still works after stop(): it connects again', async () => {
    const scheduler = database.scheduler();
    const handle = await scheduler.dispatch('work');
    await scheduler.stop();
    assert.equal((await handle.get())?.id, handle.id);
    await scheduler.stop();
  });

  describe('wait()', () => {
    it('resolves to the finished job, whatever its outcome', async () => {
      const scheduler = database.scheduler();
      scheduler.registerHandler('good', () => 'done');
      scheduler.registerHandler('bad', () => Promise.reject(new Error('no')), { retries: { max: 1 } });
      const good = await scheduler.dispatch('good');
      const bad = await scheduler.dispatch('bad');
      const held = await scheduler.dispatch('good', null, { hold: true });
      await scheduler.run();
      assert.equal((await good.wait()).result, 'done');
      assert.equal((await bad.wait({ timeout: '1s' })).error?.message, 'no');
      await assert.rejects(held.wait({ timeout: 1 }), {
        code: 'WAIT_TIMEOUT',
        message: /is still held after 1 ms/,
      });
      await database.collections.jobs.deleteMany();
      await assert.rejects(good.wait(), { code: 'JOB_NOT_FOUND' });
    });

    it('rejects invalid options', async () => {
      const handle = database.scheduler().job('any');
      for (const options of [{ timeout: 'soon' }, { timeout: -1 }, { timeOut: 1 }, 5])
        for (const call of [handle.wait(options as object), handle.result(options as object)])
          assert.equal((await rejectionOf(call)).code, 'INVALID_ARGUMENT');
    });

    it('rejects when the scheduler stops', async () => {
      const scheduler = database.scheduler();
      const handle = await scheduler.dispatch('work');
      const waits = [handle.wait(), handle.result()].map(rejectionOf);
      await handle.get();
      await scheduler.stop();
      for (const { code, message } of await Promise.all(waits)) {
        assert.equal(code, 'WRONG_STATE');
        assert.match(message, /was stopped while it waited for job/);
      }
    });
  });

  describe('result()', () => {
    it('resolves to what the handler returned', async () => {
      const { worker, handle } = await dispatchElsewhere();
      await worker.run();
      assert.equal(await handle.result(), 'done');
    });

    it("throws the handler's error", async () => {
      const { scheduler } = manualScheduler(database);
      class NoSuchUser extends TypeError {
        override readonly name = 'NoSuchUser';
        readonly code = 'E_USER';
      }
      scheduler.registerHandler('bad', () => Promise.reject(new NoSuchUser('no user 7')), {
        retries: { max: 1 },
      });
      const handle = await scheduler.dispatch('bad');
      await scheduler.run();
      const error = await rejectionOf(handle.result());
      assert.ok(error instanceof JobFailedError);
      assert.deepEqual(
        [error.name, error.message, error.code, error.jobId],
        ['NoSuchUser', 'no user 7', 'E_USER', handle.id],
      );
      assert.match(error.stack ?? '', /job-handle\.test\.ts/);
    });

    it('throws the error of a timeout', async () => {
      const { scheduler, clock } = manualScheduler(database);
      scheduler.registerHandler(
        'slow',
        (_, { signal }) => {
          clock.advance(1000);
          signal.throwIfAborted();
        },
        { timeout: '1s', retries: { max: 1 } },
      );
      const handle = await scheduler.dispatch('slow');
      await scheduler.run();
      const { name, code } = await rejectionOf(handle.result());
      assert.deepEqual([name, code], ['ChronosError', 'JOB_TIMEOUT']);
    });

    it('throws JOB_CANCELLED or JOB_SKIPPED with the reason', async () => {
      const { scheduler } = manualScheduler(database);
      scheduler.schedule('report', () => undefined).skip(() => true);
      const cancelled = await scheduler.dispatch('report', null, { delay: '1h' });
      const skipped = await scheduler.dispatch('report');
      await cancelled.cancel('enough');
      await scheduler.run();
      const errors = await Promise.all([cancelled, skipped].map((job) => rejectionOf(job.result())));
      assert.deepEqual(
        errors.map(({ code }) => code),
        ['JOB_CANCELLED', 'JOB_SKIPPED'],
      );
      assert.equal(errors[0]?.message, `job '${cancelled.id}' was cancelled: enough`);
    });

    it('throws RESULT_CUT if the result was too large', async () => {
      const { scheduler } = manualScheduler(database);
      scheduler.registerHandler('large', () => 'x'.repeat(20_000));
      const handle = await scheduler.dispatch('large');
      await scheduler.run();
      assert.equal((await rejectionOf(handle.result())).code, 'RESULT_CUT');
      assert.equal((await handle.wait()).resultCut, true);
    });

    it('throws WAIT_TIMEOUT', async () => {
      const handle = await database.scheduler().dispatch('work');
      assert.equal((await rejectionOf(handle.result({ timeout: '50ms' }))).code, 'WAIT_TIMEOUT');
    });
  });
});
