import assert from 'node:assert/strict';
import { createStore } from '../../src/store/store.js';
import type { BulkProgress } from '../../src/index.js';
import { changeMany } from '../../src/operations/bulk.js';
import { EventBus } from '../../src/runtime/event-bus.js';
import { aJob } from '../support/a-job.js';
import { byHand } from '../support/by-hand.js';
import { failing } from '../support/fail-point.js';
import { recordEvents, signal } from '../support/events.js';
import { after, START } from '../support/instants.js';
import { ManualClock } from '../support/manual-clock.js';
import { useSharedDatabase } from '../support/shared-database.js';

describe('operations: changes of many jobs', () => {
  const database = useSharedDatabase();

  async function statuses(): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { status } of await database.collections.jobs.find().toArray())
      counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  }

  const untouched = { requested: 0, refused: {}, isAborted: false };

  it('B17 retries dead jobs in bulk, in chunks, with progress, and nothing else', async () => {
    const { scheduler } = byHand(database);
    await database.collections.jobs.insertMany([
      // Many ended at the same moment.
      ...Array.from({ length: 450 }, (_, index) =>
        aJob({ status: 'FAILED', taskType: 'mail', finishedAt: after(index < 400 ? 0 : index) }),
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
    const answer = await operations.retryDead(
      { taskType: 'mail' },
      { onProgress: (so) => progress.push(so) },
    );
    assert.deepEqual(answer, { matched: 450, changed: 450, ...untouched });
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

  it('B17 dead jobs are retried one by one, too, and run', async () => {
    const { scheduler } = byHand(database);
    scheduler.registerHandler('work', () => 'done');
    const dead = aJob({ status: 'FAILED' });
    await database.collections.jobs.insertOne(dead);
    assert.deepEqual(await scheduler.retry(dead._id), { retried: true });
    assert.equal(await scheduler.run(), 1);
    assert.deepEqual(await statuses(), { COMPLETED: 1 });
  });

  it('B17 a job that somebody else retried and completed meanwhile is not run again', async () => {
    const store = createStore(database.collections);
    const jobs = [aJob({ status: 'FAILED' }), aJob({ status: 'FAILED' }), aJob({ status: 'FAILED' })];
    await database.collections.jobs.insertMany(jobs);
    const overtaken = {
      ...store,
      listJobs: async (query: Parameters<typeof store.listJobs>[0]) => {
        const found = await store.listJobs(query);
        await database.collections.jobs.updateOne(
          { _id: jobs[0]?._id ?? '' },
          { $set: { status: 'COMPLETED' } },
        );
        await database.collections.jobs.deleteOne({ _id: jobs[1]?._id ?? '' });
        return found;
      },
    };
    const engine = { nudge: () => undefined, cancelled: () => undefined };
    const parts = { store: overtaken, clock: new ManualClock(), events: new EventBus(), engine };
    assert.deepEqual(await changeMany(parts, 'retry', {}), {
      ...{ matched: 3, changed: 1, requested: 0, isAborted: false },
      refused: { COMPLETED: 1, notFound: 1 },
    });
    assert.deepEqual(await statuses(), { COMPLETED: 1, SCHEDULED: 1 });
  });

  it('cancels what waits, asks those that run, and says which', async () => {
    const { scheduler } = byHand(database);
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
      aJob({ nextRunAt: after(60_000) }),
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
    const answer = await operations.cancelJobs({ queue: 'default' }, { reason: 'a mistake' });
    assert.deepEqual(answer, { matched: 4, changed: 4, requested: 1, refused: {}, isAborted: false });
    assert.match(await ended.promise, /a mistake/);
    await pass;
    assert.deepEqual(await statuses(), { CANCELLED: 4, SCHEDULED: 1, FAILED: 1 });
    assert.equal(events.length, 4);
  });

  it('holds and releases', async () => {
    const { scheduler } = byHand(database);
    await database.collections.jobs.insertMany([aJob(), aJob(), aJob({ status: 'RUNNING' })]);
    const { operations } = scheduler;
    assert.equal((await operations.holdJobs({}, { reason: 'moving' })).changed, 2);
    assert.deepEqual(await statuses(), { PENDING: 2, RUNNING: 1 });
    assert.equal((await database.collections.jobs.findOne({ status: 'PENDING' }))?.held?.reason, 'moving');
    assert.equal((await operations.releaseJobs({ taskType: 'work' })).changed, 2);
    assert.deepEqual(await statuses(), { SCHEDULED: 2, RUNNING: 1 });
  });

  it('stops when it is told to, leaves what was not changed, and can be done again', async () => {
    const { scheduler } = byHand(database);
    await database.collections.jobs.insertMany(Array.from({ length: 500 }, () => aJob()));
    const { operations } = scheduler;
    const stop = new AbortController();
    const options = { signal: stop.signal, onProgress: () => stop.abort() };
    const answer = await operations.holdJobs({}, options);
    assert.deepEqual([answer.changed, answer.isAborted], [200, true]);
    assert.deepEqual(await statuses(), { PENDING: 200, SCHEDULED: 300 });
    assert.equal((await operations.holdJobs({})).changed, 300);
  });

  it('fails with the database, and doing it again does the rest', async () => {
    const { scheduler } = byHand(database);
    await database.collections.jobs.insertMany(Array.from({ length: 50 }, () => aJob({ status: 'FAILED' })));
    const { operations } = scheduler;
    await scheduler.getJob('connected');
    await failing(database, { commands: ['update'], collection: 'jobs', how: 'refused', times: 5 }, () =>
      assert.rejects(operations.retryDead()),
    );
    await operations.retryDead();
    assert.deepEqual(await statuses(), { SCHEDULED: 50 });
  });

  it('ends although others dispatch all the time', async () => {
    const { scheduler, clock } = byHand(database);
    await database.collections.jobs.insertMany(Array.from({ length: 250 }, () => aJob()));
    const onProgress = (): void => clock.advance(1);
    const late = aJob({ createdAt: after(1), nextRunAt: after(1) });
    await database.collections.jobs.insertOne(late);
    const answer = await scheduler.operations.cancelJobs({}, { onProgress });
    assert.equal(answer.changed, 250);
    assert.equal((await database.collections.jobs.findOne({ _id: late._id }))?.status, 'SCHEDULED');
  });

  it('refuses what it cannot do', async () => {
    const { operations } = byHand(database).scheduler;
    for (const [wrong, message] of [
      [() => operations.retryJobs({ status: 'RUNNING' }), /COMPLETED, FAILED, CANCELLED/],
      [() => operations.holdJobs({ status: 'FAILED' }), /SCHEDULED/],
      [() => operations.cancelJobs({ queue: { $ne: '' } } as object), /queue must be a string/],
      [() => operations.cancelJobs({ limit: 3 } as object), /limit is not an option/],
      [() => operations.cancelJobs({}, { reason: 7 as never }), /reason must be a string/],
      [() => operations.countMatching({ status: 'FAILED' }, 'cancel'), /cancelJobs\(\) is for/],
    ] as const) {
      await assert.rejects(wrong, { code: 'INVALID_ARGUMENT', message });
    }
  });
});

describe('operations: audit', () => {
  const database = useSharedDatabase();

  it('keeps who did what for 90 days, and lists the newest first, page by page', async () => {
    const { scheduler, clock } = byHand(database);
    const { operations } = scheduler;
    for (let index = 0; index < 5; index++) {
      await operations.audit({ who: 'ada', action: 'jobs.cancel', target: `job-${index}` });
      if (index % 2 === 1) clock.advance(1000);
    }
    const entry = await operations.audit({
      ...{ who: 'bob', action: 'jobs.retry', requestId: 'r1' },
      ...{ filter: { status: 'FAILED' }, counts: { matched: 3, changed: 2 } },
    });
    assert.deepEqual(entry, {
      ...{ id: entry.id, at: after(2000), who: 'bob', action: 'jobs.retry', target: null, requestId: 'r1' },
      ...{ filter: { status: 'FAILED' }, counts: { matched: 3, changed: 2 } },
    });
    const pages: string[][] = [];
    let next: string | null = null;
    do {
      const page = await operations.listAudit({ limit: 4, ...(next !== null && { after: next }) });
      pages.push(page.entries.map(({ target }) => target ?? 'filter'));
      next = page.next;
    } while (next !== null);
    assert.deepEqual(pages, [
      ['filter', 'job-4', 'job-3', 'job-2'],
      ['job-1', 'job-0'],
    ]);
    const byBob = await operations.listAudit({ who: 'bob' });
    const ofOne = await operations.listAudit({ target: 'job-3', who: 'ada' });
    assert.deepEqual(
      [byBob, ofOne].map(({ entries }) => entries.map(({ target }) => target)),
      [[null], ['job-3']],
    );
    const stored = await database.collections.audit.findOne({ who: 'bob' });
    assert.deepEqual(stored?.expiresAt, after(2000 + 90 * 86_400_000));
  });

  it('refuses entries that are none', async () => {
    const { operations } = byHand(database).scheduler;
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
