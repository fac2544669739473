import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ChronosError, SchedulerEvents } from '../../../../src/index.js';
import {
  manualScheduler,
  withoutRenewalThread,
  advanceUntilSettled,
} from '../../../support/manual-scheduler.js';
import { dispatchAndRun } from '../../../support/dispatch-and-run.js';
import { useSharedDatabase } from '../../../support/shared-database.js';
import { nextEvent, recordEvents, signal } from '../../../support/events.js';
import { withFailPoint } from '../../../support/fail-point.js';
import { timeAfter } from '../../../support/instants.js';
import { flushEventLoop } from '../../../support/flush-event-loop.js';
import { waitUntil } from '../../../support/wait-until.js';

describe('locks of jobs', () => {
  const database = useSharedDatabase();

  it('last for the lease of the task type and end when the job is settled [C8] [J12]', async () => {
    const { scheduler } = manualScheduler(database, { lockTimeout: '60s' });
    const locks: unknown[] = [];
    const recordLock = async (_: unknown, { id }: { id: string }): Promise<void> => {
      const job = await database.collections.jobs.findOne({ _id: id });
      locks.push([job?.taskType, job?.lockedBy, job?.lockedUntil]);
    };
    scheduler.registerHandler('plain', recordLock);
    scheduler.registerHandler('long', recordLock, { lease: '10m' });
    const { id } = await scheduler.dispatch('plain');
    await scheduler.dispatch('long');
    await scheduler.run();
    assert.deepEqual(locks.sort(), [
      ['long', scheduler.workerId, timeAfter(600_000)],
      ['plain', scheduler.workerId, timeAfter(60_000)],
    ]);
    const { jobs } = database.collections;
    const job = await jobs.findOne({ _id: id });
    assert.deepEqual([job?.lockedBy, job?.lockedUntil, job?.lockToken], [null, null, null]);
  });

  it('are renewed in time for as long as a job runs [C8]', async () => {
    const { scheduler, clock } = manualScheduler(database, { lockTimeout: '60s' });
    const release = signal();
    const { jobs } = database.collections;
    scheduler.registerHandler('long', () => release.promise);
    const { id, pass } = await dispatchAndRun(scheduler, 'long');
    await flushEventLoop();
    // Two lock times, in steps of a third, each after the previous renewal is stored.
    for (let third = 1; third <= 6; third++) {
      clock.advance(20_000);
      const renewed = new Date(clock.now().getTime() + 60_000);
      await waitUntil(
        `the lock is renewed after ${third * 20} s`,
        async () => (await jobs.findOne({ _id: id }))?.lockedUntil?.getTime() === renewed.getTime(),
      );
      await flushEventLoop();
    }
    release.fire();
    await pass;
    assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED');
  });

  it('protect a job that runs longer than its lease from the sweep of another worker [C8]', async () => {
    const options = { lockTimeout: '3s', heartbeatInterval: '200ms', sweepInterval: '50ms' } as const;
    // Renews in a thread, by the clock of the database.
    const worker = database.scheduler(options);
    const sweeping = database.scheduler({ ...options, ...withoutRenewalThread, queues: ['elsewhere'] });
    const events = recordEvents(sweeping, 'job:stalled');
    const release = signal();
    worker.registerHandler('long', () => release.promise);
    const { id } = await worker.dispatch('long');
    const started = nextEvent(worker, 'job:start');
    await Promise.all([worker.start(), sweeping.start()]);
    await started;
    const { jobs } = database.collections;
    const first = (await jobs.findOne({ _id: id }))!.lockedUntil!;
    await waitUntil('the first lease would have expired', async () => {
      const { lockedUntil } = (await jobs.findOne({ _id: id }))!;
      return lockedUntil!.getTime() > first.getTime() + 3000;
    });
    release.fire();
    await nextEvent(worker, 'job:complete');
    assert.deepEqual(events, []);
    const job = await worker.getJob(id);
    assert.deepEqual([job?.status, job?.fence, job?.crashes], ['COMPLETED', 1, 0]);
  });

  it('that cannot be renewed abort the handler before they expire, and no attempt is counted [C8]', async () => {
    const { scheduler, clock } = manualScheduler(database, { lockTimeout: '60s', concurrency: 1 });
    const aborted = signal<{ reason: ChronosError; at: Date }>();
    const errors = recordEvents(scheduler, 'worker:error');
    scheduler.registerHandler('long', async (_, job) => {
      if (job.fence > 1) return;
      await once(job.signal, 'abort');
      aborted.fire({ reason: job.signal.reason as ChronosError, at: clock.now() });
    });
    const { id, pass } = await dispatchAndRun(scheduler, 'long');
    await withFailPoint(database, { commands: ['update'], how: 'error' }, async () => {
      const { reason, at } = await advanceUntilSettled(clock, aborted.promise);
      assert.equal(reason.code, 'LOCK_LOST');
      // At 80 % of the lease.
      assert.ok(at >= timeAfter(48_000) && at < timeAfter(60_000), at.toISOString());
    });
    await advanceUntilSettled(
      clock,
      pass.then(() => scheduler.run()),
      100,
    );
    assert.equal((errors[0]?.event as SchedulerEvents['worker:error']).operation, 'renew locks');
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.attempts, job?.crashes], ['COMPLETED', 0, 0]);
    assert.deepEqual(
      (await scheduler.getExecutions(id)).map(({ outcome }) => outcome),
      ['released', 'completed'],
    );
  });

  it('that another worker has taken abort the handler at the next renewal [C8]', async () => {
    const { scheduler, clock } = manualScheduler(database, { lockTimeout: '60s' });
    const { jobs } = database.collections;
    const lost = nextEvent(scheduler, 'job:lockLost');
    let code: string | undefined;
    scheduler.registerHandler('long', async (_, job) => {
      await once(job.signal, 'abort');
      code = (job.signal.reason as ChronosError).code;
    });
    const { id, pass } = await dispatchAndRun(scheduler, 'long');
    await flushEventLoop();
    await jobs.updateOne({ _id: id }, { $set: { lockToken: 'other', lockedBy: 'other', fence: 2 } });
    const before = await jobs.findOne({ _id: id });
    clock.advance(20_000);
    assert.equal((await lost).jobId, id);
    await pass;
    assert.equal(code, 'LOCK_LOST');
    assert.deepEqual(await jobs.findOne({ _id: id }), before);
  });
});
