import assert from 'node:assert/strict';
import { createStore, type Store } from '../../../src/store/store.js';
import { aJob } from '../../support/factories/job.js';
import { TestDatabase } from '../../support/database.js';
import { timeAfter as later } from '../../support/instants.js';
import { profileQueries } from '../../support/query-profiler.js';

const COMPLETED = 6000;
const FUTURE = 4000;
const DUE = 300;
const DEAD = 30;

describe('documents read by operations with 6,000 completed and 4,000 future jobs', () => {
  const database = new TestDatabase();
  let store: Store;

  before(async () => {
    await database.open();
    store = createStore(database.collections);
    const times = <T>(count: number, make: (index: number) => T): T[] =>
      Array.from({ length: count }, (_, index) => make(index));
    await database.collections.jobs.insertMany([
      ...times(COMPLETED, (index) => aJob({ status: 'COMPLETED', finishedAt: later(index) })),
      ...times(FUTURE, (index) => aJob({ nextRunAt: later(86_400_000 + index), taskType: `t${index % 5}` })),
      ...times(DUE, (index) => aJob({ nextRunAt: later(index), taskType: `t${index % 5}` })),
      ...times(DEAD, (index) => aJob({ status: 'FAILED', finishedAt: later(index) })),
      ...times(10, () => aJob({ status: 'PENDING' })),
      ...times(20, (index) => aJob({ _id: `s@${index}`, schedule: 's', status: 'COMPLETED' })),
    ]);
  });

  after(() => database.close());

  async function read(operation: () => Promise<unknown>): Promise<{ keys: number; documents: number }> {
    const work = await profileQueries(database, ['jobs'], operation);
    assert.ok(work.length > 0, 'nothing was measured');
    for (const { stages } of work) assert.ok(!stages.includes('COLLSCAN'), 'a scan of the collection');
    const sum = (of: 'keys' | 'documents'): number => work.reduce((total, one) => total + one[of], 0);
    return { keys: sum('keys'), documents: sum('documents') };
  }

  async function assertReads(
    documents: number,
    keys: number,
    operation: () => Promise<unknown>,
  ): Promise<void> {
    const work = await read(operation);
    assert.ok(work.documents <= documents, `${work.documents} documents, expected ${documents}`);
    assert.ok(work.keys <= keys, `${work.keys} keys, expected ${keys}`);
  }

  it('a page of dead jobs reads only that page [B17]', async () => {
    await assertReads(21, 21, () =>
      store.listJobs({ filter: { status: 'FAILED' }, after: undefined, limit: 20 }),
    );
    const place = { at: later(10), id: 'x' };
    await assertReads(21, 22, () => store.listJobs({ filter: { status: 'FAILED' }, after: place, limit: 5 }));
  });

  it('pages of other statuses, of a schedule and by id read only that page [J14]', async () => {
    for (const status of ['SCHEDULED', 'COMPLETED', 'PENDING'] as const)
      await assertReads(21, 21, () => store.listJobs({ filter: { status }, after: undefined, limit: 20 }));
    for (const filter of [{ schedule: 's' }, { idPrefix: 's@' }, {}])
      await assertReads(20, 25, () => store.listJobs({ filter, after: undefined, limit: 20 }));
  });

  it('a page of a task type reads about a page, whether it has few or many waiting jobs [J14]', async () => {
    const { jobs } = database.collections;
    await jobs.insertMany([
      aJob({ _id: 'rare-1', taskType: 'rare', queue: 'small', nextRunAt: later(90_000_000) }),
      aJob({ _id: 'rare-2', taskType: 'rare', nextRunAt: later(80_000_000) }),
    ]);
    const ids = async (taskType: string): Promise<string[]> => {
      const filter = { status: 'SCHEDULED', taskType } as const;
      return (await store.listJobs({ filter, after: undefined, limit: 20 })).map(({ _id }) => _id);
    };
    await assertReads(6, 15, async () => assert.deepEqual(await ids('rare'), ['rare-2', 'rare-1']));
    await assertReads(4, 15, async () => assert.deepEqual(await ids('nobody'), []));
    await assertReads(130, 130, async () => assert.equal((await ids('t1')).length, 20));
    const waiting = { status: 'SCHEDULED', taskType: 'rare' } as const;
    await assertReads(2, 15, async () => assert.equal((await store.countJobs(waiting, 100)).count, 2));
    await jobs.deleteMany({ taskType: 'rare' });
  });

  it('counting reads only the index, and of due jobs only those [J14]', async () => {
    await assertReads(0, DUE + 20, () => store.countDue('default', later(DUE), 10_000));
    await assertReads(0, 101, () => store.countJobs({ status: 'SCHEDULED', queue: 'default' }, 100));
    await assertReads(0, 101, () => store.countJobs({ status: 'COMPLETED' }, 100));
    await assertReads(DEAD, DEAD + 1, () => store.countByQueue('FAILED', 10_000));
    await assertReads(101, 101, () => store.countByQueue('COMPLETED', 100));
  });

  it('the first due job per queue and task type is one read each [J14]', async () => {
    const query = { now: later(DUE), max: 1000, isTimeUp: () => false };
    // The last look finds nothing: it skips over the five task types with jobs that are due later.
    await assertReads(5, 5 * 5 + 5, async () => {
      const { oldestDue, isComplete } = await store.findOldestDue(query);
      assert.deepEqual([oldestDue.length, isComplete], [5, true]);
      assert.deepEqual(oldestDue[0]?.nextRunAt, later(0));
    });
    await assertReads(0, 15, () => store.findOldestDue({ ...query, now: later(-1) }));
    const few = await store.findOldestDue({ ...query, max: 3 });
    assert.deepEqual([few.oldestDue.length, few.isComplete], [3, false]);
    const none = await store.findOldestDue({ ...query, isTimeUp: () => true });
    assert.deepEqual([none.oldestDue.length, none.isComplete], [0, false]);
    await assertReads(1, 3, async () =>
      assert.deepEqual(await store.findWaitingQueues(10, () => false), {
        queues: ['default'],
        isComplete: true,
      }),
    );
  });

  it('the oldest job of a queue is found although another queue has many older ones [F7]', async () => {
    const { jobs } = database.collections;
    await jobs.insertMany([
      aJob({ queue: 'small', nextRunAt: later(DUE - 2), priority: 1 }),
      aJob({ queue: 'small', nextRunAt: later(DUE - 9), priority: 7 }),
    ]);
    const clock = { now: () => later(DUE), monotonic: () => 0 };
    await assertReads(4, 10, async () =>
      assert.deepEqual(await store.findBacklog(['small'], clock), [
        { queue: 'small', waiting: 2, oldest: later(DUE - 9), age: 9 },
      ]),
    );
    await jobs.deleteMany({ queue: 'small' });
  });
});
