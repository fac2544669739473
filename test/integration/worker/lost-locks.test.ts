import assert from 'node:assert/strict';
import type { JobDocument } from '../../../src/domain/job/job.js';
import type { Outcome } from '../../../src/domain/job/outcome.js';
import type { Settlement } from '../../../src/store/jobs/settle.js';
import { createStore, type Store } from '../../../src/store/store.js';
import { aJob } from '../../support/factories/job.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { nextEvent, recordEvents } from '../../support/events.js';
import { timeAfter, START } from '../../support/instants.js';
import { useSharedDatabase } from '../../support/shared-database.js';

const OLD_TOKEN = 'token of the zombie';
const NOW = timeAfter(1000);

function settleAs(outcome: Outcome): (store: Store, job: JobDocument) => Promise<unknown> {
  return (store, { _id: jobId }) =>
    store.settle([
      { jobId, token: OLD_TOKEN, workerId: 'zombie', outcome, startedAt: START, finishedAt: NOW },
    ]);
}

/** Every write that needs the lock, made with a token that does not own it any more, and its result. */
const FENCED_WRITES: Record<string, [result: unknown, (store: Store, job: JobDocument) => Promise<unknown>]> =
  {
    renewal: [
      ['job-z'],
      async (store, job) =>
        (await store.renew([{ kind: 'job', id: job._id, token: OLD_TOKEN, length: 60_000 }], NOW)).map(
          ({ id }) => id,
        ),
    ],
    progress: [
      false,
      (store, job) => store.saveProgress(job._id, OLD_TOKEN, { value: 99, note: 'late', at: NOW }),
    ],
    'start mark': [
      undefined,
      (store, job) => store.markStarted([{ jobId: job._id, token: OLD_TOKEN, startedAt: NOW }]),
    ],
    release: [0, (store, job) => store.release(OLD_TOKEN, [job._id], NOW)],
    'release by token': [0, (store) => store.releaseByToken(OLD_TOKEN, NOW)],
    completion: [['lost'], settleAs({ kind: 'completed', result: { late: true } })],
    'completion without a result': [['lost'], settleAs({ kind: 'completed', result: null })],
    'retry of an attempt': [['lost'], settleAs({ kind: 'retry', error: new Error('late'), nextRunAt: NOW })],
    failure: [['lost'], settleAs({ kind: 'failed', error: new Error('late') })],
    cancellation: [['lost'], settleAs({ kind: 'cancelled', reason: 'late' })],
    snooze: [['lost'], settleAs({ kind: 'snoozed', until: NOW })],
    'release at shutdown': [['lost'], settleAs({ kind: 'released' })],
    recovery: [
      false,
      (store, job) =>
        store.recover(
          { ...job, lockToken: OLD_TOKEN },
          { transition: 'recover', nextRunAt: NOW, error: null },
          { sweptBy: 'me', ownerIsGone: true },
          timeAfter(3_600_000),
        ),
    ],
  };

describe('a worker that lost its lock', () => {
  const database = useSharedDatabase();

  it('notices that somebody has changed only the status in the database [C8]', async () => {
    const store = createStore(database.stored);
    const job = aJob({ _id: 'job-z', status: 'CANCELLED', fence: 7, lockToken: OLD_TOKEN });
    await database.collections.jobs.insertOne(job);
    for (const write of ['renewal', 'completion', 'failure', 'retry of an attempt']) {
      const [result, call] = FENCED_WRITES[write]!;
      assert.deepEqual(await call(store, job), result, write);
    }
  });

  for (const [name, [result, write]] of Object.entries(FENCED_WRITES)) {
    it(`changes nothing with a ${name} under its old token, which the result shows [B1] [C8]`, async () => {
      const store = createStore(database.stored);
      const states: Partial<JobDocument>[] = [
        // In the meantime claimed by another worker, rescheduled or finished.
        { status: 'QUEUED', lockToken: 'token of the owner', fence: 8 },
        { status: 'RUNNING', lockToken: 'token of the owner', fence: 8 },
        { status: 'SCHEDULED', fence: 8 },
        { status: 'COMPLETED', fence: 8, settledToken: 'token of the owner' },
      ];
      for (const fields of states) {
        const job = aJob({ ...fields, _id: 'job-z' });
        await database.collections.jobs.deleteMany();
        await database.collections.jobs.insertOne(job);
        assert.deepEqual(await write(store, job), result);
        assert.deepEqual(await database.collections.jobs.findOne({ _id: 'job-z' }), job);
      }
    });
  }

  // Chronos never leaves a token in a job that is not locked, but another program may write one.
  for (const [name, [, write]] of Object.entries(FENCED_WRITES)) {
    it(`changes nothing with a ${name} of a job that is not locked, even if the job has its token [B1]`, async () => {
      const store = createStore(database.stored);
      for (const status of ['PENDING', 'SCHEDULED', 'COMPLETED'] as const) {
        const job = aJob({ status, lockToken: OLD_TOKEN, _id: 'job-z' });
        await database.collections.jobs.deleteMany();
        await database.collections.jobs.insertOne(job);
        await write(store, { ...job, status: 'RUNNING' });
        assert.deepEqual(await database.collections.jobs.findOne({ _id: 'job-z' }), job);
      }
    });
  }

  it('cannot renew or release a named lock with an old token [B1]', async () => {
    const store = createStore(database.stored);
    const grant = { token: 'token of the owner', workerId: 'owner', lockedUntil: timeAfter(60_000) };
    const held = await store.acquireLock('report', grant, START);
    const lease = { kind: 'named', id: 'report', token: OLD_TOKEN, length: 600_000 } as const;
    assert.deepEqual(await store.renew([lease], NOW), [lease]);
    assert.equal(await store.releaseLock('report', OLD_TOKEN), false);
    assert.deepEqual(await store.findLock('report'), held);
  });

  it('cannot claim a batch of jobs that were claimed by others since they were read [B1]', async () => {
    const store = createStore(database.stored);
    const read = aJob({ fence: 3 });
    const grant = { token: 'mine', workerId: 'me', lockedUntil: timeAfter(60_000) };
    // Claimed and rescheduled by another worker since it was read: due, but with another fence.
    const now = { ...read, fence: 4 };
    await database.collections.jobs.insertOne(now);
    assert.equal(await store.claimBatch('claim', [read], grant, NOW), 0);
    // Rescheduled for later: not due.
    assert.equal(await store.claimBatch('claim', [now], grant, timeAfter(-1)), 0);
    assert.deepEqual(await database.collections.jobs.findOne({ _id: read._id }), now);
  });

  it('cannot settle a job that the same process has claimed again [B1] [C8]', async () => {
    const store = createStore(database.stored);
    const job = aJob({ status: 'RUNNING', lockedBy: 'me', lockToken: 'second', fence: 3 });
    await database.collections.jobs.insertOne(job);
    const settle = (token: string): ReturnType<Store['settle']> =>
      store.settle([
        {
          jobId: job._id,
          token,
          workerId: 'me',
          outcome: { kind: 'completed', result: token },
          startedAt: START,
          finishedAt: NOW,
        },
      ]);
    assert.deepEqual(await settle('first'), ['lost']);
    assert.deepEqual(await settle('second'), ['settled']);
    assert.deepEqual(await settle('first'), ['lost']);
    assert.equal((await database.collections.jobs.findOne({ _id: job._id }))?.result, 'second');
  });

  it('recognizes its own retry after later attempts have been settled [C10]', async () => {
    const store = createStore(database.stored);
    const job = aJob({ status: 'RUNNING', lockedBy: 'me', lockToken: 'attempt 1', fence: 1 });
    await database.collections.jobs.insertOne(job);
    const settlement = (token: string, outcome: Outcome): Settlement => ({
      ...{ jobId: job._id, token, workerId: 'me', outcome, startedAt: START, finishedAt: NOW },
    });
    const retry = settlement('attempt 1', { kind: 'retry', error: new Error('first'), nextRunAt: NOW });
    const outcomes: Outcome[] = [
      { kind: 'snoozed', until: NOW },
      { kind: 'completed', result: null },
    ];
    // The reply of this write is lost, and the worker reads back only after the attempts that follow.
    await store.settle([retry]);
    for (const [index, outcome] of outcomes.entries()) {
      const token = `attempt ${index + 2}`;
      const lock = { status: 'RUNNING', lockToken: token, lockedBy: 'another worker' } as const;
      await database.collections.jobs.updateOne({ _id: job._id }, { $set: lock, $inc: { fence: 1 } });
      assert.deepEqual(await store.findSettled([retry]), ['settled'], `while ${token} runs`);
      assert.deepEqual(await store.settle([settlement(token, outcome)]), ['settled']);
      assert.deepEqual(await store.findSettled([retry]), ['settled'], `after ${token}`);
    }
    const never = settlement('never settled', { kind: 'completed', result: null });
    assert.deepEqual(await store.findSettled([never]), ['lost']);
  });

  it('drops and reports the result of a handler whose job another worker has taken [B1] [C8]', async () => {
    const { scheduler } = manualScheduler(database);
    const events = recordEvents(scheduler, 'job:complete', 'job:failed');
    const lost = nextEvent(scheduler, 'job:lockLost');
    const { jobs } = database.collections;
    const other = { lockToken: 'other', lockedBy: 'another worker', fence: 2 };
    let progress: boolean | undefined;
    scheduler.registerHandler('work', async (_, job) => {
      await jobs.updateOne({ _id: job.id }, { $set: other });
      progress = await job.reportProgress(50);
      return 'too late';
    });
    const { id } = await scheduler.dispatch('work');

    assert.equal(await scheduler.run(), 1);

    const { jobId, fence } = await lost;
    assert.deepEqual({ jobId, fence }, { jobId: id, fence: 1 });
    assert.equal(progress, false);
    const now = await jobs.findOne({ _id: id });
    assert.deepEqual(
      { status: now?.status, result: now?.result, progress: now?.progress, lockToken: now?.lockToken },
      { status: 'RUNNING', result: null, progress: null, lockToken: 'other' },
    );
    assert.deepEqual(await scheduler.getExecutions(id), []);
    assert.deepEqual(events, []);
    await jobs.deleteOne({ _id: id });
  });
});
