import assert from 'node:assert/strict';
import type { Scheduler } from '../../../src/index.js';
import type { ManualClock } from '../../support/manual-clock.js';
import { advanceUntilSettled, manualScheduler } from '../../support/manual-scheduler.js';
import { blocker, nextEvent, recordEvents } from '../../support/events.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { recordingDefinition, throwing } from '../../support/handlers/recording-definition.js';
import { nextMeasurement } from '../../support/measurements.js';

describe('hooks that fail or never end', () => {
  const database = useSharedDatabase();

  it('fail the attempt when before throws: onError and after run, the handler does not [J5]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const { work, calls } = recordingDefinition(scheduler, () => 'done');
    let ready = false;
    const events = recordEvents(scheduler, 'job:hookFailed', 'job:failed', 'job:complete');
    const { id } = await work
      .retries({ max: 2, base: '1s', jitter: 'none' })
      .before(async () => {
        if (!ready) throw new Error('not ready');
      })
      .dispatch();
    await scheduler.run();
    assert.deepEqual(calls, ['before', 'onError', 'after']);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.attempts, job?.error?.message], ['SCHEDULED', 1, 'not ready']);
    ready = true;
    clock.advance(1000);
    await scheduler.run();
    assert.deepEqual(calls.slice(3), ['before', 'handler', 'onSuccess', 'after']);
    assert.deepEqual(
      events.map(({ name }) => name),
      ['job:failed', 'job:complete'],
    );
  });

  it('are reported and change nothing when onSuccess or after throws [J5]', async () => {
    const { scheduler } = manualScheduler(database);
    const { work, calls } = recordingDefinition(scheduler, () => 'done');
    const events = recordEvents(scheduler, 'job:hookFailed', 'job:complete', 'job:failed', 'listener:error');
    const { id } = await work
      .onSuccess(throwing(new Error('metrics are down')))
      .onSuccess(() => calls.push('second onSuccess'))
      .after(async () => Promise.reject(new Error('no cleanup')))
      .after(() => calls.push('third after'))
      .dispatch();
    await scheduler.run();
    assert.deepEqual(calls, ['before', 'handler', 'onSuccess', 'second onSuccess', 'after', 'third after']);
    const about = { jobId: id, taskType: 'work', queue: 'default', attempt: 1, fence: 1 };
    assert.deepEqual(
      events.map(({ name, event }) => {
        const { error, ...rest } = event as { error?: Error };
        return { name, ...rest, message: error?.message };
      }),
      [
        { name: 'job:hookFailed', ...about, hook: 'onSuccess', message: 'metrics are down' },
        { name: 'job:hookFailed', ...about, hook: 'after', message: 'no cleanup' },
        { name: 'job:complete', ...about, result: 'done', duration: 0, message: undefined },
      ],
    );
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.result, job?.error], ['COMPLETED', 'done', null]);
  });

  it('keep the error of the handler when onError throws [J5]', async () => {
    const { scheduler } = manualScheduler(database);
    const { work } = recordingDefinition(scheduler, throwing(new Error('boom')));
    const reported = nextEvent(scheduler, 'job:hookFailed');
    const { id } = await work
      .maxRetries(0)
      .onError(throwing(new Error('notification failed')))
      .dispatch();
    await scheduler.run();
    assert.deepEqual(
      [(await reported).hook, (await reported).error.message],
      ['onError', 'notification failed'],
    );
    assert.equal((await scheduler.getJob(id))?.error?.message, 'boom');
  });

  it('are abandoned after timeoutGrace and reported with their name [J5]', async () => {
    const { scheduler, clock } = manualScheduler(database, { timeoutGrace: '5s' });
    const { work, calls } = recordingDefinition(scheduler, () => 'done');
    const { block, entered } = blocker();
    const reported = nextEvent(scheduler, 'job:hookFailed');
    const { id } = await work.onSuccess(block).dispatch();
    const pass = scheduler.run();
    await entered;
    await flushEventLoop();
    clock.advance(4999);
    await flushEventLoop();
    assert.equal((await scheduler.getJob(id))?.status, 'RUNNING');
    clock.advance(1);
    await pass;
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.result, job?.attempts], ['COMPLETED', 'done', 0]);
    assert.deepEqual(calls, ['before', 'handler', 'onSuccess']);
    const { hook, error } = await reported;
    assert.match(error.message, /5000 ms/);
    assert.equal(hook, 'onSuccess');
  });

  it('do not block a slot: the next job runs [J5]', async () => {
    const { scheduler, clock } = manualScheduler(database, { concurrency: 1, timeoutGrace: '5s' });
    const { block, entered } = blocker();
    await scheduler
      .schedule('work', () => 1)
      .after(block)
      .dispatch();
    scheduler.registerHandler('next', () => 'done');
    const next = await scheduler.dispatch('next', null, { priority: 200 });
    const pass = scheduler.run();
    await entered;
    assert.equal(await advanceUntilSettled(clock, pass), 2);
    assert.equal((await scheduler.getJob(next.id))?.status, 'COMPLETED');
  });

  /** Advances the clock to the next renewals of a lease of 30 seconds, and waits for each. */
  async function awaitRenewals(scheduler: Scheduler, clock: ManualClock, count: number): Promise<void> {
    for (let renewals = 0; renewals < count; renewals++) {
      const renewed = nextMeasurement(scheduler, 'renewal');
      await flushEventLoop();
      clock.advance(10_000);
      await renewed;
    }
  }

  it('do not lose the lock while they are slow [C8] [J5]', async () => {
    const { scheduler, clock } = manualScheduler(database, { lockTimeout: '30s', timeoutGrace: '5m' });
    const { work, calls } = recordingDefinition(scheduler, () => 'done');
    const events = recordEvents(scheduler, 'job:stalled', 'job:lockLost');
    const { block, entered, release } = blocker();
    const complete = nextEvent(scheduler, 'job:complete');
    const { id } = await work.onSuccess(block).dispatch();
    await scheduler.start();
    await entered;
    await awaitRenewals(scheduler, clock, 10);
    release();
    await complete;
    assert.deepEqual([calls, events], [['before', 'handler', 'onSuccess', 'after'], []]);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.crashes, job?.fence], ['COMPLETED', 0, 1]);
  });

  it('do not lose the lock after a handler that ignored its signal [C8] [J5]', async () => {
    const { scheduler, clock } = manualScheduler(database, { lockTimeout: '30s', timeoutGrace: '2m' });
    const [handler, hook] = [blocker(), blocker()];
    const { work } = recordingDefinition(scheduler, handler.block);
    const events = recordEvents(scheduler, 'job:stalled', 'job:lockLost', 'job:hookFailed');
    const { id } = await work.timeout('10s').maxRetries(0).onError(hook.block).dispatch();
    const failed = nextEvent(scheduler, 'job:failed');
    await scheduler.start();
    await handler.entered;
    await flushEventLoop();
    // The timeout, then the grace of two minutes but for its last ten seconds.
    await awaitRenewals(scheduler, clock, 12);
    clock.advance(10_000);
    await hook.entered;
    await awaitRenewals(scheduler, clock, 10);
    hook.release();
    assert.equal((await failed).jobId, id);
    handler.release();
    assert.deepEqual(events, []);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.error?.code, job?.crashes], ['FAILED', 'JOB_TIMEOUT', 0]);
  });
});
