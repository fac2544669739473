import assert from 'node:assert/strict';
import type { Scheduler, SchedulerEvents } from '../../../src/index.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { timeAfter } from '../../support/instants.js';
import type { ManualClock } from '../../support/manual-clock.js';

describe('retries', () => {
  const database = useSharedDatabase();

  /** Registers a handler that always fails; returns the events of its failures. */
  function registerFailing(scheduler: Scheduler, options = {}): SchedulerEvents['job:failed'][] {
    const events: SchedulerEvents['job:failed'][] = [];
    scheduler.on('job:failed', (event) => events.push(event));
    scheduler.registerHandler(
      'work',
      (_, job) => {
        throw new Error(`attempt ${job.attempt}`);
      },
      options,
    );
    return events;
  }

  /** Runs the job each time it is due, until it is finished; returns the delays in between. */
  async function runToEnd(scheduler: Scheduler, clock: ManualClock, id: string): Promise<number[]> {
    const delays: number[] = [];
    for (;;) {
      await scheduler.run();
      const job = await scheduler.getJob(id);
      if (job!.status !== 'SCHEDULED') return delays;
      const delay = job!.nextRunAt.getTime() - clock.now().getTime();
      delays.push(delay);
      if (delay > 0) {
        // It is not run a millisecond early.
        clock.advance(delay - 1);
        assert.equal(await scheduler.run(), 0);
        clock.advance(1);
      }
    }
  }

  it('wait twice as long after each attempt, up to the cap, and end FAILED after max attempts [C6] [J8]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const events = registerFailing(scheduler);
    const retries = { max: 6, base: '1s', cap: '5s', jitter: 'none' } as const;
    const { id } = await scheduler.dispatch('work', null, { retries });

    assert.deepEqual(await runToEnd(scheduler, clock, id), [1000, 2000, 4000, 5000, 5000]);

    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.attempts, job?.error?.message], ['FAILED', 6, 'attempt 6']);
    assert.deepEqual(job?.finishedAt, timeAfter(17_000));
    assert.deepEqual(
      events.map(({ attempt, willRetry, nextRunAt }) => ({ attempt, willRetry, nextRunAt })),
      [
        { attempt: 1, willRetry: true, nextRunAt: timeAfter(1000) },
        { attempt: 2, willRetry: true, nextRunAt: timeAfter(3000) },
        { attempt: 3, willRetry: true, nextRunAt: timeAfter(7000) },
        { attempt: 4, willRetry: true, nextRunAt: timeAfter(12_000) },
        { attempt: 5, willRetry: true, nextRunAt: timeAfter(17_000) },
        { attempt: 6, willRetry: false, nextRunAt: null },
      ],
    );
    assert.equal(await scheduler.run(), 0);
  });

  it('are made until the third attempt by default, after at most 1 s and 2 s [C6] [J8]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    registerFailing(scheduler);
    const { id } = await scheduler.dispatch('work');
    const delays = await runToEnd(scheduler, clock, id);
    assert.equal(delays.length, 2);
    assert.ok(delays[0]! <= 1000 && delays[1]! <= 2000, String(delays));
    assert.equal((await scheduler.getJob(id))?.attempts, 3);
  });

  it('take missing settings from the handler, then from the scheduler [J8]', async () => {
    const { scheduler, clock } = manualScheduler(database, {
      retries: { jitter: 'none', base: '8s', max: 9 },
    });
    registerFailing(scheduler, { retries: { max: 4, base: '3s' } });
    const plain = await scheduler.dispatch('work');
    assert.deepEqual(await runToEnd(scheduler, clock, plain.id), [3000, 6000, 12_000]);
    const own = await scheduler.dispatch('work', null, { retries: { max: 2 } });
    assert.deepEqual(await runToEnd(scheduler, clock, own.id), [3000]);
  });

  it('are not made with max 1 [J8]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    registerFailing(scheduler);
    const { id } = await scheduler.args(null).retries({ max: 1 }).dispatch('work');
    assert.deepEqual(await runToEnd(scheduler, clock, id), []);
    assert.equal((await scheduler.getJob(id))?.status, 'FAILED');
  });

  it('keep the number of failed attempts of a job that is COMPLETED in the end [C6]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.registerHandler('work', (_, job) => {
      if (job.attempt < 3) throw new Error('not yet');
      return job.attempts;
    });
    const { id } = await scheduler.dispatch('work', null, { retries: { jitter: 'none' } });
    assert.deepEqual(await runToEnd(scheduler, clock, id), [1000, 2000]);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.attempts, job?.result, job?.error], ['COMPLETED', 2, 2, null]);
  });

  it('keep the history of failures, also after a person retries the job [J22]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    registerFailing(scheduler);
    const { id } = await scheduler.dispatch('work', null, { retries: { max: 2, jitter: 'none' } });
    await runToEnd(scheduler, clock, id);
    assert.deepEqual(await scheduler.retry(id), { result: 'changed', state: 'waiting' });
    await runToEnd(scheduler, clock, id);
    const rows = await scheduler.getExecutions(id);
    assert.deepEqual(
      rows.map(({ attempt, outcome, error }) => [attempt, outcome, error?.message]),
      [
        [1, 'retry', 'attempt 1'],
        [2, 'failed', 'attempt 2'],
        [1, 'retry', 'attempt 1'],
        [2, 'failed', 'attempt 2'],
      ],
    );
  });
});
