import assert from 'node:assert/strict';
import type { JobContext, NewSchedule, Scheduler, SchedulerEvents } from '../../../../src/index.js';
import { manualScheduler, withoutRenewalThread } from '../../../support/manual-scheduler.js';
import { countOutcomes } from '../../../support/occurrence-outcomes.js';
import { nextEvent, recordEvents } from '../../../support/events.js';
import { timeAfter } from '../../../support/instants.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { jobsOf, outcomesUntil } from '../../../support/schedules.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe('ScheduleEnqueuer', () => {
  const database = useSharedDatabase();

  it('creates one job per occurrence of a stored schedule, with all of its settings [C7] [J15]', async () => {
    const { scheduler, clock } = manualScheduler(database, { queues: ['default', 'reports'] });
    const seen: Pick<JobContext, 'id' | 'schedule' | 'scheduledFor' | 'userId'>[] = [];
    scheduler.registerHandler('report', (_, { id, schedule, scheduledFor, userId }) => {
      seen.push({ id, schedule, scheduledFor, userId });
    });
    const due = recordEvents(scheduler, 'schedule:due');
    const options: NewSchedule = {
      id: 'daily report',
      taskType: 'report',
      cron: '30 * * * *',
      payload: { to: ['ada'], 'a.b': {}, none: null },
      queue: 'reports',
      priority: 7,
      retries: { max: 2, base: '5s' },
      timeout: '1m',
      maxRunningTime: '10m',
      userId: 'ada@example.org',
    };
    assert.equal(await scheduler.addSchedule(options), 'daily report');
    clock.advance(30 * MINUTE - 1);
    assert.equal(await scheduler.run(), 0);
    clock.advance(1);
    assert.equal(await scheduler.run(), 1);
    clock.advance(HOUR);
    assert.equal(await scheduler.run(), 1);

    const made = await jobsOf(database, 'daily report');
    assert.deepEqual(
      made.map(({ _id }) => _id),
      ['daily report@2026-01-01T00:30:00.000Z', 'daily report@2026-01-01T01:30:00.000Z'],
    );
    const [first] = made;
    assert.deepEqual(
      [first?.taskType, first?.queue, first?.priority, first?.payload, first?.userId],
      ['report', 'reports', 7, options.payload, 'ada@example.org'],
    );
    assert.deepEqual(
      [first?.retries, first?.timeout, first?.maxRunningTime],
      [{ max: 2, base: 5000 }, MINUTE, 10 * MINUTE],
    );
    assert.deepEqual(
      [first?.status, first?.schedule, first?.scheduledFor, first?.createdAt],
      ['COMPLETED', 'daily report', timeAfter(30 * MINUTE), timeAfter(30 * MINUTE)],
    );
    assert.deepEqual(seen[0], {
      id: first?._id,
      schedule: 'daily report',
      scheduledFor: timeAfter(30 * MINUTE),
      userId: 'ada@example.org',
    });
    assert.deepEqual(due[0]?.event, {
      scheduleId: 'daily report',
      jobId: first?._id,
      scheduledFor: timeAfter(30 * MINUTE),
      late: 0,
    });
  });

  it('creates one job per occurrence of a definition in code, with all of its settings [C7] [J15]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const seen: unknown[] = [];
    scheduler
      .schedule('tidy', (payload) => {
        seen.push(payload);
      })
      .hourly()
      .args({ deep: true })
      .priority(3);
    assert.equal(await scheduler.run(), 0);
    clock.advance(HOUR);
    assert.equal(await scheduler.run(), 1);
    const [job] = await jobsOf(database, 'tidy');
    assert.deepEqual(
      [job?._id, job?.taskType, job?.priority, job?.status],
      ['tidy@2026-01-01T01:00:00.000Z', 'tidy', 3, 'COMPLETED'],
    );
    assert.deepEqual(seen, [{ deep: true }]);
  });

  it('sets the time of the occurrence and computes the next run from the rule, however late the job is created [C7]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.registerHandler('work', () => undefined);
    const due = nextEvent(scheduler, 'schedule:due');
    await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
    clock.advance(HOUR + 59 * SECOND);
    await scheduler.run();
    const [job] = await jobsOf(database, 's');
    assert.deepEqual(
      [job?._id, job?.scheduledFor, job?.nextRunAt, job?.createdAt],
      ['s@2026-01-01T01:00:00.000Z', timeAfter(HOUR), timeAfter(HOUR), timeAfter(HOUR + 59 * SECOND)],
    );
    assert.equal((await due).late, 59 * SECOND);
    assert.deepEqual((await scheduler.getSchedule('s'))?.nextRunAt, timeAfter(2 * HOUR));
  });

  it('stores the last and the next run [F2]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', overlap: 'allow' });
    const times = async (): Promise<unknown[]> => {
      const schedule = await scheduler.getSchedule('s');
      return [schedule?.lastRunAt, schedule?.nextRunAt, schedule?.runs];
    };
    assert.deepEqual(await times(), [null, timeAfter(HOUR), 0]);
    for (const hour of [1, 2, 3]) {
      clock.advance(HOUR);
      await scheduler.run();
      assert.deepEqual(await times(), [timeAfter(hour * HOUR), timeAfter((hour + 1) * HOUR), hour]);
    }
  });

  describe('after a run ends', () => {
    it('continues when an occurrence fails at its last attempt [C7] [C6]', async () => {
      const { scheduler, clock } = manualScheduler(database, {
        retries: { base: '1s', jitter: 'none', max: 3 },
      });
      const failed = recordEvents(scheduler, 'job:failed');
      scheduler.registerHandler('work', () => {
        throw new Error('broken');
      });
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      for (const hour of [1, 2]) {
        clock.advance(timeAfter(hour * HOUR).getTime() - clock.now().getTime());
        for (const wait of [0, SECOND, 2 * SECOND]) {
          clock.advance(wait);
          assert.equal(await scheduler.run(), 1);
        }
      }
      const made = await jobsOf(database, 's');
      assert.deepEqual(
        made.map(({ _id, status, attempts }) => [_id, status, attempts]),
        [
          ['s@2026-01-01T01:00:00.000Z', 'FAILED', 3],
          ['s@2026-01-01T02:00:00.000Z', 'FAILED', 3],
        ],
      );
      assert.deepEqual(
        failed.map(({ event }) => (event as SchedulerEvents['job:failed']).willRetry),
        [true, true, false, true, true, false],
      );
      assert.equal((await scheduler.getExecutions(made[0]!._id)).length, 3);
      const schedule = await scheduler.getSchedule('s');
      assert.deepEqual([schedule?.isActive, schedule?.nextRunAt], [true, timeAfter(3 * HOUR)]);
    });

    it('keeps the occurrence time of a job that is retried [C7]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      const attempts: [number, Date | null][] = [];
      scheduler.registerHandler('work', (_, { attempt, scheduledFor }) => {
        attempts.push([attempt, scheduledFor]);
        if (attempt < 2) throw new Error('not yet');
      });
      const retries = { max: 2, base: '10s', jitter: 'none' } as const;
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', retries });
      clock.advance(HOUR);
      await scheduler.run();
      clock.advance(10 * SECOND);
      await scheduler.run();
      assert.deepEqual(attempts, [
        [1, timeAfter(HOUR)],
        [2, timeAfter(HOUR)],
      ]);
      assert.deepEqual(
        (await jobsOf(database, 's')).map(({ status }) => status),
        ['COMPLETED'],
      );
    });

    it('continues when a job kills its process three times and ends FAILED [C7] [B9]', async () => {
      const { scheduler, clock } = manualScheduler(database, { retries: { base: '1s', jitter: 'none' } });
      await scheduler.addSchedule({ id: 's', taskType: 'deadly', cron: '0 * * * *' });
      clock.advance(HOUR);
      await scheduler.run();
      const id = 's@2026-01-01T01:00:00.000Z';
      for (let crash = 1; crash <= 3; crash++) {
        // A worker claimed it and crashed.
        const { matchedCount } = await database.collections.jobs.updateOne(
          { _id: id, status: 'SCHEDULED', crashes: crash - 1 },
          {
            $set: {
              status: 'RUNNING',
              lockedBy: 'a dead worker',
              lockToken: `token ${crash}`,
              lockedUntil: timeAfter(-1, clock.now()),
              startedAt: clock.now(),
            },
            $inc: { fence: 1 },
          },
        );
        assert.equal(matchedCount, 1);
        clock.advance(5 * SECOND);
        await scheduler.run();
      }
      const [job] = await jobsOf(database, 's');
      assert.deepEqual([job?.status, job?.crashes, job?.error?.code], ['FAILED', 3, 'JOB_CRASHED']);
      clock.advance(HOUR);
      await scheduler.run();
      assert.deepEqual(
        (await jobsOf(database, 's')).map(({ _id, status }) => [_id, status]),
        [
          [id, 'FAILED'],
          ['s@2026-01-01T02:00:00.000Z', 'SCHEDULED'],
        ],
      );
    });

    it('continues normally when a run is cancelled and retried later [C7]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      clock.advance(HOUR);
      await scheduler.run();
      const first = 's@2026-01-01T01:00:00.000Z';
      assert.equal((await scheduler.cancel(first)).result, 'changed');
      scheduler.registerHandler('work', () => undefined);
      clock.advance(HOUR);
      assert.equal(await scheduler.run(), 1);
      await scheduler.retry(first);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(await outcomesUntil(database, clock.now()), ['job', 'job']);
      assert.equal(
        (await jobsOf(database, 's')).every(({ status }) => status === 'COMPLETED'),
        true,
      );
    });
  });

  describe('limits', () => {
    it('startsAt, endsAt, between and except match the calendar exactly [B10]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      await scheduler.addSchedule({
        id: 's',
        taskType: 'work',
        cron: '0,30 * * * *',
        timezone: 'Asia/Kolkata',
        startsAt: '2026-01-02T00:00:00Z',
        endsAt: '2026-01-05T00:00:00Z',
        between: ['22:00', '01:30'],
        except: ['2026-01-03'],
        overlap: 'allow',
      });
      while (clock.now() < timeAfter(6 * DAY)) {
        clock.advance(30 * MINUTE);
        const { nextRunAt } = (await database.collections.schedules.findOne({ _id: 's' }))!;
        if (nextRunAt !== null && nextRunAt <= clock.now()) await scheduler.run(1);
      }
      const outcomes = await outcomesUntil(database, clock.now());
      assert.deepEqual(countOutcomes(outcomes), { job: 16 });
      const schedule = await scheduler.getSchedule('s');
      assert.deepEqual([schedule?.nextRunAt, schedule?.isActive], [null, true]);
    });

    it('maxRuns ends the schedule after that many runs [B10]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      scheduler.registerHandler('work', () => undefined);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', maxRuns: 2 });
      for (let hour = 0; hour < 4; hour++) {
        clock.advance(HOUR);
        await scheduler.run();
      }
      assert.equal((await jobsOf(database, 's')).length, 2);
      const schedule = await scheduler.getSchedule('s');
      assert.deepEqual([schedule?.runs, schedule?.nextRunAt], [2, null]);
    });

    it('a higher maxRuns lets the schedule continue [B10]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      scheduler.registerHandler('work', () => undefined);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', maxRuns: 1 });
      clock.advance(HOUR);
      await scheduler.run();
      assert.equal((await scheduler.getSchedule('s'))?.nextRunAt, null);
      await scheduler.updateSchedule('s', { maxRuns: 2 });
      assert.deepEqual((await scheduler.getSchedule('s'))?.nextRunAt, timeAfter(2 * HOUR));
      clock.advance(HOUR);
      assert.equal(await scheduler.run(), 1);
    });

    it('jitter delays the run, not the occurrence, by the same time in every process [B10]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      await scheduler.addSchedule({
        id: 's',
        taskType: 'work',
        cron: '0 * * * *',
        jitter: '10m',
        overlap: 'allow',
      });
      for (let hour = 0; hour < 6; hour++) {
        clock.advance(HOUR);
        await scheduler.run();
      }
      assert.deepEqual(await outcomesUntil(database, clock.now()), Array(6).fill('job'));
      const delays = (await jobsOf(database, 's')).map(
        (job) => job.nextRunAt.getTime() - job.scheduledFor!.getTime(),
      );
      assert.ok(delays.every((delay) => delay >= 0 && delay < 10 * MINUTE));
      assert.equal(new Set(delays).size, 6);
      // Jobs that are created again have the same delays.
      await database.collections.jobs.deleteMany();
      await scheduler.backfill('s', timeAfter(HOUR), clock.now());
      assert.deepEqual(
        (await jobsOf(database, 's')).map((job) => job.nextRunAt.getTime() - job.scheduledFor!.getTime()),
        delays,
      );
    });

    it('environments restrict which processes run a schedule [D8]', async () => {
      const clock = new ManualClock();
      const [here, there] = ['here', 'there'].map((environment) =>
        database.scheduler({ clock, environment, lockTimeout: '1d' }),
      );
      await here!.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', environments: ['there'] });
      await here!.addSchedule({ id: 'all', taskType: 'work', cron: '0 * * * *' });
      clock.advance(HOUR);
      await here!.run();
      assert.deepEqual(
        [(await jobsOf(database, 's')).length, (await jobsOf(database, 'all')).length],
        [0, 1],
      );
      await there!.run();
      assert.equal((await jobsOf(database, 's')).length, 1);
    });
  });

  describe('and the pruner', () => {
    /** Returns the ids of a dispatched job and of the job of an occurrence, both completed. */
    async function completeJobs(scheduler: Scheduler, clock: ManualClock): Promise<string[]> {
      scheduler.registerHandler('work', () => undefined);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', maxRuns: 1 });
      clock.advance(HOUR);
      const { id } = await scheduler.dispatch('work');
      await scheduler.run();
      return [id, 's@2026-01-01T01:00:00.000Z'];
    }

    const storedIds = async (): Promise<string[]> =>
      (await database.collections.jobs.find({}, { sort: { _id: 1 } }).toArray()).map(({ _id }) => _id);

    for (const [name, prune] of [
      ['however short its retention', (scheduler: Scheduler) => scheduler.prune()],
      ['also when prune() is called', (scheduler: Scheduler) => scheduler.prune(0)],
    ] as const) {
      it(`keep the job of an occurrence for an hour, ${name} [J13] [J15]`, async () => {
        const retention = { completed: 0, failed: 0, cancelled: 0 };
        const { scheduler, clock } = manualScheduler(database, { retention });
        const [dispatched, occurrence] = await completeJobs(scheduler, clock);
        clock.advance(HOUR);
        assert.deepEqual((await storedIds()).sort(), [dispatched, occurrence].sort());
        assert.equal((await prune(scheduler)).finished, 1);
        assert.deepEqual(await storedIds(), [occurrence]);
        clock.advance(1);
        assert.equal((await prune(scheduler)).finished, 1);
        assert.deepEqual(await storedIds(), []);
      });
    }
  });

  it('in a running worker creates and runs jobs without waiting for a poll [C7] [J15]', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread, pollInterval: '1m' });
    scheduler.registerHandler('work', () => undefined);
    await scheduler.start();
    const [due, complete] = [nextEvent(scheduler, 'schedule:due'), nextEvent(scheduler, 'job:complete')];
    await scheduler.addSchedule({ id: 's', taskType: 'work', every: '1s', maxRuns: 1 });
    await complete;
    const { late } = await due;
    assert.ok(late >= 0 && late < 10 * SECOND, `${late} ms late`);
  });
});
