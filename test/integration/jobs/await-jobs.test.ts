import assert from 'node:assert/strict';
import type { Scheduler } from '../../../src/index.js';
import { blocker, signal } from '../../support/events.js';
import { NO_STREAM, withFailPoint } from '../../support/fail-point.js';
import { listChangeStreams, waitForChangeStreams } from '../../support/change-streams.js';
import { withoutRenewalThread } from '../../support/manual-scheduler.js';
import { recordMeasurements } from '../../support/measurements.js';
import { rejectionOf } from '../../support/rejection.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { waitUntil } from '../../support/wait-until.js';
import { killWorkers, WorkerProcess } from '../../support/worker-process.js';

/** A job that the stream reports is not found by polling within a test. */
const RARE_POLLS = { ...withoutRenewalThread, pollInterval: '1h' } as const;

describe('waiting for jobs of other processes', () => {
  const database = useSharedDatabase();
  afterEach(killWorkers);

  async function startWorker(work: (payload: unknown) => unknown, concurrency = 5): Promise<Scheduler> {
    const worker = database.scheduler({ ...withoutRenewalThread, concurrency });
    worker.registerHandler('work', work);
    await worker.start();
    return worker;
  }

  /** Resolves when an open change stream reports the end of the job. */
  function waitForStreamWith(jobId: string): Promise<void> {
    return waitUntil(`a change stream includes ${jobId}`, async () =>
      (await listChangeStreams(database)).some(({ command }) => command.includes(jobId)),
    );
  }

  it('resolves through one change stream, which a process without a worker opens and closes', async () => {
    const { block, release } = blocker<string>();
    const worker = await startWorker(block);
    const other = database.scheduler(RARE_POLLS);
    const handle = await other.dispatch('work');
    const waits = [handle.result(), handle.result(), other.job(handle.id).wait()];
    await waitForStreamWith(handle.id);
    await waitForChangeStreams(database, 2);
    release('done');
    const [first, second, job] = await Promise.all(waits);
    assert.deepEqual([first, second, (job as { result: unknown }).result], ['done', 'done', 'done']);
    await worker.stop();
    await waitForChangeStreams(database, 1);
    await other.stop();
    assert.deepEqual(await listChangeStreams(database), [], 'a change stream was left open');
  });

  it('adds awaited jobs to the stream of a worker', async () => {
    const { block, release } = blocker<string>();
    await startWorker(block);
    const other = database.scheduler(RARE_POLLS);
    await other.start();
    const handle = await other.dispatch('work');
    const result = handle.result();
    await waitForStreamWith(handle.id);
    await waitForChangeStreams(database, 2);
    release('done');
    assert.equal(await result, 'done');
  });

  it('costs one stream and few reads for a thousand jobs', async () => {
    const { block, release } = blocker<string>();
    const worker = await startWorker(block, 1000);
    const other = database.scheduler(RARE_POLLS);
    const requests = Array.from({ length: 1000 }, (_, n) => ({ taskType: 'work', payload: n }));
    const ids = (await other.dispatchMany(requests)).map(({ id }) => id ?? '');
    const rounds = recordMeasurements(other, 'round');
    const results = Promise.all(ids.map((id) => other.job(id).result()));
    await waitForStreamWith(ids.at(-1)!);
    await waitUntil('all jobs run', async () => worker.load.running === 1000);
    const before = rounds.filter(({ operation }) => operation === 'await jobs').length;
    release('done');
    assert.deepEqual(new Set(await results), new Set(['done']));
    const after = rounds.filter(({ operation }) => operation === 'await jobs').length;
    assert.ok(before < 60, `${before} reads while they waited`);
    // The jobs are settled in several batches.
    assert.ok(after - before < 40, `${after - before} reads for the end of all`);
    await waitForChangeStreams(database, 2);
  });

  it('works between processes, within milliseconds', async () => {
    await WorkerProcess.start('worker', { MONGODB_URI: database.uri });
    const other = database.scheduler(withoutRenewalThread);
    const late: number[] = [];
    for (let n = 0; n < 21; n++) {
      const handle = await other.dispatch('slow', { ms: n % 3 === 0 ? 400 : 1 });
      const { finishedAt } = await handle.wait({ timeout: '30s' });
      late.push(new Date().getTime() - finishedAt!.getTime());
    }
    const median = late.sort((a, b) => a - b)[10]!;
    // About 10 ms on an idle machine.
    assert.ok(median < 250, `median of ${late.join(', ')} ms`);
  });

  it('does not resolve before the attempt is in the execution log', async () => {
    await startWorker((payload) => payload);
    const other = database.scheduler(withoutRenewalThread);
    // The row is written this much later than the job.
    const slowLog = { commands: ['insert'], collection: 'executions', how: 100 } as const;
    await withFailPoint(database, slowLog, async () => {
      for (let n = 0; n < 10; n++) {
        const handle = await other.dispatch('work', n);
        await (n % 2 === 0 ? handle.wait() : handle.result());
        assert.equal((await handle.executions()).length, 1);
      }
    });
  });

  it('finds jobs by polling while the stream cannot be opened', async () => {
    const { block, release } = blocker<string>();
    await startWorker(block);
    const other = database.scheduler(RARE_POLLS);
    await withFailPoint(database, NO_STREAM, async () => {
      const result = (await other.dispatch('work')).result();
      await new Promise<void>((resolve) => {
        other.on('worker:error', ({ operation }) => {
          if (operation === 'watch changes') resolve();
        });
      });
      release('done');
      assert.equal(await result, 'done');
    });
  });

  it('rejects when an awaited job is deleted', async () => {
    const other = database.scheduler(RARE_POLLS);
    const handle = await other.dispatch('work');
    const rejection = rejectionOf(handle.wait());
    await waitForStreamWith(handle.id);
    await database.collections.jobs.deleteOne({ _id: handle.id });
    assert.equal((await rejection).code, 'JOB_NOT_FOUND');
  });

  it('lets a handler wait for another job, also of its own worker and while that stops', async () => {
    const started = signal();
    const { block, release } = blocker<string>();
    const worker = await startWorker(block);
    worker.registerHandler('parent', async () => {
      const child = await worker.dispatch('work');
      const result = child.result();
      started.fire();
      return result;
    });
    const parent = await worker.dispatch('parent');
    await started.promise;
    await waitUntil('both run', async () => worker.load.running === 2);
    const stopped = worker.stop('20s');
    release('done');
    assert.deepEqual((await stopped).left, []);
    assert.equal(await database.scheduler().job(parent.id).result(), 'done');
  });
});
