import assert from 'node:assert/strict';
import type { JobDocument } from '../../../src/domain/job/job.js';
import type { DueFilter } from '../../../src/store/jobs/claim.js';
import { createStore, type Store } from '../../../src/store/store.js';
import { aJob } from '../../support/factories/job.js';
import { collectionName, TestDatabase } from '../../support/database.js';
import { timeAfter, START } from '../../support/instants.js';
import { assertBounded } from '../../support/query-bounds.js';
import { profileQueries, type QueryStats } from '../../support/query-profiler.js';

const FINISHED = 200_000;
const FUTURE = 100_000;
const NOW = timeAfter(1000);
const TYPES = Array.from({ length: 201 }, (_, index) => `type-${index}`);
const QUEUES = Array.from({ length: 5 }, (_, index) => `queue-${index}`);
const PAIRS = 200 * QUEUES.length;

describe('index keys examined with 200,000 finished and 100,000 future jobs', () => {
  const database = new TestDatabase();
  let store: Store;

  before(async function () {
    this.timeout(60_000);
    await database.open();
    store = createStore(database.stored);
    await fill('COMPLETED', FINISHED);
    // In every queue and task type that claims search.
    await fill('SCHEDULED', FUTURE);
  });

  after(() => database.close());

  afterEach(async () => {
    await database.collections.jobs.deleteMany({ nonce: 'one test' });
  });

  /** Lets the server create the jobs, which is several times as fast as sending them. */
  async function fill(status: 'COMPLETED' | 'SCHEDULED', count: number): Promise<void> {
    const { _id: _, ...fields } = aJob({ status, nextRunAt: timeAfter(86_400_000) });
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
        { $merge: { into: collectionName('jobs'), whenMatched: 'fail' } },
      ])
      .toArray();
  }

  async function insert(
    count: number,
    fields: (index: number) => Partial<JobDocument>,
  ): Promise<JobDocument[]> {
    const jobs = Array.from({ length: count }, (_, index) =>
      aJob({ nonce: 'one test', nextRunAt: timeAfter(index), ...fields(index) }),
    );
    await database.collections.jobs.insertMany(jobs);
    return jobs;
  }

  const measure = (operation: () => Promise<unknown>): Promise<QueryStats[]> =>
    profileQueries(database, [collectionName('jobs')], operation);

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

  const byPair = (index: number): Partial<JobDocument> => ({
    queue: QUEUES[index % QUEUES.length]!,
    taskType: TYPES[Math.floor(index / QUEUES.length) % 40]!,
  });

  it('claiming 100 jobs of 40 task types: 139 keys [C2]', async () => {
    await insert(1000, (index) => ({ queue: 'queue-0', taskType: TYPES[index % 40]! }));
    let found: JobDocument[] = [];
    const work = await measure(async () => (found = await store.findDue(filter(), 100)));
    assert.equal(found.length, 100);
    assertBounded(work, 139, 100);
  });

  it('claiming 100 jobs of 200 pairs of queue and task type: 299 keys [C2]', async () => {
    await insert(2000, byPair);
    let found: JobDocument[] = [];
    const work = await measure(async () => (found = await store.findDue(filter({ queues: QUEUES }), 100)));
    assert.equal(found.length, 100);
    assertBounded(work, 299, 100);
  });

  it('claiming 100 jobs of 201 pairs: two queries that read at most twice as much [C2]', async () => {
    await insert(2010, (index) => ({ queue: 'queue-0', taskType: TYPES[index % 201]! }));
    let found: JobDocument[] = [];
    const work = await measure(async () => (found = await store.findDue(filter({ taskTypes: TYPES }), 100)));
    assert.equal(found.length, 100);
    assert.equal(work.length, 2);
    assertBounded(work, 299 + 10, 110);
  });

  it('claiming 100 jobs from a later position: the skipped jobs are read, and nothing is sorted [C2]', async () => {
    await insert(1000, (index) => ({ queue: 'queue-0', taskType: TYPES[index % 40]! }));
    let found: JobDocument[] = [];
    const skipped = { ...filter(), mostPriority: 100 };
    const work = await measure(async () => (found = await store.findDue(skipped, 100, 300)));
    assert.equal(found.length, 100);
    assertBounded(work, 439, 400);
  });

  it('claiming one job: one key per pair [C2]', async () => {
    await insert(1000, byPair);
    const grant = { token: 'mine', workerId: 'me', lockedUntil: timeAfter(60_000) };
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
        ? { queue: 'other', taskType: TYPES[index % 40]! }
        : { queue: 'queue-0', taskType: 'other' },
    );
    assertBounded(await measure(() => store.findDue(filter(), 100)), 80, 0);
  });

  it('claiming a batch: only the documents of the batch [C2]', async () => {
    const jobs = await insert(100, byPair);
    const grant = { token: 'mine', workerId: 'me', lockedUntil: timeAfter(60_000) };
    let claimed = 0;
    const work = await measure(async () => (claimed = await store.claimBatch('claim', jobs, grant, NOW)));
    assert.equal(claimed, 100);
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
    await insert(100, (index) => ({ status: 'RUNNING', lockedUntil: timeAfter(index * 20) }));
    let found: JobDocument[] = [];
    const work = await measure(async () => (found = await store.findExpiredLocks(NOW, 100)));
    assert.equal(found.length, 50);
    assertBounded(work, 51, 50);
    await database.collections.jobs.deleteMany({ nonce: 'one test' });
    assertBounded(await measure(() => store.findExpiredLocks(NOW, 100)), 1, 0);
  });

  it('releasing by token: only locked jobs', async () => {
    await insert(100, (index) => ({ status: 'QUEUED', lockToken: index < 10 ? 'uncertain' : 'other' }));
    assertBounded(await measure(() => store.releaseByToken('uncertain', NOW)), 2 * 101, 2 * 100);
  });

  it('finding the next due job: no documents after it [C1]', async () => {
    const query = { queues: QUEUES, taskTypes: TYPES, after: NOW, until: timeAfter(5000, NOW) };
    assertBounded(await measure(() => store.nextDueAt(query)), 1, 0);
    await insert(50, (index) => ({
      queue: 'queue-0',
      taskType: 'type-0',
      nextRunAt: timeAfter(1 + index, NOW),
    }));
    assertBounded(await measure(() => store.nextDueAt(query)), 1, 1);
  });

  it('pruning: only jobs that are old enough [J13]', async () => {
    const before = timeAfter(-5000);
    const finished = { kind: 'finished', before, occurrencesBefore: before } as const;
    await insert(30, () => ({ status: 'FAILED', finishedAt: timeAfter(-10_000) }));
    assertBounded(await measure(() => store.prune({ ...finished, status: 'FAILED' }, 100)), 31 + 61, 60);
    assertBounded(await measure(() => store.prune({ ...finished, status: 'COMPLETED' }, 100)), 1, 0);
    await insert(20, () => ({ taskType: 'orphan', nextRunAt: timeAfter(-10_000) }));
    assertBounded(
      await measure(() => store.prune({ kind: 'orphans', knownTypes: TYPES, before }, 100)),
      21 + 41,
      40,
    );
    await insert(10, () => ({ status: 'RUNNING', lockedUntil: timeAfter(-10_000) }));
    assertBounded(await measure(() => store.prune({ kind: 'expired', before }, 100)), 11 + 21, 20);
  });

  it('the database still has exactly those jobs afterwards', async () => {
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
