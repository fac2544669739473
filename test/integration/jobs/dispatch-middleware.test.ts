import assert from 'node:assert/strict';
import type { DispatchMiddleware, JobHandle } from '../../../src/index.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';

describe('middleware around dispatches', () => {
  const database = useSharedDatabase();

  it('runs in the order of registration, and next() resolves to the handle [B26]', async () => {
    const { scheduler } = manualScheduler(database);
    const calls: unknown[] = [];
    const named =
      (name: string): DispatchMiddleware =>
      async (request, next) => {
        calls.push([name, request]);
        const handle = await next();
        calls.push([name, handle.id]);
      };
    scheduler.useDispatch(named('first')).useDispatch(named('second'));
    const { id } = await scheduler.dispatch('work', { n: 1 }, { queue: 'mails' });
    const request = { taskType: 'work', payload: { n: 1 }, options: { queue: 'mails' } };
    assert.deepEqual(calls, [
      ['first', request],
      ['second', request],
      ['second', id],
      ['first', id],
    ]);
    assert.equal((await scheduler.getJob(id))?.queue, 'mails');
  });

  it('changes requests, which are validated afterwards [B26]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.useDispatch((request, next) => {
      if (request.taskType === 'wrong') return next({ ...request, options: { priority: -1 } });
      if (request.taskType === 'none') return next(null as never);
      const options = { ...request.options, priority: 7 };
      return next({
        taskType: 'renamed',
        payload: { ...(request.payload as object), by: 'middleware' },
        options,
      });
    });
    const { id } = await scheduler.dispatch('work', { n: 1 }, { queue: 'mails' });
    const job = await scheduler.getJob(id);
    assert.deepEqual(
      [job?.taskType, job?.payload, job?.queue, job?.priority],
      ['renamed', { n: 1, by: 'middleware' }, 'mails', 7],
    );
    // An invalid task type, until the middleware has changed it.
    const renamed = await scheduler.dispatch('a@b');
    assert.equal((await scheduler.getJob(renamed.id))?.taskType, 'renamed');
    await assert.rejects(scheduler.dispatch('wrong'), { code: 'INVALID_ARGUMENT', message: /priority/ });
    await assert.rejects(scheduler.dispatch('none'), {
      code: 'INVALID_ARGUMENT',
      message: 'request must be an object, got null',
    });
  });

  it('rejects a dispatch by throwing; nothing is stored [B26]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.useDispatch(() => {
      throw new Error('not allowed');
    });
    await assert.rejects(scheduler.dispatch('work'), { message: 'not allowed' });
    assert.equal(await database.collections.jobs.countDocuments(), 0);
  });

  it('sees errors of the dispatch, which stand unless it throws another or returns a handle [B26]', async () => {
    const { scheduler } = manualScheduler(database);
    const seen: unknown[] = [];
    const others: JobHandle[] = [];
    scheduler.useDispatch(async (_, next) => {
      try {
        await next();
      } catch (error) {
        seen.push((error as { code: string }).code);
        return others[0];
      }
    });
    await assert.rejects(scheduler.dispatch('a@b'), { code: 'INVALID_ARGUMENT' });
    others.push(await scheduler.dispatch('work'));
    assert.equal(await scheduler.dispatch('a@b'), others[0]);
    assert.deepEqual(seen, ['INVALID_ARGUMENT', 'INVALID_ARGUMENT']);
  });

  it('must call next() once, and return nothing but a handle [B26]', async () => {
    const { scheduler } = manualScheduler(database);
    const misuses: [DispatchMiddleware, RegExp][] = [
      [() => undefined, /^a middleware of useDispatch\(\) returned without calling next\(\)/],
      [(_, next) => next().then(() => next()), /called next\(\) twice/],
      [(_, next) => next().then(({ id }) => id), /must return what next\(\) resolves to, or nothing, got '/],
    ];
    let current: DispatchMiddleware = () => undefined;
    scheduler.useDispatch((request, next) => current(request, next));
    for (const [middleware, message] of misuses) {
      current = middleware;
      await assert.rejects(scheduler.dispatch('work'), { code: 'MIDDLEWARE_INVALID', message });
    }
  });

  it('sees every way to dispatch, but no jobs of schedules [B26]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const seen: string[] = [];
    scheduler.useDispatch((request, next) => {
      seen.push(request.taskType);
      return next();
    });
    class Report {
      static handle(): void {}
    }
    const minutely = scheduler.schedule('minutely', () => 1).everyMinute();
    await scheduler.dispatch(Report);
    await scheduler.dispatch('adHoc', null, { handler: () => 1 });
    await scheduler.delay('1h').args({ n: 1 }).dispatch('draft');
    await minutely.dispatch();
    await minutely.delay('1h').dispatch();
    await scheduler.dispatchMany([{ taskType: 'many' }]);
    const dispatched = ['Report', 'adHoc', 'draft', 'minutely', 'minutely', 'many'];
    assert.deepEqual(seen, dispatched);

    await scheduler.run();
    clock.advance(60_000);
    await scheduler.run();
    await scheduler.triggerSchedule('minutely');
    assert.ok((await database.collections.jobs.countDocuments()) > dispatched.length);
    assert.deepEqual(seen, dispatched);
  });

  describe('with dispatchMany', () => {
    it('runs for each request; the results keep their order [B26]', async () => {
      const { scheduler } = manualScheduler(database);
      const handles: string[] = [];
      scheduler.useDispatch(async (request, next) => {
        if (request.payload === 'forbidden') throw new Error('not allowed');
        const handle = await next({ ...request, payload: { wrapped: request.payload as unknown } });
        handles.push(handle.id);
      });
      const first = await scheduler.dispatch('work', 0, { key: 'taken' });
      const results = await scheduler.dispatchMany([
        { taskType: 'work', payload: 1 },
        { taskType: 'work', payload: 'forbidden' },
        { taskType: 'a@b', payload: 2 },
        null as never,
        { taskType: 'work', payload: 3, options: { key: 'taken' } },
        { taskType: 'work', payload: 4 },
      ]);
      assert.deepEqual(
        results.map((result) => ('error' in result ? result.error.message.split(' ', 3) : result.duplicate)),
        [false, ['not', 'allowed'], ['a', 'task', 'type'], ['request', 'must', 'be'], true, false],
      );
      assert.deepEqual([results[1]?.id, results[2]?.id, results[4]?.id], [null, null, first.id]);
      assert.deepEqual(handles, [first.id, results[0]?.id, first.id, results[5]?.id]);
      const stored = await database.collections.jobs.find().sort({ _id: 1 }).toArray();
      assert.deepEqual(
        stored.map(({ payload }) => (payload as { wrapped: number }).wrapped).sort(),
        [0, 1, 4],
      );
    });

    it('stores more than a chunk, in bulk [B26]', async () => {
      const { scheduler } = manualScheduler(database);
      let stored = 0;
      scheduler.useDispatch(async (_, next) => {
        await next();
        stored++;
      });
      const requests = Array.from({ length: 1500 }, (_, n) => ({ taskType: 'work', payload: n }));
      const results = await scheduler.dispatchMany(requests);
      assert.equal(results.filter((result) => 'duplicate' in result).length, 1500);
      assert.equal(stored, 1500);
      assert.equal(await database.collections.jobs.countDocuments(), 1500);
    });

    it('ends the middleware of requests that are not stored because their source failed [B26]', async () => {
      const { scheduler } = manualScheduler(database);
      const ends: unknown[] = [];
      scheduler.useDispatch(async (_, next) => {
        await next().catch((error: unknown) => ends.push((error as Error).message));
      });
      function* source(): Generator<{ taskType: string }> {
        yield { taskType: 'work' };
        throw new Error('the source failed');
      }
      await assert.rejects(scheduler.dispatchMany(source()), { message: 'the source failed' });
      await new Promise(setImmediate);
      assert.deepEqual(ends, ['the source failed']);
      assert.equal(await database.collections.jobs.countDocuments(), 0);
    });
  });
});
