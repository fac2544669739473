import assert from 'node:assert/strict';
import type { JobContext, JobFilterOptions, Scheduler } from '../../../src/index.js';
import { createStore } from '../../../src/store/store.js';
import { aJob } from '../../support/factories/job.js';
import { timeAfter } from '../../support/instants.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { assertBounded } from '../../support/query-bounds.js';
import { profileQueries } from '../../support/query-profiler.js';
import { useSharedDatabase } from '../../support/shared-database.js';

describe('tags and the user of a job', () => {
  const database = useSharedDatabase();

  async function list(scheduler: Scheduler, filter: JobFilterOptions): Promise<string[]> {
    return (await scheduler.operations.listJobs(filter)).items.map(({ id }) => id).sort();
  }

  it('are set at dispatch, and are in views and in the handler’s job', async () => {
    const { scheduler } = manualScheduler(database);
    let seen: JobContext | undefined;
    scheduler.registerHandler('work', (_, job) => void (seen = job));
    const tags = ['import', 'import', 'eu'];
    const { id } = await scheduler.dispatch('work', null, { userId: 'ada', tags });
    await scheduler.run();
    assert.deepEqual([seen?.userId, seen?.tags], ['ada', ['import', 'eu']]);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.userId, job?.tags], ['ada', ['import', 'eu']]);
  });

  it('select jobs, together with other filters', async () => {
    const { scheduler } = manualScheduler(database);
    const dispatch = async (options: object): Promise<string> =>
      (await scheduler.dispatch('work', null, options)).id;
    const ada = await dispatch({ userId: 'ada', tags: ['a'] });
    const adaLater = await dispatch({ userId: 'ada', tags: ['a', 'b'], delay: '1h' });
    const bob = await dispatch({ userId: 'bob', tags: ['b'] });
    await dispatch({});
    assert.deepEqual(await list(scheduler, { userId: 'ada' }), [ada, adaLater].sort());
    assert.deepEqual(await list(scheduler, { tag: 'b' }), [adaLater, bob].sort());
    assert.deepEqual(await list(scheduler, { tag: 'a', state: 'delayed' }), [adaLater]);
    assert.deepEqual(await list(scheduler, { userId: 'ada', tag: 'b' }), [adaLater]);
    assert.equal((await scheduler.operations.countMatching({ tag: 'b' })).count, 2);
    const { changed } = await scheduler.operations.cancelJobs({ tag: 'b' });
    assert.equal(changed, 2);
    assert.deepEqual(await list(scheduler, { tag: 'b', state: 'cancelled' }), [adaLater, bob].sort());
  });

  it('cost only the jobs that have them', async () => {
    const { jobs } = database.collections;
    await jobs.insertMany([
      ...Array.from({ length: 3000 }, () => aJob()),
      ...Array.from({ length: 5 }, () => aJob({ userId: 'ada' })),
      ...Array.from({ length: 5 }, () => aJob({ tags: ['eu'] })),
    ]);
    const store = createStore(database.stored);
    for (const filter of [{ userId: 'ada' }, { tag: 'eu' }]) {
      const page = { filter, after: undefined, limit: 20 };
      assertBounded(
        await profileQueries(database, [database.collections.jobs.collectionName], () =>
          store.listJobs(page, timeAfter(0)),
        ),
        10,
        10,
      );
      assertBounded(
        await profileQueries(database, [database.collections.jobs.collectionName], () =>
          store.countJobs(filter, 100, timeAfter(0)),
        ),
        10,
        10,
      );
    }
    const sizes = await jobs.aggregate([{ $indexStats: {} }]).toArray();
    const names = sizes.map(({ name }) => String(name));
    assert.ok(names.includes('tags') && names.includes('user'));
  });

  it('are few and short', async () => {
    const { scheduler } = manualScheduler(database);
    const dispatch = (tags: unknown): Promise<unknown> =>
      scheduler.dispatch('work', null, { tags: tags as string[] });
    await assert.rejects(dispatch(Array.from({ length: 11 }, (_, index) => `t${index}`)), /tags/);
    await assert.rejects(dispatch(['x'.repeat(51)]), /tags/);
    await assert.rejects(dispatch(['']), /tags/);
    await assert.rejects(dispatch('eu'), /tags/);
    await assert.rejects(scheduler.dispatch('work', null, { userId: '' }), /userId/);
  });
});
