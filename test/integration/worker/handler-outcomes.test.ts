import assert from 'node:assert/strict';
import {
  CancelJob,
  SnoozeJob,
  type JobContext,
  type JobView,
  type SchedulerEvents,
} from '../../../src/index.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { nextEvent, recordEvents } from '../../support/events.js';
import { timeAfter } from '../../support/instants.js';

const SIXTEEN_KIB = 16 * 1024;

/** How a handler ends, and what follows for its job: the status, the attempts counted and the event. */
const ENDINGS: [string, (payload: unknown, job: JobContext) => unknown, [string, number, string]][] = [
  ['returns', () => 'done', ['COMPLETED', 0, 'job:complete']],
  ['returns nothing', () => undefined, ['COMPLETED', 0, 'job:complete']],
  ['returns false', () => false, ['COMPLETED', 0, 'job:complete']],
  [
    'throws',
    () => {
      throw new Error('broken');
    },
    ['SCHEDULED', 1, 'job:failed'],
  ],
  ['rejects', async () => Promise.reject(new Error('broken')), ['SCHEDULED', 1, 'job:failed']],
  [
    'throws a string',
    () => {
      // eslint-disable-next-line @typescript-eslint/only-throw-error
      throw 'broken';
    },
    ['SCHEDULED', 1, 'job:failed'],
  ],
  [
    'throws undefined',
    () => {
      // eslint-disable-next-line @typescript-eslint/only-throw-error
      throw undefined;
    },
    ['SCHEDULED', 1, 'job:failed'],
  ],
  [
    'throws an object without a prototype',
    () => {
      throw Object.create(null);
    },
    ['SCHEDULED', 1, 'job:failed'],
  ],
  [
    'throws CancelJob',
    () => {
      throw new CancelJob('not needed any more');
    },
    ['CANCELLED', 0, 'job:cancelled'],
  ],
  [
    'throws SnoozeJob',
    () => {
      throw new SnoozeJob('10m');
    },
    ['SCHEDULED', 0, 'job:snoozed'],
  ],
];

describe('the outcome of a handler', () => {
  const database = useSharedDatabase();

  for (const [name, handler, [status, attempts, event]] of ENDINGS) {
    it(`that ${name} is ${status} with ${attempts} counted attempts and emits ${event}`, async () => {
      const { scheduler } = manualScheduler(database);
      const events = recordEvents(
        scheduler,
        'job:complete',
        'job:failed',
        'job:cancelled',
        'job:snoozed',
        'job:lockLost',
      );
      scheduler.registerHandler('work', handler);
      scheduler.registerHandler('other', () => 'fine');
      const { id } = await scheduler.dispatch('work', null, { retries: { base: '10s', jitter: 'none' } });
      const other = await scheduler.dispatch('other');

      assert.equal(await scheduler.run(), 2);

      const job = await scheduler.getJob(id);
      assert.deepEqual([job?.status, job?.attempts, job?.crashes], [status, attempts, 0]);
      assert.deepEqual([job?.lockedBy, job?.lockedUntil], [null, null]);
      const own = events.filter((one) => (one.event as { jobId: string }).jobId === id);
      assert.deepEqual(
        own.map((one) => one.name),
        [event],
      );
      assert.equal((await scheduler.getExecutions(id)).length, 1);
      assert.equal((await scheduler.getJob(other.id))?.status, 'COMPLETED');
    });
  }

  it('includes the reason of CancelJob and the time of SnoozeJob', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('cancel', ENDINGS.find(([name]) => name === 'throws CancelJob')![1]);
    scheduler.registerHandler('snooze', ENDINGS.find(([name]) => name === 'throws SnoozeJob')![1]);
    const cancelled = nextEvent(scheduler, 'job:cancelled');
    const snoozed = nextEvent(scheduler, 'job:snoozed');
    await scheduler.dispatch('cancel');
    const { id } = await scheduler.dispatch('snooze');
    await scheduler.run();
    assert.equal((await cancelled).reason, 'not needed any more');
    assert.deepEqual((await snoozed).until, timeAfter(600_000));
    assert.deepEqual((await scheduler.getJob(id))?.nextRunAt, timeAfter(600_000));
  });

  it('runs a snoozed job again at the requested time as the same attempt', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const attempts: number[] = [];
    scheduler.registerHandler('work', (_, job) => {
      attempts.push(job.attempt);
      if (attempts.length < 3) throw new SnoozeJob('10m');
    });
    const { id } = await scheduler.dispatch('work', null, { retries: { max: 1 } });
    await scheduler.run();
    clock.advance(599_999);
    assert.equal(await scheduler.run(), 0);
    clock.advance(1);
    assert.equal(await scheduler.run(), 1);
    clock.advance(600_000);
    assert.equal(await scheduler.run(), 1);
    assert.deepEqual(attempts, [1, 1, 1]);
    assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED');
    assert.deepEqual(
      (await scheduler.getExecutions(id)).map((row) => row.outcome),
      ['snoozed', 'snoozed', 'completed'],
    );
  });

  it('recognizes CancelJob of another copy of the package', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('work', () => {
      throw Object.assign(new Error('of another copy'), { [Symbol.for('chronos.CancelJob')]: true });
    });
    const { id } = await scheduler.dispatch('work');
    await scheduler.run();
    assert.equal((await scheduler.getJob(id))?.status, 'CANCELLED');
  });

  it('stores and announces progress and passes it to the next attempt', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const events: SchedulerEvents['job:progress'][] = [];
    scheduler.on('job:progress', (event) => events.push(event));
    const seen: unknown[] = [];
    scheduler.registerHandler('work', async (_, job) => {
      seen.push(job.progress);
      assert.equal(await job.reportProgress(50, 'half'), true);
      if (job.attempt === 1) throw new Error('again');
    });
    const { id } = await scheduler.dispatch('work', null, { retries: { base: 0 } });
    await scheduler.run(1);
    clock.advance(1);
    await scheduler.run(1);
    const at = timeAfter(0);
    assert.deepEqual(seen, [null, { value: 50, note: 'half', at }]);
    assert.deepEqual(events[0], { jobId: id, taskType: 'work', value: 50, note: 'half' });
    assert.equal((await scheduler.getJob(id))?.progress?.value, 50);
  });

  it('does not depend on a reportProgress() that rejects and is not awaited', async () => {
    const { scheduler } = manualScheduler(database);
    const unhandled: unknown[] = [];
    const record = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', record);
    try {
      scheduler.registerHandler('careless', (_, job) => {
        void job.reportProgress(NaN);
      });
      const { id } = await scheduler.dispatch('careless');
      await scheduler.run();
      await new Promise(setImmediate);
      assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED');
      assert.deepEqual(unhandled, []);
    } finally {
      process.off('unhandledRejection', record);
    }
  });

  describe('results', () => {
    /** The job of a handler that returns this, after its run. */
    async function jobWith(result: unknown): Promise<JobView> {
      const { scheduler } = manualScheduler(database);
      scheduler.registerHandler('work', () => result);
      const { id } = await scheduler.dispatch('work');
      await scheduler.run();
      return (await scheduler.getJob(id))!;
    }

    it('are stored unchanged up to 16 KiB', async () => {
      const result = { text: 'é'.repeat(8000), when: timeAfter(1), list: [1, null, { deep: true }] };
      const job = await jobWith(result);
      assert.deepEqual([job.status, job.result, job.resultCut], ['COMPLETED', result, false]);
    });

    it('are truncated at 16 KiB and marked as truncated', async () => {
      const { status, result, resultCut } = await jobWith({ text: 'é'.repeat(SIXTEEN_KIB) });
      assert.deepEqual([status, resultCut], ['COMPLETED', true]);
      assert.equal(typeof result, 'string');
      assert.ok(Buffer.byteLength(result as string) <= SIXTEEN_KIB);
      assert.match(result as string, /^\{"text":"éé.*\(cut\)$/s);
    });

    it('that cannot be stored do not fail the job', async () => {
      const cycle: Record<string, unknown> = {};
      cycle['self'] = cycle;
      for (const result of [cycle, () => 1, 10n, Symbol('x'), { $set: 1 }, new Map([[1, 2]]), NaN]) {
        assert.equal((await jobWith(result)).status, 'COMPLETED', typeof result);
      }
    });

    it('reach event listeners in full', async () => {
      const { scheduler } = manualScheduler(database);
      const text = 'x'.repeat(SIXTEEN_KIB * 2);
      const complete = nextEvent(scheduler, 'job:complete');
      scheduler.registerHandler('work', () => text);
      await scheduler.dispatch('work');
      await scheduler.run();
      assert.equal((await complete).result, text);
    });
  });

  it('truncates error messages and stacks at 16 KiB and redacts credentials', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('work', () => {
      throw new Error(`mongodb://root:secret@host/db ${'x'.repeat(50_000)}`);
    });
    const { id } = await scheduler.dispatch('work');
    await scheduler.run();
    const error = (await scheduler.getJob(id))!.error!;
    for (const text of [error.message, error.stack!]) {
      assert.ok(Buffer.byteLength(text) <= SIXTEEN_KIB);
      assert.ok(text.endsWith('(cut)'));
      assert.doesNotMatch(text, /secret/);
    }
  });
});
