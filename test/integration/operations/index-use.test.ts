import assert from 'node:assert/strict';
import { type JobState, STATE_NAMES } from '../../../src/domain/job/state.js';
import { createStore, type Store } from '../../../src/store/store.js';
import { aJob } from '../../support/factories/job.js';
import { collectionName, TestDatabase } from '../../support/database.js';
import { timeAfter as later } from '../../support/instants.js';
import { profileQueries } from '../../support/query-profiler.js';

const COMPLETED = 6000;
const FUTURE = 4000;
const DUE = 300;
const DEAD = 30;
const CANCELLED = 3000;
const FEW = 25;
/** When the due jobs are due. */
const NOW = later(DUE);

describe('documents read by operations with 6,000 completed, 4,000 future and 3,000 cancelled jobs', () => {
  const database = new TestDatabase();
  let store: Store;

  before(async () => {
    await database.open();
    store = createStore(database.stored);
    const times = <T>(count: number, make: (index: number) => T): T[] =>
      Array.from({ length: count }, (_, index) => make(index));
    await database.collections.jobs.insertMany([
      ...times(COMPLETED, (index) => aJob({ status: 'COMPLETED', finishedAt: later(index) })),
      ...times(FUTURE, (index) => aJob({ nextRunAt: later(86_400_000 + index), taskType: `t${index % 5}` })),
      ...times(DUE, (index) => aJob({ nextRunAt: later(index), taskType: `t${index % 5}` })),
      ...times(DEAD, (index) => aJob({ status: 'FAILED', finishedAt: later(index) })),
      ...times(CANCELLED, (index) => aJob({ status: 'CANCELLED', finishedAt: later(index) })),
      // The few jobs in these states come after the many above in every order.
      ...times(FEW, (index) => aJob({ nextRunAt: later(200_000_000 + index), attempts: 1, taskType: 't1' })),
      ...times(FEW, (index) => aJob({ status: 'PENDING', createdAt: later(index) })),
      ...times(FEW, (index) => aJob({ status: 'PENDING', held: null, createdAt: later(100 + index) })),
      ...times(FEW, () => aJob({ status: 'QUEUED' })),
      ...times(FEW, () => aJob({ status: 'RUNNING' })),
      ...(['skipped', 'expired'] as const).flatMap((cancelKind) =>
        times(FEW, (index) => aJob({ status: 'CANCELLED', cancelKind, finishedAt: later(-index) })),
      ),
      ...times(20, (index) => aJob({ _id: `s@${index}`, schedule: 's', status: 'COMPLETED' })),
    ]);
  });

  after(() => database.close());

  async function read(operation: () => Promise<unknown>): Promise<{ keys: number; documents: number }> {
    const work = await profileQueries(database, [collectionName('jobs')], operation);
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
      store.listJobs({ filter: { state: 'failed' }, after: undefined, limit: 20 }, NOW),
    );
    const place = { at: later(10), id: 'x' };
    await assertReads(21, 22, () =>
      store.listJobs({ filter: { state: 'failed' }, after: place, limit: 5 }, NOW),
    );
  });

  it('a page and a count of every state read only jobs in that state [B27] [J14]', async () => {
    const counts: Record<JobState, number> = {
      ...{ waiting: DUE, delayed: FUTURE, retrying: FEW, held: FEW, blocked: FEW, prefetched: FEW },
      ...{ running: FEW, completed: COMPLETED + 20, failed: DEAD, cancelled: CANCELLED },
      ...{ skipped: FEW, expired: FEW },
    };
    // Pairs of states that share an index. Locked jobs are not sorted in it, so a page of them reads all, here twice,
    // because all were claimed at the same time.
    const shared: readonly JobState[] = ['delayed', 'held', 'blocked', 'prefetched', 'running'];
    const locked: readonly JobState[] = ['prefetched', 'running'];
    for (const state of STATE_NAMES) {
      const page = locked.includes(state) ? 4 * FEW : shared.includes(state) ? 21 + FEW : 22;
      await assertReads(page, page, async () => {
        const found = await store.listJobs({ filter: { state }, after: undefined, limit: 20 }, NOW);
        assert.equal(found.length, 20, state);
      });
      const counted = counts[state] + (shared.includes(state) ? FEW : 0);
      await assertReads(counted, counted + 1, async () =>
        assert.equal((await store.countJobs({ state }, 10_000, NOW)).count, counts[state], state),
      );
    }
  });

  it('a page of a state in a queue or of a task type is bounded, too [B27] [J14]', async () => {
    for (const state of ['retrying', 'skipped', 'expired', 'failed', 'held', 'running'] as const)
      for (const filter of [{ queue: 'default' }, { taskType: 'nobody' }])
        await assertReads(4 * FEW, 4 * FEW, () =>
          store.listJobs({ filter: { ...filter, state }, after: undefined, limit: 20 }, NOW),
        );
  });

  it('pages of a schedule and by id read only that page [J14]', async () => {
    for (const filter of [{ schedule: 's' }, { idPrefix: 's@' }, {}])
      await assertReads(20, 25, () => store.listJobs({ filter, after: undefined, limit: 20 }, NOW));
  });

  it('a page of a task type reads about a page, whether it has few or many waiting jobs [J14]', async () => {
    const { jobs } = database.collections;
    await jobs.insertMany([
      aJob({ _id: 'rare-1', taskType: 'rare', queue: 'small', nextRunAt: later(90_000_000) }),
      aJob({ _id: 'rare-2', taskType: 'rare', nextRunAt: later(80_000_000) }),
    ]);
    const ids = async (taskType: string): Promise<string[]> => {
      const filter = { state: 'delayed', taskType } as const;
      return (await store.listJobs({ filter, after: undefined, limit: 20 }, NOW)).map(({ _id }) => _id);
    };
    await assertReads(6, 15, async () => assert.deepEqual(await ids('rare'), ['rare-2', 'rare-1']));
    await assertReads(4, 15, async () => assert.deepEqual(await ids('nobody'), []));
    await assertReads(130, 130, async () => assert.equal((await ids('t1')).length, 20));
    const delayed = { state: 'delayed', taskType: 'rare' } as const;
    await assertReads(6, 15, async () => assert.equal((await store.countJobs(delayed, 100, NOW)).count, 2));
    await jobs.deleteMany({ taskType: 'rare' });
  });

  it('counting reads only the index, and of due jobs only those [J14]', async () => {
    await assertReads(0, DUE + 20, () => store.countDue('default', NOW, 10_000));
    await assertReads(0, 101 + 20, () => store.countJobs({ state: 'waiting', queue: 'default' }, 100, NOW));
    await assertReads(0, 101 + 20, () => store.countLater('default', NOW, 100));
    await assertReads(0, 101, () => store.countJobs({ state: 'completed' }, 100, NOW));
    await assertReads(DEAD, DEAD + 1, () => store.countByQueue('failed', 10_000, NOW));
    await assertReads(101, 101, () => store.countByQueue('completed', 100, NOW));
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
