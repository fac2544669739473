import assert from 'node:assert/strict';
import type { JobDocument } from '../../../src/domain/job.js';
import type { DueFilter } from '../../../src/store/claim.js';
import type { LockGrant } from '../../../src/store/lock-fields.js';
import type { DoubtfulClaim } from '../../../src/worker/claimed-job.js';
import {
  JobPicker,
  type ClaimRound,
  type PickerParts,
  type PickRequest,
} from '../../../src/worker/job-picker.js';
import { aJob } from '../../support/a-job.js';
import { ManualClock } from '../../support/manual-clock.js';

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
  /** Milliseconds that each answer of the store takes. */
  let latency: number;
  let due: JobDocument[];
  let taken: Set<string>;
  let random: number;
  let chances: number;
  let finds: { filter: DueFilter; limit: number; skip: number }[];
  let singles: { filter: DueFilter; grant: LockGrant }[];
  let batches: Batch[];
  let doubts: DoubtfulClaim[];
  let rounds: ClaimRound[];
  let failing: (batch: Batch | undefined) => Error | undefined;

  beforeEach(() => {
    [due, finds, singles, batches, doubts, rounds] = [[], [], [], [], [], []];
    clock = new ManualClock(NOW);
    latency = 0;
    taken = new Set();
    random = 0.5;
    chances = 0;
    failing = () => undefined;
  });

  function picker(parts: Partial<PickerParts> = {}): JobPicker {
    return new JobPicker({
      clock,
      random: () => (chances++, random),
      workerId: 'worker',
      queues: ['default'],
      taskTypes: () => ['work'],
      leaseOf: () => 60_000,
      onRound: (round) => rounds.push(round),
      onDoubt: (doubt) => doubts.push(doubt),
      store: {
        claimOne: async (filter, grant) => {
          clock.advance(latency);
          singles.push({ filter, grant });
          const error = failing(undefined);
          if (error !== undefined) throw error;
          return due[0] ?? null;
        },
        findDue: async (filter, limit, skip = 0) => {
          clock.advance(latency);
          finds.push({ filter, limit, skip });
          const { mostPriority = Infinity } = filter;
          const some = due.filter(({ priority }) => priority <= mostPriority);
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
      ...parts,
    });
  }

  const request = (slots: number, buffer = 0, more: Partial<PickRequest> = {}): PickRequest => ({
    slots,
    buffer,
    withoutSuspects: false,
    exclude: [],
    ...more,
  });

  async function picked(slots: number, buffer = 0, parts: Partial<PickerParts> = {}): Promise<string[]> {
    const claimed = await picker(parts).pick(request(slots, buffer));
    return ids(claimed.map(({ job }) => job));
  }

  describe('for one free slot', () => {
    it('takes the first due job in one write', async () => {
      due = jobs(2);
      const claimed = await picker().pick(request(1, 0, { withoutSuspects: true, exclude: ['zombie'] }));
      assert.deepEqual([singles.length, finds.length, batches.length], [1, 0, 0]);
      const { filter, grant } = singles[0]!;
      const expected = { queues: ['default'], taskTypes: ['work'], now: NOW };
      assert.deepEqual(filter, { ...expected, withoutSuspects: true, exclude: ['zombie'] });
      assert.deepEqual([grant.workerId, grant.lockedUntil], ['worker', new Date('2026-01-01T00:01:00Z')]);
      assert.deepEqual(claimed, [{ job: due[0], token: grant.token, lease: 60_000, sentAt: 0 }]);
    });

    it('finds nothing when nothing is due', async () => {
      assert.deepEqual(await picked(1), []);
      assert.deepEqual(rounds, [{ wanted: 1, found: 0, claimed: 0 }]);
    });

    it('reads first when the lease hangs on the job', async () => {
      due = [aJob({ taskType: 'long' })];
      const leaseOf = (taskType: string): number => (taskType === 'long' ? 300_000 : 60_000);
      assert.deepEqual(await picked(1, 0, { taskTypes: () => ['work', 'long'], leaseOf }), ids(due));
      assert.equal(singles.length, 0);
      assert.deepEqual(batches[0]?.grant.lockedUntil, new Date('2026-01-01T00:05:00Z'));
    });

    it('reads first when there are more pairs of queue and task type than the server merges', async () => {
      due = jobs(1);
      const types = Array.from({ length: 100 }, (_, i) => `type-${i}`);
      await picked(1, 0, { taskTypes: () => types, queues: ['a', 'b'] });
      assert.deepEqual([singles.length, finds.length], [1, 0]);
      await picked(1, 0, { taskTypes: () => types, queues: ['a', 'b', 'c'] });
      assert.deepEqual([singles.length, finds.length], [1, 1]);
    });

    it('tells of a claim whose effect is not known', async () => {
      failing = () => new Error('reply lost');
      await assert.rejects(picker().pick(request(1)), /reply lost/);
      assert.deepEqual(doubts, [{ token: singles[0]?.grant.token, ids: undefined, lease: 60_000 }]);
    });
  });

  it('asks for nothing without handlers', async () => {
    assert.deepEqual(await picked(5, 5, { taskTypes: () => [] }), []);
    assert.deepEqual([singles.length, finds.length, rounds.length], [0, 0, 0]);
  });

  it('tells how much it wanted, found and got, and whether others were first', async () => {
    due = jobs(3);
    taken.add(due[1]!._id);
    const subject = picker();
    await subject.pick(request(2, 3));
    assert.deepEqual(rounds, [{ wanted: 5, found: 3, claimed: 2 }]);
    assert.equal(subject.isContended, true);
    due = [];
    await subject.pick(request(1));
    assert.deepEqual(rounds[1], { wanted: 1, found: 0, claimed: 0 });
    assert.equal(subject.isContended, false);
  });

  describe('for several', () => {
    it('takes them in order, the first ones into the slots, the rest into the buffer', async () => {
      due = jobs(10);
      assert.deepEqual(await picked(2, 3), ids(due.slice(0, 5)));
      assert.deepEqual(finds[0]?.limit, 5);
      assert.deepEqual(
        batches.map(({ transition, ids }) => [transition, ids]),
        [
          ['claim', ids(due.slice(0, 2))],
          ['buffer', ids(due.slice(2, 5))],
        ],
      );
    });

    it('knows the jobs as they are after the claim', async () => {
      due = jobs(2, { fence: 3 });
      const claimed = await picker().pick(request(1, 1));
      const shown = claimed.map(({ job }) => [
        job.status,
        job.fence,
        job.lockedBy,
        job.startedAt,
        job.queuedAt,
      ]);
      assert.deepEqual(shown, [
        ['RUNNING', 4, 'worker', NOW, NOW],
        ['QUEUED', 4, 'worker', null, NOW],
      ]);
      for (const { job, token } of claimed) assert.equal(job.lockToken, token);
    });

    it('groups by the fence it read and by the lease, each with a token of its own', async () => {
      const leaseOf = (taskType: string): number => (taskType === 'long' ? 300_000 : 60_000);
      const [a, b, c, d] = [aJob(), aJob({ fence: 2 }), aJob({ taskType: 'long' }), aJob()];
      due = [a, b, c, d];
      const parts = { taskTypes: () => ['work', 'long'], leaseOf };
      assert.deepEqual((await picked(4, 0, parts)).sort(), ids(due).sort());
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

    it('gives back only what it really got', async () => {
      due = jobs(4);
      taken = new Set(ids(due.slice(0, 2)));
      assert.deepEqual(await picked(4), ids(due.slice(2)));
    });

    it('counts its locks from before it began to read', async () => {
      due = jobs(2);
      latency = 100;
      const claimed = [...(await picker().pick(request(2))), ...(await picker().pick(request(1)))];
      assert.deepEqual(
        claimed.map(({ sentAt }) => sentAt),
        [0, 0, 200],
      );
    });
  });

  describe('suspects', () => {
    it('one at a time, into a free slot', async () => {
      const suspects = [aJob({ crashes: 1 }), aJob({ abandoned: 1 })];
      const others = jobs(3);
      due = [others[0]!, ...suspects, others[1]!, others[2]!];
      const got = await picked(1, 4);
      assert.deepEqual(got, ids([suspects[0]!, ...others]));
      assert.deepEqual(batches[0]?.transition, 'claim');
      assert.deepEqual(batches[0]?.ids, ids([suspects[0]!]));
    });

    it('never into the buffer', async () => {
      const others = jobs(2);
      due = [aJob({ crashes: 2 }), ...others];
      assert.deepEqual(await picked(0, 3), ids(others));
    });
  });

  describe('after a lost round', () => {
    async function contended(parts: Partial<PickerParts> = {}): Promise<JobPicker> {
      const one = picker(parts);
      due = jobs(4);
      taken = new Set(ids(due));
      assert.deepEqual(await one.pick(request(2)), []);
      taken.clear();
      batches = [];
      return one;
    }

    it('looks elsewhere in a wider window', async () => {
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

    it('takes no more than it wants, wherever chance leads', async () => {
      for (const chance of [0, 0.3, 0.9999]) {
        const one = await contended();
        due = jobs(16);
        random = chance;
        const got = ids((await one.pick(request(2))).map(({ job }) => job));
        assert.equal(got.length, 2);
        assert.ok(got.every((id) => ids(due).includes(id)));
      }
    });

    it('wants no more than 250 at a time: less to lose', async () => {
      const one = await contended();
      due = jobs(600);
      random = 0;
      assert.equal((await one.pick(request(100, 900))).length, 250);
      assert.equal(one.isContended, true, 'there is more, although that is less than was asked for');
    });

    it('stays within the most urgent priority, and takes its head when there are not so many', async () => {
      const one = await contended();
      const urgent = jobs(3, { priority: 1 });
      due = [...urgent, ...jobs(13)];
      random = 0.2;
      assert.deepEqual(ids((await one.pick(request(2))).map(({ job }) => job)), ids(urgent.slice(2)));
      random = 0.9999;
      assert.deepEqual(ids((await one.pick(request(2))).map(({ job }) => job)), ids(urgent.slice(0, 2)));
    });

    it('goes back to the head after sixteen rounds without a loss, or when there is nothing left', async () => {
      const one = await contended();
      due = jobs(16);
      for (let i = 0; i < 16; i++) await one.pick(request(2));
      assert.equal(chances, 16);
      await one.pick(request(2));
      assert.deepEqual([chances, one.isContended], [16, false]);

      const other = await contended();
      due = [];
      assert.deepEqual(await other.pick(request(2)), []);
      assert.equal(other.isContended, false);
    });

    it('and only then leaves it to chance', async () => {
      due = jobs(16);
      const one = picker();
      for (let i = 0; i < 3; i++) await one.pick(request(2));
      assert.equal(chances, 0);
    });
  });

  describe('after an error', () => {
    it('tells of the jobs it may have taken', async () => {
      due = jobs(2);
      failing = () => new Error('reply lost');
      await assert.rejects(picker().pick(request(2)), /reply lost/);
      assert.deepEqual(doubts, [{ token: batches[0]?.grant.token, ids: ids(due), lease: 60_000 }]);
    });

    it('keeps what other claims of the round got', async () => {
      due = [aJob(), aJob({ fence: 1 })];
      failing = (batch) => (batch?.fences[0] === 1 ? new Error('reply lost') : undefined);
      assert.deepEqual(await picked(2), ids(due.slice(0, 1)));
      assert.deepEqual(
        doubts.map(({ ids }) => ids),
        [ids(due.slice(1))],
      );
    });

    it('has no doubt about a read', async () => {
      const one = picker();
      due = jobs(2);
      const findDue = (): Promise<never> => Promise.reject(new Error('no answer'));
      const store = { findDue, claimOne: findDue, claimBatch: findDue, findClaimed: findDue };
      await assert.rejects(picker({ store }).pick(request(2)), /no answer/);
      assert.deepEqual(doubts, []);
      assert.equal((await one.pick(request(2))).length, 2);
    });
  });
});
