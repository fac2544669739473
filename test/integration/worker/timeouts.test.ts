import assert from 'node:assert/strict';
import { SnoozeJob, type ChronosError } from '../../../src/index.js';
import { untilAborted } from '../../support/handlers/recording-definition.js';
import { dispatchAndRun } from '../../support/dispatch-and-run.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { nextEvent, recordEvents, signal } from '../../support/events.js';
import { timeAfter } from '../../support/instants.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';

describe('timeouts', () => {
  const database = useSharedDatabase();

  it('fail an attempt that exceeds its timeout and ends when its signal is aborted [C5]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    let reason: unknown;
    scheduler.registerHandler('work', async (payload, job) => {
      await untilAborted(payload, job).catch((error: unknown) => {
        reason = error;
        throw error;
      });
    });
    const failed = nextEvent(scheduler, 'job:failed');
    const { id, pass } = await dispatchAndRun(scheduler, 'work', { timeout: '90s' });
    clock.advance(89_999);
    await flushEventLoop();
    assert.equal((await scheduler.getJob(id))?.status, 'RUNNING');
    clock.advance(1);
    await pass;

    const { error, willRetry, duration } = await failed;
    assert.equal((error as ChronosError).code, 'JOB_TIMEOUT');
    assert.match(error.message, /90000 ms/);
    assert.equal(reason, error);
    assert.deepEqual([willRetry, duration], [true, 90_000]);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.attempts, job?.error?.code], ['SCHEDULED', 1, 'JOB_TIMEOUT']);
  });

  it('fail an attempt that returns after its signal was aborted [C5]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.registerHandler(
      'work',
      (payload, job) => untilAborted(payload, job).catch(() => 'half the work'),
      {
        timeout: '1m',
      },
    );
    const { id, pass } = await dispatchAndRun(scheduler, 'work', { retries: { max: 1 } });
    clock.advance(60_000);
    await pass;
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.result, job?.error?.code], ['FAILED', null, 'JOB_TIMEOUT']);
  });

  it('of the job take precedence over those of the handler, and those over the scheduler’s [C5]', async () => {
    const { scheduler, clock } = manualScheduler(database, { timeout: '3m' });
    const timeouts: string[] = [];
    scheduler.on('job:failed', ({ error }) => timeouts.push(/(\d+) ms/.exec(error.message)![1]!));
    scheduler.registerHandler('plain', untilAborted);
    scheduler.registerHandler('own', untilAborted, { timeout: '2m' });
    await scheduler.dispatch('plain');
    await scheduler.dispatch('own');
    await scheduler.dispatch('own', null, { timeout: '1m' });
    let running = 0;
    const started = nextEvent(scheduler, 'job:start', () => ++running === 3);
    const pass = scheduler.run();
    await started;
    for (let minute = 0; minute < 3; minute++) {
      const failed = nextEvent(scheduler, 'job:failed');
      clock.advance(60_000);
      await failed;
    }
    await pass;
    assert.deepEqual(timeouts, ['60000', '120000', '180000']);
  });

  describe('a handler that ignores its signal', () => {
    it('is reported as stuck, and its slot stays occupied until it ends [C5]', async () => {
      const { scheduler, clock } = manualScheduler(database, { concurrency: 2, timeoutGrace: '5s' });
      const release = signal();
      const events = recordEvents(scheduler, 'job:stuck', 'job:failed', 'job:complete');
      let running = 0;
      let peak = 0;
      let slots = 1;
      const both = signal();
      scheduler.registerHandler('stuck', () => release.promise, { timeout: '10s' });
      scheduler.registerHandler('quick', async () => {
        peak = Math.max(peak, ++running);
        if (running === 2) both.fire();
        // With two free slots, wait until both are used; with one, give a second handler time to start.
        await (slots === 2 ? both.promise : flushEventLoop(20));
        running--;
      });
      const started = nextEvent(scheduler, 'job:start');
      const { id } = await scheduler.dispatch('stuck', null, { retries: { base: 0 } });
      const pass = scheduler.run(1);
      await started;
      clock.advance(10_000);
      await flushEventLoop();
      assert.equal(events.length, 0, 'it still has its grace time');
      clock.advance(5000);
      assert.equal(await pass, 1);

      assert.deepEqual(
        events.map(({ name }) => name),
        ['job:stuck', 'job:failed'],
      );
      const { jobId, runningFor } = events[0]!.event as { jobId: string; runningFor: number };
      assert.deepEqual({ jobId, runningFor }, { jobId: id, runningFor: 15_000 });
      const job = await scheduler.getJob(id);
      assert.deepEqual([job?.status, job?.attempts, job?.lockedBy], ['SCHEDULED', 1, null]);

      // It is due again, but its handler still runs here: only the others run, one at a time in the remaining slot.
      await scheduler.dispatchMany(Array.from({ length: 4 }, () => ({ taskType: 'quick' })));
      assert.equal(await scheduler.run(), 4);
      assert.equal(peak, 1);

      release.fire();
      await flushEventLoop();
      slots = 2;
      await scheduler.dispatchMany(Array.from({ length: 4 }, () => ({ taskType: 'quick' })));
      assert.equal(await scheduler.run(), 5);
      assert.equal(peak, 2);
    });

    it('does not keep the next attempt from running in another process [C5]', async () => {
      const { scheduler, clock } = manualScheduler(database, { timeoutGrace: 0 });
      const release = signal();
      scheduler.registerHandler('stuck', () => release.promise, { timeout: '10s' });
      const { id, pass } = await dispatchAndRun(scheduler, 'stuck', { retries: { base: 0 } });
      clock.advance(10_000);
      await pass;
      const other = database.scheduler({ clock });
      other.registerHandler('stuck', () => 'done elsewhere');
      assert.equal(await other.run(), 1);
      release.fire();
      await flushEventLoop();
      const job = await scheduler.getJob(id);
      assert.deepEqual([job?.status, job?.result, job?.attempts], ['COMPLETED', 'done elsewhere', 1]);
    });
  });

  describe('maxRunningTime', () => {
    it('aborts the attempt that exceeds it and fails the job, even with attempts left', async () => {
      const { scheduler, clock } = manualScheduler(database);
      scheduler.registerHandler('work', (payload, job) => {
        if (job.attempt === 1) throw new Error('again');
        return untilAborted(payload, job);
      });
      const retries = { max: 10, base: '4s', jitter: 'none' } as const;
      const { id } = await scheduler.dispatch('work', null, { maxRunningTime: '10s', retries });
      await scheduler.run();
      clock.advance(4000);
      const started = nextEvent(scheduler, 'job:start');
      const pass = scheduler.run();
      await started;
      clock.advance(5999);
      await flushEventLoop();
      assert.equal((await scheduler.getJob(id))?.status, 'RUNNING');
      clock.advance(1);
      await pass;
      const job = await scheduler.getJob(id);
      assert.deepEqual([job?.status, job?.attempts, job?.error?.code], ['FAILED', 2, 'JOB_RAN_TOO_LONG']);
      assert.deepEqual(job?.firstStartedAt, timeAfter(0));
    });

    it('prevents a retry that would start after it', async () => {
      const { scheduler } = manualScheduler(database);
      scheduler.registerHandler('work', () => {
        throw new Error('broken');
      });
      const retries = { max: 10, base: '10s', jitter: 'none' } as const;
      const { id } = await scheduler.dispatch('work', null, { maxRunningTime: '10s', retries });
      await scheduler.run();
      const job = await scheduler.getJob(id);
      assert.deepEqual([job?.status, job?.attempts, job?.error?.message], ['FAILED', 1, 'broken']);
    });

    it('fails a snoozed job without running it when it is exceeded', async () => {
      const { scheduler, clock } = manualScheduler(database);
      let runs = 0;
      scheduler.registerHandler('work', () => {
        runs++;
        throw new SnoozeJob('1h');
      });
      const { id } = await scheduler.dispatch('work', null, { maxRunningTime: '10m' });
      await scheduler.run();
      clock.advance(3_600_000);
      await scheduler.run();
      const job = await scheduler.getJob(id);
      assert.deepEqual([runs, job?.status, job?.error?.code], [1, 'FAILED', 'JOB_RAN_TOO_LONG']);
    });

    it('starts again when a person retries the job', async () => {
      const { scheduler, clock } = manualScheduler(database);
      scheduler.registerHandler('work', () => {
        if (clock.now() < timeAfter(1000)) throw new Error('broken');
      });
      const { id } = await scheduler.dispatch('work', null, { maxRunningTime: '10s', retries: { max: 1 } });
      await scheduler.run();
      clock.advance(86_400_000);
      await scheduler.retry(id);
      await scheduler.run();
      assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED');
    });
  });
});
