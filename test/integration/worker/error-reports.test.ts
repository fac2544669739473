import assert from 'node:assert/strict';
import type { ChronosError, Scheduler, SchedulerEvents } from '../../../src/index.js';
import { withoutRenewalThread } from '../../support/manual-scheduler.js';
import { collectionName, useDatabase } from '../../support/database.js';
import { countEvents, nextEvent, recordEvents, signal } from '../../support/events.js';
import { withFailPoint, type FailPoint } from '../../support/fail-point.js';

type ReportedError = SchedulerEvents['worker:error'];

describe('a worker with database errors', () => {
  const database = useDatabase();

  /** A started worker, the errors it reports, and how often it ran each job. */
  async function startWorker(): Promise<{
    scheduler: Scheduler;
    errors: ReportedError[];
    runs: Map<string, number>;
  }> {
    const scheduler = database.scheduler({ ...withoutRenewalThread, lockTimeout: '10s' });
    const errors: ReportedError[] = [];
    const runs = new Map<string, number>();
    scheduler.on('worker:error', (event) => errors.push(event));
    scheduler.registerHandler('work', (_, { id }) => void runs.set(id, (runs.get(id) ?? 0) + 1));
    await scheduler.start();
    return { scheduler, errors, runs };
  }

  function nextError(scheduler: Scheduler, operation: string, failures?: number): Promise<ReportedError> {
    return nextEvent(
      scheduler,
      'worker:error',
      (event) => event.operation === operation && (failures === undefined || event.failures === failures),
    );
  }

  const cases: [string, FailPoint['commands'], FailPoint['how'], string][] = [
    ['the connection breaks when it searches jobs', ['find', 'findAndModify'], 'noConnection', 'claim jobs'],
    ['the server rejects the search for jobs', ['find', 'findAndModify'], 'error', 'claim jobs'],
    ['the connection breaks when it claims jobs', ['update', 'findAndModify'], 'noConnection', 'claim jobs'],
  ];
  for (const [name, commands, how, operation] of cases) {
    it(`reports and counts errors and retries with backoff while ${name}, and loses nothing [Y9]`, async () => {
      const { scheduler, errors, runs } = await startWorker();
      const other = database.scheduler(withoutRenewalThread);
      const recovered = nextEvent(scheduler, 'worker:recovered', (event) => event.operation === operation);
      const complete = countEvents(scheduler, 'job:complete', 20);
      await withFailPoint(database, { commands, how }, async () => {
        const third = nextError(scheduler, operation, 3);
        const results = await other.dispatchMany(
          Array.from({ length: 20 }, () => ({ taskType: 'work', options: { retries: { max: 1 } } })),
        );
        assert.equal(results.length, 20);
        await third;
      });
      assert.ok((await recovered).failures >= 3);
      await complete;

      const own = errors.filter((event) => event.operation === operation);
      assert.deepEqual(
        own.slice(0, 3).map(({ failures, retryIn }) => [failures, retryIn]),
        [
          [1, 250],
          [2, 500],
          [3, 1000],
        ],
      );
      assert.ok(own.every(({ error }) => error instanceof Error));
      assert.equal(scheduler.state, 'Running');
      assert.deepEqual([...runs.values()], Array(20).fill(1));
      const { jobs } = database.collections;
      assert.equal(await jobs.countDocuments({ status: 'COMPLETED', attempts: 0, crashes: 0 }), 20);
    });
  }

  it('keeps outcomes that cannot be written and writes all of them later [Y9]', async () => {
    const { scheduler, runs } = await startWorker();
    const release = signal();
    scheduler.registerHandler('slow', (_, { id }) => {
      runs.set(id, (runs.get(id) ?? 0) + 1);
      return release.promise;
    });
    const started = countEvents(scheduler, 'job:start', 5);
    const complete = countEvents(scheduler, 'job:complete', 5);
    const lost = recordEvents(scheduler, 'job:lockLost', 'job:failed');
    await scheduler.dispatchMany(Array.from({ length: 5 }, () => ({ taskType: 'slow' })));
    await started;
    await withFailPoint(database, { commands: ['update'], how: 'noConnection' }, async () => {
      const third = nextError(scheduler, 'settle', 3);
      release.fire();
      await third;
    });
    await complete;
    assert.deepEqual(lost, []);
    assert.deepEqual([...runs.values()], [1, 1, 1, 1, 1]);
    assert.equal(await database.collections.executions.countDocuments({ outcome: 'completed' }), 5);
  });

  it('keeps execution rows that cannot be written and writes them later [Y9]', async () => {
    const { scheduler } = await startWorker();
    const complete = nextEvent(scheduler, 'job:complete');
    const { id } = await withFailPoint(
      database,
      { commands: ['insert'], collection: 'executions', how: 'noConnection' },
      async () => {
        const reported = nextError(scheduler, 'write execution log');
        const handle = await scheduler.dispatch('work');
        await reported;
        return handle;
      },
    );
    await complete;
    assert.equal((await scheduler.getExecutions(id)).length, 1);
  });

  it('says which execution rows it gives up when MongoDB keeps rejecting them [Y9]', async () => {
    const { scheduler } = await startWorker();
    const rejected = { commands: ['insert'], collection: 'executions', how: 'error' } as const;
    await withFailPoint(database, rejected, async () => {
      const complete = nextEvent(scheduler, 'job:complete');
      const reported = nextError(scheduler, 'write execution log', 3);
      await scheduler.dispatch('work');
      assert.match((await reported).error.message, /gave up: 1 row is missing in the execution log \(/);
      await complete;
    });
  });

  it('runs jobs while heartbeats fail [Y9]', async () => {
    const { scheduler } = await startWorker();
    const recovered = nextEvent(scheduler, 'worker:recovered', ({ operation }) => operation === 'heartbeat');
    await withFailPoint(
      database,
      { commands: ['findAndModify'], collection: 'workers', how: 'error' },
      async () => {
        await nextError(scheduler, 'heartbeat');
        const complete = nextEvent(scheduler, 'job:complete');
        await scheduler.dispatch('work');
        await complete;
      },
    );
    await recovered;
  });

  it('writes the other outcomes when the server permanently rejects one [Y9]', async () => {
    const { scheduler } = await startWorker();
    const { jobs } = database.collections;
    // As if an operator had changed the validator while the worker runs.
    await database.connection
      .getClient()
      .db(database.connection.name)
      .command({ collMod: collectionName('jobs'), validator: { result: { $ne: 'forbidden' } } });
    scheduler.registerHandler('forbidden', () => 'forbidden');
    const failed = nextEvent(scheduler, 'job:failed');
    const complete = countEvents(scheduler, 'job:complete', 10);
    const { id } = await scheduler.dispatch('forbidden');
    await scheduler.dispatchMany(Array.from({ length: 10 }, () => ({ taskType: 'work' })));
    await complete;
    const { jobId, error, willRetry } = await failed;
    assert.deepEqual([jobId, (error as ChronosError).code, willRetry], [id, 'OUTCOME_REFUSED', false]);
    const job = await jobs.findOne({ _id: id });
    assert.deepEqual([job?.status, job?.crashes, job?.error?.code], ['FAILED', 0, 'OUTCOME_REFUSED']);
  });
});
