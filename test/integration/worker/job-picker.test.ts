import assert from 'node:assert/strict';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { aRegistry } from '../../support/factories/handler-registry.js';
import type { JobDocument } from '../../../src/domain/job/job.js';
import { createStore } from '../../../src/store/store.js';
import { JobPicker, type PickRequest } from '../../../src/worker/job-picker.js';
import { aJob } from '../../support/factories/job.js';
import { timeAfter, START } from '../../support/instants.js';
import { ManualClock } from '../../support/manual-clock.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { noInvalidJobs } from '../../support/no-invalid-jobs.js';

const ANY = { withoutCrashSuspects: false, exclude: [] };

describe('JobPicker', () => {
  const database = useSharedDatabase();
  const clock = new ManualClock(timeAfter(10_000));

  function picker({
    queues = ['default'],
    taskTypes = ['work'],
    leases = {},
  }: { queues?: string[]; taskTypes?: string[]; leases?: Record<string, number> } = {}): JobPicker {
    const registry = aRegistry();
    for (const taskType of taskTypes)
      registry.register(taskType, () => undefined, { lease: leases[taskType] ?? 60_000 });
    return new JobPicker({
      usesMongos: false,
      invalidJobs: noInvalidJobs,
      store: createStore(database.stored),
      clock,
      random: Math.random,
      workerId: 'me',
      queues,
      registry,
      events: new EventBus('worker'),
      uncertainClaims: { add: () => assert.fail('no claim of this test fails') },
    });
  }

  async function insert(...jobs: JobDocument[]): Promise<void> {
    await database.collections.jobs.insertMany(jobs);
  }

  async function pickedIds(from: JobPicker, request: Partial<PickRequest> = {}): Promise<string[]> {
    const claimed = await from.pickMany({ ...ANY, slots: 10, prefetch: 0, ...request });
    return claimed.map(({ job }) => job._id);
  }

  /** In the order in which they are claimed. */
  const inOrder = [
    { _id: 'c', priority: 1, nextRunAt: timeAfter(9000) },
    { _id: 'f', priority: 50, nextRunAt: timeAfter(1000) },
    { _id: 'a', priority: 50, nextRunAt: timeAfter(2000) },
    { _id: 'e', priority: 50, nextRunAt: timeAfter(2000) },
    { _id: 'b', priority: 100, nextRunAt: START },
  ];

  it('pickOne claims by priority, then by run time, then by id [J10]', async () => {
    await insert(...inOrder.toReversed().map((fields) => aJob(fields)));
    const mine = picker();
    const claimed: (string | undefined)[] = [];
    while (claimed.length < inOrder.length) claimed.push((await mine.pickOne(ANY))?.job._id);
    assert.deepEqual(claimed, ['c', 'f', 'a', 'e', 'b']);
    assert.equal(await mine.pickOne(ANY), null);
  });

  it('pickMany claims in the same order, as many jobs as there is room for [J10]', async () => {
    await insert(...inOrder.toReversed().map((fields) => aJob(fields)));
    assert.deepEqual(await pickedIds(picker(), { slots: 3 }), ['c', 'f', 'a']);
    assert.deepEqual(await pickedIds(picker(), { slots: 3 }), ['e', 'b']);
  });

  it('keeps the order when more than 200 pairs of queue and task type are split into several queries [J10]', async () => {
    const taskTypes = Array.from({ length: 201 }, (_, index) => `type-${index}`);
    await insert(
      ...inOrder.map((fields, index) => aJob({ ...fields, taskType: `type-${200 - index * 50}` })),
    );
    assert.deepEqual(await pickedIds(picker({ taskTypes })), ['c', 'f', 'a', 'e', 'b']);
  });

  it('claims no job that is held, locked, finished or not due [C2]', async () => {
    await insert(
      aJob({ nextRunAt: timeAfter(10_001) }),
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

  it('claims only from its queues and only task types it has a handler for [J11]', async () => {
    await insert(
      aJob({ _id: 'mine', queue: 'mail' }),
      aJob({ _id: 'also mine', queue: 'reports' }),
      aJob({ _id: 'other queue', queue: 'other' }),
      aJob({ _id: 'unknown type', queue: 'mail', taskType: 'unknown' }),
    );
    assert.deepEqual(await pickedIds(picker({ queues: ['mail', 'reports'] })), ['also mine', 'mine']);
  });

  it('locks each job for the lease of its task type [J12]', async () => {
    await insert(aJob({ _id: 'long', taskType: 'long' }), aJob({ _id: 'short', taskType: 'short' }));
    await picker({ taskTypes: ['long', 'short'], leases: { long: 600_000, short: 1000 } }).pick({
      ...ANY,
      slots: 5,
      prefetch: 0,
    });
    const { jobs } = database.collections;
    assert.deepEqual((await jobs.findOne({ _id: 'long' }))?.lockedUntil, timeAfter(610_000));
    assert.deepEqual((await jobs.findOne({ _id: 'short' }))?.lockedUntil, timeAfter(11_000));
  });

  it('locks for the lease of the task type when only one slot is free [J12]', async () => {
    await insert(aJob({ _id: 'long', taskType: 'long' }));
    await picker({ taskTypes: ['long', 'short'], leases: { long: 600_000, short: 1000 } }).pick({
      ...ANY,
      slots: 1,
      prefetch: 0,
    });
    const stored = await database.collections.jobs.findOne({ _id: 'long' });
    assert.deepEqual(stored?.lockedUntil, timeAfter(610_000));
  });

  it('claims jobs for free slots as RUNNING and prefetched jobs as QUEUED [C4]', async () => {
    await insert(
      ...['1', '2', '3'].map((_id) => aJob({ _id })),
      aJob({ _id: 'another fence', fence: 7, priority: 200 }),
    );
    await picker().pickMany({ ...ANY, slots: 2, prefetch: 5 });
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

  it('excludes the ids of jobs that are still in flight', async () => {
    await insert(aJob({ _id: 'in flight' }), aJob({ _id: 'free' }));
    assert.deepEqual(await pickedIds(picker(), { exclude: ['in flight'] }), ['free']);
    assert.equal(await picker().pickOne({ ...ANY, exclude: ['in flight'] }), null);
  });

  describe('crash suspects', () => {
    beforeEach(() =>
      insert(aJob({ _id: 's1', crashes: 1 }), aJob({ _id: 's2', lostWhileQueued: 1 }), aJob({ _id: 'x' })),
    );

    it('are claimed one at a time, directly as RUNNING', async () => {
      assert.deepEqual(await pickedIds(picker(), { slots: 2, prefetch: 5 }), ['s1', 'x']);
      const suspect = await database.collections.jobs.findOne({ _id: 's1' });
      assert.equal(suspect?.status, 'RUNNING');
    });

    it('are never prefetched', async () => {
      assert.deepEqual(await pickedIds(picker(), { slots: 0, prefetch: 5 }), ['x']);
    });

    it('are not claimed while another one runs', async () => {
      assert.deepEqual(await pickedIds(picker(), { withoutCrashSuspects: true }), ['x']);
      assert.equal(await picker().pickOne({ withoutCrashSuspects: true, exclude: [] }), null);
    });
  });
});
