import assert from 'node:assert/strict';
import { CancelJob, type JobContext, type Scheduler, type SchedulerOptions } from '../../../src/index.js';
import { withoutRenewalThread } from '../../support/manual-scheduler.js';
import { countEvents, nextEvent, recordEvents, signal } from '../../support/events.js';
import { withFailPoint, NO_STREAM } from '../../support/fail-point.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { listChangeStreams, waitForChangeStreams } from '../../support/change-streams.js';
import { waitUntil } from '../../support/wait-until.js';
import { killWorkers, WorkerProcess } from '../../support/worker-process.js';

/** So rarely that whatever happens in a test was not found by polling. */
const HARDLY_EVER = { pollInterval: '1h' } as const;
const STREAM = 'watch changes';
const CANCELLATIONS = 'poll cancellations';

describe('wake-ups', () => {
  const database = useSharedDatabase();
  afterEach(killWorkers);

  async function listening(
    handler: (payload: unknown, job: JobContext) => unknown = () => undefined,
    options: Partial<SchedulerOptions> = HARDLY_EVER,
  ): Promise<Scheduler> {
    const worker = database.scheduler({ ...withoutRenewalThread, ...options });
    worker.registerHandler('work', handler);
    // One at first, and one when the stream is open.
    const looked = countEvents(worker, 'worker:claim', 2);
    await worker.start();
    await looked;
    await waitForChangeStreams(database, 1);
    return worker;
  }

  /** Resolves when the signal of the job is aborted. */
  function aborted({ signal }: JobContext): Promise<void> {
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        resolve();
      });
    });
  }

  it('start a job that another process dispatches without a poll [C1]', async () => {
    const worker = await listening();
    const other = database.scheduler(withoutRenewalThread);
    for (let i = 0; i < 5; i++) {
      const started = nextEvent(worker, 'job:start');
      const { id } = await other.dispatch('work');
      assert.equal((await started).jobId, id);
    }
  });

  it('also work in a worker process [C1]', async () => {
    const env = { MONGODB_URI: database.uri, POLL_INTERVAL: '3600000' };
    const worker = await WorkerProcess.start('listener', env);
    await waitForChangeStreams(database, 1);
    const { id } = await database.scheduler(withoutRenewalThread).dispatch('quick');
    await worker.line(({ jobId, msg }) => jobId === id && msg.includes('completed'));
    worker.signal('SIGTERM');
    assert.equal((await worker.exited).code, 0);
    assert.deepEqual(await listChangeStreams(database), [], 'none is left behind');
  });

  it('start a job with a later run time at that time [C1]', async () => {
    const worker = await listening();
    const claims = recordEvents(worker, 'worker:claim');
    const started = nextEvent(worker, 'job:start');
    const other = database.scheduler(withoutRenewalThread);
    const { id } = await other.dispatch('work', null, { delay: '1s' });
    await started;
    const job = await other.getJob(id);
    assert.ok(job!.startedAt! >= job!.nextRunAt, 'not before its time');
    assert.equal((claims[0]!.event as { claimed: number }).claimed, 1, 'nothing is asked before');
  });

  it('start a job without a poll that was rescheduled, unheld or retried [C1]', async () => {
    const worker = await listening();
    const other = database.scheduler(withoutRenewalThread);
    const next = (): Promise<{ jobId: string }> => nextEvent(worker, 'job:complete');
    const moved = await other.dispatch('work', null, { delay: '1d' });
    const first = next();
    await moved.at(new Date());
    assert.equal((await first).jobId, moved.id);
    const held = await other.dispatch('work', null, { delay: '500ms' });
    await other.hold(held.id);
    await waitUntil('it would be due', async () => (await other.getJob(held.id))!.nextRunAt < new Date());
    const second = next();
    await other.unhold(held.id);
    assert.equal((await second).jobId, held.id);
    const third = next();
    await other.retry(held.id);
    assert.equal((await third).jobId, held.id);
  });

  it('work for a task type whose handler is registered later [C1] [J18]', async () => {
    const worker = await listening();
    worker.registerHandler('more', () => undefined);
    await waitUntil('the stream is for both', async () => {
      return (await listChangeStreams(database)).some(({ command }) => command.includes('"more"'));
    });
    const started = nextEvent(worker, 'job:start');
    await database.scheduler(withoutRenewalThread).dispatch('more');
    assert.equal((await started).taskType, 'more');
  });

  it('cancel a running job from another process without a poll', async () => {
    const started = signal<string>();
    const worker = await listening(async (_, job) => {
      started.fire(job.id);
      await aborted(job);
    });
    const cancelled = nextEvent(worker, 'job:cancelled');
    const other = database.scheduler(withoutRenewalThread);
    await other.dispatch('work');
    assert.deepEqual(await other.cancel(await started.promise, 'enough'), { answer: 'requested' });
    assert.equal((await cancelled).reason, 'enough');
  });

  it('do not cancel a job again that was retried before the change event of its cancellation arrived', async () => {
    const release = signal();
    let runs = 0;
    const worker = await listening(async (payload, job) => {
      if (payload === 'quick') return;
      if (++runs === 1) throw new CancelJob('enough');
      await Promise.race([release.promise, aborted(job)]);
    });
    const other = database.scheduler(withoutRenewalThread);
    const slowNews = { commands: ['getMore'], collection: '$cmd.aggregate', how: 500 } as const;
    await withFailPoint(database, slowNews, async () => {
      // Ends the reading under way; the next one is slow.
      await (await other.dispatch('work', 'quick')).wait({ timeout: '10s' });
      worker.once('job:cancelled', ({ jobId }) => worker.retry(jobId));
      const again = countEvents(worker, 'job:start', 2);
      const job = await worker.dispatch('work');
      const looked = nextEvent(worker, 'worker:cycle', ({ operation }) => operation === CANCELLATIONS);
      await again;
      await looked;
      release.fire();
      assert.equal((await job.wait({ timeout: '10s' })).status, 'COMPLETED');
    });
    assert.equal(runs, 2);
  });

  it('of a thousand dispatches in a burst cause few claims, and all jobs run [C1]', async () => {
    const worker = await listening(undefined, { ...HARDLY_EVER, concurrency: 1000 });
    const other = database.scheduler({ ...withoutRenewalThread, concurrency: 45 });
    await other.dispatch('other');
    const claims = recordEvents(worker, 'worker:claim');
    const complete = countEvents(worker, 'job:complete', 1000);
    await Promise.all(Array.from({ length: 1000 }, () => other.dispatch('work')));
    await complete;
    assert.ok(claims.length < 40, `${claims.length} claims`);
    assert.equal(
      claims.map(({ event }) => (event as { claimed: number }).claimed).reduce((a, b) => a + b),
      1000,
    );
  });

  it('of a thousand dispatches in the same process cause few claims [C1]', async () => {
    const worker = await listening(undefined, { ...HARDLY_EVER, concurrency: 1000 });
    const claims = recordEvents(worker, 'worker:claim');
    const complete = countEvents(worker, 'job:complete', 1000);
    await Promise.all(Array.from({ length: 1000 }, () => worker.dispatch('work')));
    await complete;
    assert.ok(claims.length < 40, `${claims.length} claims`);
  });

  describe('when the change stream breaks', () => {
    it('the error is reported, the stream is opened again and jobs of the meantime are found [C1] [B2]', async () => {
      const worker = await listening();
      const trouble = nextEvent(worker, 'worker:trouble', ({ operation }) => operation === STREAM);
      const recovered = nextEvent(worker, 'worker:recovered', ({ operation }) => operation === STREAM);
      const started = nextEvent(worker, 'job:start');
      const [stream] = await listChangeStreams(database);
      await database.connection
        .getClient()
        .db(database.connection.name)
        .command({
          killCursors: '$cmd.aggregate',
          cursors: [stream!.cursorId],
        });
      assert.equal((await trouble).failures, 1);
      await database.scheduler(withoutRenewalThread).dispatch('work');
      await Promise.all([recovered, started]);
      await waitForChangeStreams(database, 1);
    });

    it('jobs are found by polling at the poll interval until it can be opened again [C1] [B2]', async () => {
      const worker = database.scheduler({ ...withoutRenewalThread, pollInterval: '200ms' });
      worker.registerHandler('work', () => undefined);
      const troubles = countEvents(worker, 'worker:trouble', 3);
      const recovered = nextEvent(worker, 'worker:recovered');
      await withFailPoint(database, NO_STREAM, async () => {
        await worker.start();
        const other = database.scheduler(withoutRenewalThread);
        for (let i = 0; i < 3; i++) {
          const started = nextEvent(worker, 'job:start');
          await other.dispatch('work');
          await started;
        }
        assert.deepEqual(
          (await troubles).map(({ operation, retryIn }) => [operation, retryIn]),
          [
            [STREAM, 250],
            [STREAM, 500],
            [STREAM, 1000],
          ],
        );
      });
      assert.equal((await recovered).operation, STREAM);
    });
  });

  it('stop while the worker is saturated, which still cancels jobs soon, and resume when it has room [C1]', async () => {
    const release = signal();
    const worker = await listening((_, job) => Promise.race([release.promise, aborted(job)]), {
      ...HARDLY_EVER,
      concurrency: 2,
    });
    const other = database.scheduler(withoutRenewalThread);
    const full = countEvents(worker, 'job:start', 2);
    await Promise.all(Array.from({ length: 4 }, () => other.dispatch('work')));
    const [running] = await full;
    // Hungry for a while; the next news makes it look at that.
    await waitUntil('it needs no news', async () => {
      await other.dispatch('work');
      return (await listChangeStreams(database)).length === 0;
    });
    const cancelled = nextEvent(worker, 'job:cancelled');
    await other.cancel(running!.jobId);
    assert.equal((await cancelled).jobId, running!.jobId);
    release.fire();
    await waitForChangeStreams(database, 1);
    await waitUntil('all are through', async () => {
      return (await database.collections.jobs.countDocuments({ finishedAt: null })) === 0;
    });
    const started = nextEvent(worker, 'job:start');
    await other.dispatch('work');
    await started;
  });

  it('leave no change stream open on the server after stop() [C12]', async () => {
    const release = signal();
    const worker = await listening(() => release.promise, { ...HARDLY_EVER, concurrency: 1 });
    await worker.stop();
    assert.deepEqual(await listChangeStreams(database), []);
    const busy = await listening((_, job) => aborted(job), { ...HARDLY_EVER, concurrency: 1 });
    const other = database.scheduler(withoutRenewalThread);
    await waitUntil('it needs no news', async () => {
      await other.dispatch('work');
      return (await listChangeStreams(database)).length === 0;
    });
    await busy.stop('1s');
    assert.deepEqual(await listChangeStreams(database), []);
  });
});
