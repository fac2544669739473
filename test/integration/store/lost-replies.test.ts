import assert from 'node:assert/strict';
import type { JobDocument } from '../../../src/domain/job/job.js';
import type { Scheduler } from '../../../src/index.js';
import type { Settlement } from '../../../src/store/jobs/settle.js';
import { createStore } from '../../../src/store/store.js';
import { aJob } from '../../support/factories/job.js';
import { START } from '../../support/instants.js';
import { withoutRenewalThread } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { countEvents, nextEvent, recordEvents, signal } from '../../support/events.js';
import { withFailPoint, withoutMajorityReads } from '../../support/fail-point.js';

describe('when MongoDB’s reply is lost', () => {
  const database = useSharedDatabase();

  function scheduler(concurrency: number): Scheduler {
    return database.scheduler({ ...withoutRenewalThread, concurrency, lockTimeout: '10s' });
  }

  describe('after settling', () => {
    for (const [name, result] of [
      ['with a result', 'done'],
      ['without a result', undefined],
    ] as const) {
      it(`a job ${name} is not reported as lost and has one row and one event [C8]`, async () => {
        const one = scheduler(1);
        const events = recordEvents(one, 'job:complete', 'job:lockLost', 'job:failed', 'worker:error');
        one.registerHandler('work', () => result);
        const { id } = await one.dispatch('work');
        // With one slot the claim is a findAndModify, so the only update is the settle, which takes effect.
        await withFailPoint(database, { commands: ['update'], how: 'lostReply', times: 1 }, () => one.run(1));
        assert.deepEqual(
          events.map(({ name }) => name),
          ['worker:error', 'job:complete'],
        );
        const job = await one.getJob(id);
        assert.deepEqual([job?.status, job?.result, job?.fence], ['COMPLETED', result ?? null, 1]);
        assert.equal((await one.getExecutions(id)).length, 1);
      });
    }

    it('a failed attempt is counted once [C8]', async () => {
      const one = scheduler(1);
      const events = recordEvents(one, 'job:failed', 'job:lockLost');
      one.registerHandler('work', () => {
        throw new Error('broken');
      });
      const { id } = await one.dispatch('work', null, { retries: { base: '1h' } });
      await withFailPoint(database, { commands: ['update'], how: 'lostReply', times: 2 }, () => one.run(1));
      const job = await one.getJob(id);
      assert.deepEqual([job?.status, job?.attempts], ['SCHEDULED', 1]);
      assert.deepEqual(
        events.map(({ name }) => name),
        ['job:failed'],
      );
    });

    it('a job that another worker has settled since is not reported as lost by a renewal [C8]', async () => {
      const store = createStore(database.stored);
      const lease = { kind: 'job', id: 'a', token: 'mine', length: 60_000 } as const;
      await database.collections.jobs.insertOne(
        aJob({ _id: 'a', status: 'COMPLETED', settledToken: 'of another', settledTokens: ['mine'] }),
      );
      assert.deepEqual(await store.renew([lease], START), []);
    });

    it('each job of a batch is announced once [C8]', async () => {
      const one = scheduler(10);
      const release = signal();
      one.registerHandler('plain', async () => release.promise);
      one.registerHandler('result', async () => release.promise.then(() => 'done'));
      const starts = countEvents(one, 'job:start', 10);
      const events = recordEvents(one, 'job:complete', 'job:lockLost');
      await one.dispatchMany(
        Array.from({ length: 10 }, (_, i) => ({ taskType: i % 2 === 0 ? 'plain' : 'result' })),
      );
      const pass = one.run(10);
      await starts;
      await withFailPoint(database, { commands: ['update'], how: 'lostReply', times: 3 }, async () => {
        release.fire();
        await pass;
      });
      assert.deepEqual(
        events.map(({ name }) => name),
        Array(10).fill('job:complete'),
      );
      const { jobs, executions } = database.collections;
      assert.equal(await jobs.countDocuments({ status: 'COMPLETED' }), 10);
      assert.equal(await executions.countDocuments({ outcome: 'completed' }), 10);
    });
  });

  describe('and an election could still undo the write', () => {
    const settlement = (job: JobDocument): Settlement => ({
      ...{ jobId: job._id, token: 'mine', workerId: 'me', outcome: { kind: 'completed', result: 'done' } },
      ...{ startedAt: START, finishedAt: START },
    });

    it('the outcome does not count as stored before a majority has it [C8] [B3]', async () => {
      const job = aJob({ status: 'RUNNING', lockedBy: 'me', lockToken: 'mine', fence: 1 });
      await database.collections.jobs.insertOne(job);
      const store = createStore(database.stored);
      await withoutMajorityReads(database, async () => {
        const notMajority = { writeConcern: { w: 1 } };
        const settled = { status: 'COMPLETED', settledToken: 'mine', lockToken: null } as const;
        await database.collections.jobs.updateOne({ _id: job._id }, { $set: settled }, notMajority);
        assert.deepEqual(await store.findSettled([settlement(job)]), ['unknown']);
      });
      // A majority has this write when it has a later one.
      await store.acquireLock('later', { token: 'other', workerId: 'me', lockedUntil: START }, START);
      assert.deepEqual(await store.findSettled([settlement(job)]), ['settled']);
    });
  });

  describe('after a claim', () => {
    const claims: [string, number, string][] = [
      ['of one job', 1, 'findAndModify'],
      ['of several jobs', 5, 'update'],
    ];
    for (const [name, concurrency, command] of claims) {
      it(`a claim ${name} is released by its token and the jobs run later, with nothing counted [C2]`, async () => {
        const one = scheduler(concurrency);
        const starts = recordEvents(one, 'job:start');
        one.registerHandler('work', () => undefined);
        await one.dispatchMany(Array.from({ length: concurrency }, () => ({ taskType: 'work' })));
        const claimFailed = nextEvent(one, 'worker:error', ({ operation }) => operation === 'claim jobs');
        const complete = countEvents(one, 'job:complete', concurrency);
        // The claim takes effect, but the worker does not know: the jobs are locked and do not run.
        await withFailPoint(database, { commands: [command], how: 'lostReply', times: 1 }, async () => {
          await one.start();
          await claimFailed;
        });
        await complete;
        assert.equal(starts.length, concurrency);
        const jobs = await database.collections.jobs.find().toArray();
        for (const job of jobs) {
          assert.deepEqual(
            [job.status, job.attempts, job.crashes, job.lostWhileQueued, job.fence],
            // Claimed, released, claimed.
            ['COMPLETED', 0, 0, 0, 3],
          );
        }
        assert.equal(await database.collections.executions.countDocuments(), concurrency);
      });

      it(`a claim ${name} that did not reach the server is repeated [C2]`, async () => {
        const one = scheduler(concurrency);
        one.registerHandler('work', () => undefined);
        const complete = nextEvent(one, 'job:complete');
        const { id } = await one.dispatch('work');
        await withFailPoint(database, { commands: [command], how: 'noConnection', times: 2 }, async () => {
          await one.start();
          await complete;
        });
        const job = await one.getJob(id);
        assert.deepEqual([job?.status, job?.attempts, job?.fence], ['COMPLETED', 0, 1]);
      });
    }
  });

  it('after acquiring a named lock, the lock is released and does not stay held [Y7]', async () => {
    const one = scheduler(1);
    await one.dispatch('connect');
    await assert.rejects(
      withFailPoint(
        database,
        { commands: ['findAndModify'], collection: 'locks', how: 'lostReply', times: 1 },
        () => one.withLock('report', () => assert.fail('it is unknown whether the lock is held')),
      ),
    );
    assert.equal(await one.withLock('report', ({ fence }) => fence), 2);
  });
});
