import assert from 'node:assert/strict';
import { CancelJob, type JobContext, type Scheduler, type SchedulerOptions } from '../../src/index.js';
import { inProcess } from '../support/by-hand.js';
import { countEvents, nextEvent, recordEvents, signal } from '../support/events.js';
import { failing, NO_STREAM } from '../support/fail-point.js';
import { useSharedDatabase } from '../support/shared-database.js';
import { openStreams, streamsAre } from '../support/streams.js';
import { until } from '../support/until.js';
import { killWorkers, WorkerProcess } from '../support/worker-process.js';

/** So rarely that whatever happens in a test was not found by polling. */
const HARDLY_EVER = { pollInterval: '1h' } as const;
const STREAM = 'watch for changes';
const CANCELLATIONS = 'watch for cancellations';

describe('wake-ups', () => {
  const database = useSharedDatabase();
  afterEach(killWorkers);

  async function listening(
    handler: (payload: unknown, job: JobContext) => unknown = () => undefined,
    options: Partial<SchedulerOptions> = HARDLY_EVER,
  ): Promise<Scheduler> {
    const worker = database.scheduler({ ...inProcess, ...options });
    worker.registerHandler('work', handler);
    // One at first, and one when the stream is open.
    const looked = countEvents(worker, 'worker:claim', 2);
    await worker.start();
    await looked;
    await streamsAre(database, 1);
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

  it('C1 a job that another process dispatches starts without a poll', async () => {
    const worker = await listening();
    const other = database.scheduler(inProcess);
    for (let i = 0; i < 5; i++) {
      const started = nextEvent(worker, 'job:start');
      const { id } = await other.dispatch('work');
      assert.equal((await started).jobId, id);
    }
  });

  it('C1 in a worker process too', async () => {
    const env = { MONGODB_URI: database.uri, POLL_INTERVAL: '3600000' };
    const worker = await WorkerProcess.start('listener', env);
    await streamsAre(database, 1);
    const { id } = await database.scheduler(inProcess).dispatch('quick');
    await worker.line(({ jobId, msg }) => jobId === id && msg.includes('completed'));
    worker.signal('SIGTERM');
    assert.equal((await worker.exited).code, 0);
    assert.deepEqual(await openStreams(database), [], 'none is left behind');
  });

  it('C1 a job that is due later starts then', async () => {
    const worker = await listening();
    const claims = recordEvents(worker, 'worker:claim');
    const started = nextEvent(worker, 'job:start');
    const other = database.scheduler(inProcess);
    const { id } = await other.dispatch('work', null, { delay: '1s' });
    await started;
    const job = await other.getJob(id);
    assert.ok(job!.startedAt! >= job!.nextRunAt, 'not before its time');
    assert.equal((claims[0]!.event as { claimed: number }).claimed, 1, 'nothing is asked before');
  });

  it('C1 so does a job that is moved, released, or tried again', async () => {
    const worker = await listening();
    const other = database.scheduler(inProcess);
    const next = (): Promise<{ jobId: string }> => nextEvent(worker, 'job:complete');
    const moved = await other.dispatch('work', null, { delay: '1d' });
    const first = next();
    await moved.at(new Date());
    assert.equal((await first).jobId, moved.id);
    const held = await other.dispatch('work', null, { delay: '500ms' });
    await other.hold(held.id);
    await until('it would be due', async () => (await other.getJob(held.id))!.nextRunAt < new Date());
    const second = next();
    await other.unhold(held.id);
    assert.equal((await second).jobId, held.id);
    const third = next();
    await other.retry(held.id);
    assert.equal((await third).jobId, held.id);
  });

  it('C1 J18 a task type that comes later is heard of', async () => {
    const worker = await listening();
    worker.registerHandler('more', () => undefined);
    await until('the stream is for both', async () => {
      return (await openStreams(database)).some(({ command }) => command.includes('"more"'));
    });
    const started = nextEvent(worker, 'job:start');
    await database.scheduler(inProcess).dispatch('more');
    assert.equal((await started).taskType, 'more');
  });

  it('a job that runs is cancelled from another process without a poll', async () => {
    const started = signal<string>();
    const worker = await listening(async (_, job) => {
      started.fire(job.id);
      await aborted(job);
    });
    const cancelled = nextEvent(worker, 'job:cancelled');
    const other = database.scheduler(inProcess);
    await other.dispatch('work');
    assert.deepEqual(await other.cancel(await started.promise, 'enough'), { answer: 'requested' });
    assert.equal((await cancelled).reason, 'enough');
  });

  it('a cancelled job that is retried at once is not cancelled again by the news of it, which comes later', async () => {
    const release = signal();
    let runs = 0;
    const worker = await listening(async (payload, job) => {
      if (payload === 'quick') return;
      if (++runs === 1) throw new CancelJob('enough');
      await Promise.race([release.promise, aborted(job)]);
    });
    const other = database.scheduler(inProcess);
    const slowNews = { commands: ['getMore'], collection: '$cmd.aggregate', how: 500 } as const;
    await failing(database, slowNews, async () => {
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

  it('C1 a thousand dispatches in a burst cause a handful of claims, and all of them run', async () => {
    const worker = await listening(undefined, { ...HARDLY_EVER, concurrency: 1000 });
    const other = database.scheduler({ ...inProcess, concurrency: 45 });
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

  it('C1 nor do those of the same process', async () => {
    const worker = await listening(undefined, { ...HARDLY_EVER, concurrency: 1000 });
    const claims = recordEvents(worker, 'worker:claim');
    const complete = countEvents(worker, 'job:complete', 1000);
    await Promise.all(Array.from({ length: 1000 }, () => worker.dispatch('work')));
    await complete;
    assert.ok(claims.length < 40, `${claims.length} claims`);
  });

  describe('when the stream breaks', () => {
    it('C1 B2 it is reported and opened again, and what came meanwhile is found', async () => {
      const worker = await listening();
      const trouble = nextEvent(worker, 'worker:trouble', ({ operation }) => operation === STREAM);
      const recovered = nextEvent(worker, 'worker:recovered', ({ operation }) => operation === STREAM);
      const started = nextEvent(worker, 'job:start');
      const [stream] = await openStreams(database);
      await database.connection
        .getClient()
        .db(database.connection.name)
        .command({
          killCursors: '$cmd.aggregate',
          cursors: [stream!.cursorId],
        });
      assert.equal((await trouble).failures, 1);
      await database.scheduler(inProcess).dispatch('work');
      await Promise.all([recovered, started]);
      await streamsAre(database, 1);
    });

    it('C1 B2 as long as it cannot be opened, polls at their own interval find the jobs', async () => {
      const worker = database.scheduler({ ...inProcess, pollInterval: '200ms' });
      worker.registerHandler('work', () => undefined);
      const troubles = countEvents(worker, 'worker:trouble', 3);
      const recovered = nextEvent(worker, 'worker:recovered');
      await failing(database, NO_STREAM, async () => {
        await worker.start();
        const other = database.scheduler(inProcess);
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

  it('C1 with more than enough to do it has no stream, and still cancels soon; with room again it listens', async () => {
    const release = signal();
    const worker = await listening((_, job) => Promise.race([release.promise, aborted(job)]), {
      ...HARDLY_EVER,
      concurrency: 2,
    });
    const other = database.scheduler(inProcess);
    const full = countEvents(worker, 'job:start', 2);
    await Promise.all(Array.from({ length: 4 }, () => other.dispatch('work')));
    const [running] = await full;
    // Hungry for a while; the next news makes it look at that.
    await until('it needs no news', async () => {
      await other.dispatch('work');
      return (await openStreams(database)).length === 0;
    });
    const cancelled = nextEvent(worker, 'job:cancelled');
    await other.cancel(running!.jobId);
    assert.equal((await cancelled).jobId, running!.jobId);
    release.fire();
    await streamsAre(database, 1);
    await until('all are through', async () => {
      return (await database.collections.jobs.countDocuments({ finishedAt: null })) === 0;
    });
    const started = nextEvent(worker, 'job:start');
    await other.dispatch('work');
    await started;
  });

  it('C12 stopped, it leaves no stream on the server, whatever it listens to', async () => {
    const release = signal();
    const worker = await listening(() => release.promise, { ...HARDLY_EVER, concurrency: 1 });
    await worker.stop();
    assert.deepEqual(await openStreams(database), []);
    const busy = await listening((_, job) => aborted(job), { ...HARDLY_EVER, concurrency: 1 });
    const other = database.scheduler(inProcess);
    await until('it needs no news', async () => {
      await other.dispatch('work');
      return (await openStreams(database)).length === 0;
    });
    await busy.stop('1s');
    assert.deepEqual(await openStreams(database), []);
  });
});
