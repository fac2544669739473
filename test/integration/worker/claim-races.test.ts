import assert from 'node:assert/strict';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { aRegistry } from '../../support/factories/handler-registry.js';
import type { JobStatus } from '../../../src/domain/job/job.js';
import { createStore, type Store } from '../../../src/store/store.js';
import { type ClaimedJob, JobPicker } from '../../../src/worker/job-picker.js';
import { aJob } from '../../support/factories/job.js';
import { timeAfter } from '../../support/instants.js';
import { ManualClock } from '../../support/manual-clock.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { onMeasurement } from '../../../src/runtime/measurements.js';
import { noInvalidJobs } from '../../support/no-invalid-jobs.js';

const ANY = { withoutCrashSuspects: false, exclude: [] };

/** Every way to claim. */
const FORMS: Record<string, (picker: JobPicker) => Promise<ClaimedJob[]>> = {
  pickOne: async (picker) => [await picker.pickOne(ANY)].filter((one) => one !== null),
  pickMany: (picker) => picker.pickMany({ ...ANY, slots: 5, prefetch: 0 }),
  'pickMany with prefetching': (picker) => picker.pickMany({ ...ANY, slots: 2, prefetch: 6 }),
};

describe('concurrent claims', () => {
  const database = useSharedDatabase();
  const clock = new ManualClock();
  const registry = aRegistry();
  registry.register('work', () => undefined);
  let store: Store;

  beforeEach(() => {
    store = createStore(database.stored);
  });

  /** With `slow`, other workers get to claim between its search for due jobs and its claim. */
  function picker(
    workerId: string,
    { slow = false, events = new EventBus('worker') }: { slow?: boolean; events?: EventBus } = {},
  ): JobPicker {
    const findDue: Store['findDue'] = async (...query) => {
      const due = await store.findDue(...query);
      if (slow) await flushEventLoop(30);
      return due;
    };
    return new JobPicker({
      usesMongos: false,
      invalidJobs: noInvalidJobs,
      store: { ...store, findDue },
      clock,
      random: Math.random,
      workerId,
      queues: ['default'],
      events,
      registry,
      uncertainClaims: { add: () => assert.fail('no claim of this test fails') },
    });
  }

  for (const [form, pick] of Object.entries(FORMS)) {
    it(`${form} gives each job to exactly one of many workers and skips none [C2]`, async () => {
      const { jobs } = database.collections;
      await jobs.insertMany(Array.from({ length: 150 }, () => aJob()));
      const claims: ClaimedJob[] = [];
      const worker = async (workerId: string): Promise<void> => {
        const mine = picker(workerId);
        while ((await jobs.countDocuments({ status: 'SCHEDULED' })) > 0) claims.push(...(await pick(mine)));
      };

      await Promise.all(Array.from({ length: 8 }, (_, index) => worker(`worker ${index}`)));

      assert.equal(claims.length, 150);
      assert.equal(new Set(claims.map(({ job }) => job._id)).size, 150);
      for (const { job, token } of claims) {
        const stored = await jobs.findOne({ _id: job._id });
        // The claim contains what is stored.
        assert.deepEqual(job, stored);
        assert.equal(stored?.lockToken, token);
        assert.equal(stored.fence, 1);
      }
    });

    it(`${form} never claims a rescheduled job early or with a wrong fence [C2]`, async () => {
      const { jobs } = database.collections;
      const rounds = 4;
      await jobs.insertMany(Array.from({ length: 24 }, () => aJob()));
      const claims: string[] = [];
      const worker = async (workerId: string, index: number): Promise<void> => {
        const mine = picker(workerId, { slow: index % 2 === 0 });
        while ((await jobs.countDocuments({ status: 'SCHEDULED' })) > 0) {
          clock.advance(1);
          for (const { job, token } of await pick(mine)) {
            claims.push(`${job._id}:${job.fence}`);
            const stored = await jobs.findOne({ _id: job._id });
            assert.equal(stored?.lockToken, token);
            assert.equal(stored.fence, job.fence);
            assert.ok(stored.nextRunAt <= stored.queuedAt!, 'claimed before it was due');
            const now = clock.now();
            // A stale read must not claim a released job, which is due with another fence, or a rescheduled one.
            if (claims.length % 3 === 0) {
              assert.equal(await store.release(token, [job._id], now), 1);
              continue;
            }
            const nextRunAt = timeAfter(3, now);
            const [result] = await store.settle([
              {
                jobId: job._id,
                token,
                workerId,
                startedAt: now,
                finishedAt: now,
                outcome:
                  job.attempts < rounds
                    ? { kind: 'retry', error: new Error('again'), nextRunAt }
                    : { kind: 'completed', result: null },
              },
            ]);
            assert.equal(result, 'settled');
          }
        }
      };

      await Promise.all(Array.from({ length: 8 }, (_, index) => worker(`worker ${index}`, index)));

      assert.ok(claims.length > 24 * rounds);
      assert.equal(new Set(claims).size, claims.length, 'a job was claimed twice with one fence');
      assert.equal(await jobs.countDocuments({ status: 'COMPLETED', attempts: rounds }), 24);
    });
  }

  /** The server yields between its reads, as on a busy machine. At the nth time it waits for `meanwhile`. */
  async function whileYielding<T>(
    nth: number,
    work: () => Promise<T>,
    meanwhile: () => Promise<unknown>,
  ): Promise<{ yielded: boolean; result: T }> {
    const failPoint = 'setYieldAllLocksHang';
    const { namespace } = database.collections.jobs;
    const { was } = (await database.admin({ setParameter: 1, internalQueryExecYieldIterations: 1 })) as {
      was: number;
    };
    const { count } = (await database.admin({
      configureFailPoint: failPoint,
      mode: { skip: nth },
      data: { namespace },
    })) as { count: number };
    try {
      const working = work();
      const waiting = { waitForFailPoint: failPoint, timesEntered: count + 1, maxTimeMS: 10_000 };
      const hangs = database.admin(waiting).then(() => true);
      const yielded = await Promise.race([hangs, working.then(() => false)]);
      hangs.catch(() => undefined);
      if (yielded) await meanwhile();
      await database.admin({ configureFailPoint: failPoint, mode: 'off' });
      return { yielded, result: await working };
    } finally {
      await database.admin({ configureFailPoint: failPoint, mode: 'off' });
      await database.admin({ setParameter: 1, internalQueryExecYieldIterations: was });
    }
  }

  for (const status of ['PENDING', 'QUEUED', 'RUNNING', 'COMPLETED', 'CANCELLED'] satisfies JobStatus[]) {
    it(`claimOne does not claim a job that became ${status} while the server was searching [C2]`, async () => {
      const { jobs } = database.collections;
      const grant = { token: 'mine', workerId: 'me', lockedUntil: timeAfter(60_000, clock.now()) };
      // With two task types the server reads two ranges of the index, and can yield in between.
      const filter = { queues: ['default'], taskTypes: ['work', 'other'], now: clock.now(), ...ANY };
      let yields = 0;
      for (; yields < 20; yields++) {
        await jobs.deleteMany();
        const { _id, ...fields } = aJob({ status });
        await jobs.insertOne(aJob({ _id }));
        const { yielded, result } = await whileYielding(
          yields,
          () => store.claimOne(filter, grant),
          () => jobs.updateOne({ _id }, { $set: fields }),
        );
        if (!yielded) break;
        assert.equal(result, null, `claimed after yield ${yields}`);
        assert.deepEqual(await jobs.findOne({ _id }), { _id, ...fields });
      }
      assert.ok(yields > 1 && yields < 20, `the server yielded ${yields} times`);
    });
  }

  it('pickMany claims a job once when it is rescheduled during the search and found twice [C2]', async () => {
    const { jobs } = database.collections;
    const [early, ...others] = [0, 1, 2, 3].map((ms) => aJob({ nextRunAt: timeAfter(ms - 10, clock.now()) }));
    let foundTwice = 0;
    let yields = 0;
    for (; yields < 40; yields++) {
      await jobs.deleteMany();
      await jobs.insertMany([early!, ...others]);
      const events = new EventBus(`after ${yields} yields`);
      onMeasurement(events.workerId, 'claim', ({ found }) => (foundTwice += found > 4 ? 1 : 0));
      const mine = picker('mine', { events });
      const { yielded, result } = await whileYielding(
        yields,
        () => mine.pickMany({ ...ANY, slots: 10, prefetch: 0 }),
        () => jobs.updateOne({ _id: early!._id }, { $set: { nextRunAt: clock.now() } }),
      );
      if (!yielded) break;
      const ids = result.map(({ job }) => job._id);
      assert.equal(new Set(ids).size, ids.length, `claimed the same job twice after yield ${yields}`);
    }
    assert.ok(foundTwice > 0 && yields < 40, `${yields} yields, found twice ${foundTwice} times`);
  });
});
