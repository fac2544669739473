import assert from 'node:assert/strict';
import type { JobDocument } from '../../../src/domain/job/job.js';
import type { DueFilter } from '../../../src/store/jobs/claim.js';
import type { LockGrant } from '../../../src/store/jobs/fence.js';
import type { SchedulerEvents } from '../../../src/domain/events.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { JobPicker, type PickerDeps, type PickRequest } from '../../../src/worker/job-picker.js';
import type { UncertainClaim } from '../../../src/worker/uncertain-claims.js';
import { aRegistry } from '../../support/factories/handler-registry.js';
import { aJob } from '../../support/factories/job.js';
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
  let doubts: UncertainClaim[];
  let rounds: SchedulerEvents['worker:claim'][];
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

  interface PickerOptions {
    queues?: string[];
    taskTypes?: string[];
    /** Milliseconds by task type; a minute for the others. */
    leases?: Record<string, number>;
    store?: PickerDeps['store'];
  }

  function picker({
    queues = ['default'],
    taskTypes = ['work'],
    leases = {},
    store,
  }: PickerOptions = {}): JobPicker {
    const events = new EventBus();
    events.on('worker:claim', (round) => rounds.push(round));
    const registry = aRegistry();
    for (const taskType of taskTypes)
      registry.register(taskType, () => undefined, { lease: leases[taskType] ?? 60_000 });
    return new JobPicker({
      ...{ clock, events, registry, queues },
      random: () => (chances++, random),
      workerId: 'worker',
      uncertainClaims: { add: (claim) => doubts.push(claim) },
      store: store ?? {
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

  const request = (slots: number, buffer = 0, more: Partial<PickRequest> = {}): PickRequest => ({
    slots,
    prefetch: buffer,
    withoutCrashSuspects: false,
    exclude: [],
    ...more,
  });

  async function picked(slots: number, buffer = 0, parts: PickerOptions = {}): Promise<string[]> {
    const claimed = await picker(parts).pick(request(slots, buffer));
    return ids(claimed.map(({ job }) => job));
  }

  describe('for one free slot', () => {
    it('claims the first due job with one write', async () => {
      due = jobs(2);
      const claimed = await picker().pick(request(1, 0, { withoutCrashSuspects: true, exclude: ['zombie'] }));
      assert.deepEqual([singles.length, finds.length, batches.length], [1, 0, 0]);
      const { filter, grant } = singles[0]!;
      const expected = { queues: ['default'], taskTypes: ['work'], now: NOW };
      assert.deepEqual(filter, { ...expected, withoutCrashSuspects: true, exclude: ['zombie'] });
      assert.deepEqual([grant.workerId, grant.lockedUntil], ['worker', new Date('2026-01-01T00:01:00Z')]);
      assert.deepEqual(claimed, [{ job: due[0], token: grant.token, lease: 60_000, sentAt: 0 }]);
    });

    it('claims nothing when nothing is due', async () => {
      assert.deepEqual(await picked(1), []);
      assert.deepEqual(rounds, [{ wanted: 1, found: 0, claimed: 0 }]);
    });

    it('reads first when the lease depends on the task type', async () => {
      due = [aJob({ taskType: 'long' })];
      assert.deepEqual(
        await picked(1, 0, { taskTypes: ['work', 'long'], leases: { long: 300_000 } }),
        ids(due),
      );
      assert.equal(singles.length, 0);
      assert.deepEqual(batches[0]?.grant.lockedUntil, new Date('2026-01-01T00:05:00Z'));
    });

    it('reads first when there are more pairs of queue and task type than the server can merge', async () => {
      due = jobs(1);
      const types = Array.from({ length: 100 }, (_, i) => `type-${i}`);
      await picked(1, 0, { taskTypes: types, queues: ['a', 'b'] });
      assert.deepEqual([singles.length, finds.length], [1, 0]);
      await picked(1, 0, { taskTypes: types, queues: ['a', 'b', 'c'] });
      assert.deepEqual([singles.length, finds.length], [1, 1]);
    });

    it('reports a claim whose result is unknown', async () => {
      failing = () => new Error('reply lost');
      await assert.rejects(picker().pick(request(1)), /reply lost/);
      assert.deepEqual(doubts, [{ token: singles[0]?.grant.token, ids: undefined, lease: 60_000 }]);
    });
  });

  it('sends no query without handlers', async () => {
    assert.deepEqual(await picked(5, 5, { taskTypes: [] }), []);
    assert.deepEqual([singles.length, finds.length, rounds.length], [0, 0, 0]);
  });

  it('returns how many jobs it wanted, found and claimed, and whether others were faster', async () => {
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

  describe('for several jobs', () => {
    it('claims them in order, the first for free slots and the rest as prefetched', async () => {
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

    it('returns the jobs as they are after the claim', async () => {
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

    it('groups them by fence and lease, each group with its own token', async () => {
      const [a, b, c, d] = [aJob(), aJob({ fence: 2 }), aJob({ taskType: 'long' }), aJob()];
      due = [a, b, c, d];
      const parts = { taskTypes: ['work', 'long'], leases: { long: 300_000 } };
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

    it('returns only jobs it really claimed', async () => {
      due = jobs(4);
      taken = new Set(ids(due.slice(0, 2)));
      assert.deepEqual(await picked(4), ids(due.slice(2)));
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
      const got = await picked(1, 4);
      assert.deepEqual(got, ids([suspects[0]!, ...others]));
      assert.deepEqual(batches[0]?.transition, 'claim');
      assert.deepEqual(batches[0]?.ids, ids([suspects[0]!]));
    });

    it('are never prefetched', async () => {
      const others = jobs(2);
      due = [aJob({ crashes: 2 }), ...others];
      assert.deepEqual(await picked(0, 3), ids(others));
    });
  });

  describe('after it lost jobs to other workers', () => {
    async function contended(parts: PickerOptions = {}): Promise<JobPicker> {
      const one = picker(parts);
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
      for (const chance of [0, 0.3, 0.9999]) {
        const one = await contended();
        due = jobs(16);
        random = chance;
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
      assert.equal(one.isContended, true, 'there is more, although that is less than was asked for');
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
      assert.equal(chances, 16);
      await one.pick(request(2));
      assert.deepEqual([chances, one.isContended], [16, false]);

      const other = await contended();
      due = [];
      assert.deepEqual(await other.pick(request(2)), []);
      assert.equal(other.isContended, false);
    });

    it('chooses at random only then', async () => {
      due = jobs(16);
      const one = picker();
      for (let i = 0; i < 3; i++) await one.pick(request(2));
      assert.equal(chances, 0);
    });
  });

  describe('after an error', () => {
    it('reports the jobs it may have claimed', async () => {
      due = jobs(2);
      failing = () => new Error('reply lost');
      await assert.rejects(picker().pick(request(2)), /reply lost/);
      assert.deepEqual(doubts, [{ token: batches[0]?.grant.token, ids: ids(due), lease: 60_000 }]);
    });

    it('keeps what other claims of the same round returned', async () => {
      due = [aJob(), aJob({ fence: 1 })];
      failing = (batch) => (batch?.fences[0] === 1 ? new Error('reply lost') : undefined);
      assert.deepEqual(await picked(2), ids(due.slice(0, 1)));
      assert.deepEqual(
        doubts.map(({ ids }) => ids),
        [ids(due.slice(1))],
      );
    });

    it('is certain about a read that failed', async () => {
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
