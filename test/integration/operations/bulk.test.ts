import assert from 'node:assert/strict';
import { DEFAULTS } from '../../../src/config/options.js';
import { createStore } from '../../../src/store/store.js';
import type { BulkProgress } from '../../../src/index.js';
import { JobActions } from '../../../src/jobs/job-actions.js';
import { changeMany } from '../../../src/operations/bulk.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { aJob } from '../../support/factories/job.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { withFailPoint } from '../../support/fail-point.js';
import { recordEvents, signal } from '../../support/events.js';
import { timeAfter, START } from '../../support/instants.js';
import { ManualClock } from '../../support/manual-clock.js';
import { useSharedDatabase } from '../../support/shared-database.js';

describe('bulk operations', () => {
  const database = useSharedDatabase();

  async function statuses(): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { status } of await database.collections.jobs.find().toArray())
      counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  }

  const untouched = { requested: 0, refused: {}, isAborted: false };

  it('retry dead jobs in chunks, with progress, and nothing else [B17]', async () => {
    const { scheduler } = manualScheduler(database);
    await database.collections.jobs.insertMany([
      // Many ended at the same moment.
      ...Array.from({ length: 450 }, (_, index) =>
        aJob({ status: 'FAILED', taskType: 'mail', finishedAt: timeAfter(index < 400 ? 0 : index) }),
      ),
      ...Array.from({ length: 3 }, () => aJob({ status: 'FAILED', taskType: 'other' })),
      aJob({ status: 'COMPLETED', taskType: 'mail' }),
    ]);
    const { operations } = scheduler;
    const progress: BulkProgress[] = [];
    assert.deepEqual(await operations.countMatching({ taskType: 'mail' }, 'retry'), {
      count: 450,
      atLeast: false,
    });
    const change = await operations.retryDead(
      { taskType: 'mail' },
      { onProgress: (so) => progress.push(so) },
    );
    assert.deepEqual(change, { matched: 450, changed: 450, ...untouched });
    assert.deepEqual(
      progress.map(({ matched, changed }) => [matched, changed]),
      [
        [200, 200],
        [400, 400],
        [450, 450],
      ],
    );
    assert.deepEqual(await statuses(), { SCHEDULED: 450, FAILED: 3, COMPLETED: 1 });
    const job = await database.collections.jobs.findOne({ status: 'SCHEDULED' });
    assert.deepEqual([job?.attempts, job?.fence, job?.nextRunAt], [0, 2, START]);
    // Again: nothing is left to do.
    assert.deepEqual(await operations.retryDead({ taskType: 'mail' }), {
      matched: 0,
      changed: 0,
      ...untouched,
    });
  });

  it('can also be done one job at a time [B17]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('work', () => 'done');
    const dead = aJob({ status: 'FAILED' });
    await database.collections.jobs.insertOne(dead);
    assert.deepEqual(await scheduler.retry(dead._id), { result: 'changed', state: 'waiting' });
    assert.equal(await scheduler.run(), 1);
    assert.deepEqual(await statuses(), { COMPLETED: 1 });
  });

  it('do not retry a job that somebody else retried meanwhile [B17]', async () => {
    const store = createStore(database.stored);
    const jobs = [aJob({ status: 'FAILED' }), aJob({ status: 'FAILED' }), aJob({ status: 'FAILED' })];
    await database.collections.jobs.insertMany(jobs);
    const overtaken = {
      ...store,
      listJobs: async (...query: Parameters<typeof store.listJobs>) => {
        const found = await store.listJobs(...query);
        await database.collections.jobs.updateOne(
          { _id: jobs[0]?._id ?? '' },
          { $set: { status: 'COMPLETED' } },
        );
        await database.collections.jobs.deleteOne({ _id: jobs[1]?._id ?? '' });
        return found;
      },
    };
    const engine = { wake: () => undefined, cancelLocal: () => undefined };
    const waiter = { wait: () => Promise.reject(new Error('not used')) };
    const deps = { store: overtaken, clock: new ManualClock(), events: new EventBus('worker') };
    assert.deepEqual(
      await changeMany(
        { ...deps, jobs: new JobActions({ ...deps, engine, waiter, options: DEFAULTS }) },
        'retry',
        {},
      ),
      {
        ...{ matched: 3, changed: 1, requested: 0, isAborted: false },
        refused: { completed: 1, notFound: 1 },
      },
    );
    assert.deepEqual(await statuses(), { COMPLETED: 1, SCHEDULED: 1 });
  });

  it('cancel waiting jobs, request it for running ones, and report which', async () => {
    const { scheduler } = manualScheduler(database);
    const events = recordEvents(scheduler, 'job:cancelled');
    const [started, ended] = [signal(), signal<string>()];
    scheduler.registerHandler('work', async (_, job) => {
      started.fire();
      await new Promise((resolve) => job.signal.addEventListener('abort', resolve));
      ended.fire((job.signal.reason as Error).message);
    });
    await scheduler.dispatch('work');
    const pass = scheduler.run();
    await started.promise;
    await database.collections.jobs.insertMany([
      aJob({ nextRunAt: timeAfter(60_000) }),
      aJob({ status: 'PENDING' }),
      aJob({ status: 'QUEUED' }),
      aJob({ queue: 'other' }),
      aJob({ status: 'FAILED' }),
    ]);
    const { operations } = scheduler;
    assert.deepEqual(await operations.countMatching({ queue: 'default' }, 'cancel'), {
      count: 4,
      atLeast: false,
    });
    const change = await operations.cancelJobs({ queue: 'default' }, { reason: 'a mistake' });
    assert.deepEqual(change, { matched: 4, changed: 4, requested: 1, refused: {}, isAborted: false });
    assert.match(await ended.promise, /a mistake/);
    await pass;
    assert.deepEqual(await statuses(), { CANCELLED: 4, SCHEDULED: 1, FAILED: 1 });
    assert.equal(events.length, 4);
  });

  it('hold and unhold', async () => {
    const { scheduler } = manualScheduler(database);
    await database.collections.jobs.insertMany([aJob(), aJob(), aJob({ status: 'RUNNING' })]);
    const { operations } = scheduler;
    assert.equal((await operations.holdJobs({}, { reason: 'moving' })).changed, 2);
    assert.deepEqual(await statuses(), { PENDING: 2, RUNNING: 1 });
    assert.equal((await database.collections.jobs.findOne({ status: 'PENDING' }))?.held?.reason, 'moving');
    assert.equal((await operations.unholdJobs({ taskType: 'work' })).changed, 2);
    assert.deepEqual(await statuses(), { SCHEDULED: 2, RUNNING: 1 });
  });

  it('stop when they are aborted, leave the rest unchanged, and can be repeated', async () => {
    const { scheduler } = manualScheduler(database);
    await database.collections.jobs.insertMany(Array.from({ length: 500 }, () => aJob()));
    const { operations } = scheduler;
    const stop = new AbortController();
    const options = { signal: stop.signal, onProgress: () => stop.abort() };
    const change = await operations.holdJobs({}, options);
    assert.deepEqual([change.changed, change.isAborted], [200, true]);
    assert.deepEqual(await statuses(), { PENDING: 200, SCHEDULED: 300 });
    assert.equal((await operations.holdJobs({})).changed, 300);
  });

  it('fail with the database and do the rest when they are repeated', async () => {
    const { scheduler } = manualScheduler(database);
    await database.collections.jobs.insertMany(Array.from({ length: 50 }, () => aJob({ status: 'FAILED' })));
    const { operations } = scheduler;
    await scheduler.getJob('connected');
    await withFailPoint(database, { commands: ['update'], collection: 'jobs', how: 'error', times: 5 }, () =>
      assert.rejects(operations.retryDead()),
    );
    await operations.retryDead();
    assert.deepEqual(await statuses(), { SCHEDULED: 50 });
  });

  it('end although others keep dispatching', async () => {
    const { scheduler, clock } = manualScheduler(database);
    await database.collections.jobs.insertMany(Array.from({ length: 250 }, () => aJob()));
    const onProgress = (): void => clock.advance(1);
    const late = aJob({ createdAt: timeAfter(1), nextRunAt: timeAfter(1) });
    await database.collections.jobs.insertOne(late);
    const change = await scheduler.operations.cancelJobs({}, { onProgress });
    assert.equal(change.changed, 250);
    assert.equal((await database.collections.jobs.findOne({ _id: late._id }))?.status, 'SCHEDULED');
  });

  it('reject what they cannot do', async () => {
    const { operations } = manualScheduler(database).scheduler;
    for (const [wrong, message] of [
      [() => operations.retryJobs({ state: 'running' }), /failed, completed, cancelled, skipped, expired/],
      [() => operations.holdJobs({ state: 'failed' }), /delayed, retrying, waiting/],
      [() => operations.cancelJobs({ queue: { $ne: '' } } as object), /queue must be a string/],
      [() => operations.cancelJobs({ limit: 3 } as object), /limit is not an option/],
      [() => operations.cancelJobs({}, { reason: 7 as never }), /reason must be a string/],
      [() => operations.countMatching({ state: 'failed' }, 'cancel'), /cancelJobs\(\): state must be one of/],
    ] as const) {
      await assert.rejects(wrong, { code: 'INVALID_ARGUMENT', message });
    }
  });
});

describe('the audit log', () => {
  const database = useSharedDatabase();

  it('keeps entries for 90 days and lists them newest first, page by page', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const { operations } = scheduler;
    for (let index = 0; index < 5; index++) {
      await operations.audit({ who: 'ada', action: 'jobs.cancel', target: `job-${index}` });
      if (index % 2 === 1) clock.advance(1000);
    }
    const entry = await operations.audit({
      ...{ who: 'bob', action: 'jobs.retry', requestId: 'r1' },
      ...{ filter: { state: 'failed' }, counts: { matched: 3, changed: 2 } },
    });
    assert.deepEqual(entry, {
      ...{
        id: entry.id,
        at: timeAfter(2000),
        who: 'bob',
        action: 'jobs.retry',
        target: null,
        requestId: 'r1',
      },
      ...{ filter: { state: 'failed' }, counts: { matched: 3, changed: 2 } },
    });
    const pages: string[][] = [];
    let next: string | null = null;
    do {
      const page = await operations.listAudit({ limit: 4, ...(next !== null && { after: next }) });
      pages.push(page.items.map(({ target }) => target ?? 'filter'));
      next = page.next;
    } while (next !== null);
    assert.deepEqual(pages, [
      ['filter', 'job-4', 'job-3', 'job-2'],
      ['job-1', 'job-0'],
    ]);
    const byBob = await operations.listAudit({ who: 'bob' });
    const ofOne = await operations.listAudit({ target: 'job-3', who: 'ada' });
    assert.deepEqual(
      [byBob, ofOne].map(({ items }) => items.map(({ target }) => target)),
      [[null], ['job-3']],
    );
    const stored = await database.collections.audit.findOne({ who: 'bob' });
    assert.deepEqual(stored?.expiresAt, timeAfter(2000 + 90 * 86_400_000));
  });

  it('rejects invalid entries', async () => {
    const { operations } = manualScheduler(database).scheduler;
    for (const entry of [
      {},
      { who: 'ada' },
      { who: '', action: 'x' },
      { who: 'ada', action: 'x', filter: { status: { $ne: 1 } } },
      { who: 'ada', action: 'x', counts: { a: 'many' } },
      { who: 'ada', action: 'x', filter: { 'a.b': 'c' } },
      { who: 'ada', action: 'x', more: 1 },
    ]) {
      await assert.rejects(
        operations.audit(entry as never),
        { code: 'INVALID_ARGUMENT' },
        JSON.stringify(entry),
      );
    }
    for (const query of [{ limit: 1000 }, { who: { $ne: '' } }, { target: 7 }, { action: 'x' }])
      await assert.rejects(operations.listAudit(query as never), { code: 'INVALID_ARGUMENT' });
  });
});
