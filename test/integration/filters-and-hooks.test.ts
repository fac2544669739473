import assert from 'node:assert/strict';
import {
  CancelJob,
  SnoozeJob,
  type JobContext,
  type ScheduleBuilder,
  type Scheduler,
} from '../../src/index.js';
import { byHand, inProcess, passTime } from '../support/by-hand.js';
import { nextEvent, recordEvents, signal } from '../support/events.js';
import { after } from '../support/instants.js';
import { useSharedDatabase } from '../support/shared-database.js';
import { turns } from '../support/turns.js';

const MINUTE = 60_000;
const SHORT_LOCK = {
  ...inProcess,
  lockTimeout: '500ms',
  heartbeatInterval: '200ms',
  sweepInterval: '100ms',
} as const;

/** Ends when its signal is aborted, as a good handler does. */
function heedful(_: unknown, { signal: aborting }: JobContext): Promise<never> {
  return new Promise((_resolve, reject) => {
    aborting.addEventListener('abort', () => reject(aborting.reason as Error));
  });
}

function throwing(thrown: unknown): () => never {
  return () => {
    throw thrown;
  };
}

/** A definition whose handler and hooks note that they ran. */
function noted(
  scheduler: Scheduler,
  handler: (payload: unknown, job: JobContext) => unknown,
): { work: ScheduleBuilder<unknown>; calls: string[] } {
  const calls: string[] = [];
  const work = scheduler
    .schedule<unknown>('work', (payload, job) => {
      calls.push('handler');
      return handler(payload, job);
    })
    .before(() => calls.push('before'))
    .onSuccess(() => calls.push('onSuccess'))
    .onError(() => calls.push('onError'))
    .after(() => calls.push('after'));
  return { work, calls };
}

describe('filters', () => {
  const database = useSharedDatabase();

  it('J4 one that says no leaves a record with its reason, runs no hook and uses no attempt', async () => {
    const { scheduler } = byHand(database);
    const { work, calls } = noted(scheduler, () => 1);
    const events = recordEvents(
      scheduler,
      'job:start',
      'job:skipped',
      'job:cancelled',
      'job:complete',
      'job:failed',
    );
    const isProduction = (): boolean => false;
    const { id } = await work.when(isProduction).dispatch({ n: 1 });
    assert.equal(await scheduler.run(), 1);

    assert.deepEqual(calls, []);
    const job = await scheduler.getJob(id);
    assert.deepEqual(
      [job?.status, job?.skipReason, job?.attempts, job?.error, job?.result, job?.lockedBy, job?.finishedAt],
      ['CANCELLED', 'when(isProduction) does not hold', 0, null, null, null, after(0)],
    );
    const [row, ...more] = await scheduler.getExecutions(id);
    assert.equal(more.length, 0);
    assert.deepEqual(
      [row?.outcome, row?.attempt, row?.error?.code, row?.error?.message],
      ['skipped', 1, 'JOB_SKIPPED', 'when(isProduction) does not hold'],
    );
    const about = { jobId: id, taskType: 'work', queue: 'default', attempt: 1, fence: 1 };
    assert.deepEqual(events, [
      { name: 'job:start', event: { ...about, waited: 0 } },
      { name: 'job:skipped', event: { ...about, reason: 'when(isProduction) does not hold' } },
    ]);
  });

  it('J4 every when must hold and no skip; they add up, and are asked in order', async () => {
    const { scheduler } = byHand(database);
    const asked: string[] = [];
    let [maintenance, apiAvailable, diskSpaceLow] = [false, true, false];
    const ask = (name: string, answer: () => boolean) => (): boolean => {
      asked.push(name);
      return answer();
    };
    scheduler
      .schedule('sync', () => 'synced')
      .when(ask('maintenance', () => !maintenance))
      .skip(ask('disk', () => diskSpaceLow))
      .when(ask('api', () => apiAvailable));
    const outcome = async (): Promise<unknown> => {
      asked.length = 0;
      const { id } = await scheduler.dispatch('sync');
      await scheduler.run();
      const job = await scheduler.getJob(id);
      return [job?.status, job?.skipReason];
    };
    assert.deepEqual(await outcome(), ['COMPLETED', null]);
    assert.deepEqual(asked, ['maintenance', 'api', 'disk']);
    maintenance = true;
    assert.deepEqual(await outcome(), ['CANCELLED', 'when() number 1 does not hold']);
    assert.deepEqual(asked, ['maintenance']);
    [maintenance, apiAvailable] = [false, false];
    assert.deepEqual(await outcome(), ['CANCELLED', 'when() number 2 does not hold']);
    [apiAvailable, diskSpaceLow] = [true, true];
    assert.deepEqual(await outcome(), ['CANCELLED', 'skip() number 1 holds']);
    diskSpaceLow = false;
    assert.deepEqual(await outcome(), ['COMPLETED', null]);
  });

  it('J4 may be a mere yes or no', async () => {
    const { scheduler } = byHand(database);
    const ran: string[] = [];
    scheduler
      .schedule('a', () => ran.push('a'))
      .when(true)
      .skip(false);
    scheduler.schedule('b', () => ran.push('b')).when(false);
    scheduler.schedule('c', () => ran.push('c')).skip(true);
    for (const name of ['a', 'b', 'c']) await scheduler.dispatch(name);
    await scheduler.run();
    assert.deepEqual(ran, ['a']);
  });

  it('J4 are given the args and the job, and may take their time', async () => {
    const { scheduler, clock } = byHand(database);
    const seen: unknown[] = [];
    scheduler
      .schedule<{ n: number }>('sync', () => 1)
      .everyMinute()
      .args({ n: 1 })
      .when(async (args, { id, taskType, schedule, scheduledFor, attempt }) => {
        await database.collections.jobs.findOne({ _id: id });
        return seen.push({ args, id, taskType, schedule, scheduledFor, attempt }) > 0;
      });
    await scheduler.run();
    clock.advance(MINUTE);
    await scheduler.run();
    const id = `sync@${after(MINUTE).toISOString()}`;
    assert.deepEqual(seen, [
      { args: { n: 1 }, id, taskType: 'sync', schedule: 'sync', scheduledFor: after(MINUTE), attempt: 1 },
    ]);
    assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED');
  });

  it('J4 are asked when the job is about to run, not when it is made', async () => {
    const { scheduler, clock } = byHand(database);
    let open = false;
    let asked = 0;
    const work = scheduler
      .schedule('work', () => 'done')
      .when(() => {
        asked++;
        return open;
      });
    const { id } = await work.delay('1h').dispatch();
    await scheduler.run();
    assert.equal(asked, 0);
    open = true;
    clock.advance(60 * MINUTE);
    await scheduler.run();
    assert.deepEqual([asked, (await scheduler.getJob(id))?.status], [1, 'COMPLETED']);
  });

  it('J4 are asked where the job runs: whoever dispatches it need not have them', async () => {
    const { scheduler: dispatcher } = byHand(database);
    const { scheduler: worker } = byHand(database);
    worker.schedule('work', () => 1).when(false);
    const { id } = await dispatcher.dispatch('work');
    assert.equal(await worker.run(), 1);
    assert.equal((await dispatcher.getJob(id))?.status, 'CANCELLED');
  });

  it('J4 are asked again at every attempt; a skip after a failure leaves the attempt that failed', async () => {
    const { scheduler, clock } = byHand(database);
    let open = true;
    const { work, calls } = noted(scheduler, () => {
      open = false;
      throw new Error('boom');
    });
    const { id } = await work
      .retries({ max: 3, base: '1s', jitter: 'none' })
      .when(() => open)
      .dispatch();
    await scheduler.run();
    clock.advance(1000);
    await scheduler.run();
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.attempts, job?.error?.message], ['CANCELLED', 1, 'boom']);
    assert.equal(job?.skipReason, 'when() number 1 does not hold');
    assert.deepEqual(calls, ['before', 'handler', 'onError', 'after']);
    assert.deepEqual(
      (await scheduler.getExecutions(id)).map(({ outcome }) => outcome),
      ['retry', 'skipped'],
    );
  });

  it('J4 J5 one that throws fails the attempt, which is retried', async () => {
    const { scheduler, clock } = byHand(database);
    const { work, calls } = noted(scheduler, () => 'done');
    let down = true;
    const { id } = await work
      .retries({ max: 2, base: '1s', jitter: 'none' })
      .when(async () => {
        if (down) throw new Error('api is down');
        return true;
      })
      .dispatch();
    await scheduler.run();
    const job = await scheduler.getJob(id);
    assert.deepEqual(
      [job?.status, job?.attempts, job?.error?.message, job?.skipReason],
      ['SCHEDULED', 1, 'api is down', null],
    );
    assert.deepEqual(calls, ['onError', 'after']);
    down = false;
    clock.advance(1000);
    await scheduler.run();
    assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED');
    assert.deepEqual(calls, ['onError', 'after', 'before', 'handler', 'onSuccess', 'after']);
  });

  it('J4 a run that was skipped does not end its schedule, nor stand in the way of the next', async () => {
    const { scheduler, clock } = byHand(database);
    let skipping = true;
    const ran: (Date | null)[] = [];
    scheduler
      .schedule('work', (_, job) => ran.push(job.scheduledFor))
      .everyMinute()
      .skip(() => skipping);
    await scheduler.run();
    for (let minute = 1; minute <= 3; minute++) {
      clock.advance(MINUTE);
      await scheduler.run();
      skipping = minute < 2;
    }
    assert.deepEqual(ran, [after(3 * MINUTE)]);
    const jobs = await database.collections.jobs.find({}, { sort: { _id: 1 } }).toArray();
    assert.deepEqual(
      jobs.map(({ status, scheduledFor }) => [status, scheduledFor]),
      [
        ['CANCELLED', after(MINUTE)],
        ['CANCELLED', after(2 * MINUTE)],
        ['COMPLETED', after(3 * MINUTE)],
      ],
    );
  });

  it('J4 B17 a skipped job can be run all the same, by a person', async () => {
    const { scheduler } = byHand(database);
    let open = false;
    const { id } = await scheduler
      .schedule('work', () => 'done')
      .when(() => open)
      .dispatch();
    await scheduler.run();
    open = true;
    assert.deepEqual(await scheduler.retry(id), { retried: true });
    await scheduler.run();
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.skipReason, job?.result], ['COMPLETED', null, 'done']);
  });

  it('J4 D6 hold for what a pass runs in place', async () => {
    const { scheduler, clock } = byHand(database);
    const { work, calls } = noted(scheduler, () => 1);
    work.everyMinute().skip(function holiday() {
      return true;
    });
    await scheduler.runOnce();
    clock.advance(MINUTE);
    const { entries, failed } = await scheduler.runOnce();
    assert.deepEqual(
      entries.map(({ name, result, reason }) => ({ name, result, reason })),
      [{ name: 'work', result: 'skipped', reason: 'filter: skip(holiday) holds' }],
    );
    assert.deepEqual([calls, failed], [[], 0]);
    assert.equal((await scheduler.getJob(entries[0]!.jobId!))?.skipReason, 'skip(holiday) holds');
  });

  it('J4 one that answers after the job was cancelled starts nothing', async () => {
    const { scheduler } = byHand(database);
    const { work, calls } = noted(scheduler, () => 1);
    const [asked, answer] = [signal(), signal<boolean>()];
    const handle = await work
      .when(() => {
        asked.fire();
        return answer.promise;
      })
      .dispatch();
    const pass = scheduler.run();
    await asked.promise;
    assert.deepEqual(await handle.cancel('enough'), { answer: 'requested' });
    answer.fire(true);
    await pass;
    assert.equal((await scheduler.getJob(handle.id))?.status, 'CANCELLED');
    assert.equal(calls.includes('handler'), false, calls.join());
  });

  it('C5 J4 one that answers after the timeout starts nothing, long after the verdict', async () => {
    const { scheduler, clock } = byHand(database, { timeoutGrace: '5s' });
    const { work, calls } = noted(scheduler, () => 1);
    const [asked, answer] = [signal(), signal<boolean>()];
    const { id } = await work
      .timeout('10s')
      .maxRetries(0)
      .when(() => {
        asked.fire();
        return answer.promise;
      })
      .dispatch();
    const pass = scheduler.run();
    await asked.promise;
    clock.advance(10_000);
    await turns();
    clock.advance(5000);
    await pass;
    assert.equal((await scheduler.getJob(id))?.status, 'FAILED');
    answer.fire(true);
    await turns();
    assert.deepEqual(calls, ['onError', 'after']);
  });
});

describe('hooks', () => {
  const database = useSharedDatabase();

  it('J5 success: before, handler, onSuccess, after, with the args, the job and the result', async () => {
    const { scheduler } = byHand(database);
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

  it('J5 failure: before, handler, onError with the error first, after; at every attempt', async () => {
    const { scheduler, clock } = byHand(database);
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

  it('J5 the last failure: the same, and the job ends FAILED', async () => {
    const { scheduler } = byHand(database);
    const { work, calls } = noted(scheduler, throwing(new Error('boom')));
    const { id } = await work.maxRetries(0).dispatch();
    await scheduler.run();
    assert.deepEqual(calls, ['before', 'handler', 'onError', 'after']);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.error?.message, job?.attempts], ['FAILED', 'boom', 1]);
  });

  it('J5 a timeout that the handler heeds is a failure', async () => {
    const { scheduler, clock } = byHand(database);
    const { work, calls } = noted(scheduler, heedful);
    const errors: unknown[] = [];
    const started = nextEvent(scheduler, 'job:start');
    const { id } = await work
      .timeout('10s')
      .maxRetries(0)
      .onError((error) => errors.push((error as { code?: string }).code))
      .dispatch();
    const pass = scheduler.run();
    await started;
    await turns();
    clock.advance(10_000);
    await pass;
    assert.deepEqual(calls, ['before', 'handler', 'onError', 'after']);
    assert.deepEqual(errors, ['JOB_TIMEOUT']);
    assert.equal((await scheduler.getJob(id))?.status, 'FAILED');
  });

  it('J5 a handler that ignores its signal: the hooks follow after the grace, once, while it still runs', async () => {
    const { scheduler, clock } = byHand(database, { timeoutGrace: '5s' });
    const [reached, release] = [signal(), signal()];
    const { work, calls } = noted(scheduler, () => {
      reached.fire();
      return release.promise;
    });
    const { id } = await work.timeout('10s').maxRetries(0).dispatch();
    const pass = scheduler.run();
    await reached.promise;
    clock.advance(10_000);
    await turns();
    assert.deepEqual(calls, ['before', 'handler']);
    clock.advance(5000);
    await pass;
    assert.deepEqual(calls, ['before', 'handler', 'onError', 'after']);
    release.fire();
    await turns();
    assert.deepEqual(calls, ['before', 'handler', 'onError', 'after']);
    assert.equal((await scheduler.getJob(id))?.error?.code, 'JOB_TIMEOUT');
  });

  it('J5 cancelled from outside while it runs: only after follows', async () => {
    const { scheduler } = byHand(database);
    const reached = signal();
    const { work, calls } = noted(scheduler, (payload, job) => {
      reached.fire();
      return heedful(payload, job);
    });
    const handle = await work.dispatch();
    const pass = scheduler.run();
    await reached.promise;
    await handle.cancel('enough');
    await pass;
    assert.deepEqual(calls, ['before', 'handler', 'after']);
    assert.equal((await scheduler.getJob(handle.id))?.status, 'CANCELLED');
  });

  it('J5 cancelled while it waits: none', async () => {
    const { scheduler } = byHand(database);
    const { work, calls } = noted(scheduler, () => 1);
    const handle = await work.delay('1h').dispatch();
    assert.deepEqual((await handle.cancel()).answer, 'cancelled');
    await scheduler.run();
    assert.deepEqual(calls, []);
  });

  it('J5 cancelled while before runs: the handler does not start', async () => {
    const { scheduler } = byHand(database);
    const { work, calls } = noted(scheduler, () => 1);
    const [reached, release] = [signal(), signal()];
    const handle = await work
      .before(() => {
        reached.fire();
        return release.promise;
      })
      .dispatch();
    const pass = scheduler.run();
    await reached.promise;
    await handle.cancel('enough');
    release.fire();
    await pass;
    assert.equal((await scheduler.getJob(handle.id))?.status, 'CANCELLED');
    assert.deepEqual(calls, ['before', 'after']);
  });

  it('J5 cancelled by the handler: only after follows', async () => {
    const { scheduler } = byHand(database);
    const { work, calls } = noted(scheduler, throwing(new CancelJob('not needed')));
    const { id } = await work.dispatch();
    await scheduler.run();
    assert.deepEqual(calls, ['before', 'handler', 'after']);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.attempts, job?.skipReason], ['CANCELLED', 0, null]);
  });

  it('J5 snoozed: only after follows, and everything again at the next run', async () => {
    const { scheduler, clock } = byHand(database);
    let ready = false;
    const { work, calls } = noted(scheduler, () => {
      if (!ready) throw new SnoozeJob('10m');
      return 'done';
    });
    const { id } = await work.dispatch();
    await scheduler.run();
    assert.deepEqual(calls, ['before', 'handler', 'after']);
    assert.deepEqual((await scheduler.getJob(id))?.nextRunAt, after(10 * MINUTE));
    ready = true;
    clock.advance(10 * MINUTE);
    await scheduler.run();
    assert.deepEqual(calls.slice(3), ['before', 'handler', 'onSuccess', 'after']);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.attempts], ['COMPLETED', 0]);
  });

  it('J5 C12 given back at a shutdown: only after follows, and everything again where it runs next', async () => {
    const first = database.scheduler({ ...inProcess, timeoutGrace: '100ms' });
    const reached = signal();
    const { work, calls } = noted(first, (payload, job) => {
      reached.fire();
      return heedful(payload, job);
    });
    const givenBack = nextEvent(first, 'job:givenBack');
    const { id } = await work.dispatch();
    await first.start();
    await reached.promise;
    assert.deepEqual(await first.stop('150ms'), { left: [] });
    assert.equal((await givenBack).jobId, id);
    assert.deepEqual(calls, ['before', 'handler', 'after']);

    const second = database.scheduler(inProcess);
    const again = noted(second, () => 'done');
    await second.run();
    assert.deepEqual(again.calls, ['before', 'handler', 'onSuccess', 'after']);
    const job = await second.getJob(id);
    assert.deepEqual([job?.status, job?.attempts, job?.crashes], ['COMPLETED', 0, 0]);
  });

  it('J5 C12 left to itself at a shutdown, because it ignores its signal: no hook speaks for it', async () => {
    const { scheduler, clock } = byHand(database);
    const [reached, release] = [signal(), signal()];
    const { work, calls } = noted(scheduler, () => {
      reached.fire();
      return release.promise;
    });
    const { id } = await work.dispatch();
    await scheduler.start();
    await reached.promise;
    const { left } = await passTime(clock, scheduler.stop('2s'), 100);
    assert.deepEqual(left, [{ id, taskType: 'work' }]);
    assert.deepEqual(calls, ['before', 'handler']);
    release.fire();
  });

  it('J5 C12 a hook that is at work when the scheduler stops is waited for, and the outcome written', async () => {
    const scheduler = database.scheduler(inProcess);
    const [reached, release] = [signal(), signal()];
    const { work, calls } = noted(scheduler, () => 'done');
    const { id } = await work
      .after(async () => {
        reached.fire();
        await release.promise;
        calls.push('second after');
      })
      .dispatch();
    await scheduler.start();
    await reached.promise;
    const stopping = scheduler.stop('10s');
    release.fire();
    assert.deepEqual(await stopping, { left: [] });
    assert.deepEqual(calls.slice(-2), ['after', 'second after']);
    const job = await database.collections.jobs.findOne({ _id: id });
    assert.deepEqual([job?.status, job?.lockToken], ['COMPLETED', null]);
  });

  it('J5 before that throws fails the attempt: no handler, onError, after', async () => {
    const { scheduler, clock } = byHand(database);
    const { work, calls } = noted(scheduler, () => 'done');
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

  it('J5 the others that throw are reported and change nothing', async () => {
    const { scheduler } = byHand(database);
    const { work, calls } = noted(scheduler, () => 'done');
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

  it('J5 onError that throws leaves the error of the handler', async () => {
    const { scheduler } = byHand(database);
    const { work } = noted(scheduler, throwing(new Error('boom')));
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

  it('J5 several of each kind, some asynchronous, keep their order', async () => {
    const { scheduler, clock } = byHand(database);
    const calls: string[] = [];
    const note = (name: string, slow = false) =>
      slow
        ? async (): Promise<void> => {
            await turns(5);
            calls.push(name);
          }
        : (): number => calls.push(name);
    let fails = true;
    await scheduler
      .schedule('work', () => {
        calls.push('handler');
        if (fails) throw new Error('boom');
      })
      .after(note('after 1', true))
      .onSuccess(note('onSuccess 1', true))
      .before(note('before 1', true))
      .onError(note('onError 1', true))
      .before(note('before 2'))
      .onError(note('onError 2'))
      .onSuccess(note('onSuccess 2'))
      .after(note('after 2'))
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

  it('J5 run under the lock of the job: the outcome is written and announced after them', async () => {
    const { scheduler } = byHand(database);
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

  it('J5 one that never ends is given up after timeoutGrace, and reported by its name', async () => {
    const { scheduler, clock } = byHand(database, { timeoutGrace: '5s' });
    const { work, calls } = noted(scheduler, () => 'done');
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
    await turns();
    assert.equal((await scheduler.getJob(id))?.status, 'RUNNING');
    await passTime(clock, pass, 1);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.result, job?.attempts], ['COMPLETED', 'done', 0]);
    assert.deepEqual(calls.slice(0, 3), ['before', 'handler', 'onSuccess']);
    const { hook, error } = await reported;
    assert.match(error.message, /5000 ms/);
    assert.equal(hook, 'onSuccess');
  });

  it('J5 one that never ends blocks no slot: the next job runs', async () => {
    const { scheduler, clock } = byHand(database, { concurrency: 1, timeoutGrace: '5s' });
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
    assert.equal(await passTime(clock, pass), 2);
    assert.equal((await scheduler.getJob(next.id))?.status, 'COMPLETED');
  });

  it('C8 J5 a slow hook keeps the lock: nobody takes the job for lost', async () => {
    const scheduler = database.scheduler(SHORT_LOCK);
    const { work, calls } = noted(scheduler, () => 'done');
    const events = recordEvents(scheduler, 'job:stalled', 'job:lockLost');
    const complete = nextEvent(scheduler, 'job:complete');
    const { id } = await work.onSuccess(() => inProcess.clock.sleep(1200)).dispatch();
    await scheduler.start();
    await complete;
    assert.deepEqual([calls, events], [['before', 'handler', 'onSuccess', 'after'], []]);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.crashes, job?.fence], ['COMPLETED', 0, 1]);
  });

  it('C8 J5 also after a handler that ignored its signal', async () => {
    const scheduler = database.scheduler({ ...SHORT_LOCK, timeoutGrace: '1s' });
    const release = signal();
    const { work } = noted(scheduler, () => release.promise);
    const events = recordEvents(scheduler, 'job:stalled', 'job:lockLost', 'job:hookFailed');
    const { id } = await work
      .timeout('100ms')
      .maxRetries(0)
      .onError(() => inProcess.clock.sleep(900))
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

  describe('run wherever the job of a definition runs:', () => {
    const EXPECTED = ['before', 'handler', 'onSuccess', 'after'];

    it('J5 an occurrence', async () => {
      const { scheduler, clock } = byHand(database);
      const { work, calls } = noted(scheduler, () => 1);
      work.everyMinute();
      await scheduler.run();
      clock.advance(MINUTE);
      await scheduler.run();
      assert.deepEqual(calls, EXPECTED);
    });

    it('J5 in place, in a pass', async () => {
      const { scheduler, clock } = byHand(database);
      const { work, calls } = noted(scheduler, () => 1);
      work.everyMinute();
      await scheduler.runOnce();
      clock.advance(MINUTE);
      await scheduler.runOnce();
      assert.deepEqual(calls, EXPECTED);
    });

    it('J5 J6 a dispatch by name, from another process', async () => {
      const { scheduler: other } = byHand(database);
      const { scheduler } = byHand(database);
      const { calls } = noted(scheduler, () => 1);
      await other.dispatch('work');
      await scheduler.run();
      assert.deepEqual(calls, EXPECTED);
    });

    it('J5 a triggered run', async () => {
      const { scheduler } = byHand(database);
      const { work, calls } = noted(scheduler, () => 1);
      work.daily();
      await scheduler.run();
      assert.equal((await scheduler.triggerSchedule('work')).triggered, true);
      await scheduler.run();
      assert.deepEqual(calls, EXPECTED);
    });

    it('J5 around a handler that was registered by itself', async () => {
      const { scheduler } = byHand(database);
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

    it('J5 D2 around a built-in handler', async () => {
      const { scheduler } = byHand(database);
      const calls: unknown[] = [];
      scheduler.channel.on('tick', (data) => calls.push(['heard', data]));
      scheduler
        .define('event', { event: 'tick', data: 7 })
        .named('ticker')
        .before(() => calls.push('before'))
        .onSuccess((_, __, result) => calls.push(result))
        .after(() => calls.push('after'));
      await scheduler.dispatch('ticker');
      await scheduler.run();
      assert.deepEqual(calls, ['before', ['heard', 7], { listeners: 1 }, 'after']);
    });
  });

  describe('recipes', () => {
    it('J5 metrics around an important job', async () => {
      const { scheduler, clock } = byHand(database);
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

    it('J5 J6 onSuccess dispatches what comes next, onError tells the admin', async () => {
      const { scheduler } = byHand(database);
      scheduler.registerHandler('deliver', ({ of }: { of: number }) => `delivered ${of}`);
      scheduler.registerHandler('tell-admin', ({ why }: { why: string }) => why);
      scheduler
        .schedule('build', (args: { n: number }) => {
          if (args.n < 0) throw new Error('negative');
          return args.n * 2;
        })
        .maxRetries(0)
        .onSuccess((_, job, result) => scheduler.dispatch('deliver', { of: result }, { key: job.id }))
        .onError((error, _, job) =>
          scheduler.dispatch('tell-admin', { why: error.message }, { key: job.id }),
        );
      await scheduler.dispatch('build', { n: 21 });
      await scheduler.dispatch('build', { n: -1 });
      await scheduler.run();
      await scheduler.run();
      const jobs = await database.collections.jobs.find({ taskType: { $ne: 'build' } }).toArray();
      assert.deepEqual(jobs.map(({ result }) => result).sort(), ['delivered 42', 'negative']);
    });
  });
});
