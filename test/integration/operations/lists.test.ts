import assert from 'node:assert/strict';
import { DEFAULT_PREFIX } from '../../../src/config/connection-options.js';
import type { ExecutionDocument } from '../../../src/domain/job/execution.js';
import type { JobFilterOptions } from '../../../src/index.js';
import { install } from '../../../src/store/schema/install.js';
import { aJob } from '../../support/factories/job.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { timeAfter, START } from '../../support/instants.js';
import { useSharedDatabase } from '../../support/shared-database.js';

function anExecution(fields: Partial<ExecutionDocument> & { _id: string; jobId: string }): ExecutionDocument {
  const finishedAt = fields.finishedAt ?? START;
  return {
    ...{ taskType: 'work', queue: 'default', attempt: 1, fence: 1, lockToken: 'secret', workerId: 'w' },
    ...{ startedAt: START, duration: 0, outcome: 'completed', error: null, log: ['a line'] },
    ...fields,
    finishedAt,
  };
}

describe('lists of operations', () => {
  const database = useSharedDatabase();

  /** The ids of all pages, and how many pages there were. */
  async function walk(query: JobFilterOptions, limit: number): Promise<{ ids: string[]; pages: number }> {
    const { operations } = manualScheduler(database).scheduler;
    const ids: string[] = [];
    let pages = 0;
    let next: string | null = null;
    do {
      const page = await operations.listJobs({ ...query, limit, ...(next !== null && { after: next }) });
      ids.push(...page.items.map(({ id }) => id));
      next = page.next;
      pages++;
      assert.ok(pages < 100, 'pages without end');
    } while (next !== null);
    return { ids, pages };
  }

  it('page through jobs with equal times, each exactly once and in order, for any page size [J14]', async () => {
    // Times with 1, 2, 3, … jobs each, inserted in another order than that of their ids.
    const jobs = [0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4].map((minute, index) =>
      aJob({
        _id: `j${String((index * 7) % 15).padStart(2, '0')}`,
        nextRunAt: timeAfter((minute - 4) * 60_000),
      }),
    );
    await database.collections.jobs.insertMany(jobs);
    const expected = jobs
      .toSorted((a, b) => a.nextRunAt.getTime() - b.nextRunAt.getTime() || (a._id < b._id ? -1 : 1))
      .map(({ _id }) => _id);
    for (const limit of [1, 2, 3, 4, 7, 14, 15, 16]) {
      const { ids, pages } = await walk({ state: 'waiting' }, limit);
      assert.deepEqual(ids, expected, `pages of ${limit}`);
      assert.equal(pages, Math.ceil(15 / limit));
    }
    assert.deepEqual((await walk({ state: 'waiting', queue: 'default' }, 4)).ids, expected);
  });

  it('list dead jobs newest first, and jobs added meanwhile do not disturb the pages [B17]', async () => {
    const { scheduler } = manualScheduler(database);
    const dead = Array.from({ length: 5 }, (_, index) =>
      aJob({ _id: `dead-${index}`, status: 'FAILED', finishedAt: timeAfter(index * 1000) }),
    );
    await database.collections.jobs.insertMany([...dead, aJob({ status: 'COMPLETED' })]);
    const first = await scheduler.operations.listDead({ limit: 2 });
    assert.deepEqual(
      first.items.map(({ id }) => id),
      ['dead-4', 'dead-3'],
    );
    await database.collections.jobs.insertOne(
      aJob({ _id: 'dead-9', status: 'FAILED', finishedAt: timeAfter(9000) }),
    );
    const second = await scheduler.operations.listDead({ limit: 2, after: first.next ?? '' });
    assert.deepEqual(
      second.items.map(({ id }) => id),
      ['dead-2', 'dead-1'],
    );
  });

  it('filter by state, queue, task type, schedule, user and prefix of the id [J14]', async () => {
    await database.collections.jobs.insertMany([
      aJob({ _id: 'nightly@2026-01-01', schedule: 'nightly', userId: 'u1' }),
      aJob({ _id: 'nightly+9', schedule: 'nightly', status: 'RUNNING' }),
      aJob({ _id: 'nightly-2@2026-01-01', schedule: 'nightly-2', queue: 'reports' }),
      aJob({ _id: 'mail=42', taskType: 'mail', status: 'PENDING' }),
      aJob({ _id: 'mail=43', taskType: 'mail', status: 'QUEUED' }),
    ]);
    const cases: [JobFilterOptions, string[]][] = [
      [{}, ['nightly@2026-01-01', 'nightly-2@2026-01-01', 'nightly+9', 'mail=43', 'mail=42']],
      [{ schedule: 'nightly' }, ['nightly@2026-01-01', 'nightly+9']],
      [{ schedule: 'nightly', state: 'running' }, ['nightly+9']],
      [{ idPrefix: 'mail=' }, ['mail=43', 'mail=42']],
      [{ state: 'held' }, ['mail=42']],
      [{ state: 'prefetched', taskType: 'mail' }, ['mail=43']],
      [{ queue: 'reports' }, ['nightly-2@2026-01-01']],
      [{ userId: 'u1' }, ['nightly@2026-01-01']],
      [{ taskType: 'nobody' }, []],
    ];
    for (const [query, ids] of cases) {
      assert.deepEqual((await walk(query, 2)).ids, ids, JSON.stringify(query));
      const { operations } = manualScheduler(database).scheduler;
      assert.deepEqual(await operations.countMatching(query), { count: ids.length, atLeast: false });
    }
  });

  it('leave out what may be large or secret; a single job has its attempts [J14]', async () => {
    const { operations } = manualScheduler(database).scheduler;
    const error = { name: 'Error', message: 'no', code: null, stack: 'a long stack' };
    const job = aJob({ _id: 'one', status: 'FAILED', payload: { a: 1 }, result: null, error });
    await database.collections.jobs.insertOne(job);
    await database.collections.executions.insertMany([
      anExecution({ _id: 'one:2', jobId: 'one', fence: 2, error }),
      anExecution({ _id: 'one:1', jobId: 'one', fence: 1 }),
      anExecution({ _id: 'one:1:1', jobId: 'one:1', fence: 1 }),
    ]);
    const { items } = await operations.listJobs();
    for (const hidden of ['payload', 'result', 'lockToken', 'settledToken', 'nonce', '_id'])
      assert.ok(!(hidden in (items[0] ?? {})), hidden);
    assert.equal(items[0]?.error?.stack, null);
    const details = await operations.showJob('one');
    assert.deepEqual([details?.job.payload, details?.job.error], [{ a: 1 }, error]);
    assert.deepEqual(
      details?.executions.map(({ id, log }) => ({ id, log })),
      [
        { id: 'one:1', log: ['a line'] },
        { id: 'one:2', log: ['a line'] },
      ],
    );
    assert.ok(!JSON.stringify([details, items]).includes('secret'));
    assert.deepEqual(await Promise.all([operations.showJob('two'), operations.showExecution('two:1')]), [
      null,
      null,
    ]);
    assert.equal((await operations.showExecution('one:2'))?.error?.stack, 'a long stack');
  });

  it('page through the execution log by job, task type and outcome [J14]', async () => {
    const { operations } = manualScheduler(database).scheduler;
    await database.collections.executions.insertMany(
      Array.from({ length: 7 }, (_, index) =>
        anExecution({
          _id: `job:${index}`,
          jobId: 'job',
          fence: index,
          finishedAt: timeAfter(Math.floor(index / 3) * 1000),
          outcome: index % 2 === 0 ? 'completed' : 'retry',
          taskType: index < 6 ? 'work' : 'mail',
        }),
      ),
    );
    const ids: string[] = [];
    let next: string | null = null;
    do {
      const page = await operations.listExecutions({ limit: 2, ...(next !== null && { after: next }) });
      ids.push(...page.items.map(({ id }) => id));
      next = page.next;
    } while (next !== null);
    assert.deepEqual(ids, ['job:6', 'job:5', 'job:4', 'job:3', 'job:2', 'job:1', 'job:0']);
    const list = async (query: object): Promise<string[]> =>
      (await operations.listExecutions(query)).items.map(({ id }) => id);
    assert.deepEqual(await list({ outcome: 'retry', jobId: 'job' }), ['job:5', 'job:3', 'job:1']);
    assert.deepEqual(await list({ taskType: 'mail' }), ['job:6']);
    assert.deepEqual(await list({ jobId: 'other' }), []);
  });

  it('let only strings and numbers reach a query', async () => {
    const { operations } = manualScheduler(database).scheduler;
    const hostile = [
      { state: { $ne: 'x' } },
      { state: 'RUNNING' },
      { status: 'RUNNING' },
      { queue: { $gt: '' } },
      { idPrefix: ['a'] },
      { taskType: '' },
      { limit: 201 },
      { limit: 0 },
      { limit: '20' },
      { after: { $gt: 1 } },
      { after: 'not a cursor' },
      { after: Buffer.from('[{"$gt":0},"a"]').toString('base64url') },
      { after: Buffer.from('[1,{"$gt":""}]').toString('base64url') },
      // A place by time, in a list by id.
      { after: Buffer.from('[1,"a"]').toString('base64url') },
      { $where: 'true' },
    ] as object[];
    for (const query of hostile) {
      await assert.rejects(operations.listJobs(query), { code: 'INVALID_ARGUMENT' }, JSON.stringify(query));
    }
    await assert.rejects(operations.listExecutions({ outcome: 'good' } as object), {
      code: 'INVALID_ARGUMENT',
      message: /completed/,
    });
    await assert.rejects(operations.showJob({ $gt: '' } as never), { code: 'INVALID_ARGUMENT' });
  });

  it('say what to do when an index is missing', async () => {
    const { operations } = manualScheduler(database).scheduler;
    const { jobs } = database.collections;
    await jobs.dropIndex('pending');
    try {
      await assert.rejects(operations.listJobs({ state: 'held' }), {
        code: 'NOT_INSTALLED',
        message: /run install/,
      });
    } finally {
      await install({ uri: database.uri, prefix: DEFAULT_PREFIX });
    }
  });
});
