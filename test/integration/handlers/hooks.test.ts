import assert from 'node:assert/strict';
import { CancelJob, type Scheduler, SnoozeJob } from '../../../src/index.js';
import {
  advanceUntilSettled,
  manualScheduler,
  stopAndAbort,
  withoutRenewalThread,
} from '../../support/manual-scheduler.js';
import { blocker, nextEvent, signal } from '../../support/events.js';
import { timeAfter } from '../../support/instants.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { recordingDefinition, throwing, untilAborted } from '../../support/handlers/recording-definition.js';

const MINUTE = 60_000;

describe('hooks', () => {
  const database = useSharedDatabase();

  /** A definition whose handler ends when its signal is aborted; `reached` resolves when the handler is called. */
  function abortableDefinition(scheduler: Scheduler) {
    const reached = signal();
    const definition = recordingDefinition(scheduler, (payload, job) => {
      reached.fire();
      return untilAborted(payload, job);
    });
    return { ...definition, reached: reached.promise };
  }

  it('on success run as before, handler, onSuccess, after, with the args, the job and the result [J5]', async () => {
    const { scheduler } = manualScheduler(database);
    const calls: unknown[] = [];
    const { id } = await scheduler
      .schedule('sync', (args: { n: number }) => args.n + 1)
      .before((args, job) => calls.push(['before', args, job.id]))
      .onSuccess((args, job, result) => calls.push(['onSuccess', args, job.id, result]))
      .onError(() => calls.push('onError'))
      .after((args, job) => calls.push(['after', args, job.id]))
      .dispatch({ n: 1 });
    await scheduler.run();
    assert.deepEqual(calls, [
      ['before', { n: 1 }, id],
      ['onSuccess', { n: 1 }, id, 2],
      ['after', { n: 1 }, id],
    ]);
    assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED');
  });

  it('on failure run as before, handler, onError with the error first, after, at every attempt [J5]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const calls: unknown[] = [];
    const { id } = await scheduler
      .schedule('flaky', (_: unknown, job) => {
        if (job.attempt < 3) throw new Error(`boom ${job.attempt}`);
        return 'at last';
      })
      .args({ n: 1 })
      .retries({ max: 3, base: '1s', jitter: 'none' })
      .before((_, job) => calls.push(`before ${job.attempt}`))
      .onSuccess((_, job, result) => calls.push(`onSuccess ${job.attempt} ${String(result)}`))
      .onError((error, args, job) => calls.push(['onError', error.message, args, job.attempt]))
      .after((_, job) => calls.push(`after ${job.attempt}`))
      .dispatch();
    for (const delay of [1000, 2000, 0]) {
      await scheduler.run();
      clock.advance(delay);
    }
    assert.deepEqual(calls, [
      'before 1',
      ['onError', 'boom 1', { n: 1 }, 1],
      'after 1',
      'before 2',
      ['onError', 'boom 2', { n: 1 }, 2],
      'after 2',
      'before 3',
      'onSuccess 3 at last',
      'after 3',
    ]);
    assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED');
  });

  it('run in the same order after the last attempt, and the job is FAILED [J5]', async () => {
    const { scheduler } = manualScheduler(database);
    const { work, calls } = recordingDefinition(scheduler, throwing(new Error('boom')));
    const { id } = await work.maxRetries(0).dispatch();
    await scheduler.run();
    assert.deepEqual(calls, ['before', 'handler', 'onError', 'after']);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.error?.message, job?.attempts], ['FAILED', 'boom', 1]);
  });

  it('treat a timeout that the handler reacts to as a failure [J5]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const { work, calls, reached } = abortableDefinition(scheduler);
    const errors: unknown[] = [];
    const { id } = await work
      .timeout('10s')
      .maxRetries(0)
      .onError((error) => errors.push((error as { code?: string }).code))
      .dispatch();
    const pass = scheduler.run();
    await reached;
    await flushEventLoop();
    clock.advance(10_000);
    await pass;
    assert.deepEqual(calls, ['before', 'handler', 'onError', 'after']);
    assert.deepEqual(errors, ['JOB_TIMEOUT']);
    assert.equal((await scheduler.getJob(id))?.status, 'FAILED');
  });

  it('run once after the grace while a handler that ignores its signal still runs [J5]', async () => {
    const { scheduler, clock } = manualScheduler(database, { timeoutGrace: '5s' });
    const { block, entered, release } = blocker();
    const { work, calls } = recordingDefinition(scheduler, block);
    const { id } = await work.timeout('10s').maxRetries(0).dispatch();
    const pass = scheduler.run();
    await entered;
    await flushEventLoop();
    clock.advance(10_000);
    await flushEventLoop();
    assert.deepEqual(calls, ['before', 'handler']);
    clock.advance(5000);
    await pass;
    assert.deepEqual(calls, ['before', 'handler', 'onError', 'after']);
    release();
    await flushEventLoop();
    assert.deepEqual(calls, ['before', 'handler', 'onError', 'after']);
    assert.equal((await scheduler.getJob(id))?.error?.code, 'JOB_TIMEOUT');
  });

  it('run only after when a running job is cancelled [J5]', async () => {
    const { scheduler } = manualScheduler(database);
    const { work, calls, reached } = abortableDefinition(scheduler);
    const handle = await work.dispatch();
    const pass = scheduler.run();
    await reached;
    await handle.cancel('enough');
    await pass;
    assert.deepEqual(calls, ['before', 'handler', 'after']);
    assert.equal((await scheduler.getJob(handle.id))?.status, 'CANCELLED');
  });

  it('do not run when a waiting job is cancelled [J5]', async () => {
    const { scheduler } = manualScheduler(database);
    const { work, calls } = recordingDefinition(scheduler, () => 1);
    const handle = await work.delay('1h').dispatch();
    assert.deepEqual(await handle.cancel(), { result: 'changed', state: 'cancelled' });
    await scheduler.run();
    assert.deepEqual(calls, []);
  });

  it('do not let the handler start when the job is cancelled during before [J5]', async () => {
    const { scheduler } = manualScheduler(database);
    const { work, calls } = recordingDefinition(scheduler, () => 1);
    const { block, entered, release } = blocker();
    const handle = await work.before(block).dispatch();
    const pass = scheduler.run();
    await entered;
    await handle.cancel('enough');
    release();
    await pass;
    assert.equal((await scheduler.getJob(handle.id))?.status, 'CANCELLED');
    assert.deepEqual(calls, ['before', 'after']);
  });

  it('run only after when the handler cancels its job [J5]', async () => {
    const { scheduler } = manualScheduler(database);
    const { work, calls } = recordingDefinition(scheduler, throwing(new CancelJob('not needed')));
    const { id } = await work.dispatch();
    await scheduler.run();
    assert.deepEqual(calls, ['before', 'handler', 'after']);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.attempts, job?.skipReason], ['CANCELLED', 0, null]);
  });

  it('run only after when the handler snoozes, and all of them at the next run [J5]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    let ready = false;
    const { work, calls } = recordingDefinition(scheduler, () => {
      if (!ready) throw new SnoozeJob('10m');
      return 'done';
    });
    const { id } = await work.dispatch();
    await scheduler.run();
    assert.deepEqual(calls, ['before', 'handler', 'after']);
    assert.deepEqual((await scheduler.getJob(id))?.nextRunAt, timeAfter(10 * MINUTE));
    ready = true;
    clock.advance(10 * MINUTE);
    await scheduler.run();
    assert.deepEqual(calls.slice(3), ['before', 'handler', 'onSuccess', 'after']);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.attempts], ['COMPLETED', 0]);
  });

  it('run only after when the job is released by stop(), and all of them at the next run [J5] [C12]', async () => {
    const { scheduler: first, clock } = manualScheduler(database);
    const { work, calls, reached } = abortableDefinition(first);
    const released = nextEvent(first, 'job:released');
    const { id } = await work.dispatch();
    await first.start();
    await reached;
    assert.deepEqual(await stopAndAbort(first, clock), { left: [] });
    assert.equal((await released).jobId, id);
    assert.deepEqual(calls, ['before', 'handler', 'after']);

    const second = database.scheduler({ clock });
    const again = recordingDefinition(second, () => 'done');
    await second.run();
    assert.deepEqual(again.calls, ['before', 'handler', 'onSuccess', 'after']);
    const job = await second.getJob(id);
    assert.deepEqual([job?.status, job?.attempts, job?.crashes], ['COMPLETED', 0, 0]);
  });

  it('do not run when stop() leaves a handler that ignores its signal [J5] [C12]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const { block, entered, release } = blocker();
    const { work, calls } = recordingDefinition(scheduler, block);
    const { id } = await work.dispatch();
    await scheduler.start();
    await entered;
    const { left } = await advanceUntilSettled(clock, scheduler.stop('2s'), 100);
    assert.deepEqual(left, [{ id, taskType: 'work' }]);
    assert.deepEqual(calls, ['before', 'handler']);
    release();
  });

  it('are awaited by stop(), and the outcome is written [J5] [C12]', async () => {
    const scheduler = database.scheduler(withoutRenewalThread);
    const { block, entered, release } = blocker();
    const { work, calls } = recordingDefinition(scheduler, () => 'done');
    const { id } = await work
      .after(async () => {
        await block();
        calls.push('second after');
      })
      .dispatch();
    await scheduler.start();
    await entered;
    const stopping = scheduler.stop('60s');
    release();
    assert.deepEqual(await stopping, { left: [] });
    assert.deepEqual(calls.slice(-2), ['after', 'second after']);
    const job = await database.collections.jobs.findOne({ _id: id });
    assert.deepEqual([job?.status, job?.lockToken], ['COMPLETED', null]);
  });

  it('of the same kind keep their order, also when some are asynchronous [J5]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const calls: string[] = [];
    const hook = (name: string, slow = false) =>
      slow
        ? async (): Promise<void> => {
            await flushEventLoop(5);
            calls.push(name);
          }
        : (): number => calls.push(name);
    let fails = true;
    await scheduler
      .schedule('work', () => {
        calls.push('handler');
        if (fails) throw new Error('boom');
      })
      .after(hook('after 1', true))
      .onSuccess(hook('onSuccess 1', true))
      .before(hook('before 1', true))
      .onError(hook('onError 1', true))
      .before(hook('before 2'))
      .onError(hook('onError 2'))
      .onSuccess(hook('onSuccess 2'))
      .after(hook('after 2'))
      .retries({ max: 2, base: '1s', jitter: 'none' })
      .dispatch();
    await scheduler.run();
    assert.deepEqual(calls.splice(0), [
      'before 1',
      'before 2',
      'handler',
      'onError 1',
      'onError 2',
      'after 1',
      'after 2',
    ]);
    fails = false;
    clock.advance(1000);
    await scheduler.run();
    assert.deepEqual(calls, [
      'before 1',
      'before 2',
      'handler',
      'onSuccess 1',
      'onSuccess 2',
      'after 1',
      'after 2',
    ]);
  });

  it('run under the lock of the job: the outcome is written and announced after them [J5]', async () => {
    const { scheduler } = manualScheduler(database);
    const seen: unknown[] = [];
    scheduler.on('job:complete', () => seen.push('job:complete'));
    const { id } = await scheduler
      .schedule('work', () => 'done')
      .after(async (_, job) => {
        const stored = await database.collections.jobs.findOne({ _id: job.id });
        seen.push(stored?.status, stored?.lockedBy === scheduler.workerId);
      })
      .dispatch();
    await scheduler.run();
    assert.deepEqual(seen, ['RUNNING', true, 'job:complete']);
    assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED');
  });

  describe('run for every kind of run', () => {
    const EXPECTED = ['before', 'handler', 'onSuccess', 'after'];

    it('an occurrence [J5]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      const { work, calls } = recordingDefinition(scheduler, () => 1);
      work.everyMinute();
      await scheduler.run();
      clock.advance(MINUTE);
      await scheduler.run();
      assert.deepEqual(calls, EXPECTED);
    });

    it('an inline run of a pass [J5]', async () => {
      const { scheduler } = manualScheduler(database);
      const { work, calls } = recordingDefinition(scheduler, () => 1);
      work.everyMinute();
      await scheduler.runOnce();
      assert.deepEqual(calls, EXPECTED);
    });

    it('a dispatch by name from another process [J5] [J6]', async () => {
      const { scheduler: other } = manualScheduler(database);
      const { scheduler } = manualScheduler(database);
      const { calls } = recordingDefinition(scheduler, () => 1);
      await other.dispatch('work');
      await scheduler.run();
      assert.deepEqual(calls, EXPECTED);
    });

    it('a triggered run [J5]', async () => {
      const { scheduler } = manualScheduler(database);
      const { work, calls } = recordingDefinition(scheduler, () => 1);
      work.daily();
      await scheduler.run();
      assert.equal((await scheduler.triggerSchedule('work')).triggered, true);
      await scheduler.run();
      assert.deepEqual(calls, EXPECTED);
    });

    it('a handler that was registered separately [J5]', async () => {
      const { scheduler } = manualScheduler(database);
      const calls: string[] = [];
      scheduler.registerHandler('work', () => calls.push('handler'));
      scheduler
        .schedule('work')
        .before(() => calls.push('before'))
        .after(() => calls.push('after'));
      await scheduler.dispatch('work');
      await scheduler.run();
      assert.deepEqual(calls, ['before', 'handler', 'after']);
    });

    it('a built-in handler [J5] [D2]', async () => {
      const { scheduler } = manualScheduler(database);
      const calls: unknown[] = [];
      scheduler.channel.on('tick', (data) => calls.push(['listener', data]));
      scheduler
        .define('event', { event: 'tick', data: 7 })
        .named('ticker')
        .before(() => calls.push('before'))
        .onSuccess((_, __, result) => calls.push(result))
        .after(() => calls.push('after'));
      await scheduler.dispatch('ticker');
      await scheduler.run();
      assert.deepEqual(calls, ['before', ['listener', 7], { listeners: 1 }, 'after']);
    });
  });

  describe('recipes', () => {
    it('collect metrics around an important job [J5]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      const metrics: string[] = [];
      scheduler
        .schedule('important', (_, job) => {
          if (job.attempt === 1) throw new Error('boom');
        })
        .retries({ max: 2, base: '1s', jitter: 'none' })
        .before(() => metrics.push('job.start'))
        .onSuccess(() => metrics.push('job.success'))
        .onError(() => metrics.push('job.failure'))
        .after(() => metrics.push('job.duration'));
      await scheduler.dispatch('important');
      await scheduler.run();
      clock.advance(1000);
      await scheduler.run();
      assert.deepEqual(metrics, [
        ...['job.start', 'job.failure', 'job.duration'],
        ...['job.start', 'job.success', 'job.duration'],
      ]);
    });

    it('dispatch the next job in onSuccess and a notification in onError [J5] [J6]', async () => {
      const { scheduler } = manualScheduler(database);
      scheduler.registerHandler('deliver', ({ of }: { of: number }) => `delivered ${of}`);
      scheduler.registerHandler('notify', ({ why }: { why: string }) => why);
      scheduler
        .schedule('build', (args: { n: number }) => {
          if (args.n < 0) throw new Error('negative');
          return args.n * 2;
        })
        .maxRetries(0)
        .onSuccess((_, job, result) => scheduler.dispatch('deliver', { of: result }, { key: job.id }))
        .onError((error, _, job) => scheduler.dispatch('notify', { why: error.message }, { key: job.id }));
      await scheduler.dispatch('build', { n: 21 });
      await scheduler.dispatch('build', { n: -1 });
      await scheduler.run();
      await scheduler.run();
      const jobs = await database.collections.jobs.find({ taskType: { $ne: 'build' } }).toArray();
      assert.deepEqual(jobs.map(({ result }) => result).sort(), ['delivered 42', 'negative']);
    });
  });
});
