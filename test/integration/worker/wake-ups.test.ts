import assert from 'node:assert/strict';
import { once } from 'node:events';
import { CancelJob, type JobContext, type Scheduler, type SchedulerOptions } from '../../../src/index.js';
import { aJob } from '../../support/factories/job.js';
import { withoutRenewalThread } from '../../support/manual-scheduler.js';
import { countEvents, nextEvent, signal } from '../../support/events.js';
import { withFailPoint, NO_STREAM } from '../../support/fail-point.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { listChangeStreams, waitForChangeStreams } from '../../support/change-streams.js';
import { waitUntil } from '../../support/wait-until.js';
import { killWorkers, WorkerProcess } from '../../support/worker-process.js';
import { countMeasurements, nextMeasurement, recordMeasurements } from '../../support/measurements.js';

/** Whatever happens within a test was not found by polling. */
const RARE_POLLS = { pollInterval: '1h' } as const;
const STREAM = 'watch changes';
const CANCELLATIONS = 'poll cancellations';

describe('wake-ups', () => {
  const database = useSharedDatabase();
  afterEach(killWorkers);

  /** A worker whose change stream is open. */
  async function startListening(
    handler: (payload: unknown, job: JobContext) => unknown = () => undefined,
    options: Partial<SchedulerOptions> = RARE_POLLS,
  ): Promise<Scheduler> {
    const worker = database.scheduler({ ...withoutRenewalThread, ...options });
    worker.registerHandler('work', handler);
    // It claims when it starts, and again when the stream is open.
    const claimed = countMeasurements(worker, 'claim', 2);
    await worker.start();
    await claimed;
    await waitForChangeStreams(database, 1);
    return worker;
  }

  /** Resolves when the signal of the job is aborted. */
  async function aborted({ signal }: JobContext): Promise<void> {
    await once(signal, 'abort');
  }

  /** Dispatches jobs until the worker has been saturated for so long that it closes its change stream. */
  async function saturate(dispatcher: Scheduler): Promise<void> {
    await waitUntil('the change stream is closed', async () => {
      await dispatcher.dispatch('work');
      return (await listChangeStreams(database)).length === 0;
    });
  }

  /** Dispatches 1,000 jobs at once. About 20 claims are normal, also on a busy machine. */
  async function assertFewClaims(worker: Scheduler, dispatcher: Scheduler): Promise<void> {
    const claims = recordMeasurements(worker, 'claim');
    const complete = countEvents(worker, 'job:complete', 1000);
    await Promise.all(Array.from({ length: 1000 }, () => dispatcher.dispatch('work')));
    await complete;
    assert.ok(claims.length < 40, `${claims.length} claims`);
    assert.equal(
      claims.map(({ claimed }) => claimed).reduce((a, b) => a + b),
      1000,
    );
  }

  it('start a job that another process dispatches without a poll [C1]', async () => {
    const worker = await startListening();
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
    assert.deepEqual(await listChangeStreams(database), [], 'the process left a change stream open');
  });

  it('start a job with a later run time at that time [C1]', async () => {
    const worker = await startListening();
    const claims = recordMeasurements(worker, 'claim');
    const started = nextEvent(worker, 'job:start');
    const other = database.scheduler(withoutRenewalThread);
    const { id } = await other.dispatch('work', null, { delay: '1s' });
    await started;
    const job = await other.getJob(id);
    assert.ok(job!.startedAt! >= job!.nextRunAt, 'it started early');
    assert.equal(claims[0]!.claimed, 1, 'there is no claim before');
  });

  it('start a job that was rescheduled, unheld or retried without a poll [C1]', async () => {
    const worker = await startListening();
    const other = database.scheduler(withoutRenewalThread);
    const next = (): Promise<{ jobId: string }> => nextEvent(worker, 'job:complete');
    const moved = await other.dispatch('work', null, { delay: '1d' });
    const first = next();
    await moved.at(new Date());
    assert.equal((await first).jobId, moved.id);
    const { insertedId: held } = await database.collections.jobs.insertOne(aJob({ status: 'PENDING' }));
    const second = next();
    await other.unhold(held);
    assert.equal((await second).jobId, held);
    const third = next();
    await other.retry(held);
    assert.equal((await third).jobId, held);
  });

  it('work for a task type whose handler is registered later [C1] [J18]', async () => {
    const worker = await startListening();
    worker.registerHandler('more', () => undefined);
    await waitUntil('the stream includes both task types', async () => {
      return (await listChangeStreams(database)).some(({ command }) => command.includes('"more"'));
    });
    const started = nextEvent(worker, 'job:start');
    await database.scheduler(withoutRenewalThread).dispatch('more');
    assert.equal((await started).taskType, 'more');
  });

  it('cancel a running job from another process without a poll', async () => {
    const started = signal<string>();
    const worker = await startListening(async (_, job) => {
      started.fire(job.id);
      await aborted(job);
    });
    const cancelled = nextEvent(worker, 'job:cancelled');
    const other = database.scheduler(withoutRenewalThread);
    await other.dispatch('work');
    assert.deepEqual(await other.cancel(await started.promise, 'enough'), {
      result: 'requested',
      state: 'running',
    });
    assert.equal((await cancelled).reason, 'enough');
  });

  it('do not cancel a job again that was retried before the change event of its cancellation arrived', async () => {
    const release = signal();
    let runs = 0;
    const worker = await startListening(async (payload, job) => {
      if (payload === 'quick') return;
      if (++runs === 1) throw new CancelJob('enough');
      await Promise.race([release.promise, aborted(job)]);
    });
    const other = database.scheduler(withoutRenewalThread);
    const slowStream = { commands: ['getMore'], collection: '$cmd.aggregate', how: 500 } as const;
    await withFailPoint(database, slowStream, async () => {
      // Ends the read of the stream that is in progress; the next read is slow.
      await (await other.dispatch('work', 'quick')).wait();
      worker.once('job:cancelled', ({ jobId }) => worker.retry(jobId));
      const again = countEvents(worker, 'job:start', 2);
      const job = await worker.dispatch('work');
      const polled = nextMeasurement(worker, 'round', ({ operation }) => operation === CANCELLATIONS);
      await again;
      await polled;
      release.fire();
      assert.equal((await job.wait()).status, 'COMPLETED');
    });
    assert.equal(runs, 2);
  });

  it('of a thousand dispatches in another process cause few claims, and all jobs run [C1]', async () => {
    const worker = await startListening(undefined, { ...RARE_POLLS, concurrency: 1000 });
    const other = database.scheduler({ ...withoutRenewalThread, concurrency: 45 });
    await other.dispatch('other');
    await assertFewClaims(worker, other);
  });

  it('of a thousand dispatches in the same process cause few claims, and all jobs run [C1]', async () => {
    const worker = await startListening(undefined, { ...RARE_POLLS, concurrency: 1000 });
    await assertFewClaims(worker, worker);
  });

  describe('when the change stream breaks', () => {
    it('the error is reported, the stream is opened again and jobs dispatched in between are found [C1] [B2]', async () => {
      const worker = await startListening();
      const reported = nextEvent(worker, 'worker:error', ({ operation }) => operation === STREAM);
      const recovered = nextEvent(worker, 'worker:recovered', ({ operation }) => operation === STREAM);
      const started = nextEvent(worker, 'job:start');
      const [stream] = await waitForChangeStreams(database, 1);
      await database.connection
        .getClient()
        .db(database.connection.name)
        .command({ killCursors: '$cmd.aggregate', cursors: [stream!.cursorId] });
      assert.equal((await reported).failures, 1);
      await database.scheduler(withoutRenewalThread).dispatch('work');
      await Promise.all([recovered, started]);
      await waitForChangeStreams(database, 1);
    });

    it('jobs are found by polling at the poll interval until it can be opened again [C1] [B2]', async () => {
      const worker = database.scheduler({ ...withoutRenewalThread, pollInterval: '200ms' });
      worker.registerHandler('work', () => undefined);
      const errors = countEvents(worker, 'worker:error', 3);
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
          (await errors).map(({ operation, retryIn }) => [operation, retryIn]),
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

  it('stop while the worker is saturated, which then polls for cancellations, and resume when it has room [C1]', async () => {
    const release = signal();
    const worker = await startListening((_, job) => Promise.race([release.promise, aborted(job)]), {
      ...RARE_POLLS,
      concurrency: 2,
    });
    const other = database.scheduler(withoutRenewalThread);
    const full = countEvents(worker, 'job:start', 2);
    await Promise.all(Array.from({ length: 4 }, () => other.dispatch('work')));
    const [running] = await full;
    await saturate(other);
    const cancelled = nextEvent(worker, 'job:cancelled');
    await other.cancel(running!.jobId);
    assert.equal((await cancelled).jobId, running!.jobId);
    release.fire();
    await waitForChangeStreams(database, 1);
    await waitUntil('all jobs are finished', async () => {
      return (await database.collections.jobs.countDocuments({ finishedAt: null })) === 0;
    });
    const started = nextEvent(worker, 'job:start');
    await other.dispatch('work');
    await started;
  });

  it('leave no change stream open on the server after stop() [C12]', async () => {
    const release = signal();
    const worker = await startListening(() => release.promise, { ...RARE_POLLS, concurrency: 1 });
    await worker.stop();
    assert.deepEqual(await listChangeStreams(database), []);
    const busy = await startListening((_, job) => aborted(job), { ...RARE_POLLS, concurrency: 1 });
    const other = database.scheduler(withoutRenewalThread);
    await saturate(other);
    await busy.stop('1s');
    assert.deepEqual(await listChangeStreams(database), []);
  });
});
