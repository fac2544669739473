import assert from 'node:assert/strict';
import type { Scheduler } from '../../../src/index.js';
import { aJob } from '../../support/factories/job.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { manualScheduler, withoutRenewalThread } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { timeAfter } from '../../support/instants.js';
import { waitUntil } from '../../support/wait-until.js';
import { nextMeasurement } from '../../support/measurements.js';

const DAY = 86_400_000;

describe('prune()', () => {
  const database = useSharedDatabase();

  async function ids(): Promise<string[]> {
    const jobs = await database.collections.jobs.find({}, { sort: { _id: 1 } }).toArray();
    return jobs.map(({ _id }) => _id);
  }

  /** How many jobs prune() would delete. */
  async function countPrunable(scheduler: Scheduler, olderThan?: string): Promise<Record<string, number>> {
    const counts = Object.entries(await scheduler.operations.countPrunable(olderThan));
    return Object.fromEntries(counts.map(([what, { count }]) => [what, count]));
  }

  it('deletes completed and cancelled jobs after a day, failed ones after 30, and nothing else [J13]', async () => {
    const old = timeAfter(-1000 * DAY);
    await database.collections.jobs.insertMany([
      aJob({ _id: 'completed, old', status: 'COMPLETED', finishedAt: timeAfter(-DAY - 1) }),
      aJob({ _id: 'completed, young', status: 'COMPLETED', finishedAt: timeAfter(-DAY) }),
      aJob({ _id: 'failed, old', status: 'FAILED', finishedAt: timeAfter(-30 * DAY - 1) }),
      aJob({ _id: 'failed, young', status: 'FAILED', finishedAt: timeAfter(-30 * DAY) }),
      aJob({ _id: 'cancelled, old', status: 'CANCELLED', finishedAt: timeAfter(-DAY - 1) }),
      aJob({ _id: 'cancelled, young', status: 'CANCELLED', finishedAt: timeAfter(-DAY) }),
      aJob({ _id: 'held', status: 'PENDING', nextRunAt: old, createdAt: old }),
      aJob({ _id: 'orphan', taskType: 'unknown', nextRunAt: old, createdAt: old }),
      aJob({ _id: 'running', status: 'RUNNING', lockedUntil: timeAfter(60_000) }),
    ]);
    const { scheduler } = manualScheduler(database);
    assert.deepEqual(await countPrunable(scheduler), { finished: 3, orphans: 0, expired: 0 });
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

  it('uses the configured retention of each status [J13] [B17]', async () => {
    await database.collections.jobs.insertMany([
      aJob({ _id: 'completed', status: 'COMPLETED', finishedAt: timeAfter(-2000) }),
      aJob({ _id: 'failed', status: 'FAILED', finishedAt: timeAfter(-2000) }),
      aJob({ _id: 'cancelled', status: 'CANCELLED', finishedAt: timeAfter(-2000) }),
    ]);
    const retention = { completed: '1d', failed: '1s', cancelled: '3s' };
    assert.equal((await manualScheduler(database, { retention }).scheduler.prune()).finished, 1);
    assert.deepEqual(await ids(), ['cancelled', 'completed']);
  });

  it('with olderThan deletes finished jobs, orphans and jobs with expired locks of that age [J13]', async () => {
    const [old, young] = [timeAfter(-3600_001), timeAfter(-3600_000)];
    await database.collections.jobs.insertMany([
      ...(['COMPLETED', 'FAILED', 'CANCELLED'] as const).flatMap((status) => [
        aJob({ _id: `${status}, old`, status, finishedAt: old }),
        aJob({ _id: `${status}, young`, status, finishedAt: young }),
      ]),
      aJob({ _id: 'orphan, old', taskType: 'unknown', nextRunAt: old }),
      aJob({ _id: 'orphan, young', taskType: 'unknown', nextRunAt: young }),
      aJob({ _id: 'late, with a handler', taskType: 'work', nextRunAt: old }),
      aJob({ _id: 'expired, old', status: 'RUNNING', lockedUntil: old }),
      aJob({ _id: 'expired, young', status: 'QUEUED', lockedUntil: young }),
      aJob({ _id: 'locked', status: 'RUNNING', startedAt: old, lockedUntil: timeAfter(1) }),
      aJob({ _id: 'held', status: 'PENDING', nextRunAt: old }),
    ]);
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('work', () => undefined);
    assert.deepEqual(await countPrunable(scheduler, '1h'), { finished: 3, orphans: 1, expired: 1 });
    assert.deepEqual(await scheduler.prune('1h'), { finished: 3, orphans: 1, expired: 1 });
    assert.deepEqual(await ids(), [
      'CANCELLED, young',
      'COMPLETED, young',
      'FAILED, young',
      'expired, young',
      'held',
      'late, with a handler',
      'locked',
      'orphan, young',
    ]);
    for (const age of ['soon', -1, {}, null])
      await assert.rejects(scheduler.prune(age as never), { code: 'INVALID_ARGUMENT' });
  });

  it('does not treat a job as an orphan while any live worker has its handler [J18]', async () => {
    const worker = database.scheduler({ ...withoutRenewalThread, queues: ['elsewhere'] });
    worker.registerHandler('theirs', () => undefined);
    await worker.start();
    await waitUntil(
      'its heartbeat is stored',
      async () => (await database.collections.workers.countDocuments()) === 1,
    );
    const other = database.scheduler(withoutRenewalThread);
    const { id } = await other.dispatch('theirs', null, { at: new Date(1) });
    const orphan = await other.dispatch('unknown', null, { at: new Date(1) });
    assert.deepEqual(await other.prune('1s'), { finished: 0, orphans: 1, expired: 0 });
    assert.equal(await other.getJob(orphan.id), null);
    assert.equal((await other.getJob(id))?.status, 'SCHEDULED');

    await worker.stop();
    assert.equal((await database.collections.workers.findOne({ _id: worker.workerId }))?.state, 'Stopped');

    // Without a listed worker and without handlers here, it is unknown which task types have handlers.
    await database.collections.workers.deleteMany();
    assert.equal((await other.prune('1s')).orphans, 0);
    other.registerHandler('another', () => undefined);
    assert.equal((await other.prune('1s')).orphans, 1);
  });

  it('runs in a worker at pruneInterval [J13]', async () => {
    const { scheduler, clock } = manualScheduler(database, { pruneInterval: '10m' });
    const firstRound = nextMeasurement(scheduler, 'round', ({ operation }) => operation === 'prune');
    await scheduler.start();
    await firstRound;
    await flushEventLoop();
    const job = aJob({ status: 'COMPLETED', finishedAt: timeAfter(-DAY) });
    await database.collections.jobs.insertOne(job);
    clock.advance(599_999);
    await flushEventLoop();
    assert.deepEqual(await ids(), [job._id]);
    clock.advance(1);
    await waitUntil('it is pruned', async () => (await ids()).length === 0);
  });
});
