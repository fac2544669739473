import assert from 'node:assert/strict';
import {
  manualScheduler,
  withoutRenewalThread,
  advanceUntilSettled,
} from '../../support/manual-scheduler.js';
import { nextEvent, recordEvents, signal } from '../../support/events.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { recordingDefinition, throwing } from '../../support/handlers/recording-definition.js';

const SHORT_LOCK = {
  ...withoutRenewalThread,
  lockTimeout: '500ms',
  heartbeatInterval: '200ms',
  sweepInterval: '100ms',
} as const;

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

  it('are reported and change nothing when they are not before [J5]', async () => {
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
      .onError(throwing(new Error('cannot tell the admin')))
      .dispatch();
    await scheduler.run();
    assert.deepEqual(
      [(await reported).hook, (await reported).error.message],
      ['onError', 'cannot tell the admin'],
    );
    assert.equal((await scheduler.getJob(id))?.error?.message, 'boom');
  });

  it('are abandoned after timeoutGrace and reported with their name [J5]', async () => {
    const { scheduler, clock } = manualScheduler(database, { timeoutGrace: '5s' });
    const { work, calls } = recordingDefinition(scheduler, () => 'done');
    const reached = signal();
    const reported = nextEvent(scheduler, 'job:hookFailed');
    const { id } = await work
      .onSuccess(() => {
        reached.fire();
        return new Promise(() => undefined);
      })
      .dispatch();
    const pass = scheduler.run();
    await reached.promise;
    clock.advance(4999);
    await flushEventLoop();
    assert.equal((await scheduler.getJob(id))?.status, 'RUNNING');
    await advanceUntilSettled(clock, pass, 1);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.result, job?.attempts], ['COMPLETED', 'done', 0]);
    assert.deepEqual(calls.slice(0, 3), ['before', 'handler', 'onSuccess']);
    const { hook, error } = await reported;
    assert.match(error.message, /5000 ms/);
    assert.equal(hook, 'onSuccess');
  });

  it('do not block a slot: the next job runs [J5]', async () => {
    const { scheduler, clock } = manualScheduler(database, { concurrency: 1, timeoutGrace: '5s' });
    const reached = signal();
    await scheduler
      .schedule('work', () => 1)
      .after(() => {
        reached.fire();
        return new Promise(() => undefined);
      })
      .dispatch();
    scheduler.registerHandler('next', () => 'done');
    const next = await scheduler.dispatch('next', null, { priority: 200 });
    const pass = scheduler.run();
    await reached.promise;
    assert.equal(await advanceUntilSettled(clock, pass), 2);
    assert.equal((await scheduler.getJob(next.id))?.status, 'COMPLETED');
  });

  it('do not lose the lock while they are slow [C8] [J5]', async () => {
    const scheduler = database.scheduler(SHORT_LOCK);
    const { work, calls } = recordingDefinition(scheduler, () => 'done');
    const events = recordEvents(scheduler, 'job:stalled', 'job:lockLost');
    const complete = nextEvent(scheduler, 'job:complete');
    const { id } = await work.onSuccess(() => withoutRenewalThread.clock.sleep(1200)).dispatch();
    await scheduler.start();
    await complete;
    assert.deepEqual([calls, events], [['before', 'handler', 'onSuccess', 'after'], []]);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.crashes, job?.fence], ['COMPLETED', 0, 1]);
  });

  it('do not lose the lock after a handler that ignored its signal [C8] [J5]', async () => {
    const scheduler = database.scheduler({ ...SHORT_LOCK, timeoutGrace: '1s' });
    const release = signal();
    const { work } = recordingDefinition(scheduler, () => release.promise);
    const events = recordEvents(scheduler, 'job:stalled', 'job:lockLost', 'job:hookFailed');
    const { id } = await work
      .timeout('100ms')
      .maxRetries(0)
      .onError(() => withoutRenewalThread.clock.sleep(900))
      .dispatch();
    await scheduler.start();
    const handled = await new Promise<string>((resolve) => {
      for (const name of ['job:failed', 'job:stalled', 'job:lockLost'] as const)
        scheduler.on(name, () => resolve(name));
    });
    release.fire();
    assert.deepEqual([handled, events], ['job:failed', []]);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.error?.code, job?.crashes], ['FAILED', 'JOB_TIMEOUT', 0]);
  });
});
