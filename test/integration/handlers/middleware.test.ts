import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type HandlerMiddleware,
  type JobContext,
  SnoozeJob,
  UnrecoverableError,
} from '../../../src/index.js';
import { nextEvent } from '../../support/events.js';
import { throwing } from '../../support/handlers/recording-definition.js';
import { timeAfter } from '../../support/instants.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';

const MINUTE = 60_000;

describe('middleware around handlers', () => {
  const database = useSharedDatabase();

  function recorder(calls: string[], name: string): HandlerMiddleware {
    return async (job, next) => {
      calls.push(`${name} ${job.taskType}`);
      try {
        return await next();
      } finally {
        calls.push(`${name} ends`);
      }
    };
  }

  it('runs in the order of registration around hooks and handler; filters come first, other hooks last [B26]', async () => {
    const { scheduler } = manualScheduler(database);
    const calls: string[] = [];
    const step = (name: string) => (): boolean => calls.push(name) > 0;
    scheduler.use(recorder(calls, 'first')).use(recorder(calls, 'second'));
    scheduler.registerHandler('work', step('handler'), {
      when: step('when'),
      before: step('before'),
      onSuccess: step('onSuccess'),
      after: step('after'),
    });
    await scheduler.dispatch('work');
    await scheduler.run();
    assert.deepEqual(calls, [
      ...['when', 'first work', 'second work', 'before', 'handler'],
      ...['second ends', 'first ends', 'onSuccess', 'after'],
    ]);
  });

  it('gives handlers a tenant context that belongs to their job [B26]', async () => {
    const { scheduler } = manualScheduler(database, { concurrency: 4 });
    const tenants = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const withTenant = ({ payload }: JobContext, next: () => Promise<unknown>): Promise<unknown> =>
      tenants.run((payload as { tenant: string }).tenant, next);
    scheduler.useDispatch((request, next) =>
      next({ ...request, payload: { ...(request.payload as object), tenant: tenants.getStore() } }),
    );
    scheduler.use(withTenant);
    scheduler.registerHandler('work', async ({ tenant }: { tenant: string }) => {
      await new Promise(setImmediate);
      seen.push([tenant, tenants.getStore()]);
    });
    for (const tenant of ['a', 'b', 'c']) await tenants.run(tenant, () => scheduler.dispatch('work', {}));
    await scheduler.run();
    assert.deepEqual(seen.sort(), [
      ['a', 'a'],
      ['b', 'b'],
      ['c', 'c'],
    ]);
  });

  it('sees every attempt with its error, and the result of the last one [B26]', async () => {
    const { scheduler, clock } = manualScheduler(database, { retries: { jitter: 'none', base: '1s' } });
    const seen: unknown[] = [];
    scheduler.use(async (job, next) => {
      try {
        seen.push([job.attempt, await next()]);
      } catch (error) {
        seen.push([job.attempt, (error as Error).message]);
      }
    });
    scheduler.registerHandler('work', (_, job) => (job.attempt === 1 ? assert.fail('boom') : 'done'));
    const { id } = await scheduler.dispatch('work');
    await scheduler.run();
    const failed = await scheduler.getJob(id);
    assert.deepEqual([failed?.status, failed?.error?.message], ['SCHEDULED', 'boom'], 'the error stands');
    clock.advance(1000);
    await scheduler.run();
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.result], ['COMPLETED', 'done']);
    assert.deepEqual(seen, [
      [1, 'boom'],
      [2, 'done'],
    ]);
  });

  it('can replace results and errors, and decide how the job ends [B26]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.use(async ({ taskType }, next) => {
      try {
        const result = await next();
        return taskType === 'wrapped' ? { result } : undefined;
      } catch (error) {
        if (taskType === 'snoozed') throw new SnoozeJob('10m');
        if (taskType === 'ignored') return 'ignored';
        throw new UnrecoverableError('translated', { cause: error });
      }
    });
    for (const name of ['snoozed', 'ignored', 'fatal'])
      scheduler.registerHandler(name, throwing(new Error('boom')));
    for (const name of ['wrapped', 'plain']) scheduler.registerHandler(name, () => 7);
    const ids = new Map<string, string>();
    for (const name of ['snoozed', 'ignored', 'fatal', 'wrapped', 'plain'])
      ids.set(name, (await scheduler.dispatch(name)).id);
    await scheduler.run();
    const ends = await Promise.all(
      [...ids].map(async ([name, id]) => {
        const job = await scheduler.getJob(id);
        return [name, job?.status, job?.attempts, job?.result ?? job?.error?.message];
      }),
    );
    assert.deepEqual(ends, [
      ['snoozed', 'SCHEDULED', 0, undefined],
      ['ignored', 'COMPLETED', 0, 'ignored'],
      ['fatal', 'FAILED', 1, 'translated'],
      ['wrapped', 'COMPLETED', 0, { result: 7 }],
      ['plain', 'COMPLETED', 0, 7],
    ]);
    assert.deepEqual((await scheduler.getJob(ids.get('snoozed') ?? ''))?.nextRunAt, timeAfter(600_000));
  });

  it('is subject to the timeout of the attempt, and does not start the handler after it [B26]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    let runs = 0;
    scheduler.use(async (job, next) => {
      await new Promise((resolve) => job.signal.addEventListener('abort', resolve));
      return next();
    });
    scheduler.registerHandler('work', () => ++runs, { timeout: '1m' });
    const started = nextEvent(scheduler, 'job:start');
    const { id } = await scheduler.dispatch('work');
    const pass = scheduler.run();
    await started;
    clock.advance(MINUTE);
    await pass;
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.error?.code, runs], ['SCHEDULED', 'JOB_TIMEOUT', 0]);
  });

  it('applies to attempts that start after it was added, of every kind of handler [B26]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const calls: string[] = [];
    scheduler.channel.on('tick', () => calls.push('listener'));
    scheduler.schedule('minutely', () => calls.push('handler')).everyMinute();
    scheduler.define('event', 'tick').named('ticker').everyMinute();
    await scheduler.run();
    scheduler.use(async ({ taskType, schedule }, next) => {
      calls.push(`${taskType} of ${schedule}`);
      await next();
    });
    clock.advance(MINUTE);
    await scheduler.run();
    assert.deepEqual(calls.sort(), ['handler', 'listener', 'minutely of minutely', 'ticker of ticker']);
  });

  it('fails the attempt when it neither calls next() nor returns a result [B26]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.use(() => undefined);
    scheduler.registerHandler('work', () => assert.fail('must not run'));
    const { id } = await scheduler.dispatch('work');
    await scheduler.run();
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.error?.code], ['SCHEDULED', 'MIDDLEWARE_INVALID']);
  });

  it('must be a function [B26]', () => {
    const { scheduler } = manualScheduler(database);
    assert.throws(() => scheduler.use({} as never), { code: 'INVALID_ARGUMENT', message: /^use\(\)/ });
    assert.throws(() => scheduler.useDispatch(null as never), {
      code: 'INVALID_ARGUMENT',
      message: /^useDispatch\(\): the middleware must be a function, got null/,
    });
  });
});

describe('hooks in the options of a handler', () => {
  const database = useSharedDatabase();

  it('run around the handler, inside those of a definition that runs it [B26]', async () => {
    const { scheduler, clock } = manualScheduler(database, { retries: { jitter: 'none', base: '1s' } });
    const calls: string[] = [];
    const step = (name: string) => (): boolean => calls.push(name) > 0;
    scheduler.registerHandler(
      'report',
      (_, job) => {
        calls.push('handler');
        if (job.attempt === 1) throw new Error('boom');
      },
      {
        when: step('own when'),
        before: [step('own before 1'), step('own before 2')],
        onSuccess: step('own onSuccess'),
        onError: step('own onError'),
        after: step('own after'),
      },
    );
    scheduler
      .schedule('nightly', 'report')
      .when(step('when'))
      .before(step('before'))
      .onSuccess(step('onSuccess'))
      .onError(step('onError'))
      .after(step('after'));
    await scheduler.dispatch('nightly');
    await scheduler.run();
    const START = ['when', 'own when', 'before', 'own before 1', 'own before 2', 'handler'];
    assert.deepEqual(calls.splice(0), [...START, 'own onError', 'onError', 'own after', 'after']);
    clock.advance(1000);
    await scheduler.run();
    assert.deepEqual(calls, [...START, 'own onSuccess', 'onSuccess', 'own after', 'after']);
  });

  it('skip a job whose filter says so, with the reason [B26]', async () => {
    const { scheduler } = manualScheduler(database);
    const isWeekend = (): boolean => true;
    scheduler.registerHandler('work', () => assert.fail('must not run'), { skip: isWeekend });
    const { id } = await scheduler.dispatch('work');
    await scheduler.run();
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.skipReason], ['CANCELLED', 'skip(isWeekend) is true']);
  });
});
