import assert from 'node:assert/strict';
import type { JobContext, NewSchedule, Scheduler, SchedulerEvents } from '../../../../src/index.js';
import {
  manualScheduler,
  withoutRenewalThread,
  advanceUntilSettled,
} from '../../../support/manual-scheduler.js';
import { useSignals } from '../../../support/pass-reports.js';
import { countEvents, nextEvent, recordEvents } from '../../../support/events.js';
import { flushEventLoop } from '../../../support/flush-event-loop.js';
import { timeAfter } from '../../../support/instants.js';
import type { ManualClock } from '../../../support/manual-clock.js';
import { hourlyJobId, jobsOf, outcomesUntil, TAKEOVER_MS } from '../../../support/schedules.js';
import { useSharedDatabase } from '../../../support/shared-database.js';
import { waitUntil } from '../../../support/wait-until.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

describe('overlap', () => {
  const newSignal = useSignals();
  const database = useSharedDatabase();

  async function statuses(): Promise<[string, string][]> {
    return (await jobsOf(database, 's')).map(({ _id, status }) => [_id, status]);
  }

  interface LongRun {
    scheduler: Scheduler;
    clock: ManualClock;
    /** Lets the current run and all later ones end. */
    release: () => void;
    /** The pass that runs the first occurrence. */
    pass: Promise<number>;
    /** Job ids, in the order in which they were started. */
    runs: string[];
  }

  /** It is one o'clock. The first run has just started, and ends when it is released or its signal is aborted. */
  async function startLongRun(options: Partial<NewSchedule>): Promise<LongRun> {
    const { scheduler, clock } = manualScheduler(database, { timeout: '1d' });
    const released = newSignal();
    const runs: string[] = [];
    scheduler.registerHandler('work', (_, { id, signal: aborted }: JobContext) => {
      runs.push(id);
      return new Promise<void>((resolve, reject) => {
        void released.promise.then(resolve);
        aborted.addEventListener('abort', () => reject(aborted.reason as Error));
      });
    });
    await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', ...options });
    const started = nextEvent(scheduler, 'job:start');
    clock.advance(HOUR);
    const pass = scheduler.run();
    await started;
    await flushEventLoop();
    return { scheduler, clock, release: released.fire, pass, runs };
  }

  describe('skip, the default', () => {
    it('records the occurrence as skipped, with how long the other run has been running [Y5] [B10]', async () => {
      const { scheduler, clock, release, pass, runs } = await startLongRun({});
      const skipped = recordEvents(scheduler, 'schedule:skipped');
      clock.advance(HOUR + 30 * SECOND);
      assert.equal(await scheduler.run(), 0);
      const [skip, ...others] = (await scheduler.getSkips('s')).items;
      assert.deepEqual(others, []);
      assert.deepEqual(
        [skip?.at, skip?.until, skip?.count, skip?.reason],
        [timeAfter(2 * HOUR), timeAfter(2 * HOUR + 1), 1, 'overlap'],
      );
      assert.deepEqual([skip?.activeId, skip?.runningFor], [hourlyJobId(1), HOUR + 30 * SECOND]);
      assert.deepEqual(
        skipped.map(({ event }) => event),
        [
          {
            scheduleId: 's',
            from: timeAfter(2 * HOUR),
            until: timeAfter(2 * HOUR + 1),
            count: 1,
            reason: 'overlap',
            runningFor: HOUR + 30 * SECOND,
          },
        ],
      );
      const schedule = await scheduler.getSchedule('s');
      assert.deepEqual([schedule?.lastRunAt, schedule?.nextRunAt], [timeAfter(HOUR), timeAfter(3 * HOUR)]);

      release();
      await pass;
      clock.advance(HOUR);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(runs, [hourlyJobId(1), hourlyJobId(3)]);
      assert.deepEqual(await outcomesUntil(database, clock.now()), ['job', 'overlap', 'job']);
    });

    it('equals singleInstance(), and allow equals singleInstance(false) [Y5]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      scheduler
        .schedule('one', () => undefined)
        .hourly()
        .singleInstance();
      scheduler
        .schedule('many', () => undefined)
        .hourly()
        .singleInstance(false);
      await scheduler.run();
      const { schedules } = database.collections;
      const stored = await schedules.find({}, { sort: { _id: 1 } }).toArray();
      assert.deepEqual(
        stored.map(({ _id, overlap }) => [_id, overlap]),
        [
          ['many', 'allow'],
          ['one', 'skip'],
        ],
      );
      clock.advance(HOUR);
      assert.equal(await scheduler.run(), 2);
    });

    it('counts a run as active while it waits for a worker or its next attempt, or is held [Y5]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      clock.advance(HOUR);
      await scheduler.run();
      clock.advance(HOUR);
      await scheduler.run();
      await scheduler.hold(hourlyJobId(1));
      clock.advance(HOUR);
      await scheduler.run();
      await scheduler.unhold(hourlyJobId(1));
      scheduler.registerHandler(
        'work',
        () => {
          throw new Error('broken');
        },
        { retries: { base: '2h', jitter: 'none' } },
      );
      assert.equal(await scheduler.run(), 1);
      clock.advance(HOUR);
      await scheduler.run();
      assert.deepEqual(await outcomesUntil(database, clock.now()), ['job', 'overlap', 'overlap', 'overlap']);
      assert.deepEqual(
        (await scheduler.getSkips('s')).items.map(({ runningFor }) => runningFor),
        [HOUR, null, null],
      );
    });

    it('ignores runs of other schedules and dispatched jobs [Y5]', async () => {
      const { scheduler, clock } = await startLongRun({});
      await scheduler.addSchedule({ id: 't', taskType: 'other', cron: '0 * * * *' });
      await scheduler.dispatch('other');
      scheduler.registerHandler('other', () => undefined);
      clock.advance(HOUR);
      assert.equal(await scheduler.run(), 2);
    });
  });

  describe('allow', () => {
    it('runs both at the same time [B10]', async () => {
      const { scheduler, clock, release, pass, runs } = await startLongRun({ overlap: 'allow' });
      const second = nextEvent(scheduler, 'job:start');
      clock.advance(HOUR);
      const next = scheduler.run();
      await second;
      assert.deepEqual(runs, [hourlyJobId(1), hourlyJobId(2)]);
      release();
      await Promise.all([pass, next]);
      assert.deepEqual(await outcomesUntil(database, clock.now()), ['job', 'job']);
    });
  });

  describe('queue', () => {
    it('runs waiting occurrences in order, each once [B10]', async () => {
      const { scheduler, clock, release, pass, runs } = await startLongRun({ overlap: 'queue' });
      for (let hour = 2; hour <= 4; hour++) {
        clock.advance(HOUR);
        assert.equal(await scheduler.run(), 0);
      }
      assert.equal((await scheduler.getSchedule('s'))?.waiting, 3);
      assert.deepEqual(await outcomesUntil(database, clock.now()), ['job', 'waiting', 'waiting', 'waiting']);
      release();
      await pass;
      for (let left = 3; left > 0; left--) {
        clock.advance(TAKEOVER_MS);
        assert.equal(await scheduler.run(), 1);
        assert.equal((await scheduler.getSchedule('s'))?.waiting, left - 1);
      }
      clock.advance(TAKEOVER_MS);
      assert.equal(await scheduler.run(), 0);
      assert.deepEqual(runs, [1, 2, 3, 4].map(hourlyJobId));
      assert.deepEqual(await outcomesUntil(database, clock.now()), ['job', 'job', 'job', 'job']);
      assert.deepEqual((await scheduler.getSkips('s')).items, []);
    });

    it('starts the next one as soon as a run ends, without a poll [B10]', async () => {
      // The test would time out before a poll.
      const scheduler = database.scheduler({ ...withoutRenewalThread, pollInterval: '10m' });
      const released = newSignal();
      const runs: string[] = [];
      let running = 0;
      scheduler.registerHandler('work', async (_, { id }) => {
        assert.equal(++running, 1, 'one at a time');
        runs.push(id);
        await released.promise;
        running--;
      });
      await scheduler.start();
      const complete = countEvents(scheduler, 'job:complete', 2);
      await scheduler.addSchedule({ id: 's', taskType: 'work', every: '1s', maxRuns: 2, overlap: 'queue' });
      await waitUntil('one run waits', async () => (await scheduler.getSchedule('s'))?.waiting === 1);
      released.fire();
      await complete;
      const { anchor } = (await scheduler.getSchedule('s'))!;
      assert.deepEqual(
        runs,
        [1, 2].map((second) => `s@${timeAfter(second * SECOND, anchor).toISOString()}`),
      );
    });

    it('starts a triggered run as soon as the one before it ends, without a poll [B10] [F1]', async () => {
      const { scheduler, clock } = manualScheduler(database, { pollInterval: '1m' });
      const released = newSignal();
      scheduler.registerHandler('work', () => released.promise);
      await scheduler.start();
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 0 1 1 *', overlap: 'queue' });
      const started = nextEvent(scheduler, 'job:start');
      const first = await scheduler.triggerSchedule('s');
      await advanceUntilSettled(clock, started, 1);
      const triggeredAt = clock.now();
      const second = await scheduler.triggerSchedule('s');
      assert.ok(first.triggered && second.triggered);
      const next = nextEvent(scheduler, 'job:start', ({ jobId }) => jobId === second.jobId);
      released.fire();
      // So slowly that the test would time out before the next poll, or before a plan counts as abandoned.
      await advanceUntilSettled(clock, next, 0.1);
      assert.ok(clock.now() < timeAfter(TAKEOVER_MS, triggeredAt));
    });
  });

  describe('replace', () => {
    it('cancels the running job and runs the newest occurrence [B10]', async () => {
      const { scheduler, clock, release, pass, runs } = await startLongRun({ overlap: 'replace' });
      const cancelled = nextEvent(scheduler, 'job:cancelled');
      clock.advance(HOUR);
      await scheduler.run();
      await pass;
      const { jobId, reason } = await cancelled;
      assert.deepEqual([jobId, reason], [hourlyJobId(1), 'replaced by a newer run of its schedule']);
      release();
      clock.advance(TAKEOVER_MS);
      await scheduler.run();
      assert.deepEqual(await statuses(), [
        [hourlyJobId(1), 'CANCELLED'],
        [hourlyJobId(2), 'COMPLETED'],
      ]);
      assert.deepEqual(runs, [hourlyJobId(1), hourlyJobId(2)]);
      assert.deepEqual(await outcomesUntil(database, clock.now()), ['job', 'job']);
    });

    it('runs the newest of several waiting occurrences and skips the others [B10]', async () => {
      const { scheduler, clock } = manualScheduler(database, { timeout: '1d', timeoutGrace: '1d' });
      const released = newSignal();
      // Ignores its signal.
      scheduler.registerHandler('work', () => released.promise);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', overlap: 'replace' });
      const started = nextEvent(scheduler, 'job:start');
      clock.advance(HOUR);
      const pass = scheduler.run();
      await started;
      const other = database.scheduler({ clock, lockTimeout: '1d' });
      for (let hour = 2; hour <= 4; hour++) {
        clock.advance(HOUR);
        await other.run();
      }
      assert.deepEqual(await outcomesUntil(database, clock.now()), [
        'job',
        'replaced',
        'replaced',
        'waiting',
      ]);
      const { items: skips } = await scheduler.getSkips('s');
      assert.deepEqual(
        skips.map(({ at, activeId, runningFor }) => [at, activeId, runningFor]),
        [
          [timeAfter(3 * HOUR), hourlyJobId(1), 3 * HOUR],
          [timeAfter(2 * HOUR), hourlyJobId(1), 2 * HOUR],
        ],
      );
      released.fire();
      await pass;
      clock.advance(TAKEOVER_MS);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(await outcomesUntil(database, clock.now()), ['job', 'replaced', 'replaced', 'job']);
    });

    it('cancels and reports a run that no worker has claimed yet [B10]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      const cancelled = recordEvents(scheduler, 'job:cancelled');
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', overlap: 'replace' });
      clock.advance(HOUR);
      await scheduler.run();
      clock.advance(HOUR);
      await scheduler.run();
      clock.advance(TAKEOVER_MS);
      await scheduler.run();
      assert.deepEqual(await statuses(), [
        [hourlyJobId(1), 'CANCELLED'],
        [hourlyJobId(2), 'SCHEDULED'],
      ]);
      assert.deepEqual(
        cancelled.map(({ event }) => (event as SchedulerEvents['job:cancelled']).jobId),
        [hourlyJobId(1)],
      );
    });

    it('cancels the active run in another process, and the new run starts [B10]', async () => {
      const [worker, other] = [
        database.scheduler(withoutRenewalThread),
        database.scheduler(withoutRenewalThread),
      ];
      const runs: { id: string; signal: AbortSignal }[] = [];
      worker.registerHandler('work', (_, { id, signal: aborted }: JobContext) => {
        runs.push({ id, signal: aborted });
        return new Promise((resolve) => aborted.addEventListener('abort', resolve));
      });
      await Promise.all([worker.start(), other.start()]);
      await other.addSchedule({ id: 's', taskType: 'work', cron: '0 0 1 1 *', overlap: 'replace' });
      const started = [nextEvent(worker, 'job:start'), countEvents(worker, 'job:start', 2)];
      const first = await other.triggerSchedule('s');
      await started[0];
      const second = await other.triggerSchedule('s');
      await started[1];
      assert.ok(first.triggered && second.triggered);
      assert.deepEqual(
        runs.map(({ id, signal: { aborted } }) => [id, aborted]),
        [
          [first.jobId, true],
          [second.jobId, false],
        ],
      );
      assert.equal((await other.getJob(first.jobId))?.status, 'CANCELLED');
    });
  });

  describe('maxRunningTime', () => {
    it('ends a run that takes too long, records it, does not retry it, and lets the next run start [Y6]', async () => {
      const { scheduler, clock, pass, runs, release } = await startLongRun({ maxRunningTime: '10m' });
      clock.advance(10 * MINUTE);
      await pass;
      const job = await scheduler.getJob(hourlyJobId(1));
      assert.deepEqual([job?.status, job?.error?.code], ['FAILED', 'JOB_RAN_TOO_LONG']);
      const [row, ...others] = await scheduler.getExecutions(hourlyJobId(1));
      assert.deepEqual([row?.outcome, row?.duration, others], ['failed', 10 * MINUTE, []]);
      release();
      clock.advance(50 * MINUTE);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(runs, [hourlyJobId(1), hourlyJobId(2)]);
      assert.deepEqual(await outcomesUntil(database, clock.now()), ['job', 'job']);
    });

    it('includes all attempts: an attempt that would start too late is not started [Y6]', async () => {
      const { scheduler, clock } = manualScheduler(database, {
        retries: { base: '4m', cap: '4m', jitter: 'none', max: 9 },
      });
      let runs = 0;
      scheduler.registerHandler('work', () => {
        runs++;
        throw new Error('broken');
      });
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', maxRunningTime: '10m' });
      clock.advance(HOUR);
      for (let minute = 0; minute <= 12; minute += 4) {
        await scheduler.run();
        clock.advance(4 * MINUTE);
      }
      assert.equal(runs, 3);
      assert.equal((await scheduler.getJob(hourlyJobId(1)))?.status, 'FAILED');
      clock.advance(44 * MINUTE);
      assert.equal(await scheduler.run(), 1);
      assert.equal(runs, 4);
    });

    it('lets the next run start while a handler that ignores its signal keeps its slot [Y6]', async () => {
      const { scheduler, clock } = manualScheduler(database, { timeoutGrace: '5s' });
      const released = newSignal();
      const runs: string[] = [];
      scheduler.registerHandler('work', (_, { id }) => {
        runs.push(id);
        return released.promise;
      });
      const stuck = nextEvent(scheduler, 'job:stuck');
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', maxRunningTime: '10m' });
      const started = nextEvent(scheduler, 'job:start');
      clock.advance(HOUR);
      const pass = scheduler.run();
      await started;
      await flushEventLoop();
      clock.advance(10 * MINUTE);
      await advanceUntilSettled(clock, pass, SECOND);
      assert.equal((await stuck).jobId, hourlyJobId(1));
      assert.equal((await scheduler.getJob(hourlyJobId(1)))?.error?.code, 'JOB_RAN_TOO_LONG');
      const next = nextEvent(scheduler, 'job:start');
      clock.advance(timeAfter(2 * HOUR).getTime() - clock.now().getTime());
      const second = scheduler.run();
      await next;
      assert.deepEqual(runs, [hourlyJobId(1), hourlyJobId(2)]);
      released.fire();
      await second;
    });

    it('keeps the sweeper from restarting a run of a crashed worker that took too long [Y6] [C9]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', maxRunningTime: '10m' });
      clock.advance(HOUR);
      await scheduler.run();
      const crashed = {
        status: 'RUNNING',
        lockedBy: 'a dead worker',
        lockToken: 'its token',
        fence: 1,
      } as const;
      await database.collections.jobs.updateOne(
        { _id: hourlyJobId(1) },
        {
          $set: {
            ...crashed,
            startedAt: clock.now(),
            firstStartedAt: clock.now(),
            lockedUntil: timeAfter(MINUTE, clock.now()),
          },
        },
      );
      scheduler.registerHandler('work', () => undefined);
      clock.advance(HOUR);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(await statuses(), [
        [hourlyJobId(1), 'FAILED'],
        [hourlyJobId(2), 'COMPLETED'],
      ]);
    });
  });
});
