import assert from 'node:assert/strict';
import type { JobDocument } from '../../src/domain/job.js';
import { createStore } from '../../src/store/store.js';
import { JobPicker, type PickRequest } from '../../src/worker/job-picker.js';
import { aJob } from '../support/a-job.js';
import { useSharedDatabase } from '../support/shared-database.js';
import { after, START } from '../support/instants.js';
import { ManualClock } from '../support/manual-clock.js';

const ANY = { withoutSuspects: false, exclude: [] };

describe('JobPicker', () => {
  const database = useSharedDatabase();
  const clock = new ManualClock(after(10_000));

  function picker({
    queues = ['default'],
    taskTypes = ['work'],
    leaseOf = () => 60_000,
  }: { queues?: string[]; taskTypes?: string[]; leaseOf?: (taskType: string) => number } = {}): JobPicker {
    return new JobPicker({
      store: createStore(database.collections),
      clock,
      random: Math.random,
      workerId: 'me',
      queues,
      taskTypes: () => taskTypes,
      leaseOf,
      onRound: () => undefined,
      onDoubt: () => assert.fail('no claim of this test fails'),
    });
  }

  async function insert(...jobs: JobDocument[]): Promise<void> {
    await database.collections.jobs.insertMany(jobs);
  }

  async function pickedIds(from: JobPicker, request: Partial<PickRequest> = {}): Promise<string[]> {
    const claimed = await from.pickMany({ ...ANY, slots: 10, buffer: 0, ...request });
    return claimed.map(({ job }) => job._id);
  }

  /** In the order in which they are due to run. */
  const inOrder = [
    { _id: 'c', priority: 1, nextRunAt: after(9000) },
    { _id: 'f', priority: 50, nextRunAt: after(1000) },
    { _id: 'a', priority: 50, nextRunAt: after(2000) },
    { _id: 'e', priority: 50, nextRunAt: after(2000) },
    { _id: 'b', priority: 100, nextRunAt: START },
  ];

  it('J10 pickOne takes by priority, then by run time, then by id', async () => {
    await insert(...inOrder.toReversed().map((fields) => aJob(fields)));
    const mine = picker();
    const taken: (string | undefined)[] = [];
    while (taken.length < inOrder.length) taken.push((await mine.pickOne(ANY))?.job._id);
    assert.deepEqual(taken, ['c', 'f', 'a', 'e', 'b']);
    assert.equal(await mine.pickOne(ANY), null);
  });

  it('J10 pickMany takes in the same order, as many as there is room for', async () => {
    await insert(...inOrder.toReversed().map((fields) => aJob(fields)));
    assert.deepEqual(await pickedIds(picker(), { slots: 3 }), ['c', 'f', 'a']);
    assert.deepEqual(await pickedIds(picker(), { slots: 3 }), ['e', 'b']);
  });

  it('J10 keeps the order across the finds that more than 200 pairs are split into', async () => {
    const taskTypes = Array.from({ length: 201 }, (_, index) => `type-${index}`);
    await insert(
      ...inOrder.map((fields, index) => aJob({ ...fields, taskType: `type-${200 - index * 50}` })),
    );
    assert.deepEqual(await pickedIds(picker({ taskTypes })), ['c', 'f', 'a', 'e', 'b']);
  });

  it('C2 takes nothing that is not due, held, locked or finished', async () => {
    await insert(
      aJob({ nextRunAt: after(10_001) }),
      aJob({ status: 'PENDING' }),
      aJob({ status: 'QUEUED' }),
      aJob({ status: 'RUNNING' }),
      aJob({ status: 'COMPLETED' }),
      aJob({ status: 'FAILED' }),
      aJob({ status: 'CANCELLED' }),
    );
    assert.equal(await picker().pickOne(ANY), null);
    assert.deepEqual(await pickedIds(picker()), []);
  });

  it('J11 takes from its queues and for its task types only', async () => {
    await insert(
      aJob({ _id: 'mine', queue: 'mail' }),
      aJob({ _id: 'also mine', queue: 'reports' }),
      aJob({ _id: 'foreign queue', queue: 'other' }),
      aJob({ _id: 'unknown type', queue: 'mail', taskType: 'unknown' }),
    );
    assert.deepEqual(await pickedIds(picker({ queues: ['mail', 'reports'] })), ['also mine', 'mine']);
  });

  it('J12 locks each job for the lease of its task type', async () => {
    await insert(aJob({ _id: 'long', taskType: 'long' }), aJob({ _id: 'short', taskType: 'short' }));
    const leaseOf = (taskType: string): number => (taskType === 'long' ? 600_000 : 1000);
    await picker({ taskTypes: ['long', 'short'], leaseOf }).pick({ ...ANY, slots: 5, buffer: 0 });
    const { jobs } = database.collections;
    assert.deepEqual((await jobs.findOne({ _id: 'long' }))?.lockedUntil, after(610_000));
    assert.deepEqual((await jobs.findOne({ _id: 'short' }))?.lockedUntil, after(11_000));
  });

  it('J12 does so too when only one slot is free', async () => {
    await insert(aJob({ _id: 'long', taskType: 'long' }));
    const leaseOf = (taskType: string): number => (taskType === 'long' ? 600_000 : 1000);
    await picker({ taskTypes: ['long', 'short'], leaseOf }).pick({ ...ANY, slots: 1, buffer: 0 });
    const stored = await database.collections.jobs.findOne({ _id: 'long' });
    assert.deepEqual(stored?.lockedUntil, after(610_000));
  });

  it('C4 takes into free slots as RUNNING and into the buffer as QUEUED', async () => {
    await insert(
      ...['1', '2', '3'].map((_id) => aJob({ _id })),
      aJob({ _id: 'another fence', fence: 7, priority: 200 }),
    );
    await picker().pickMany({ ...ANY, slots: 2, buffer: 5 });
    const stored = await database.collections.jobs.find({}, { sort: { _id: 1 } }).toArray();
    assert.deepEqual(
      stored.map(({ _id, status, fence }) => [_id, status, fence]),
      [
        ['1', 'RUNNING', 1],
        ['2', 'RUNNING', 1],
        ['3', 'QUEUED', 1],
        ['another fence', 'QUEUED', 8],
      ],
    );
    assert.deepEqual(
      stored.map(({ startedAt }) => startedAt),
      [clock.now(), clock.now(), null, null],
    );
  });

  it('leaves out the ids that are still in flight', async () => {
    await insert(aJob({ _id: 'a zombie' }), aJob({ _id: 'free' }));
    assert.deepEqual(await pickedIds(picker(), { exclude: ['a zombie'] }), ['free']);
    assert.equal(await picker().pickOne({ ...ANY, exclude: ['a zombie'] }), null);
  });

  describe('suspects', () => {
    const suspects = [
      { _id: 's1', crashes: 1 },
      { _id: 's2', abandoned: 1 },
    ];

    it('takes one at a time, straight to RUNNING', async () => {
      await insert(...suspects.map((fields) => aJob(fields)), aJob({ _id: 'x' }));
      assert.deepEqual(await pickedIds(picker(), { slots: 2, buffer: 5 }), ['s1', 'x']);
      const suspect = await database.collections.jobs.findOne({ _id: 's1' });
      assert.equal(suspect?.status, 'RUNNING');
    });

    it('never buffers one', async () => {
      await insert(...suspects.map((fields) => aJob(fields)), aJob({ _id: 'x' }));
      assert.deepEqual(await pickedIds(picker(), { slots: 0, buffer: 5 }), ['x']);
    });

    it('takes none beside one that runs', async () => {
      await insert(...suspects.map((fields) => aJob(fields)), aJob({ _id: 'x' }));
      assert.deepEqual(await pickedIds(picker(), { withoutSuspects: true }), ['x']);
      assert.equal(await picker().pickOne({ withoutSuspects: true, exclude: [] }), null);
    });
  });
});
