import assert from 'node:assert/strict';
import type { JobDocument } from '../../src/domain/job.js';
import type { Outcome } from '../../src/domain/outcome.js';
import { createStore, type Store } from '../../src/store/store.js';
import { aJob } from '../support/a-job.js';
import { byHand } from '../support/by-hand.js';
import { useSharedDatabase } from '../support/shared-database.js';
import { nextEvent, recordEvents } from '../support/events.js';
import { after, START } from '../support/instants.js';

const OLD = 'token of the zombie';
const NOW = after(1000);

function settling(outcome: Outcome): (store: Store, job: JobDocument) => Promise<unknown> {
  return (store, { _id: jobId }) =>
    store.settle([{ jobId, token: OLD, workerId: 'zombie', outcome, startedAt: START, finishedAt: NOW }]);
}

/** Every write that needs the lock, tried with a token that is not the owner's any more, and what it answers. */
const FENCED: Record<string, [answer: unknown, (store: Store, job: JobDocument) => Promise<unknown>]> = {
  renewal: [
    ['job-z'],
    async (store, job) =>
      (await store.renew([{ kind: 'job', id: job._id, token: OLD, length: 60_000 }], NOW)).map(
        ({ id }) => id,
      ),
  ],
  progress: [false, (store, job) => store.saveProgress(job._id, OLD, { value: 99, note: 'boo', at: NOW })],
  begin: [undefined, (store, job) => store.markBegun([{ jobId: job._id, token: OLD, startedAt: NOW }])],
  'give-back': [0, (store, job) => store.giveBack(OLD, [job._id], NOW)],
  'give-back by token': [0, (store) => store.giveBackByToken(OLD, NOW)],
  completion: [['lost'], settling({ kind: 'completed', result: { boo: true } })],
  'completion without a result': [['lost'], settling({ kind: 'completed', result: null })],
  'retry of an attempt': [['lost'], settling({ kind: 'retry', error: new Error('boo'), nextRunAt: NOW })],
  failure: [['lost'], settling({ kind: 'failed', error: new Error('boo') })],
  cancellation: [['lost'], settling({ kind: 'cancelled', reason: 'boo' })],
  snooze: [['lost'], settling({ kind: 'snoozed', until: NOW })],
  'unfinished return': [['lost'], settling({ kind: 'givenBack' })],
  recovery: [
    false,
    (store, job) =>
      store.recover(
        { ...job, lockToken: OLD },
        { transition: 'recover', nextRunAt: NOW, error: null, by: 'me' },
        after(3_600_000),
      ),
  ],
};

describe('zombies', () => {
  const database = useSharedDatabase();

  for (const [name, [answer, write]] of Object.entries(FENCED)) {
    it(`B1 C8 a ${name} under an old token changes nothing, and says so`, async () => {
      const store = createStore(database.collections);
      const states: Partial<JobDocument>[] = [
        // Claimed by somebody else, waiting for its retry, or finished meanwhile.
        { status: 'QUEUED', lockToken: 'token of the owner', fence: 8 },
        { status: 'RUNNING', lockToken: 'token of the owner', fence: 8 },
        { status: 'SCHEDULED', fence: 8 },
        { status: 'COMPLETED', fence: 8, settledToken: 'token of the owner' },
      ];
      for (const fields of states) {
        const job = aJob({ ...fields, _id: 'job-z' });
        await database.collections.jobs.deleteMany();
        await database.collections.jobs.insertOne(job);
        assert.deepEqual(await write(store, job), answer);
        assert.deepEqual(await database.collections.jobs.findOne({ _id: 'job-z' }), job);
      }
    });
  }

  it('B1 a named lock is neither renewed nor released under an old token', async () => {
    const store = createStore(database.collections);
    const grant = { token: 'token of the owner', workerId: 'owner', lockedUntil: after(60_000) };
    const held = await store.acquireLock('report', grant, START);
    const lease = { kind: 'named', id: 'report', token: OLD, length: 600_000 } as const;
    assert.deepEqual(await store.renew([lease], NOW), [lease]);
    assert.equal(await store.releaseLock('report', OLD), false);
    assert.deepEqual(await store.findLock('report'), held);
  });

  it('B1 a batch that was claimed meanwhile is not claimed with the fence that was read', async () => {
    const store = createStore(database.collections);
    const read = aJob({ fence: 3 });
    const grant = { token: 'mine', workerId: 'me', lockedUntil: after(60_000) };
    // Claimed and scheduled again by another worker since it was read: due again, but another fence.
    const now = { ...read, fence: 4 };
    await database.collections.jobs.insertOne(now);
    assert.equal(await store.claimBatch('claim', [read], grant, NOW), 0);
    // Claimed and scheduled for later: not due.
    assert.equal(await store.claimBatch('claim', [now], grant, after(-1)), 0);
    assert.deepEqual(await database.collections.jobs.findOne({ _id: read._id }), now);
  });

  it('B1 C8 a job lost and claimed again by the same process is not settled by its own zombie', async () => {
    const store = createStore(database.collections);
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

  it('B1 C8 what a handler comes to after its job was taken away is dropped and reported', async () => {
    const { scheduler } = byHand(database);
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
