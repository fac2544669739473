import assert from 'node:assert/strict';
import { z } from 'zod';
import type { DispatchRequest, DispatchResult } from '../../src/index.js';
import { byHand, inProcess } from '../support/by-hand.js';
import { useSharedDatabase } from '../support/shared-database.js';
import { countEvents } from '../support/events.js';
import { failing } from '../support/fail-point.js';
import { after } from '../support/instants.js';

describe('dispatchMany', () => {
  const database = useSharedDatabase();

  function requests(count: number): DispatchRequest[] {
    return Array.from({ length: count }, (_, n) => ({ taskType: 'work', payload: { n } }));
  }

  function codes(results: DispatchResult[]): unknown[] {
    return results.map((result) =>
      'error' in result ? (result.error as { code?: string }).code : result.duplicate,
    );
  }

  it('J22 stores many jobs, more than one round trip holds, and reports on each in order', async () => {
    const { scheduler } = byHand(database);
    const results = await scheduler.dispatchMany(requests(2500));
    assert.equal(results.length, 2500);
    assert.equal(await database.collections.jobs.countDocuments({ status: 'SCHEDULED' }), 2500);
    for (const n of [0, 999, 1000, 2499]) {
      const job = await scheduler.getJob(results[n]!.id!);
      assert.deepEqual(job?.payload, { n });
    }
  });

  it('J22 takes anything that can be iterated, also asynchronously', async () => {
    const { scheduler } = byHand(database);
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

  it('J22 a duplicate or a refused one does not stop the others', async () => {
    const { scheduler } = byHand(database);
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
    assert.equal(results[1]?.id, 'work#taken');
    assert.equal((await scheduler.getJob('work#taken'))?.payload, 'first');
    const last = await scheduler.getJob(results[9]!.id!);
    assert.deepEqual([last?.nextRunAt, last?.queue, last?.priority], [after(3_600_000), 'q', 3]);
    assert.equal(await database.collections.jobs.countDocuments(), 4);
  });

  it('J22 a lost reply is not taken for duplicates', async () => {
    const { scheduler } = byHand(database);
    await scheduler.dispatch('work', null, { key: 'b' });
    const many = ['a', 'b', 'c'].map((key) => ({ taskType: 'work', options: { key } }));
    for (const how of ['lostReply', 'noConnection'] as const) {
      await database.collections.jobs.deleteMany({ _id: { $ne: 'work#b' } });
      const results = await failing(database, { commands: ['insert'], how, times: 1 }, () =>
        scheduler.dispatchMany(many),
      );
      assert.deepEqual(codes(results), [false, true, false], how);
    }
    assert.equal(await database.collections.jobs.countDocuments(), 3);
  });

  it('J22 what a majority has not confirmed is not reported as stored', async () => {
    const { scheduler } = byHand(database);
    const results = await failing(database, { commands: ['insert'], how: 'lostReply' }, () =>
      scheduler.dispatchMany(requests(3)),
    );
    for (const result of results) assert.ok('error' in result && result.id !== null);
  });

  it('J22 a worker that runs takes them up', async () => {
    const scheduler = database.scheduler({ ...inProcess, pollInterval: '1h' });
    scheduler.registerHandler('work', () => undefined);
    await scheduler.start();
    const complete = countEvents(scheduler, 'job:complete', 300);
    await scheduler.dispatchMany(requests(300));
    await complete;
    assert.equal(await database.collections.jobs.countDocuments({ status: 'COMPLETED' }), 300);
  });

  it('J22 refuses fields it does not know: a delay beside the options would be lost', async () => {
    const scheduler = database.scheduler();
    const [misplaced, nothing] = await scheduler.dispatchMany([
      { taskType: 'work', delay: '1h' } as never,
      null as never,
    ]);
    assert.match(String((misplaced as { error: Error }).error.message), /request\.delay is not an option/);
    assert.match(String((nothing as { error: Error }).error.message), /request must be an object, got null/);
    await assert.rejects(scheduler.dispatchMany({} as never), /takes a list of/);
  });
});
