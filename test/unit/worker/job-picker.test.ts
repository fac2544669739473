import assert from 'node:assert/strict';
import { mongo } from 'mongoose';
import type { JobDocument } from '../../../src/domain/job/job.js';
import type { DueFilter } from '../../../src/store/jobs/claim.js';
import type { LockGrant } from '../../../src/store/jobs/fence.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { JobPicker, type PickerDeps, type PickRequest } from '../../../src/worker/job-picker.js';
import type { UncertainClaim } from '../../../src/worker/uncertain-claims.js';
import { aRegistry } from '../../support/factories/handler-registry.js';
import { aJob } from '../../support/factories/job.js';
import { ManualClock } from '../../support/manual-clock.js';
import type { Measurements } from '../../../src/runtime/measurements.js';
import { recordMeasurements } from '../../support/measurements.js';
import { noInvalidJobs } from '../../support/no-invalid-jobs.js';

interface Batch {
  transition: 'claim' | 'buffer';
  ids: string[];
  fences: number[];
  grant: LockGrant;
}

const NOW = new Date('2026-01-01T00:00:00Z');
const jobs = (count: number, fields: Partial<JobDocument> = {}): JobDocument[] =>
  Array.from({ length: count }, () => aJob(fields));
const ids = (some: readonly Pick<JobDocument, '_id'>[]): string[] => some.map(({ _id }) => _id);

describe('JobPicker', () => {
  let clock: ManualClock;
  /** Milliseconds that each reply of the store takes. */
  let latency: number;
  let due: JobDocument[];
  /** Ids of due jobs that another worker claims first. */
  let taken: Set<string>;
  let random: number;
  let randomCalls: number;
  let finds: { filter: DueFilter; limit: number; skip: number }[];
  let singleClaims: { filter: DueFilter; grant: LockGrant }[];
  let batches: Batch[];
  let uncertain: UncertainClaim[];
  let rounds: Measurements['claim'][];
  let failing: (batch: Batch | undefined) => Error | undefined;

  beforeEach(() => {
    [due, finds, singleClaims, batches, uncertain, rounds] = [[], [], [], [], [], []];
    clock = new ManualClock(NOW);
    latency = 0;
    taken = new Set();
    random = 0.5;
    randomCalls = 0;
    failing = () => undefined;
  });

  interface PickerOptions {
    queues?: string[];
    taskTypes?: string[];
    /** Milliseconds by task type; a minute for the others. */
    leases?: Record<string, number>;
    usesMongos?: boolean;
    store?: PickerDeps['store'];
    invalidJobs?: PickerDeps['invalidJobs'];
  }

  function picker({
    queues = ['default'],
    taskTypes = ['work'],
    leases = {},
    usesMongos = false,
    store,
    invalidJobs = noInvalidJobs,
  }: PickerOptions = {}): JobPicker {
    const events = new EventBus('worker');
    rounds = recordMeasurements(events, 'claim');
    const registry = aRegistry();
    for (const taskType of taskTypes)
      registry.register(taskType, () => undefined, { lease: leases[taskType] ?? 60_000 });
    return new JobPicker({
      ...{ clock, events, registry, queues, usesMongos, invalidJobs },
      random: () => (randomCalls++, random),
      workerId: 'worker',
      uncertainClaims: { add: (claim) => uncertain.push(claim) },
      store: store ?? {
        claimOne: async (filter, grant) => {
          clock.advance(latency);
          singleClaims.push({ filter, grant });
          const error = failing(undefined);
          if (error !== undefined) throw error;
          return due[0] ?? null;
        },
        findDue: async (filter, limit, skip = 0) => {
          clock.advance(latency);
          finds.push({ filter, limit, skip });
          const { maxPriority = Infinity } = filter;
          const some = due.filter(({ priority }) => priority <= maxPriority);
          return some.slice(skip, skip + limit);
        },
        claimBatch: async (transition, some, grant) => {
          const batch = { transition, ids: ids(some), fences: some.map(({ fence }) => fence), grant };
          batches.push(batch);
          clock.advance(latency);
          const error = failing(batch);
          if (error !== undefined) throw error;
          return some.filter(({ _id }) => !taken.has(_id)).length;
        },
        findClaimed: async (some) => due.filter(({ _id }) => some.includes(_id) && !taken.has(_id)),
      },
    });
  }

  const request = (slots: number, prefetch = 0, fields: Partial<PickRequest> = {}): PickRequest => ({
    slots,
    prefetch,
    withoutCrashSuspects: false,
    exclude: [],
    ...fields,
  });

  async function pickIds(slots: number, prefetch = 0, options: PickerOptions = {}): Promise<string[]> {
    const claimed = await picker(options).pick(request(slots, prefetch));
    return ids(claimed.map(({ job }) => job));
  }

  describe('if the process freezes while a claim is prepared', () => {
    for (const slots of [1, 2]) {
      it(`ends the lock of ${slots} jobs here before the stored lock expires`, async () => {
        /** Freezes for 30 s after every look at the time. */
        class FreezingClock extends ManualClock {
          override now(): Date {
            const now = super.now();
            this.advance(30_000);
            return now;
          }
        }
        clock = new FreezingClock(NOW);
        due = jobs(slots);
        const [claimed] = await picker().pick(request(slots));
        const { grant } = singleClaims[0] ?? batches[0]!;
        const storedUntil = grant.lockedUntil.getTime() - NOW.getTime();
        assert.equal(claimed!.sentAt + claimed!.lease <= storedUntil, true, `sent at ${claimed!.sentAt}`);
      });
    }
  });

  describe('for one free slot', () => {
    it('claims the first due job with one write', async () => {
      due = jobs(2);
      const claimed = await picker().pick(
        request(1, 0, { withoutCrashSuspects: true, exclude: ['running-here'] }),
      );
      assert.deepEqual([singleClaims.length, finds.length, batches.length], [1, 0, 0]);
      const { filter, grant } = singleClaims[0]!;
      const expected = { queues: ['default'], taskTypes: ['work'], now: NOW };
      assert.deepEqual(filter, { ...expected, withoutCrashSuspects: true, exclude: ['running-here'] });
      assert.deepEqual([grant.workerId, grant.lockedUntil], ['worker', new Date('2026-01-01T00:01:00Z')]);
      assert.deepEqual(claimed, [{ job: due[0], token: grant.token, lease: 60_000, sentAt: 0 }]);
    });

    it('claims by id through mongos, where a write without the id is slow [B19]', async () => {
      due = jobs(2);
      const claimed = await picker({ usesMongos: true }).pick(request(1));
      assert.deepEqual(
        claimed.map(({ job }) => job._id),
        ids(due.slice(0, 1)),
      );
      assert.deepEqual([singleClaims.length, finds.length, batches.length], [0, 1, 1]);
    });

    it('claims nothing when nothing is due', async () => {
      assert.deepEqual(await pickIds(1), []);
      assert.deepEqual(rounds, [{ wanted: 1, found: 0, claimed: 0 }]);
    });

    it('reads first when the lease depends on the task type', async () => {
      due = [aJob({ taskType: 'long' })];
      assert.deepEqual(
        await pickIds(1, 0, { taskTypes: ['work', 'long'], leases: { long: 300_000 } }),
        ids(due),
      );
      assert.equal(singleClaims.length, 0);
      assert.deepEqual(batches[0]?.grant.lockedUntil, new Date('2026-01-01T00:05:00Z'));
    });

    it('reads first when there are more pairs of queue and task type than the server can merge', async () => {
      due = jobs(1);
      const types = Array.from({ length: 100 }, (_, i) => `type-${i}`);
      await pickIds(1, 0, { taskTypes: types, queues: ['a', 'b'] });
      assert.deepEqual([singleClaims.length, finds.length], [1, 0]);
      await pickIds(1, 0, { taskTypes: types, queues: ['a', 'b', 'c'] });
      assert.deepEqual([singleClaims.length, finds.length], [1, 1]);
    });

    it('reports only the last claim, after malformed jobs', async () => {
      due = [{ ...jobs(1)[0]!, invalid: { reason: '', fields: [], stored: {} } }];
      failing = () => (singleClaims.length < 3 ? undefined : new mongo.MongoNetworkError('reply lost'));
      const invalidJobs = { ...noInvalidJobs, end: async () => undefined };
      await assert.rejects(picker({ invalidJobs }).pick(request(1)), /reply lost/);
      assert.deepEqual(
        uncertain.map(({ token }) => token),
        [singleClaims[2]?.grant.token],
      );
    });

    it('reports the claim of a malformed job that could not be ended', async () => {
      due = [{ ...jobs(1)[0]!, invalid: { reason: '', fields: [], stored: {} } }];
      const end = (): Promise<void> => Promise.reject(new mongo.MongoNetworkError('reply lost'));
      await assert.rejects(picker({ invalidJobs: { ...noInvalidJobs, end } }).pick(request(1)), /reply lost/);
      assert.deepEqual(uncertain, [{ token: singleClaims[0]?.grant.token, ids: undefined, lease: 60_000 }]);
    });

    it('reports a claim whose result is unknown', async () => {
      failing = () => new mongo.MongoNetworkError('reply lost');
      await assert.rejects(picker().pick(request(1)), /reply lost/);
      assert.deepEqual(uncertain, [{ token: singleClaims[0]?.grant.token, ids: undefined, lease: 60_000 }]);
    });
  });

  it('sends no query without handlers', async () => {
    assert.deepEqual(await pickIds(5, 5, { taskTypes: [] }), []);
    assert.deepEqual([singleClaims.length, finds.length, rounds.length], [0, 0, 0]);
  });

  it('reports how many jobs it wanted, found and claimed, and whether other workers were faster', async () => {
    due = jobs(3);
    taken.add(due[1]!._id);
    const one = picker();
    await one.pick(request(2, 3));
    assert.deepEqual(rounds, [{ wanted: 5, found: 3, claimed: 2 }]);
    assert.equal(one.isContended, true);
    due = [];
    await one.pick(request(1));
    assert.deepEqual(rounds[1], { wanted: 1, found: 0, claimed: 0 });
    assert.equal(one.isContended, false);
  });

  describe('for several jobs', () => {
    it('claims them in order, the first for free slots and the rest as prefetched', async () => {
      due = jobs(10);
      assert.deepEqual(await pickIds(2, 3), ids(due.slice(0, 5)));
      assert.deepEqual(finds[0]?.limit, 5);
      assert.deepEqual(
        batches.map(({ transition, ids }) => [transition, ids]),
        [
          ['claim', ids(due.slice(0, 2))],
          ['buffer', ids(due.slice(2, 5))],
        ],
      );
    });

    it('returns the jobs as they are after the claim', async () => {
      due = jobs(2, { fence: 3 });
      const claimed = await picker().pick(request(1, 1));
      const fields = claimed.map(({ job }) => [
        job.status,
        job.fence,
        job.lockedBy,
        job.startedAt,
        job.queuedAt,
      ]);
      assert.deepEqual(fields, [
        ['RUNNING', 4, 'worker', NOW, NOW],
        ['QUEUED', 4, 'worker', null, NOW],
      ]);
      for (const { job, token } of claimed) assert.equal(job.lockToken, token);
    });

    it('groups them by fence and lease, each group with its own token', async () => {
      const [a, b, c, d] = [aJob(), aJob({ fence: 2 }), aJob({ taskType: 'long' }), aJob()];
      due = [a, b, c, d];
      const options = { taskTypes: ['work', 'long'], leases: { long: 300_000 } };
      assert.deepEqual((await pickIds(4, 0, options)).sort(), ids(due).sort());
      assert.deepEqual(
        batches.map(({ ids }) => ids),
        [ids([a, d]), ids([b]), ids([c])],
      );
      for (const { fences } of batches) assert.equal(new Set(fences).size, 1);
      assert.equal(new Set(batches.map(({ grant }) => grant.token)).size, 3);
      assert.deepEqual(batches[2]?.grant.lockedUntil, new Date('2026-01-01T00:05:00Z'));
    });

    it('never uses a token twice', async () => {
      due = jobs(3);
      const one = picker();
      for (let i = 0; i < 5; i++) await one.pick(request(3));
      assert.equal(new Set(batches.map(({ grant }) => grant.token)).size, 5);
    });

    it('returns only jobs it really claimed', async () => {
      due = jobs(4);
      taken = new Set(ids(due.slice(0, 2)));
      assert.deepEqual(await pickIds(4), ids(due.slice(2)));
    });

    it('counts leases from before the read', async () => {
      due = jobs(2);
      latency = 100;
      const claimed = [...(await picker().pick(request(2))), ...(await picker().pick(request(1)))];
      assert.deepEqual(
        claimed.map(({ sentAt }) => sentAt),
        [0, 0, 200],
      );
    });
  });

  describe('crash suspects', () => {
    it('are claimed one at a time, for a free slot', async () => {
      const suspects = [aJob({ crashes: 1 }), aJob({ lostWhileQueued: 1 })];
      const others = jobs(3);
      due = [others[0]!, ...suspects, others[1]!, others[2]!];
      assert.deepEqual(await pickIds(1, 4), ids([suspects[0]!, ...others]));
      assert.deepEqual(batches[0]?.transition, 'claim');
      assert.deepEqual(batches[0]?.ids, ids([suspects[0]!]));
    });

    it('are never prefetched', async () => {
      const others = jobs(2);
      due = [aJob({ crashes: 2 }), ...others];
      assert.deepEqual(await pickIds(0, 3), ids(others));
    });
  });

  it('does not choose at random until it loses jobs to other workers', async () => {
    due = jobs(16);
    const one = picker();
    for (let i = 0; i < 3; i++) await one.pick(request(2));
    assert.equal(randomCalls, 0);
  });

  describe('after it lost jobs to other workers', () => {
    async function contended(options: PickerOptions = {}): Promise<JobPicker> {
      const one = picker(options);
      due = jobs(4);
      taken = new Set(ids(due));
      assert.deepEqual(await one.pick(request(2)), []);
      taken.clear();
      batches = [];
      return one;
    }

    it('chooses at random from a wider window', async () => {
      const one = await contended();
      due = jobs(16);
      random = 0.5;
      const got = await one.pick(request(2));
      assert.deepEqual(
        finds.slice(1).map(({ limit, skip }) => [limit, skip]),
        [
          [1, 0],
          [2, 7],
        ],
      );
      assert.deepEqual(ids(got.map(({ job }) => job)), ids(due.slice(7, 9)));
    });

    it('claims no more than it wants, whatever the random choice', async () => {
      for (const value of [0, 0.3, 0.9999]) {
        const one = await contended();
        due = jobs(16);
        random = value;
        const got = ids((await one.pick(request(2))).map(({ job }) => job));
        assert.equal(got.length, 2);
        assert.ok(got.every((id) => ids(due).includes(id)));
      }
    });

    it('wants at most 250 jobs at a time, to lose fewer', async () => {
      const one = await contended();
      due = jobs(600);
      random = 0;
      assert.equal((await one.pick(request(100, 900))).length, 250);
      assert.equal(one.isContended, true, 'more jobs are due, although the claim was smaller than requested');
    });

    it('stays within the most urgent priority, and takes its first jobs when there are few', async () => {
      const one = await contended();
      const urgent = jobs(3, { priority: 1 });
      due = [...urgent, ...jobs(13)];
      random = 0.2;
      assert.deepEqual(ids((await one.pick(request(2))).map(({ job }) => job)), ids(urgent.slice(2)));
      random = 0.9999;
      assert.deepEqual(ids((await one.pick(request(2))).map(({ job }) => job)), ids(urgent.slice(0, 2)));
    });

    it('returns to the first jobs after sixteen rounds without a loss, or when nothing is left', async () => {
      const one = await contended();
      due = jobs(16);
      for (let i = 0; i < 16; i++) await one.pick(request(2));
      assert.equal(randomCalls, 16);
      await one.pick(request(2));
      assert.deepEqual([randomCalls, one.isContended], [16, false]);

      const other = await contended();
      due = [];
      assert.deepEqual(await other.pick(request(2)), []);
      assert.equal(other.isContended, false);
    });
  });

  describe('after an error', () => {
    it('reports the jobs it may have claimed', async () => {
      due = jobs(2);
      failing = () => new Error('reply lost');
      await assert.rejects(picker().pick(request(2)), /reply lost/);
      assert.deepEqual(uncertain, [{ token: batches[0]?.grant.token, ids: ids(due), lease: 60_000 }]);
    });

    it('keeps the jobs that other claims of the same round returned', async () => {
      due = [aJob(), aJob({ fence: 1 })];
      failing = (batch) => (batch?.fences[0] === 1 ? new Error('reply lost') : undefined);
      assert.deepEqual(await pickIds(2), ids(due.slice(0, 1)));
      assert.deepEqual(
        uncertain.map(({ ids }) => ids),
        [ids(due.slice(1))],
      );
    });

    it('reports no uncertain claim when a read fails', async () => {
      const one = picker();
      due = jobs(2);
      const findDue = (): Promise<never> => Promise.reject(new Error('no answer'));
      const store = { findDue, claimOne: findDue, claimBatch: findDue, findClaimed: findDue };
      await assert.rejects(picker({ store }).pick(request(2)), /no answer/);
      assert.deepEqual(uncertain, []);
      assert.equal((await one.pick(request(2))).length, 2);
    });
  });
});
