import assert from 'node:assert/strict';
import type { Scheduler } from '../../src/index.js';
import { aJob } from '../support/a-job.js';
import { byHand, inProcess, passTime } from '../support/by-hand.js';
import { useSharedDatabase } from '../support/shared-database.js';
import { after } from '../support/instants.js';
import { until } from '../support/until.js';

const DAY = 86_400_000;

describe('prune', () => {
  const database = useSharedDatabase();

  async function ids(): Promise<string[]> {
    const jobs = await database.collections.jobs.find({}, { sort: { _id: 1 } }).toArray();
    return jobs.map(({ _id }) => _id);
  }

  /** What would be removed, which changes nothing. */
  async function countsOf(scheduler: Scheduler, olderThan?: string): Promise<Record<string, number>> {
    const counts = Object.entries(await scheduler.operations.countPrunable(olderThan));
    return Object.fromEntries(counts.map(([what, { count }]) => [what, count]));
  }

  it('J13 by retention: completed after 7 days, failed and cancelled after 30, nothing else', async () => {
    const old = after(-1000 * DAY);
    await database.collections.jobs.insertMany([
      aJob({ _id: 'completed, old', status: 'COMPLETED', finishedAt: after(-7 * DAY - 1) }),
      aJob({ _id: 'completed, young', status: 'COMPLETED', finishedAt: after(-7 * DAY) }),
      aJob({ _id: 'failed, old', status: 'FAILED', finishedAt: after(-30 * DAY - 1) }),
      aJob({ _id: 'failed, young', status: 'FAILED', finishedAt: after(-30 * DAY) }),
      aJob({ _id: 'cancelled, old', status: 'CANCELLED', finishedAt: after(-30 * DAY - 1) }),
      aJob({ _id: 'cancelled, young', status: 'CANCELLED', finishedAt: after(-30 * DAY) }),
      aJob({ _id: 'held', status: 'PENDING', nextRunAt: old, createdAt: old }),
      aJob({ _id: 'orphan', taskType: 'unknown', nextRunAt: old, createdAt: old }),
      aJob({ _id: 'running', status: 'RUNNING', lockedUntil: after(60_000) }),
    ]);
    const { scheduler } = byHand(database);
    assert.deepEqual(await countsOf(scheduler), { finished: 3, orphans: 0, expired: 0 });
    assert.deepEqual(await scheduler.prune(), { finished: 3, orphans: 0, expired: 0 });
    assert.deepEqual(await ids(), [
      'cancelled, young',
      'completed, young',
      'failed, young',
      'held',
      'orphan',
      'running',
    ]);
  });

  it('J13 B17 retention can be set by status', async () => {
    await database.collections.jobs.insertMany([
      aJob({ _id: 'completed', status: 'COMPLETED', finishedAt: after(-2000) }),
      aJob({ _id: 'failed', status: 'FAILED', finishedAt: after(-2000) }),
      aJob({ _id: 'cancelled', status: 'CANCELLED', finishedAt: after(-2000) }),
    ]);
    const retention = { completed: '1d', failed: '1s', cancelled: '3s' };
    assert.equal((await byHand(database, { retention }).scheduler.prune()).finished, 1);
    assert.deepEqual(await ids(), ['cancelled', 'completed']);
  });

  it('J13 olderThan: finished jobs, orphans and jobs whose lock expired, all that old', async () => {
    const [old, young] = [after(-3600_001), after(-3600_000)];
    await database.collections.jobs.insertMany([
      ...(['COMPLETED', 'FAILED', 'CANCELLED'] as const).flatMap((status) => [
        aJob({ _id: `${status}, old`, status, finishedAt: old }),
        aJob({ _id: `${status}, young`, status, finishedAt: young }),
      ]),
      aJob({ _id: 'orphan, old', taskType: 'unknown', nextRunAt: old }),
      aJob({ _id: 'orphan, young', taskType: 'unknown', nextRunAt: young }),
      aJob({ _id: 'late, but not alone', taskType: 'work', nextRunAt: old }),
      aJob({ _id: 'expired, old', status: 'RUNNING', lockedUntil: old }),
      aJob({ _id: 'expired, young', status: 'QUEUED', lockedUntil: young }),
      aJob({ _id: 'locked', status: 'RUNNING', startedAt: old, lockedUntil: after(1) }),
      aJob({ _id: 'held', status: 'PENDING', nextRunAt: old }),
    ]);
    const { scheduler } = byHand(database);
    scheduler.registerHandler('work', () => undefined);
    assert.deepEqual(await countsOf(scheduler, '1h'), { finished: 3, orphans: 1, expired: 1 });
    assert.deepEqual(await scheduler.prune('1h'), { finished: 3, orphans: 1, expired: 1 });
    assert.deepEqual(await ids(), [
      'CANCELLED, young',
      'COMPLETED, young',
      'FAILED, young',
      'expired, young',
      'held',
      'late, but not alone',
      'locked',
      'orphan, young',
    ]);
    for (const age of ['soon', -1, {}, null])
      await assert.rejects(scheduler.prune(age as never), { code: 'INVALID_ARGUMENT' });
  });

  it('J18 a job is no orphan while any worker that lives has its handler', async () => {
    const worker = database.scheduler({ ...inProcess, queues: ['elsewhere'] });
    worker.registerHandler('theirs', () => undefined);
    await worker.start();
    await until(
      'it shows that it lives',
      async () => (await database.collections.workers.countDocuments()) === 1,
    );
    const other = database.scheduler(inProcess);
    const { id } = await other.dispatch('theirs', null, { at: new Date(1) });
    const orphan = await other.dispatch('nobodys', null, { at: new Date(1) });
    assert.deepEqual(await other.prune('1s'), { finished: 0, orphans: 1, expired: 0 });
    assert.equal(await other.getJob(orphan.id), null);
    assert.equal((await other.getJob(id))?.status, 'SCHEDULED');

    await worker.stop();
    assert.equal((await database.collections.workers.findOne({ _id: worker.workerId }))?.state, 'Stopped');

    // Where nobody has been seen for long, nothing is known about who has handlers.
    await database.collections.workers.deleteMany();
    assert.equal((await other.prune('1s')).orphans, 0);
    other.registerHandler('another', () => undefined);
    assert.equal((await other.prune('1s')).orphans, 1);
  });

  it('J13 a worker prunes by itself, at pruneInterval', async () => {
    const { scheduler, clock } = byHand(database, { pruneInterval: '10m' });
    await scheduler.start();
    const job = aJob({ status: 'COMPLETED', finishedAt: after(-7 * DAY) });
    await database.collections.jobs.insertOne(job);
    await passTime(
      clock,
      until('it is pruned', async () => (await database.collections.jobs.countDocuments()) === 0),
      10_000,
    );
    assert.ok(clock.now() >= after(1), clock.now().toISOString());
  });
});
