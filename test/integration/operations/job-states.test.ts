import assert from 'node:assert/strict';
import type { JobDocument } from '../../../src/domain/job/job.js';
import { type JobState, STATE_NAMES } from '../../../src/domain/job/state.js';
import type { BulkAction, JobFilterOptions, Operations } from '../../../src/index.js';
import { aJob } from '../../support/factories/job.js';
import { START, timeAfter } from '../../support/instants.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';

const LATER = timeAfter(3_600_000);

/** Two jobs per state that differ in other fields; nothing in the library creates blocked and expired jobs yet. */
const JOBS: Record<JobState, [Partial<JobDocument>, Partial<JobDocument>]> = {
  waiting: [{}, { attempts: 2, crashes: 1 }],
  delayed: [{ nextRunAt: LATER }, { nextRunAt: LATER, lostWhileQueued: 1 }],
  retrying: [
    { nextRunAt: LATER, attempts: 1 },
    { nextRunAt: LATER, crashes: 1 },
  ],
  held: [{ status: 'PENDING' }, { status: 'PENDING', nextRunAt: LATER, attempts: 1 }],
  blocked: [
    { status: 'PENDING', held: null },
    { status: 'PENDING', held: null, nextRunAt: LATER },
  ],
  prefetched: [{ status: 'QUEUED' }, { status: 'QUEUED', attempts: 1 }],
  running: [{ status: 'RUNNING' }, { status: 'RUNNING', cancelRequested: { reason: null, at: START } }],
  completed: [{ status: 'COMPLETED' }, { status: 'COMPLETED', attempts: 1 }],
  failed: [{ status: 'FAILED' }, { status: 'FAILED', crashes: 3 }],
  cancelled: [{ status: 'CANCELLED' }, { status: 'CANCELLED', cancelKind: null }],
  skipped: [
    { status: 'CANCELLED', cancelKind: 'skipped', skipReason: 'closed' },
    { status: 'CANCELLED', cancelKind: 'skipped' },
  ],
  expired: [
    { status: 'CANCELLED', cancelKind: 'expired' },
    { status: 'CANCELLED', cancelKind: 'expired', finishedAt: LATER },
  ],
};

const ACTIONS: Record<BulkAction, readonly JobState[]> = {
  cancel: ['waiting', 'delayed', 'retrying', 'held', 'blocked', 'prefetched', 'running'],
  hold: ['waiting', 'delayed', 'retrying'],
  unhold: ['held'],
  retry: ['completed', 'failed', 'cancelled', 'skipped', 'expired'],
  delete: ['completed', 'failed', 'cancelled', 'skipped', 'expired'],
};

describe('the states of jobs', () => {
  const database = useSharedDatabase();

  beforeEach(() =>
    database.collections.jobs.insertMany(
      STATE_NAMES.flatMap((state) =>
        JOBS[state].map((fields, index) =>
          aJob({ _id: `${state}=${index}`, taskType: 'work', queue: `q${index}`, userId: 'u', ...fields }),
        ),
      ),
    ),
  );

  async function ids(operations: Operations, filter: JobFilterOptions): Promise<string[]> {
    return (await operations.listJobs({ ...filter, limit: 200 })).items.map(({ id }) => id).sort();
  }

  for (const state of STATE_NAMES) {
    it(`a filter for ${state} finds exactly the jobs that are shown as ${state} [B27]`, async () => {
      const { operations } = manualScheduler(database).scheduler;
      const all = (await operations.listJobs({ limit: 200 })).items;
      assert.equal(all.length, 2 * STATE_NAMES.length);
      const expected = [`${state}=0`, `${state}=1`];
      assert.deepEqual(
        all
          .filter((job) => job.state === state)
          .map(({ id }) => id)
          .sort(),
        expected,
      );
      assert.equal((await operations.showJob(`${state}=0`))?.job.state, state);
      assert.equal((await operations.explainJob(`${state}=0`))?.state, state);
      // Each filter uses another index or order.
      const both: JobFilterOptions[] = [{}, { taskType: 'work' }, { userId: 'u' }, { idPrefix: `${state}=` }];
      for (const filter of both) {
        assert.deepEqual(await ids(operations, { ...filter, state }), expected, JSON.stringify(filter));
        assert.deepEqual(await operations.countMatching({ ...filter, state }), { count: 2, atLeast: false });
      }
      for (const filter of [{ queue: 'q1' }, { queue: 'q1', taskType: 'work' }]) {
        assert.deepEqual(await ids(operations, { ...filter, state }), [`${state}=1`], JSON.stringify(filter));
        assert.deepEqual(await operations.countMatching({ ...filter, state }), { count: 1, atLeast: false });
      }
      const { totals } = await operations.status();
      assert.deepEqual(totals[state], { count: 2, atLeast: false });
    });
  }

  it('pages of every state contain each job once [B27]', async () => {
    const { operations } = manualScheduler(database).scheduler;
    for (const state of STATE_NAMES) {
      const first = await operations.listJobs({ state, limit: 1 });
      const second = await operations.listJobs({ state, limit: 1, after: first.next ?? '' });
      const found = [...first.items, ...second.items].map(({ id }) => id);
      assert.deepEqual([found.sort(), second.next], [[`${state}=0`, `${state}=1`], null]);
    }
  });

  for (const [action, states] of Object.entries(ACTIONS) as [BulkAction, readonly JobState[]][]) {
    it(`${action}Jobs changes only the jobs in the state of the filter [B27]`, async () => {
      const { operations } = manualScheduler(database).scheduler;
      const { jobs } = database.collections;
      for (const state of states) {
        const mine = { _id: { $in: [`${state}=0`, `${state}=1`] } };
        const others = { _id: { $nin: mine._id.$in } };
        const before = await jobs.find(others).toArray();
        assert.deepEqual(await operations.countMatching({ state }, action), { count: 2, atLeast: false });
        const { matched, changed, refused } = await operations[`${action}Jobs`]({ state });
        assert.deepEqual([matched, changed, refused], [2, 2, {}], state);
        assert.deepEqual(await jobs.find(others).toArray(), before);
        // A running job stays running until its worker has stopped the handler.
        const left = await operations.countMatching({ state });
        assert.equal(left.count, state === 'running' ? 2 : 0, state);
        await jobs.deleteMany(mine);
      }
    });

    it(`${action}Jobs rejects the other states [B27]`, async () => {
      const { operations } = manualScheduler(database).scheduler;
      for (const state of STATE_NAMES.filter((one) => !states.includes(one)))
        await assert.rejects(operations[`${action}Jobs`]({ state }), { code: 'INVALID_ARGUMENT' }, state);
    });
  }

  it('are those of real jobs, too: a skipped, a cancelled, a failed and a retried one [B27]', async () => {
    await database.collections.jobs.deleteMany();
    const { scheduler } = manualScheduler(database);
    const skipped = await scheduler
      .schedule('closed', () => 1)
      .when(false)
      .dispatch();
    scheduler.registerHandler('work', () => Promise.reject(new Error('no')));
    const retrying = await scheduler.dispatch('work', null, { retries: { max: 2, base: '1h' } });
    const failed = await scheduler.dispatch('work', null, { retries: { max: 1 } });
    await scheduler.run();
    const cancelled = await scheduler.dispatch('work');
    await cancelled.cancel('not needed');
    const { operations } = scheduler;
    for (const [state, { id }] of Object.entries({ skipped, retrying, failed, cancelled }))
      assert.deepEqual(await ids(operations, { state: state as JobState }), [id], state);
    await scheduler.retry(skipped.id);
    assert.deepEqual(
      [await ids(operations, { state: 'skipped' }), await ids(operations, { state: 'waiting' })],
      [[], [skipped.id]],
    );
  });
});
