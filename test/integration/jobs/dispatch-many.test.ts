import assert from 'node:assert/strict';
import { z } from 'zod';
import type { DispatchRequest, DispatchResult } from '../../../src/index.js';
import { manualScheduler, withoutRenewalThread } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { countEvents } from '../../support/events.js';
import { withFailPoint } from '../../support/fail-point.js';
import { timeAfter } from '../../support/instants.js';

describe('dispatchMany()', () => {
  const database = useSharedDatabase();

  function requests(count: number): DispatchRequest[] {
    return Array.from({ length: count }, (_, n) => ({ taskType: 'work', payload: { n } }));
  }

  function codes(results: DispatchResult[]): unknown[] {
    return results.map((result) =>
      'error' in result ? (result.error as { code?: string }).code : result.duplicate,
    );
  }

  it('stores more jobs than fit into one command and returns a result for each in order [J22]', async () => {
    const { scheduler } = manualScheduler(database);
    const results = await scheduler.dispatchMany(requests(2500));
    assert.equal(results.length, 2500);
    assert.equal(await database.collections.jobs.countDocuments({ status: 'SCHEDULED' }), 2500);
    for (const n of [0, 999, 1000, 2499]) {
      const job = await scheduler.getJob(results[n]!.id!);
      assert.deepEqual(job?.payload, { n });
    }
  });

  it('accepts iterables and async iterables [J22]', async () => {
    const { scheduler } = manualScheduler(database);
    async function* slowly(): AsyncGenerator<DispatchRequest> {
      for (const request of requests(3)) {
        await new Promise(setImmediate);
        yield request;
      }
    }
    assert.equal((await scheduler.dispatchMany(slowly())).length, 3);
    assert.equal((await scheduler.dispatchMany(new Set(requests(2)))).length, 2);
    assert.deepEqual(await scheduler.dispatchMany([]), []);
    assert.equal(await database.collections.jobs.countDocuments(), 5);
  });

  it('stores the other jobs when one is a duplicate or invalid [J22]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('strict', () => undefined, { schema: z.object({ n: z.number() }) });
    await scheduler.dispatch('work', 'first', { key: 'taken' });
    const results = await scheduler.dispatchMany([
      { taskType: 'work', payload: 1 },
      { taskType: 'work', payload: 'second', options: { key: 'taken' } },
      { taskType: '', payload: 2 },
      { taskType: 'work', payload: () => 1 },
      { taskType: 'strict', payload: { n: 'one' } },
      { taskType: 'work', options: { priority: -1 } },
      undefined as never,
      { taskType: 'work', options: { key: 'twice' } },
      { taskType: 'work', options: { key: 'twice' } },
      { taskType: 'strict', payload: { n: 1 }, options: { delay: '1h', queue: 'q', priority: 3 } },
    ]);
    assert.deepEqual(codes(results), [
      false,
      true,
      'INVALID_ARGUMENT',
      'INVALID_PAYLOAD',
      'INVALID_PAYLOAD',
      'INVALID_ARGUMENT',
      'INVALID_ARGUMENT',
      false,
      true,
      false,
    ]);
    assert.deepEqual(
      results.map(({ id }) => id === null),
      [false, false, true, true, true, true, true, false, false, false],
    );
    assert.equal(results[1]?.id, 'work=taken');
    assert.equal((await scheduler.getJob('work=taken'))?.payload, 'first');
    const last = await scheduler.getJob(results[9]!.id!);
    assert.deepEqual([last?.nextRunAt, last?.queue, last?.priority], [timeAfter(3_600_000), 'q', 3]);
    assert.equal(await database.collections.jobs.countDocuments(), 4);
  });

  it('does not report duplicates when the reply to its own insert is lost [J22]', async () => {
    const { scheduler } = manualScheduler(database);
    await scheduler.dispatch('work', null, { key: 'b' });
    const many = ['a', 'b', 'c'].map((key) => ({ taskType: 'work', options: { key } }));
    for (const how of ['lostReply', 'noConnection'] as const) {
      await database.collections.jobs.deleteMany({ _id: { $ne: 'work=b' } });
      const results = await withFailPoint(database, { commands: ['insert'], how, times: 1 }, () =>
        scheduler.dispatchMany(many),
      );
      assert.deepEqual(codes(results), [false, true, false], how);
    }
    assert.equal(await database.collections.jobs.countDocuments(), 3);
  });

  it('does not report jobs as stored that no majority has confirmed [J22]', async () => {
    const { scheduler } = manualScheduler(database);
    const results = await withFailPoint(database, { commands: ['insert'], how: 'lostReply' }, () =>
      scheduler.dispatchMany(requests(3)),
    );
    for (const result of results) assert.ok('error' in result && result.id !== null);
  });

  it('wakes a running worker [J22]', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread, pollInterval: '1h' });
    scheduler.registerHandler('work', () => undefined);
    await scheduler.start();
    const complete = countEvents(scheduler, 'job:complete', 300);
    await scheduler.dispatchMany(requests(300));
    await complete;
    assert.equal(await database.collections.jobs.countDocuments({ status: 'COMPLETED' }), 300);
  });

  it('rejects unknown fields, such as a delay outside of the options [J22]', async () => {
    const scheduler = database.scheduler();
    const [misplaced, nothing] = await scheduler.dispatchMany([
      { taskType: 'work', delay: '1h' } as never,
      null as never,
    ]);
    assert.match(String((misplaced as { error: Error }).error.message), /request\.delay is not an option/);
    assert.match(String((nothing as { error: Error }).error.message), /request must be an object, got null/);
    await assert.rejects(scheduler.dispatchMany({} as never), /must be an array or another iterable of/);
  });
});
