import assert from 'node:assert/strict';
import type { Scheduler, SchedulerEvents } from '../../src/index.js';
import { byHand } from '../support/by-hand.js';
import { useSharedDatabase } from '../support/shared-database.js';
import { after } from '../support/instants.js';
import type { ManualClock } from '../support/manual-clock.js';

describe('retries', () => {
  const database = useSharedDatabase();

  function failing(scheduler: Scheduler, options = {}): SchedulerEvents['job:failed'][] {
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

  /** Runs a pass at each time the job is due, until it is finished; returns the delays in between. */
  async function delays(scheduler: Scheduler, clock: ManualClock, id: string): Promise<number[]> {
    const found: number[] = [];
    for (;;) {
      await scheduler.run();
      const job = await scheduler.getJob(id);
      if (job!.status !== 'SCHEDULED') return found;
      const delay = job!.nextRunAt.getTime() - clock.now().getTime();
      found.push(delay);
      if (delay > 0) {
        // Not a moment too early.
        clock.advance(delay - 1);
        assert.equal(await scheduler.run(), 0);
        clock.advance(1);
      }
    }
  }

  it('C6 J8 each attempt waits twice as long, up to the cap; FAILED when max is used up', async () => {
    const { scheduler, clock } = byHand(database);
    const events = failing(scheduler);
    const retries = { max: 6, base: '1s', cap: '5s', jitter: 'none' } as const;
    const { id } = await scheduler.dispatch('work', null, { retries });

    assert.deepEqual(await delays(scheduler, clock, id), [1000, 2000, 4000, 5000, 5000]);

    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.attempts, job?.error?.message], ['FAILED', 6, 'attempt 6']);
    assert.deepEqual(job?.finishedAt, after(17_000));
    assert.deepEqual(
      events.map(({ attempt, willRetry, nextRunAt }) => ({ attempt, willRetry, nextRunAt })),
      [
        { attempt: 1, willRetry: true, nextRunAt: after(1000) },
        { attempt: 2, willRetry: true, nextRunAt: after(3000) },
        { attempt: 3, willRetry: true, nextRunAt: after(7000) },
        { attempt: 4, willRetry: true, nextRunAt: after(12_000) },
        { attempt: 5, willRetry: true, nextRunAt: after(17_000) },
        { attempt: 6, willRetry: false, nextRunAt: null },
      ],
    );
    assert.equal(await scheduler.run(), 0);
  });

  it('C6 J8 by default three attempts in all, the delays anywhere below 1 s and 2 s', async () => {
    const { scheduler, clock } = byHand(database);
    failing(scheduler);
    const { id } = await scheduler.dispatch('work');
    const found = await delays(scheduler, clock, id);
    assert.equal(found.length, 2);
    assert.ok(found[0]! <= 1000 && found[1]! <= 2000, String(found));
    assert.equal((await scheduler.getJob(id))?.attempts, 3);
  });

  it('J8 what is left out comes from the handler, and then from the scheduler', async () => {
    const { scheduler, clock } = byHand(database, { retries: { jitter: 'none', base: '8s', max: 9 } });
    failing(scheduler, { retries: { max: 4, base: '3s' } });
    const plain = await scheduler.dispatch('work');
    assert.deepEqual(await delays(scheduler, clock, plain.id), [3000, 6000, 12_000]);
    const own = await scheduler.dispatch('work', null, { retries: { max: 2 } });
    assert.deepEqual(await delays(scheduler, clock, own.id), [3000]);
  });

  it('J8 max 1 never tries again', async () => {
    const { scheduler, clock } = byHand(database);
    failing(scheduler);
    const { id } = await scheduler.args(null).retries({ max: 1 }).dispatch('work');
    assert.deepEqual(await delays(scheduler, clock, id), []);
    assert.equal((await scheduler.getJob(id))?.status, 'FAILED');
  });

  it('C6 a job that succeeds at last is COMPLETED, and its attempts are kept', async () => {
    const { scheduler, clock } = byHand(database);
    scheduler.registerHandler('work', (_, job) => {
      if (job.attempt < 3) throw new Error('not yet');
      return job.attempts;
    });
    const { id } = await scheduler.dispatch('work', null, { retries: { jitter: 'none' } });
    assert.deepEqual(await delays(scheduler, clock, id), [1000, 2000]);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.attempts, job?.result, job?.error], ['COMPLETED', 2, 2, null]);
  });

  it('J22 the history of failures is kept, also past an explicit retry', async () => {
    const { scheduler, clock } = byHand(database);
    failing(scheduler);
    const { id } = await scheduler.dispatch('work', null, { retries: { max: 2, jitter: 'none' } });
    await delays(scheduler, clock, id);
    assert.deepEqual(await scheduler.retry(id), { retried: true });
    await delays(scheduler, clock, id);
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
