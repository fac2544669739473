import assert from 'node:assert/strict';
import type { ChronosError, Scheduler, SchedulerEvents } from '../../../src/index.js';
import { withoutRenewalThread } from '../../support/manual-scheduler.js';
import { useDatabase } from '../../support/database.js';
import { countEvents, nextEvent, recordEvents, signal } from '../../support/events.js';
import { withFailPoint, type FailPoint } from '../../support/fail-point.js';

type Trouble = SchedulerEvents['worker:trouble'];

describe('a worker that meets database errors', () => {
  const database = useDatabase();

  /** A started worker with its own record of troubles. */
  async function worker(): Promise<{ scheduler: Scheduler; troubles: Trouble[]; runs: Map<string, number> }> {
    const scheduler = database.scheduler({ ...withoutRenewalThread, lockTimeout: '10s' });
    const troubles: Trouble[] = [];
    const runs = new Map<string, number>();
    scheduler.on('worker:trouble', (event) => troubles.push(event));
    scheduler.registerHandler('work', (_, { id }) => void runs.set(id, (runs.get(id) ?? 0) + 1));
    await scheduler.start();
    return { scheduler, troubles, runs };
  }

  const cases: [string, FailPoint['commands'], FailPoint['how'], string][] = [
    ['jobs cannot be found', ['find', 'findAndModify'], 'noConnection', 'claim jobs'],
    ['the server refuses to find jobs', ['find', 'findAndModify'], 'refused', 'claim jobs'],
    ['jobs cannot be claimed', ['update', 'findAndModify'], 'noConnection', 'claim jobs'],
  ];
  for (const [name, commands, how, operation] of cases) {
    it(`reports and counts errors and retries with backoff while ${name}, and loses nothing [Y9]`, async () => {
      const { scheduler, troubles, runs } = await worker();
      const other = database.scheduler(withoutRenewalThread);
      const recovered = nextEvent(scheduler, 'worker:recovered', (event) => event.operation === operation);
      const complete = countEvents(scheduler, 'job:complete', 20);
      await withFailPoint(database, { commands, how }, async () => {
        const third = nextEvent(
          scheduler,
          'worker:trouble',
          (event) => event.operation === operation && event.failures === 3,
        );
        const results = await other.dispatchMany(
          Array.from({ length: 20 }, () => ({ taskType: 'work', options: { retries: { max: 1 } } })),
        );
        assert.equal(results.length, 20);
        await third;
      });
      assert.ok((await recovered).failures >= 3);
      await complete;

      const own = troubles.filter((event) => event.operation === operation);
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
    const { scheduler, runs } = await worker();
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
      const trouble = nextEvent(
        scheduler,
        'worker:trouble',
        ({ operation, failures }) => operation === 'settle' && failures === 3,
      );
      release.fire();
      await trouble;
    });
    await complete;
    assert.deepEqual(lost, []);
    assert.deepEqual([...runs.values()], [1, 1, 1, 1, 1]);
    assert.equal(await database.collections.executions.countDocuments({ outcome: 'completed' }), 5);
  });

  it('writes execution rows later that could not be written at once [Y9]', async () => {
    const { scheduler } = await worker();
    const complete = nextEvent(scheduler, 'job:complete');
    const { id } = await withFailPoint(
      database,
      { commands: ['insert'], collection: 'executions', how: 'noConnection' },
      async () => {
        const trouble = nextEvent(
          scheduler,
          'worker:trouble',
          ({ operation }) => operation === 'write execution log',
        );
        const handle = await scheduler.dispatch('work');
        await trouble;
        return handle;
      },
    );
    await complete;
    assert.equal((await scheduler.getExecutions(id)).length, 1);
  });

  it('keeps running jobs while heartbeats or sweeps fail [Y9]', async () => {
    const { scheduler } = await worker();
    await withFailPoint(
      database,
      { commands: ['update'], collection: 'workers', how: 'refused' },
      async () => {
        const trouble = nextEvent(scheduler, 'worker:trouble', ({ operation }) => operation === 'heartbeat');
        const complete = nextEvent(scheduler, 'job:complete');
        await scheduler.dispatch('work');
        await complete;
        await trouble;
      },
    );
    await nextEvent(scheduler, 'worker:recovered', ({ operation }) => operation === 'heartbeat');
  });

  it('writes the other outcomes when the server permanently rejects one [Y9]', async () => {
    const { scheduler } = await worker();
    const { jobs } = database.collections;
    // As an operator might: a stricter validator under a running worker.
    await database.connection
      .getClient()
      .db(database.connection.name)
      .command({ collMod: 'jobs', validator: { result: { $ne: 'forbidden' } } });
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
