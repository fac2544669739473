import assert from 'node:assert/strict';
import { FINISHED_STATUSES } from '../../../src/domain/job/job.js';
import { createStore, type Store } from '../../../src/store/store.js';
import type { Attempt } from '../../../src/worker/job-executor.js';
import type { ClaimedJob } from '../../../src/worker/job-picker.js';
import { withoutFence } from '../../support/unfenced-collections.js';
import { useDatabase } from '../../support/database.js';
import { JobHistory } from '../../support/job-history.js';
import { checkInvariants, type JournalEntry, type Limits } from '../../support/invariants.js';
import { waitUntil } from '../../support/wait-until.js';
import { killWorkers, WorkerProcess } from '../../support/worker-process.js';

const LIMITS: Limits = { maxAttempts: 3, maxCrashes: 3, concurrency: 5 };

describe('many workers', () => {
  const db = useDatabase();
  afterEach(killWorkers);

  async function findViolations(
    history: JobHistory,
    acknowledged: Iterable<string>,
    limits: Limits,
  ): Promise<string[]> {
    const { jobs, executions } = db.collections;
    return checkInvariants(
      {
        changes: await history.read(),
        jobs: await jobs.find().toArray(),
        executions: await executions.find().toArray(),
        journal: (await db.connection
          .collection('journal')
          .find({ kind: { $in: ['start', 'end'] } })
          .toArray()) as unknown as JournalEntry[],
        acknowledged,
      },
      limits,
    );
  }

  it('keep every invariant with 2,000 jobs in four processes, one killed and one frozen half-way [C2] [B1]', async () => {
    const history = await JobHistory.begin(db.stored);
    const scheduler = db.scheduler();
    const kinds = [
      { taskType: 'quick', payload: { echo: 1 } },
      { taskType: 'quick' },
      { taskType: 'slow', payload: { ms: 30 } },
      { taskType: 'flaky', payload: { failures: 1 } },
      { taskType: 'flaky', payload: { failures: 9 } },
      { taskType: 'snoozes', payload: { times: 2 } },
      { taskType: 'cancelsItself' },
      { taskType: 'ignoresAbort', payload: { ms: 40 } },
    ];
    const results = await scheduler.dispatchMany(
      Array.from({ length: 2000 }, (_, i) => kinds[i % kinds.length] ?? { taskType: 'quick' }),
    );
    const ids = results.map(({ id }) => id ?? '');
    assert.equal(new Set(ids).size, 2000);

    const env = { MONGODB_URI: db.uri, POLL_INTERVAL: '200', LOCK_TIMEOUT: '2s', LOG_LEVEL: 'info' };
    const [first, second] = await Promise.all(
      ['w1', 'w2', 'w3', 'w4'].map((id) => WorkerProcess.start(id, env)),
    );
    const finished = (): Promise<number> =>
      db.collections.jobs.countDocuments({ status: { $in: [...FINISHED_STATUSES] } });
    await waitUntil('a third is finished', async () => (await finished()) > 600);
    second?.signal('SIGSTOP');
    await waitUntil('half is finished', async () => (await finished()) > 1000);
    await first?.kill();
    await waitUntil('all jobs are finished', async () => (await finished()) === 2000, 120_000);
    // Before it exits, it tries to write the outcomes of the jobs it had when it was frozen.
    second?.signal('SIGCONT');
    second?.signal('SIGTERM');
    assert.equal((await second?.exited)?.code, 0);

    assert.deepEqual(await findViolations(history, ids, { ...LIMITS, killedWorkers: ['w1'] }), []);
    const outcomes = Object.fromEntries(
      (
        await db.collections.jobs
          .aggregate<{ _id: string; n: number }>([{ $group: { _id: '$status', n: { $sum: 1 } } }])
          .toArray()
      ).map(({ _id, n }) => [_id, n]),
    );
    assert.deepEqual(outcomes, { COMPLETED: 1500, FAILED: 250, CANCELLED: 250 });
  }).timeout(300_000);

  /** A worker loses its lock, another claims the job, and then the first one settles through `zombieStore`. */
  async function settleLate(zombieStore: Store): Promise<string[]> {
    const history = await JobHistory.begin(db.stored);
    const { id } = await db.scheduler().dispatch('work');
    const store = createStore(db.stored);
    const zombie = await claim(store, 'zombie');
    const expired = new Date(Date.now() + 120_000);
    assert.ok(
      await store.recover(
        zombie.job,
        { transition: 'recover', nextRunAt: new Date(0), error: null },
        { sweptBy: 'me', ownerIsGone: true },
        expired,
      ),
    );
    const other = await claim(store, 'other');

    await settle(zombieStore, zombie, 'zombie', 'failed');
    await settle(store, other, 'other', 'completed');
    return findViolations(history, [id], { ...LIMITS, killedWorkers: ['zombie', 'other'] });
  }

  async function claim(store: Store, workerId: string): Promise<ClaimedJob> {
    const now = new Date();
    const token = `${workerId}-token`;
    const filter = {
      queues: ['default'],
      taskTypes: ['work'],
      now,
      withoutCrashSuspects: false,
      exclude: [],
    };
    const job = await store.claimOne(filter, {
      token,
      workerId,
      lockedUntil: new Date(now.getTime() + 60_000),
    });
    assert.ok(job !== null);
    return { job, token, lease: 60_000, sentAt: 0 };
  }

  async function settle(
    store: Store,
    { job, token }: ClaimedJob,
    workerId: string,
    kind: 'failed' | 'completed',
  ): Promise<void> {
    const outcome: Attempt['outcome'] =
      kind === 'failed' ? { kind, error: new Error('late') } : { kind, result: null };
    await store.settle([
      { jobId: job._id, token, workerId, outcome, startedAt: new Date(), finishedAt: new Date() },
    ]);
  }

  it('pass the invariant check when a worker that lost its lock settles through the real store [B1]', async () => {
    assert.deepEqual(await settleLate(createStore(db.stored)), []);
  });

  it('fail the invariant check when the fence is removed from the store', async () => {
    const found = await settleLate(createStore(withoutFence(db.stored)));
    assert.ok(
      found.some((violation) => /^5: .*zombie/.test(violation)),
      found.join('\n'),
    );
  });
});
