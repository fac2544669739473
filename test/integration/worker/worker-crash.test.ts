import assert from 'node:assert/strict';
import type { DispatchRequest } from '../../../src/index.js';
import { useDatabase } from '../../support/database.js';
import { waitUntil } from '../../support/wait-until.js';
import { killWorkers, WorkerProcess } from '../../support/worker-process.js';

describe('a worker that crashes, freezes or blocks', () => {
  const db = useDatabase();
  afterEach(killWorkers);

  const start = (id: string, env: Record<string, string> = {}): Promise<WorkerProcess> =>
    WorkerProcess.start(id, { MONGODB_URI: db.uri, POLL_INTERVAL: '100', LOCK_TIMEOUT: '2s', ...env });
  const journal = (): ReturnType<typeof db.connection.collection> => db.connection.collection('journal');

  it('killed while running a job: the job runs on another worker with one crash and no attempt counted [C9]', async () => {
    const victim = await start('victim');
    const handle = await db.scheduler().dispatch('slow', { ms: 700 });
    await victim.line(({ msg }) => msg === 'slow started');
    await victim.kill();
    const killedAt = performance.now();
    await start('heir');
    const job = await handle.wait({ timeout: '10s' });
    assert.deepEqual([job.status, job.attempts, job.crashes, job.settledBy], ['COMPLETED', 0, 1, 'heir']);
    // Generous for a busy machine; the lock is 2 s, a sweep comes every second.
    assert.ok(performance.now() - killedAt < 8000);
    const rows = await db.scheduler().getExecutions(handle.id);
    assert.deepEqual(
      rows.map(({ outcome, workerId }) => [outcome, workerId]),
      [
        ['crashed', 'victim'],
        ['completed', 'heir'],
      ],
    );
  });

  it('killed with prefetched jobs: they run on another worker and nothing is counted against them [C9]', async () => {
    const of = (count: number, taskType: string, priority: number, payload = {}): DispatchRequest[] =>
      Array.from({ length: count }, () => ({ taskType, payload, options: { priority } }));
    // Short handlers teach a worker to lock ahead; then one that blocks it keeps what it has locked waiting.
    await db
      .scheduler()
      .dispatchMany([...of(300, 'nothing', 1), ...of(1, 'blocks', 2, { ms: 60_000 }), ...of(20, 'quick', 3)]);
    const victim = await start('victim', { CONCURRENCY: '1' });
    await waitUntil('it is blocked', async () => (await journal().countDocuments({ kind: 'start' })) === 1);
    await victim.kill();
    const locked = await db.collections.jobs.distinct('_id', { taskType: 'quick', status: 'QUEUED' });
    assert.ok(locked.length > 0);
    // Suspects run one at a time: should its backoff be short, it would come first, and take a minute.
    await db.collections.jobs.deleteOne({ taskType: 'blocks' });
    await start('heir');
    await waitUntil(
      'the buffered jobs are completed',
      async () =>
        (await db.collections.jobs.countDocuments({ _id: { $in: locked }, status: 'COMPLETED' })) ===
        locked.length,
    );
    const jobs = await db.collections.jobs.find({ _id: { $in: locked } }).toArray();
    for (const job of jobs)
      assert.deepEqual([job.attempts, job.crashes, job.lostWhileQueued, job.settledBy], [0, 0, 1, 'heir']);
  });

  it('frozen until its lock expired: its handler is aborted and its late result changes nothing [C8] [B1]', async () => {
    const zombie = await start('zombie');
    const handle = await db.scheduler().dispatch('deaf', { ms: 3000 });
    await zombie.line(({ msg }) => msg === 'deaf started');
    zombie.signal('SIGSTOP');
    const heir = await start('heir');
    await heir.line(({ msg }) => msg === 'deaf started');
    zombie.signal('SIGCONT');
    await waitUntil(
      'the zombie saw its signal aborted',
      async () => (await journal().countDocuments({ worker: 'zombie', kind: 'aborted' })) === 1,
    );
    assert.equal((await journal().findOne({ kind: 'aborted' }))?.['reason'], 'LOCK_LOST');
    await waitUntil(
      'the zombie came to its late result',
      async () => (await journal().countDocuments({ worker: 'zombie', kind: 'end' })) === 1,
    );
    await zombie.line(({ msg }) => msg.includes('lost its lock'));
    const job = await handle.wait({ timeout: '15s' });
    assert.deepEqual([job.status, job.settledBy, job.crashes, job.fence], ['COMPLETED', 'heir', 1, 3]);
    const rows = await db.scheduler().getExecutions(handle.id);
    assert.deepEqual(
      rows.map(({ outcome, workerId }) => [outcome, workerId]),
      [
        ['crashed', 'zombie'],
        ['completed', 'heir'],
      ],
    );
  });

  it('blocked by a handler for twice the lock time: it keeps its lock and completes the job [C8]', async () => {
    await start('blocked');
    await start('idle');
    const handle = await db.scheduler().dispatch('blocks', { ms: 4500 });
    const job = await handle.wait({ timeout: '15s' });
    assert.deepEqual(
      [job.status, job.result, job.fence, job.crashes, job.attempts],
      ['COMPLETED', 'unblocked', 1, 0, 0],
    );
  });

  it('blocked for ever: it loses its lock after timeout and grace, and the job runs on another worker [C8]', async () => {
    const victim = await start('victim');
    const handle = await db.scheduler().dispatch('blocksForEver', { victim: 'victim' });
    await victim.line(({ msg }) => msg === 'blocksForEver started');
    await start('heir');
    const job = await handle.wait({ timeout: '25s' });
    assert.deepEqual([job.status, job.settledBy, job.crashes, job.attempts], ['COMPLETED', 'heir', 1, 0]);
  }).timeout(40_000);

  it('killed by the same job three times: the job ends FAILED and no other job fails with it', async () => {
    const scheduler = db.scheduler();
    const killer = await scheduler.dispatch('killsItsProcess', null, { priority: 1 });
    const neighbours = await scheduler.dispatchMany(
      Array.from({ length: 20 }, () => ({
        taskType: 'slow',
        payload: { ms: 100 },
        options: { priority: 2 },
      })),
    );
    const done = new AbortController();
    const supervised = supervise('w', done.signal);
    const job = await killer.wait({ timeout: '40s' });
    const ids = neighbours.map(({ id }) => id ?? '');
    await waitUntil(
      'the neighbours are completed',
      async () =>
        (await db.collections.jobs.countDocuments({ _id: { $in: ids }, status: 'COMPLETED' })) === ids.length,
      30_000,
    );
    done.abort();
    const deaths = await supervised;
    assert.deepEqual(
      [job.status, job.crashes, job.attempts, job.error?.code],
      ['FAILED', 3, 0, 'JOB_CRASHED'],
    );
    assert.equal(deaths, 3);
    // The first death takes along what ran beside it; after that the suspect runs where it can hurt nobody else twice.
    assert.equal(await db.collections.jobs.countDocuments({ _id: { $in: ids }, attempts: { $gt: 0 } }), 0);
  }).timeout(90_000);

  /** Starts a worker anew each time it dies; returns how often it did. */
  async function supervise(id: string, over: AbortSignal): Promise<number> {
    for (let deaths = 0; ; deaths++) {
      const worker = await start(`${id}${deaths}`);
      const aborted = new Promise<'over'>((resolve) => over.addEventListener('abort', () => resolve('over')));
      if (over.aborted || (await Promise.race([worker.exited, aborted])) === 'over') {
        await worker.kill();
        return deaths;
      }
    }
  }
});
