import assert from 'node:assert/strict';
import type { Scheduler } from '../../../src/index.js';
import { createStore } from '../../../src/store/store.js';
import { blocker, nextEvent, recordEvents } from '../../support/events.js';
import { aJob } from '../../support/factories/job.js';
import { timeAfter } from '../../support/instants.js';
import { advanceUntilSettled, manualScheduler } from '../../support/manual-scheduler.js';
import { assertBounded } from '../../support/query-bounds.js';
import { profileQueries } from '../../support/query-profiler.js';
import { useSharedDatabase } from '../../support/shared-database.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

describe('a job that expires', () => {
  const database = useSharedDatabase();

  async function facts(scheduler: Scheduler, id: string): Promise<unknown[]> {
    const job = await scheduler.getJob(id);
    return [job?.state, job?.status, job?.startedAt, job?.firstStartedAt];
  }

  const EXPIRED = ['expired', 'CANCELLED', null, null];

  it('never starts after its time, and ends expired [B24]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const ran: unknown[] = [];
    scheduler.registerHandler('work', (payload) => void ran.push(payload));
    const events = recordEvents(scheduler, 'job:start', 'job:expired');
    const late = await scheduler.dispatch('work', 'late', { expiresIn: '30s' });
    clock.advance(30 * SECOND);
    const fresh = await scheduler.dispatch('work', 'fresh', { expiresIn: '30s' });
    assert.equal(await scheduler.run(), 1);
    assert.deepEqual(ran, ['fresh']);
    assert.deepEqual(await facts(scheduler, late.id), EXPIRED);
    assert.equal((await scheduler.getJob(fresh.id))?.state, 'completed');
    assert.deepEqual(await scheduler.getExecutions(late.id), [], 'it was never attempted');
    const expired = events.filter(({ name }) => name === 'job:expired').map(({ event }) => event);
    const expected = {
      jobId: late.id,
      taskType: 'work',
      queue: 'default',
      expiresAt: timeAfter(30 * SECOND),
    };
    assert.deepEqual(expired, [expected]);
    assert.equal(events.length, 2, 'only the fresh job started');
  });

  it('is dropped by the worker that claimed it before the sweeper sees it, and its slot is free again [B24]', async () => {
    const { scheduler, clock } = manualScheduler(database, { concurrency: 1, sweepInterval: '1h' });
    const { block, entered, release } = blocker();
    scheduler.registerHandler('slow', block);
    scheduler.registerHandler('work', () => undefined);
    await scheduler.start();
    await scheduler.dispatch('slow');
    await entered;
    const { id: first } = await scheduler.dispatch('work', null, { expiresIn: '1m', priority: 1 });
    const { id: second } = await scheduler.dispatch('work', null, { priority: 2 });
    clock.advance(2 * MINUTE);
    const expired = nextEvent(scheduler, 'job:expired');
    const completed = nextEvent(scheduler, 'job:complete', ({ jobId }) => jobId === second);
    release();
    const [ended] = await advanceUntilSettled(clock, Promise.all([expired, completed]));
    assert.equal(ended.jobId, first);
    assert.deepEqual(await facts(scheduler, first), EXPIRED);
    assert.equal((await scheduler.getJob(first))?.lockedBy, null);
  });

  it('is ended by the sweeper if nobody can run it, even if it is held [B24]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const events = recordEvents(scheduler, 'job:expired');
    const waiting = await scheduler.dispatch('nobody has this', null, { expiresIn: '1m' });
    const held = await scheduler.dispatch('nobody has this', null, { expiresIn: '1m', hold: true });
    const delayed = await scheduler.dispatch('nobody has this', null, { expiresIn: '1m', delay: '1h' });
    clock.advance(MINUTE);
    await scheduler.run();
    assert.deepEqual(await facts(scheduler, waiting.id), EXPIRED);
    assert.deepEqual(await facts(scheduler, held.id), EXPIRED);
    assert.equal((await scheduler.getJob(held.id))?.held, null);
    assert.equal((await scheduler.getJob(waiting.id))?.fence, 1);
    assert.equal(
      (await scheduler.getJob(delayed.id))?.state,
      'delayed',
      'expiresIn counts from when it is due',
    );
    assert.equal(events.length, 2);
  });

  it('is ended once by two sweepers at the same time [B24]', async () => {
    await database.collections.jobs.insertMany(
      Array.from({ length: 200 }, () => aJob({ expiresAt: timeAfter(-1) })),
    );
    const store = createStore(database.stored);
    const found = await Promise.all(['a', 'b', 'c'].map(() => store.findExpiredJobs(timeAfter(0), 1000)));
    const sweeps = await Promise.all(found.map((jobs, by) => store.expireJobs(jobs, timeAfter(0), `${by}`)));
    const ended = sweeps.flat().map(({ _id }) => _id);
    assert.equal(ended.length, 200);
    assert.equal(new Set(ended).size, 200);
    assert.equal(await database.collections.jobs.countDocuments({ cancelKind: 'expired', fence: 1 }), 200);
  });

  it('stays as it is if a worker claims it between the sweep’s read and its write [B24]', async () => {
    const job = aJob({ expiresAt: timeAfter(-1) });
    await database.collections.jobs.insertOne(job);
    const jobs = new Proxy(database.stored.jobs, {
      get: (target, name) =>
        name === 'updateMany'
          ? async (...args: Parameters<typeof target.updateMany>) => {
              await target.updateOne({ _id: job._id }, { $set: { status: 'RUNNING', lockToken: 't' } });
              return target.updateMany(...args);
            }
          : (Reflect.get(target, name) as unknown),
    });
    const store = createStore({ ...database.stored, jobs });
    const found = await store.findExpiredJobs(timeAfter(0), 10);
    assert.equal(found.length, 1);
    assert.deepEqual(await store.expireJobs(found, timeAfter(0), 'sweeper'), []);
    assert.equal((await database.collections.jobs.findOne({ _id: job._id }))?.status, 'RUNNING');
  });

  it('does not expire any more once it has started [B24]', async () => {
    const { scheduler, clock } = manualScheduler(database, { retries: { base: '1m', jitter: 'none' } });
    let attempts = 0;
    scheduler.registerHandler('work', () => {
      if (++attempts === 1) throw new Error('not this time');
    });
    const { id } = await scheduler.dispatch('work', null, { expiresIn: '10s' });
    await scheduler.run();
    assert.equal((await scheduler.getJob(id))?.state, 'retrying');
    clock.advance(MINUTE);
    await scheduler.run();
    assert.deepEqual([(await scheduler.getJob(id))?.state, attempts], ['completed', 2]);
  });

  it('takes its expiry along when it is rescheduled, and loses it when it is retried [B24]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.registerHandler('work', () => undefined);
    const handle = await scheduler.dispatch('work', null, { expiresIn: '10s' });
    await handle.delay('1h');
    assert.deepEqual((await scheduler.getJob(handle.id))?.expiresAt, timeAfter(60 * MINUTE + 10 * SECOND));
    const plain = await scheduler.dispatch('work');
    await plain.delay('1h');
    assert.equal('expiresAt' in (await database.collections.jobs.findOne({ _id: plain.id }))!, false);
    clock.advance(60 * MINUTE + 10 * SECOND);
    await scheduler.run();
    assert.equal((await scheduler.getJob(handle.id))?.state, 'expired');
    await scheduler.retry(handle.id);
    await scheduler.run();
    assert.equal((await scheduler.getJob(handle.id))?.state, 'completed');
  });

  it('can be declared for a task type, also if the dispatcher does not have the handler [B24]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const dispatcher = database.scheduler({ clock });
    scheduler.registerHandler('work', () => undefined, { expiresIn: '1m' });
    const known = await scheduler.dispatch('work');
    const unknown = await dispatcher.dispatch('work');
    const own = await dispatcher.dispatch('work', null, { expiresIn: '1h' });
    clock.advance(MINUTE);
    await scheduler.run();
    const states = await Promise.all([known, unknown, own].map(({ id }) => scheduler.getJob(id)));
    assert.deepEqual(
      states.map((job) => job?.state),
      ['expired', 'expired', 'completed'],
    );
  });

  it('can be declared for a schedule, stored or in code [B24]', async () => {
    const { scheduler, clock } = manualScheduler(database, { queues: ['default', 'q'] });
    scheduler.registerHandler('work', () => undefined);
    scheduler
      .schedule('in-code', () => undefined)
      .everyMinute()
      .queue('q')
      .expiresIn('10s');
    await scheduler.operations.collect();
    await scheduler.addSchedule({ id: 'stored', taskType: 'work', cron: '* * * * *', expiresIn: '10s' });
    clock.advance(MINUTE);
    await scheduler.operations.collect();
    clock.advance(20 * SECOND);
    await scheduler.run();
    for (const schedule of ['in-code', 'stored']) {
      const job = await scheduler.getJob(`${schedule}@${timeAfter(MINUTE).toISOString()}`);
      assert.deepEqual([job?.state, job?.expiresAt], ['expired', timeAfter(MINUTE + 10 * SECOND)], schedule);
    }
  });

  it('is explained and counted [B24]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const { id } = await scheduler.dispatch('work', null, { expiresIn: '1m' });
    clock.advance(MINUTE);
    await scheduler.run();
    const explanation = await scheduler.operations.explainJob(id);
    assert.equal(explanation?.state, 'expired');
    assert.match(explanation?.sentence ?? '', /^It expired before it started/);
    assert.equal((await scheduler.operations.countMatching({ state: 'expired' })).count, 1);
    assert.equal((await scheduler.operations.status()).totals.expired.count, 1);
  });

  it('is found by an index that other jobs are not in [B24]', async () => {
    const { jobs } = database.collections;
    await jobs.insertMany([
      ...Array.from({ length: 2000 }, () => aJob()),
      ...Array.from({ length: 500 }, () => aJob({ status: 'COMPLETED', expiresAt: timeAfter(-1) })),
      ...Array.from({ length: 500 }, () => aJob({ expiresAt: timeAfter(MINUTE) })),
      ...Array.from({ length: 3 }, () => aJob({ expiresAt: timeAfter(-1) })),
    ]);
    const store = createStore(database.stored);
    const queries = await profileQueries(database, [database.collections.jobs.collectionName], async () =>
      store.expireJobs(await store.findExpiredJobs(timeAfter(0), 1000), timeAfter(0), 'sweeper'),
    );
    assertBounded(queries, 10, 10);
  });

  it('rejects times that make no sense', async () => {
    const { scheduler } = manualScheduler(database);
    await assert.rejects(scheduler.dispatch('work', null, { expiresIn: 0 }), /expiresIn/);
    await assert.rejects(scheduler.dispatch('work', null, { expiresIn: 'soon' }), /expiresIn/);
  });
});
