import assert from 'node:assert/strict';
import type { JobDocument } from '../../../src/domain/job/job.js';
import type { DueFilter, DueJob } from '../../../src/store/jobs/claim.js';
import { createStore, type Store } from '../../../src/store/store.js';
import { aJob } from '../../support/factories/job.js';
import { TestDatabase } from '../../support/database.js';
import { timeAfter as later, START } from '../../support/instants.js';
import { profileQueries, type QueryStats } from '../../support/query-profiler.js';

const FINISHED = 200_000;
const FUTURE = 100_000;
const NOW = later(1000);
const TYPES = Array.from({ length: 201 }, (_, index) => `type-${index}`);
const QUEUES = Array.from({ length: 5 }, (_, index) => `queue-${index}`);
const PAIRS = 200 * QUEUES.length;

/** What the server did for one command. */
describe('index keys examined with 200,000 finished and 100,000 future jobs', () => {
  const database = new TestDatabase();
  let store: Store;

  before(async function () {
    this.timeout(60_000);
    await database.open();
    store = createStore(database.collections);
    await fill('COMPLETED', FINISHED);
    // Everywhere a claim looks: in each of the queues and task types.
    await fill('SCHEDULED', FUTURE);
  });

  after(() => database.close());

  afterEach(async () => {
    await database.collections.jobs.deleteMany({ nonce: 'of a test' });
  });

  /** Made by the server itself: sending them would take several times as long. */
  async function fill(status: 'COMPLETED' | 'SCHEDULED', count: number): Promise<void> {
    const { _id: _, ...fields } = aJob({ status, nextRunAt: later(86_400_000) });
    const pick = (list: string[], step: number): object => ({
      $arrayElemAt: [list, { $mod: [{ $trunc: { $divide: ['$n', step] } }, list.length] }],
    });
    await database.connection
      .getClient()
      .db(database.connection.name)
      .aggregate([
        { $documents: [{ ...fields, n: 0 }] },
        { $set: { n: { $range: [0, count] } } },
        { $unwind: '$n' },
        {
          $set: {
            _id: { $concat: [`${status}-`, { $toString: '$n' }] },
            queue: pick(QUEUES, 1),
            taskType: pick(TYPES, QUEUES.length),
          },
        },
        { $unset: 'n' },
        { $merge: { into: 'jobs', whenMatched: 'fail' } },
      ])
      .toArray();
  }

  async function insert(
    count: number,
    fields: (index: number) => Partial<JobDocument>,
  ): Promise<JobDocument[]> {
    const jobs = Array.from({ length: count }, (_, index) =>
      aJob({ nonce: 'of a test', nextRunAt: later(index), ...fields(index) }),
    );
    await database.collections.jobs.insertMany(jobs);
    return jobs;
  }

  const measure = (operation: () => Promise<unknown>): Promise<QueryStats[]> =>
    profileQueries(database, ['jobs'], operation);

  function filter(fields: Partial<DueFilter> = {}): DueFilter {
    return {
      queues: ['queue-0'],
      taskTypes: TYPES.slice(0, 40),
      now: NOW,
      withoutCrashSuspects: false,
      exclude: [],
      ...fields,
    };
  }

  /** At most this many keys, no document that is not wanted, and nothing sorted in memory. */
  function assertBounded(work: QueryStats[], keys: number, documents = keys): void {
    const total = work.reduce((sum, one) => sum + one.keys, 0);
    const read = work.reduce((sum, one) => sum + one.documents, 0);
    const shown = JSON.stringify(work.map(({ stages: [top], ...one }) => ({ ...one, top })));
    assert.ok(work.length > 0, 'nothing was measured');
    assert.ok(total <= keys, `${total} keys instead of at most ${keys}: ${shown}`);
    assert.ok(read <= documents, `${read} documents instead of at most ${documents}: ${shown}`);
    for (const { stages } of work) {
      assert.ok(!stages.includes('SORT'), 'a blocking sort');
      assert.ok(!stages.includes('COLLSCAN'), 'a scan of the collection');
    }
  }

  const byPair = (index: number): Partial<JobDocument> => ({
    queue: QUEUES[index % QUEUES.length]!,
    taskType: TYPES[Math.floor(index / QUEUES.length) % 40]!,
  });

  it('claiming 100 jobs of 40 task types: 139 keys [C2]', async () => {
    await insert(1000, (index) => ({ queue: 'queue-0', taskType: TYPES[index % 40]! }));
    let found: DueJob[] = [];
    const work = await measure(async () => (found = await store.findDue(filter(), 100)));
    assert.equal(found.length, 100);
    assertBounded(work, 139, 100);
  });

  it('claiming 100 jobs of 200 pairs of queue and task type: 299 keys [C2]', async () => {
    await insert(2000, byPair);
    let found: DueJob[] = [];
    const work = await measure(async () => (found = await store.findDue(filter({ queues: QUEUES }), 100)));
    assert.equal(found.length, 100);
    assertBounded(work, 299, 100);
  });

  it('claiming 100 jobs of 201 pairs: two queries that read at most twice as much [C2]', async () => {
    await insert(2010, (index) => ({ queue: 'queue-0', taskType: TYPES[index % 201]! }));
    let found: DueJob[] = [];
    const work = await measure(async () => (found = await store.findDue(filter({ taskTypes: TYPES }), 100)));
    assert.equal(found.length, 100);
    assert.equal(work.length, 2);
    assertBounded(work, 299 + 10, 110);
  });

  it('claiming 100 jobs that are not first in line: excluded jobs are read, and nothing is sorted [C2]', async () => {
    await insert(1000, (index) => ({ queue: 'queue-0', taskType: TYPES[index % 40]! }));
    let found: DueJob[] = [];
    const elsewhere = { ...filter(), mostPriority: 100 };
    const work = await measure(async () => (found = await store.findDue(elsewhere, 100, 300)));
    assert.equal(found.length, 100);
    assertBounded(work, 439, 400);
  });

  it('claiming one job: one key per pair [C2]', async () => {
    await insert(1000, byPair);
    const grant = { token: 'mine', workerId: 'me', lockedUntil: later(60_000) };
    let claimed: JobDocument | null = null;
    const work = await measure(
      async () => (claimed = await store.claimOne(filter({ queues: QUEUES }), grant)),
    );
    assert.equal((claimed as JobDocument | null)?.lockToken, 'mine');
    assertBounded(work, 200 + 1, 2);
  });

  it('an idle poll: two keys per pair and no document [C2]', async () => {
    assertBounded(await measure(() => store.findDue(filter(), 100)), 80, 0);
    assertBounded(await measure(() => store.findDue(filter({ queues: QUEUES }), 100)), 400, 0);
    assertBounded(await measure(() => store.findDue(filter({ taskTypes: TYPES }), 100)), 402, 0);
  });

  it('an idle poll with a backlog in other queues and task types: two keys per pair [C2] [J11]', async () => {
    await insert(10_000, (index) =>
      index % 2 === 0
        ? { queue: 'foreign', taskType: TYPES[index % 40]! }
        : { queue: 'queue-0', taskType: 'foreign' },
    );
    assertBounded(await measure(() => store.findDue(filter(), 100)), 80, 0);
  });

  it('claiming a batch: only the documents of the batch [C2]', async () => {
    const jobs = await insert(100, byPair);
    const grant = { token: 'mine', workerId: 'me', lockedUntil: later(60_000) };
    let taken = 0;
    const work = await measure(async () => (taken = await store.claimBatch('claim', jobs, grant, NOW)));
    assert.equal(taken, 100);
    assertBounded(work, 201, 100);
  });

  it('renewing and settling a batch: only the documents of the batch [C8]', async () => {
    const jobs = await insert(100, () => ({ status: 'RUNNING', lockToken: 'mine' }));
    const leases = jobs.map(({ _id: id }) => ({ kind: 'job', id, token: 'mine', length: 1000 }) as const);
    assertBounded(await measure(() => store.renew(leases, NOW)), 201, 100);
    const times = { startedAt: START, finishedAt: NOW, token: 'mine', workerId: 'me' };
    const settlements = jobs.map(({ _id: jobId }, index) => ({
      ...times,
      jobId,
      outcome: { kind: 'completed', result: index % 2 === 0 ? null : 'done' } as const,
    }));
    assertBounded(await measure(() => store.settle(settlements)), 201, 100);
  });

  it('finding expired locks: only jobs with expired locks [C9]', async () => {
    await insert(100, (index) => ({ status: 'RUNNING', lockedUntil: later(index * 20) }));
    let found: JobDocument[] = [];
    const work = await measure(async () => (found = await store.findExpired(NOW, 100)));
    assert.equal(found.length, 50);
    assertBounded(work, 51, 50);
    await database.collections.jobs.deleteMany({ nonce: 'of a test' });
    assertBounded(await measure(() => store.findExpired(NOW, 100)), 1, 0);
  });

  it('releasing by token: only locked jobs', async () => {
    await insert(100, (index) => ({ status: 'QUEUED', lockToken: index < 10 ? 'doubtful' : 'other' }));
    assertBounded(await measure(() => store.releaseByToken('doubtful', NOW)), 2 * 101, 2 * 100);
  });

  it('finding the next due job: no documents after it [C1]', async () => {
    const query = { queues: QUEUES, taskTypes: TYPES, after: NOW, until: later(5000, NOW) };
    assertBounded(await measure(() => store.nextDueAt(query)), 1, 0);
    await insert(50, (index) => ({ queue: 'queue-0', taskType: 'type-0', nextRunAt: later(1 + index, NOW) }));
    assertBounded(await measure(() => store.nextDueAt(query)), 1, 1);
  });

  it('pruning: only jobs that are old enough [J13]', async () => {
    const before = later(-5000);
    const finished = { kind: 'finished', before, occurrencesBefore: before } as const;
    await insert(30, () => ({ status: 'FAILED', finishedAt: later(-10_000) }));
    assertBounded(await measure(() => store.prune({ ...finished, status: 'FAILED' }, 100)), 31 + 61, 60);
    assertBounded(await measure(() => store.prune({ ...finished, status: 'COMPLETED' }, 100)), 1, 0);
    await insert(20, () => ({ taskType: 'orphan', nextRunAt: later(-10_000) }));
    assertBounded(
      await measure(() => store.prune({ kind: 'orphans', knownTypes: TYPES, before }, 100)),
      21 + 41,
      40,
    );
    await insert(10, () => ({ status: 'RUNNING', lockedUntil: later(-10_000) }));
    assertBounded(await measure(() => store.prune({ kind: 'expired', before }, 100)), 11 + 21, 20);
  });

  it('the test data is as intended', async () => {
    const { jobs } = database.collections;
    assert.equal(await jobs.countDocuments({ status: 'COMPLETED' }), FINISHED);
    assert.equal(await jobs.countDocuments({ status: 'SCHEDULED' }), FUTURE);
    const pairs = await jobs
      .aggregate([
        { $match: { status: 'SCHEDULED' } },
        { $group: { _id: { queue: '$queue', taskType: '$taskType' } } },
        { $count: 'pairs' },
      ])
      .toArray();
    assert.ok((pairs[0]?.['pairs'] as number) >= PAIRS);
  });
});
