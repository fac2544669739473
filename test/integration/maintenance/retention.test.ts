import assert from 'node:assert/strict';
import { DEFAULTS } from '../../../src/config/options.js';
import { CancelJob } from '../../../src/index.js';
import { Pruner } from '../../../src/maintenance/pruner.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { createStore } from '../../../src/store/store.js';
import { aRegistry } from '../../support/factories/handler-registry.js';
import { aJob } from '../../support/factories/job.js';
import { timeAfter } from '../../support/instants.js';
import { ManualClock } from '../../support/manual-clock.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { assertBounded } from '../../support/query-bounds.js';
import { profileQueries, type QueryStats } from '../../support/query-profiler.js';
import { useSharedDatabase } from '../../support/shared-database.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

describe('retention', () => {
  const database = useSharedDatabase();

  async function storedIds(): Promise<string[]> {
    const jobs = await database.collections.jobs.find({}, { sort: { _id: 1 } }).toArray();
    return jobs.map(({ _id }) => _id);
  }

  it('is one day for completed and cancelled jobs and thirty for failed ones [B17]', async () => {
    const { scheduler, clock } = manualScheduler(database, { retries: { max: 1 } });
    scheduler.registerHandler('work', (payload) => {
      if (payload === 'fails') throw new Error('broken');
      if (payload === 'cancels') throw new CancelJob();
    });
    for (const payload of ['completes', 'fails', 'cancels'])
      await scheduler.dispatch('work', payload, { key: payload });
    await scheduler.run();
    clock.advance(DAY);
    assert.equal((await scheduler.prune()).finished, 0);
    clock.advance(1);
    assert.equal((await scheduler.prune()).finished, 2);
    assert.deepEqual(await storedIds(), ['work=fails']);
    clock.advance(29 * DAY);
    assert.equal((await scheduler.prune()).finished, 1);
  });

  it('of the job overrides that of its task type, which overrides the Scheduler’s [B17]', async () => {
    const { scheduler, clock } = manualScheduler(database, { retention: { completed: '2h' } });
    scheduler.registerHandler('short', () => undefined, { retention: { completed: '1h' } });
    scheduler.registerHandler('long', () => undefined, { retention: { completed: '3h' } });
    scheduler.registerHandler('plain', () => undefined);
    for (const type of ['short', 'long', 'plain']) await scheduler.dispatch(type, null, { key: 'k' });
    await scheduler.dispatch('short', null, { key: 'own', retention: { completed: '4h' } });
    await scheduler.dispatch('plain', null, { key: 'failed only', retention: { failed: '9h' } });
    await scheduler.run();
    const left: string[][] = [];
    for (let hour = 1; hour <= 4; hour++) {
      clock.advance(hour === 1 ? HOUR + 1 : HOUR);
      await scheduler.prune();
      left.push(await storedIds());
    }
    assert.deepEqual(left, [
      ['long=k', 'plain=failed only', 'plain=k', 'short=own'],
      ['long=k', 'short=own'],
      ['short=own'],
      [],
    ]);
  });

  it('applies to jobs that are cancelled before they run, or end by crashing [B17]', async () => {
    const { scheduler, clock } = manualScheduler(database, { maxCrashes: 1 });
    const own = { retention: { cancelled: '3d', failed: '2h' } };
    const cancelled = await scheduler.dispatch('work', null, own);
    await cancelled.cancel();
    const expired = await scheduler.dispatch('work', null, { ...own, expiresIn: '1s' });
    const crashed = aJob({ status: 'RUNNING', retention: { failed: 2 * HOUR }, lockedUntil: timeAfter(-1) });
    await database.collections.jobs.insertOne(crashed);
    clock.advance(1000);
    await scheduler.run();
    assert.equal((await scheduler.getJob(crashed._id))?.state, 'failed');
    assert.equal((await scheduler.getJob(expired.id))?.state, 'expired');
    clock.advance(2 * HOUR + 1);
    await scheduler.prune();
    assert.equal(await scheduler.getJob(crashed._id), null);
    clock.advance(2 * DAY);
    await scheduler.prune();
    assert.deepEqual(await storedIds(), [cancelled.id, expired.id].sort());
    clock.advance(DAY);
    await scheduler.prune();
    assert.deepEqual(await storedIds(), []);
  });

  it('ends when a person asks for everything older than an age [B17]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.registerHandler('work', () => undefined, { retention: { completed: '90d' } });
    await scheduler.dispatch('work');
    await scheduler.run();
    clock.advance(2 * HOUR);
    assert.equal((await scheduler.prune()).finished, 0);
    assert.equal((await scheduler.prune('1h')).finished, 1);
  });

  it('starts anew when a finished job is retried [B17]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.registerHandler('work', () => undefined, { retention: { completed: '1h' } });
    const { id } = await scheduler.dispatch('work');
    await scheduler.run();
    await scheduler.retry(id);
    assert.equal((await scheduler.getJob(id))?.keepUntil, null);
    clock.advance(2 * HOUR);
    await scheduler.prune();
    await scheduler.run();
    assert.deepEqual((await scheduler.getJob(id))?.keepUntil, timeAfter(3 * HOUR));
  });

  it('keeps the rows of the execution log exactly as long as their job [B17] [C10]', async () => {
    const { scheduler, clock } = manualScheduler(database, { retries: { base: 0 } });
    let attempts = 0;
    scheduler.registerHandler('work', () => {
      if (++attempts < 3) throw new Error('not yet');
    });
    const { id } = await scheduler.dispatch('work', null, { key: 'a' });
    const other = await scheduler.dispatch('other', null, { key: 'b' });
    for (let pass = 0; pass < 3; pass++) await scheduler.run();
    assert.equal((await scheduler.getExecutions(id)).length, 3);
    await database.collections.executions.insertOne({
      ...(await database.collections.executions.findOne({ jobId: id }))!,
      _id: `${other.id}:1`,
      jobId: other.id,
    });
    clock.advance(DAY + 1);
    await scheduler.prune();
    assert.deepEqual(await scheduler.getExecutions(id), []);
    assert.equal((await scheduler.getExecutions(other.id)).length, 1);
  });

  it('does not read jobs with a longer retention again in every round', async () => {
    const { jobs } = database.collections;
    await jobs.insertMany(
      Array.from({ length: 1000 }, () =>
        aJob({ status: 'COMPLETED', finishedAt: timeAfter(-3 * DAY), keepUntil: timeAfter(90 * DAY) }),
      ),
    );
    const pruner = new Pruner({
      ...{ clock: new ManualClock(), events: new EventBus('worker'), registry: aRegistry() },
      ...{ store: createStore(database.stored), options: DEFAULTS },
    });
    const prune = (): Promise<QueryStats[]> =>
      profileQueries(database, [jobs.collectionName], () => pruner.runOnce());
    assert.ok(
      (await prune()).some(({ keys }) => keys >= 1000),
      'the first round reads them',
    );
    assertBounded(await prune(), 10, 10);
    assert.equal(await jobs.countDocuments(), 1000);
  });
});
