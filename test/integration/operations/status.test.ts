import assert from 'node:assert/strict';
import type { ExecutionDocument } from '../../../src/domain/job/execution.js';
import { readStatus } from '../../../src/operations/status.js';
import type { WorkerDocument } from '../../../src/store/schema/system-schemas.js';
import { createStore } from '../../../src/store/store.js';
import { aJob } from '../../support/factories/job.js';
import { aWorker } from '../../support/factories/worker.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { timeAfter } from '../../support/instants.js';
import { ManualClock } from '../../support/manual-clock.js';
import { useSharedDatabase } from '../../support/shared-database.js';

describe('status', () => {
  const database = useSharedDatabase();

  function rows(count: number, fields: Partial<ExecutionDocument>): ExecutionDocument[] {
    const finishedAt = fields.finishedAt ?? timeAfter(0);
    return Array.from({ length: count }, (_, index) => ({
      ...{ jobId: 'j', taskType: 'work', attempt: 1, fence: index, lockToken: 't', workerId: 'w' },
      ...{ startedAt: finishedAt, finishedAt, duration: 0, outcome: 'completed' as const, error: null },
      ...{ queue: 'default', log: [], expiresAt: timeAfter(86_400_000, finishedAt) },
      _id: `${JSON.stringify(fields)}:${index}`,
      ...fields,
    }));
  }

  it('counts documents instead of trusting the metadata of a server that was killed', async () => {
    await database.collections.jobs.insertMany([aJob(), aJob({ status: 'FAILED' })]);
    const store = { ...createStore(database.stored), estimateJobs: async () => 1 };
    assert.equal((await readStatus({ store, clock: new ManualClock() })).stored, 2);
  });

  it('counts by queue and state, with the oldest waiting job, throughput and drain estimate [J14]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    clock.advance(600_000);
    await database.collections.jobs.insertMany([
      aJob({ queue: 'mail', nextRunAt: timeAfter(540_000), priority: 10 }),
      aJob({ queue: 'mail', nextRunAt: timeAfter(480_000), priority: 500 }),
      aJob({ queue: 'mail', nextRunAt: timeAfter(900_000) }),
      aJob({ queue: 'mail', nextRunAt: timeAfter(900_000), attempts: 1 }),
      aJob({ queue: 'mail', status: 'PENDING' }),
      aJob({ queue: 'mail', status: 'PENDING', held: null }),
      aJob({ queue: 'slow', status: 'RUNNING' }),
      aJob({ queue: 'slow', status: 'QUEUED' }),
      aJob({ queue: 'slow', nextRunAt: timeAfter(900_000) }),
      aJob({ queue: 'slow', nextRunAt: timeAfter(900_000), crashes: 1 }),
      aJob({ status: 'CANCELLED', cancelKind: 'skipped' }),
      aJob({ status: 'CANCELLED', cancelKind: 'expired' }),
      ...['COMPLETED', 'FAILED', 'CANCELLED', 'FAILED'].map((status) => aJob({ status: status as 'FAILED' })),
    ]);
    await database.collections.executions.insertMany([
      ...rows(8, { queue: 'mail', finishedAt: timeAfter(590_000) }),
      ...rows(2, { queue: 'mail', finishedAt: timeAfter(590_000), outcome: 'failed' }),
      ...rows(5, { queue: 'mail', finishedAt: timeAfter(580_000), outcome: 'retry' }),
      ...rows(9, { queue: 'mail', finishedAt: timeAfter(200_000) }),
    ]);
    const workers: Partial<WorkerDocument>[] = [
      { _id: 'b', queues: ['mail', 'idle'], running: 2, heartbeatAt: timeAfter(595_000) },
      { _id: 'a', queues: ['mail'], running: 9, heartbeatAt: timeAfter(500_000) },
    ];
    await database.collections.workers.insertMany(workers.map((worker) => aWorker(worker)));

    const status = await scheduler.operations.status();
    const exactly = (count: number): object => ({ count, atLeast: false });
    assert.deepEqual(status.at, timeAfter(600_000));
    assert.equal(status.stored, 16);
    assert.deepEqual(status.totals, {
      waiting: exactly(2),
      delayed: exactly(2),
      retrying: exactly(2),
      held: exactly(1),
      blocked: exactly(1),
      prefetched: exactly(1),
      running: exactly(1),
      completed: exactly(1),
      failed: exactly(2),
      cancelled: exactly(1),
      skipped: exactly(1),
      expired: exactly(1),
    });
    assert.deepEqual(
      status.queues.map(({ queue }) => queue),
      ['default', 'idle', 'mail', 'slow'],
    );
    const mail = status.queues.find(({ queue }) => queue === 'mail');
    assert.deepEqual(
      [mail?.counts.waiting, mail?.counts.delayed, mail?.counts.retrying, mail?.counts.held],
      [exactly(2), exactly(1), exactly(1), exactly(1)],
    );
    assert.deepEqual([mail?.oldestDueAt, mail?.oldestWaiting], [timeAfter(480_000), 120_000]);
    // Ten jobs ended in five minutes, and two are due.
    assert.deepEqual([mail?.perMinute, mail?.drainIn, mail?.workers], [2, 60_000, 1]);
    const slow = status.queues.find(({ queue }) => queue === 'slow');
    assert.deepEqual([slow?.oldestWaiting, slow?.perMinute, slow?.drainIn, slow?.workers], [null, 0, 0, 0]);
    assert.deepEqual(status.throughput, {
      window: 300_000,
      attempts: 15,
      perMinute: 3,
      byOutcome: { completed: 8, failed: 2, retry: 5 },
    });
    assert.deepEqual(
      status.workers.map(({ id, isLive, silentFor }) => [id, isLive, silentFor]),
      [
        ['b', true, 5000],
        ['a', false, 100_000],
      ],
    );
    assert.deepEqual([status.running, status.slots, status.isComplete], [2, 5, true]);
    assert.deepEqual(await scheduler.operations.listQueues(), { items: status.queues, next: null });
    assert.deepEqual(await scheduler.operations.listWorkers(), { items: status.workers, next: null });
  });

  it('says where it stopped counting, and uses what it has counted [J14]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    clock.advance(600_000);
    await database.collections.jobs.insertMany(Array.from({ length: 10_001 }, () => aJob()));
    await database.collections.executions.insertMany([
      ...rows(9000, { finishedAt: timeAfter(590_000) }),
      ...rows(2000, { finishedAt: timeAfter(540_000) }),
    ]);
    const { totals, throughput, queues } = await scheduler.operations.status();
    const capped = { count: 10_000, atLeast: true };
    assert.deepEqual(totals.waiting, capped);
    // The last ten thousand are those of one minute.
    assert.deepEqual(
      [throughput.window, throughput.attempts, throughput.perMinute],
      [60_000, 10_000, 10_000],
    );
    assert.equal(queues[0]?.drainIn, 60_000);
    const { operations } = scheduler;
    assert.deepEqual(await operations.countMatching({ state: 'waiting' }), capped);
  });

  it('stops counting queues when its time is over, and says so [J14]', async () => {
    await database.collections.jobs.insertMany(['a', 'b', 'c'].map((queue) => aJob({ queue })));
    const clock = new ManualClock();
    const store = createStore(database.stored);
    const slow: typeof store = {
      ...store,
      countLater: (...given) => {
        clock.advance(1500);
        return store.countLater(...given);
      },
    };
    const { queues, totals, isComplete } = await readStatus({ store: slow, clock });
    assert.equal(isComplete, false);
    assert.deepEqual(
      queues.map(({ queue, counts: { waiting }, drainIn }) => [
        queue,
        waiting.count,
        waiting.atLeast,
        drainIn,
      ]),
      [
        ['a', 1, false, null],
        ['b', 1, false, null],
        ['c', 0, true, null],
      ],
    );
    assert.deepEqual(totals.waiting, { count: 2, atLeast: true });
  });

  it('works with an empty database', async () => {
    const { scheduler } = manualScheduler(database);
    const { queues, totals, throughput, workers } = await scheduler.operations.status();
    assert.deepEqual([queues, totals.waiting.count, throughput.attempts, workers], [[], 0, 0, []]);
  });
});
