import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { DispatchRequest } from '../../../src/index.js';
import { useDatabase } from '../../support/database.js';
import { waitUntil } from '../../support/wait-until.js';
import { killWorkers, WorkerProcess } from '../../support/worker-process.js';

describe('a worker that crashes, freezes or blocks', () => {
  const db = useDatabase();
  afterEach(killWorkers);

  const start = (id: string, env: Record<string, string> = {}): Promise<WorkerProcess> =>
    WorkerProcess.start(id, { MONGODB_URI: db.uri, POLL_INTERVAL: '100', LOCK_TIMEOUT: '2s', ...env });
  const countInJournal = (entries: object): Promise<number> =>
    db.connection.collection('journal').countDocuments(entries);

  async function outcomesOf(jobId: string): Promise<string[]> {
    const rows = await db.scheduler().getExecutions(jobId);
    return rows.map(({ outcome, workerId }) => `${outcome} on ${workerId}`);
  }

  it('killed while running a job: the job runs on another worker with one crash and no attempt counted [C9]', async () => {
    const victim = await start('victim');
    const handle = await db.scheduler().dispatch('slow', { ms: 700 });
    await victim.line(({ msg }) => msg === 'slow started');
    await victim.kill();
    await start('other');
    const job = await handle.wait();
    assert.deepEqual([job.status, job.attempts, job.crashes, job.settledBy], ['COMPLETED', 0, 1, 'other']);
    assert.deepEqual(await outcomesOf(handle.id), ['crashed on victim', 'completed on other']);
  });

  it('killed with prefetched jobs: they run on another worker and nothing is counted against them [C9]', async () => {
    const of = (count: number, taskType: string, priority: number, payload = {}): DispatchRequest[] =>
      Array.from({ length: count }, () => ({ taskType, payload, options: { priority } }));
    // Short handlers make the worker prefetch; then a handler that blocks it keeps the prefetched jobs waiting.
    await db
      .scheduler()
      .dispatchMany([...of(300, 'nothing', 1), ...of(1, 'blocks', 2, { ms: 60_000 }), ...of(20, 'quick', 3)]);
    const victim = await start('victim', { CONCURRENCY: '1' });
    await waitUntil('it is blocked', async () => (await countInJournal({ kind: 'start' })) === 1);
    await victim.kill();
    const locked = await db.collections.jobs.distinct('_id', { taskType: 'quick', status: 'QUEUED' });
    assert.ok(locked.length > 0);
    // It would run again before the other crash suspects, which run one at a time, and take a minute.
    await db.collections.jobs.deleteOne({ taskType: 'blocks' });
    await start('other');
    await waitUntil(
      'the prefetched jobs are completed',
      async () =>
        (await db.collections.jobs.countDocuments({ _id: { $in: locked }, status: 'COMPLETED' })) ===
        locked.length,
    );
    const jobs = await db.collections.jobs.find({ _id: { $in: locked } }).toArray();
    for (const job of jobs)
      assert.deepEqual([job.attempts, job.crashes, job.lostWhileQueued, job.settledBy], [0, 0, 1, 'other']);
  });

  it('frozen until its lock expired: its handler is aborted and its late result changes nothing [C8] [B1]', async () => {
    const zombie = await start('zombie');
    const handle = await db.scheduler().dispatch('ignoresAbort');
    await zombie.line(({ msg }) => msg === 'ignoresAbort started');
    zombie.signal('SIGSTOP');
    const other = await start('other');
    await other.line(({ msg }) => msg === 'ignoresAbort started');
    zombie.signal('SIGCONT');
    await waitUntil(
      'the handler of the zombie is aborted',
      async () => (await countInJournal({ worker: 'zombie', kind: 'aborted', reason: 'LOCK_LOST' })) === 1,
    );
    await db.connection.collection<{ _id: string }>('released').insertOne({ _id: 'ignoresAbort' });
    await waitUntil(
      'the handler of the zombie has ended',
      async () => (await countInJournal({ worker: 'zombie', kind: 'end' })) === 1,
    );
    await zombie.line(({ msg }) => msg.includes('lost its lock'));
    const job = await handle.wait();
    assert.deepEqual([job.status, job.settledBy, job.crashes, job.fence], ['COMPLETED', 'other', 1, 3]);
    assert.deepEqual(await outcomesOf(handle.id), ['crashed on zombie', 'completed on other']);
  });

  it('blocked by a handler for twice the lock time: it keeps its lock and completes the job [C8]', async () => {
    await start('blocked');
    await start('idle');
    const handle = await db.scheduler().dispatch('blocks', { ms: 4500 });
    const job = await handle.wait();
    assert.deepEqual(
      [job.status, job.result, job.fence, job.crashes, job.attempts],
      ['COMPLETED', 'unblocked', 1, 0, 0],
    );
  });

  it('blocked forever: it loses its lock after timeout and grace, and the job runs on another worker [C8]', async () => {
    const victim = await start('victim');
    const handle = await db.scheduler().dispatch('blocksForever', { victim: 'victim' });
    await victim.line(({ msg }) => msg === 'blocksForever started');
    await start('other');
    const job = await handle.wait();
    assert.deepEqual([job.status, job.settledBy, job.crashes, job.attempts], ['COMPLETED', 'other', 1, 0]);
  });

  it('killed by the same job three times: the job ends FAILED and no other job fails with it', async () => {
    const scheduler = db.scheduler();
    const killer = await scheduler.dispatch('killsItsProcess', null, { priority: 1 });
    const neighbors = await scheduler.dispatchMany(
      Array.from({ length: 20 }, () => ({
        taskType: 'slow',
        payload: { ms: 100 },
        options: { priority: 2 },
      })),
    );
    const done = new AbortController();
    const supervised = restartOnCrash(done.signal);
    const job = await killer.wait();
    const ids = neighbors.map(({ id }) => id ?? '');
    await waitUntil(
      'the neighbors are completed',
      async () =>
        (await db.collections.jobs.countDocuments({ _id: { $in: ids }, status: 'COMPLETED' })) === ids.length,
    );
    done.abort();
    assert.deepEqual(
      [job.status, job.crashes, job.attempts, job.error?.code],
      ['FAILED', 3, 0, 'JOB_CRASHED'],
    );
    assert.equal(await supervised, 3);
    // Jobs that ran next to it may have crashed with it, but no attempt is counted.
    assert.equal(await db.collections.jobs.countDocuments({ _id: { $in: ids }, attempts: { $gt: 0 } }), 0);
  }).timeout(180_000);

  /** Keeps a worker running until `done` is aborted; returns how often it crashed. */
  async function restartOnCrash(done: AbortSignal): Promise<number> {
    const aborted = once(done, 'abort');
    for (let crashes = 0; ; crashes++) {
      const worker = await start(`worker-${crashes}`);
      await Promise.race([worker.exited, aborted]);
      if (done.aborted) {
        await worker.kill();
        return crashes;
      }
    }
  }
});
