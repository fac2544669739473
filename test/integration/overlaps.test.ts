import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { JobContext, NewSchedule, Scheduler, SchedulerEvents } from '../../src/index.js';
import type { JobDocument } from '../../src/domain/job.js';
import type { OwedRun, OwedSkip, ScheduleDocument } from '../../src/domain/schedule.js';
import { aJob } from '../support/a-job.js';
import { byHand, inProcess, passTime } from '../support/by-hand.js';
import { accountFor, aSchedule, type Fate } from '../support/calendar.js';
import { countEvents, nextEvent, recordEvents, signal } from '../support/events.js';
import { after, START } from '../support/instants.js';
import type { ManualClock } from '../support/manual-clock.js';
import { useSharedDatabase } from '../support/shared-database.js';
import { until } from '../support/until.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const LEFT_ALONE = 2 * SECOND;

describe('overlaps', () => {
  /** Lets the handlers of a test end, whatever became of it: nobody can wait for them on a clock that stands still. */
  const releases: (() => void)[] = [];
  afterEach(() => {
    for (const release of releases.splice(0)) release();
  });
  const database = useSharedDatabase();

  function gate(): { promise: Promise<void>; fire: () => void } {
    const opened = signal();
    releases.push(opened.fire);
    return opened;
  }

  function occurrence(hour: number): string {
    return `s@${after(hour * HOUR).toISOString()}`;
  }

  async function statuses(): Promise<[string, string][]> {
    const jobs = await database.collections.jobs.find({ schedule: 's' }, { sort: { _id: 1 } }).toArray();
    return jobs.map(({ _id, status }) => [_id, status]);
  }

  function account(clock: ManualClock): Promise<Fate[]> {
    return accountFor(database.collections, 's', { after: START, until: clock.now() });
  }

  interface Held {
    scheduler: Scheduler;
    clock: ManualClock;
    /** Lets the handlers that are at work, and those to come, end. */
    release: () => void;
    /** The pass that runs the first occurrence. */
    pass: Promise<number>;
    runs: string[];
  }

  /** At one o'clock the first run started, and it does not end until it is released or its signal is aborted. */
  async function held(said: Partial<NewSchedule>): Promise<Held> {
    const { scheduler, clock } = byHand(database, { timeout: '1d' });
    const free = gate();
    const runs: string[] = [];
    scheduler.registerHandler('work', (_, { id, signal: aborted }: JobContext) => {
      runs.push(id);
      return new Promise<void>((resolve, reject) => {
        void free.promise.then(resolve);
        aborted.addEventListener('abort', () => reject(aborted.reason as Error));
      });
    });
    await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', ...said });
    const started = nextEvent(scheduler, 'job:start');
    clock.advance(HOUR);
    const pass = scheduler.run();
    await started;
    return { scheduler, clock, release: free.fire, pass, runs };
  }

  describe('skip, the default', () => {
    it('Y5 B10 recorded as skipped, with how long the other has been running', async () => {
      const { scheduler, clock, release, pass, runs } = await held({});
      const skipped = recordEvents(scheduler, 'schedule:skipped');
      clock.advance(HOUR + 30 * SECOND);
      assert.equal(await scheduler.run(), 0);
      const [skip, ...others] = await scheduler.getSkips('s');
      assert.deepEqual(others, []);
      assert.deepEqual(
        [skip?._id, skip?.at, skip?.until, skip?.count, skip?.reason],
        [occurrence(2), after(2 * HOUR), after(2 * HOUR + 1), 1, 'overlap'],
      );
      assert.deepEqual([skip?.activeId, skip?.runningFor], [occurrence(1), HOUR + 30 * SECOND]);
      assert.deepEqual(
        skipped.map(({ event }) => event),
        [
          {
            scheduleId: 's',
            from: after(2 * HOUR),
            until: after(2 * HOUR + 1),
            count: 1,
            reason: 'overlap',
            runningFor: HOUR + 30 * SECOND,
          },
        ],
      );
      const schedule = await scheduler.getSchedule('s');
      assert.deepEqual([schedule?.lastRunAt, schedule?.nextRunAt], [after(HOUR), after(3 * HOUR)]);

      release();
      await pass;
      clock.advance(HOUR);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(runs, [occurrence(1), occurrence(3)]);
      assert.deepEqual(await account(clock), ['job', 'overlap', 'job']);
    });

    it('Y5 singleInstance() is the same, singleInstance(false) is allow', async () => {
      const { scheduler, clock } = byHand(database);
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

    it('Y5 a run that waits for a worker, for its next attempt, or is held is not finished', async () => {
      const { scheduler, clock } = byHand(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      clock.advance(HOUR);
      await scheduler.run();
      clock.advance(HOUR);
      await scheduler.run();
      await scheduler.hold(occurrence(1));
      clock.advance(HOUR);
      await scheduler.run();
      await scheduler.unhold(occurrence(1));
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
      assert.deepEqual(await account(clock), ['job', 'overlap', 'overlap', 'overlap']);
      assert.deepEqual(
        (await scheduler.getSkips('s')).map(({ runningFor }) => runningFor),
        [HOUR, 2 * HOUR, HOUR],
      );
    });

    it('Y5 the job of another schedule, or of the same task type, is in nobody’s way', async () => {
      const { scheduler, clock } = await held({});
      await scheduler.addSchedule({ id: 't', taskType: 'other', cron: '0 * * * *' });
      await scheduler.dispatch('other');
      scheduler.registerHandler('other', () => undefined);
      clock.advance(HOUR);
      assert.equal(await scheduler.run(), 2);
    });
  });

  describe('allow', () => {
    it('B10 both run', async () => {
      const { scheduler, clock, release, pass, runs } = await held({ overlap: 'allow' });
      const second = nextEvent(scheduler, 'job:start');
      clock.advance(HOUR);
      const next = scheduler.run();
      await second;
      assert.deepEqual(runs, [occurrence(1), occurrence(2)]);
      release();
      await Promise.all([pass, next]);
      assert.deepEqual(await account(clock), ['job', 'job']);
    });
  });

  describe('queue', () => {
    it('B10 they wait, in order, and run each once', async () => {
      const { scheduler, clock, release, pass, runs } = await held({ overlap: 'queue' });
      for (let hour = 2; hour <= 4; hour++) {
        clock.advance(HOUR);
        assert.equal(await scheduler.run(), 0);
      }
      assert.equal((await scheduler.getSchedule('s'))?.waiting, 3);
      assert.deepEqual(await account(clock), ['job', 'waiting', 'waiting', 'waiting']);
      release();
      await pass;
      for (let left = 3; left > 0; left--) {
        clock.advance(LEFT_ALONE);
        assert.equal(await scheduler.run(), 1);
        assert.equal((await scheduler.getSchedule('s'))?.waiting, left - 1);
      }
      clock.advance(LEFT_ALONE);
      assert.equal(await scheduler.run(), 0);
      assert.deepEqual(runs, [1, 2, 3, 4].map(occurrence));
      assert.deepEqual(await account(clock), ['job', 'job', 'job', 'job']);
      assert.deepEqual(await scheduler.getSkips('s'), []);
    });

    it('B10 a worker takes the next in line as soon as one ends, without waiting for a poll', async () => {
      const scheduler = database.scheduler({ ...inProcess, pollInterval: '1m' });
      const free = gate();
      const runs: string[] = [];
      let atWork = 0;
      scheduler.registerHandler('work', async (_, { id }) => {
        assert.equal(++atWork, 1, 'one at a time');
        runs.push(id);
        await free.promise;
        atWork--;
      });
      await scheduler.start();
      const complete = countEvents(scheduler, 'job:complete', 2);
      await scheduler.addSchedule({ id: 's', taskType: 'work', every: '1s', maxRuns: 2, overlap: 'queue' });
      await until('one waits', async () => (await scheduler.getSchedule('s'))?.waiting === 1);
      free.fire();
      await complete;
      const { anchor } = (await scheduler.getSchedule('s'))!;
      assert.deepEqual(
        runs,
        [1, 2].map((second) => `s@${after(second * SECOND, anchor).toISOString()}`),
      );
    });

    it('B10 F1 a triggered run in line goes as soon as the one before it ends, without waiting for a poll', async () => {
      const scheduler = database.scheduler({ ...inProcess, pollInterval: '1m' });
      const free = gate();
      scheduler.registerHandler('work', () => free.promise);
      await scheduler.start();
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 0 1 1 *', overlap: 'queue' });
      const started = nextEvent(scheduler, 'job:start');
      const first = await scheduler.triggerSchedule('s');
      await started;
      const second = await scheduler.triggerSchedule('s');
      assert.ok(first.triggered && second.triggered);
      const next = nextEvent(scheduler, 'job:start', ({ jobId }) => jobId === second.jobId);
      const ended = nextEvent(scheduler, 'job:complete', ({ jobId }) => jobId === first.jobId);
      free.fire();
      await ended;
      const endedAt = performance.now();
      await Promise.race([next, pause(2500)]);
      const took = performance.now() - endedAt;
      assert.ok(took < 2000, `${took.toFixed(0)} ms after the one before it ended`);
    });
  });

  describe('replace', () => {
    it('B10 the running one is cancelled, the newest runs', async () => {
      const { scheduler, clock, release, pass, runs } = await held({ overlap: 'replace' });
      const cancelled = nextEvent(scheduler, 'job:cancelled');
      clock.advance(HOUR);
      await scheduler.run();
      await pass;
      const { jobId, reason } = await cancelled;
      assert.deepEqual([jobId, reason], [occurrence(1), 'replaced by a newer run of its schedule']);
      release();
      clock.advance(LEFT_ALONE);
      await scheduler.run();
      assert.deepEqual(await statuses(), [
        [occurrence(1), 'CANCELLED'],
        [occurrence(2), 'COMPLETED'],
      ]);
      assert.deepEqual(runs, [occurrence(1), occurrence(2)]);
      assert.deepEqual(await account(clock), ['job', 'job']);
    });

    it('B10 of several that wait the newest runs, the others are skipped', async () => {
      const { scheduler, clock } = byHand(database, { timeout: '1d', timeoutGrace: '1d' });
      const ignoring = gate();
      scheduler.registerHandler('work', () => ignoring.promise);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', overlap: 'replace' });
      const started = nextEvent(scheduler, 'job:start');
      clock.advance(HOUR);
      const pass = scheduler.run();
      await started;
      // Its handler does not look at its signal.
      const other = database.scheduler({ clock, lockTimeout: '1d' });
      for (let hour = 2; hour <= 4; hour++) {
        clock.advance(HOUR);
        await other.run();
      }
      assert.deepEqual(await account(clock), ['job', 'replaced', 'replaced', 'waiting']);
      const skips = await scheduler.getSkips('s');
      assert.deepEqual(
        skips.map(({ at, activeId, runningFor }) => [at, activeId, runningFor]),
        [
          [after(3 * HOUR), occurrence(1), 3 * HOUR],
          [after(2 * HOUR), occurrence(1), 2 * HOUR],
        ],
      );
      ignoring.fire();
      await pass;
      clock.advance(LEFT_ALONE);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(await account(clock), ['job', 'replaced', 'replaced', 'job']);
    });

    it('B10 one that no worker has taken yet is cancelled too, and that is said', async () => {
      const { scheduler, clock } = byHand(database);
      const cancelled = recordEvents(scheduler, 'job:cancelled');
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', overlap: 'replace' });
      clock.advance(HOUR);
      await scheduler.run();
      clock.advance(HOUR);
      await scheduler.run();
      clock.advance(LEFT_ALONE);
      await scheduler.run();
      assert.deepEqual(await statuses(), [
        [occurrence(1), 'CANCELLED'],
        [occurrence(2), 'SCHEDULED'],
      ]);
      assert.deepEqual(
        cancelled.map(({ event }) => (event as SchedulerEvents['job:cancelled']).jobId),
        [occurrence(1)],
      );
    });

    it('B10 on real time and in another process: the old one is told, the new one follows', async () => {
      const [worker, other] = [database.scheduler(inProcess), database.scheduler(inProcess)];
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
    it('Y6 an overlong run is ended, recorded, not tried again, and does not block the next', async () => {
      const { scheduler, clock, pass, runs, release } = await held({ maxRunningTime: '10m' });
      clock.advance(10 * MINUTE);
      await pass;
      const job = await scheduler.getJob(occurrence(1));
      assert.deepEqual([job?.status, job?.error?.code], ['FAILED', 'JOB_RAN_TOO_LONG']);
      const [row, ...others] = await scheduler.getExecutions(occurrence(1));
      assert.deepEqual([row?.outcome, row?.duration, others], ['failed', 10 * MINUTE, []]);
      release();
      clock.advance(50 * MINUTE);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(runs, [occurrence(1), occurrence(2)]);
      assert.deepEqual(await account(clock), ['job', 'job']);
    });

    it('Y6 over all attempts: one that would start too late is not started', async () => {
      const { scheduler, clock } = byHand(database, {
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
      assert.equal((await scheduler.getJob(occurrence(1)))?.status, 'FAILED');
      clock.advance(44 * MINUTE);
      assert.equal(await scheduler.run(), 1);
      assert.equal(runs, 4);
    });

    it('Y6 a handler that ignores its signal keeps its slot, but not the next run', async () => {
      const { scheduler, clock } = byHand(database, { timeoutGrace: '5s' });
      const never = gate();
      const runs: string[] = [];
      scheduler.registerHandler('work', (_, { id }) => {
        runs.push(id);
        return never.promise;
      });
      const stuck = nextEvent(scheduler, 'worker:stuck');
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', maxRunningTime: '10m' });
      const started = nextEvent(scheduler, 'job:start');
      clock.advance(HOUR);
      const pass = scheduler.run();
      await started;
      clock.advance(10 * MINUTE);
      await passTime(clock, pass, SECOND);
      assert.equal((await stuck).jobId, occurrence(1));
      assert.equal((await scheduler.getJob(occurrence(1)))?.error?.code, 'JOB_RAN_TOO_LONG');
      const next = nextEvent(scheduler, 'job:start');
      clock.advance(after(2 * HOUR).getTime() - clock.now().getTime());
      const second = scheduler.run();
      await next;
      assert.deepEqual(runs, [occurrence(1), occurrence(2)]);
      never.fire();
      await second;
    });

    it('Y6 C9 one whose worker died is swept and not started again past its time', async () => {
      const { scheduler, clock } = byHand(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', maxRunningTime: '10m' });
      clock.advance(HOUR);
      await scheduler.run();
      const dead = {
        status: 'RUNNING',
        lockedBy: 'a dead worker',
        lockToken: 'its token',
        fence: 1,
      } as const;
      await database.collections.jobs.updateOne(
        { _id: occurrence(1) },
        {
          $set: {
            ...dead,
            startedAt: clock.now(),
            firstStartedAt: clock.now(),
            lockedUntil: after(MINUTE, clock.now()),
          },
        },
      );
      scheduler.registerHandler('work', () => undefined);
      clock.advance(HOUR);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(await statuses(), [
        [occurrence(1), 'FAILED'],
        [occurrence(2), 'COMPLETED'],
      ]);
    });
  });

  describe('the line keeps moving', () => {
    const run = (hour: number): OwedRun => ({
      kind: 'run',
      id: occurrence(hour),
      at: after(hour * HOUR),
      since: after(hour * HOUR),
    });

    /** A schedule as somebody left it at half past three, and the jobs that were there. */
    async function leftBehind(
      fields: Partial<ScheduleDocument>,
      ...jobs: Partial<JobDocument>[]
    ): Promise<{ scheduler: Scheduler; clock: ManualClock }> {
      const { scheduler, clock } = byHand(database);
      scheduler.registerHandler('work', () => undefined);
      await database.collections.schedules.insertOne(
        aSchedule({ overlap: 'queue', nextRunAt: after(4 * HOUR), runs: 3, ...fields }),
      );
      const documents = jobs.map((job) => {
        const scheduledFor = new Date(job._id!.slice(2));
        return aJob({ schedule: 's', scheduledFor, nextRunAt: scheduledFor, ...job });
      });
      if (documents.length > 0) await database.collections.jobs.insertMany(documents);
      clock.advance(3 * HOUR + 30 * MINUTE);
      return { scheduler, clock };
    }

    /** Passes two seconds apart. */
    async function passes(scheduler: Scheduler, clock: ManualClock, count: number): Promise<void> {
      for (let pass = 0; pass < count; pass++) {
        await scheduler.run();
        clock.advance(LEFT_ALONE);
      }
    }

    const done = (hour: number): Partial<JobDocument> => ({ _id: occurrence(hour), status: 'COMPLETED' });

    const states: [string, Partial<ScheduleDocument>, Partial<JobDocument>[]][] = [
      [
        'the current run was decided and never inserted',
        { active: occurrence(1), owed: [run(1), run(2), run(3)] },
        [],
      ],
      [
        'it was inserted and never taken off the list',
        { active: occurrence(1), owed: [run(1), run(2), run(3)] },
        [{ _id: occurrence(1) }],
      ],
      [
        'it is over, and was never taken off the list',
        { active: occurrence(1), owed: [run(1), run(2), run(3)] },
        [done(1)],
      ],
      [
        'it is over, and nobody was there to let the next go',
        { active: occurrence(1), owed: [run(2), run(3)] },
        [done(1)],
      ],
      [
        'it is over, and so is one of those in line',
        { active: occurrence(1), owed: [run(2), run(3)] },
        [done(1), done(2)],
      ],
      ['nobody knows of a current run', { active: null, owed: [run(2), run(3)] }, [done(1)]],
    ];
    for (const [name, fields, jobs] of states) {
      it(`B10 C7 ${name}: each runs, once, in order`, async () => {
        const { scheduler, clock } = await leftBehind(fields, ...jobs);
        const starts = recordEvents(scheduler, 'job:start');
        await passes(scheduler, clock, 5);
        assert.deepEqual(await account(clock), ['job', 'job', 'job']);
        assert.ok((await statuses()).every(([, status]) => status === 'COMPLETED'));
        const order = starts.map(({ event }) => (event as SchedulerEvents['job:start']).jobId);
        const left = [1, 2, 3]
          .map(occurrence)
          .filter((id) => !jobs.some((job) => job._id === id && job.status));
        assert.deepEqual(order, left);
        assert.deepEqual((await scheduler.getSchedule('s'))?.waiting, 0);
      });
    }

    it('B10 the current run was pruned long ago: it is in nobody’s way', async () => {
      for (const overlap of ['skip', 'queue', 'replace'] as const) {
        await database.collections.schedules.deleteMany();
        const { scheduler, clock } = await leftBehind({ overlap, active: 's@2025-01-01T00:00:00.000Z' });
        clock.advance(30 * MINUTE);
        assert.equal(await scheduler.run(), 1, overlap);
        await database.collections.jobs.deleteMany();
      }
    });

    it('D13 a skip that was decided and never recorded is recorded', async () => {
      const skip: OwedSkip = {
        ...{ kind: 'skip', id: occurrence(1), at: after(HOUR), until: after(2 * HOUR), count: 1 },
        ...{ reason: 'misfire', activeId: null, runningFor: null, since: after(2 * HOUR) },
      };
      const { scheduler, clock } = await leftBehind({ owed: [skip, run(2), run(3)], active: occurrence(2) });
      await passes(scheduler, clock, 3);
      assert.deepEqual(await account(clock), ['misfire', 'job', 'job']);
    });

    it('B10 replace: whoever was to ask for the cancel died: another asks', async () => {
      const { scheduler, clock } = await leftBehind(
        { overlap: 'replace', active: occurrence(2), owed: [run(3)] },
        done(1),
        { _id: occurrence(2), status: 'RUNNING', lockedUntil: after(10 * HOUR), lockedBy: 'another' },
      );
      await scheduler.run();
      const asked = await database.collections.jobs.findOne({ _id: occurrence(2) });
      assert.equal(asked?.cancelRequested?.reason, 'replaced by a newer run of its schedule');
      await database.collections.jobs.updateOne(
        { _id: occurrence(2) },
        { $set: { status: 'CANCELLED', finishedAt: clock.now(), lockToken: null, lockedUntil: null } },
      );
      await passes(scheduler, clock, 1);
      assert.deepEqual((await statuses()).at(-1), [occurrence(3), 'COMPLETED']);
    });

    it('C9 the worker of the current run died: it is recovered first, then the line moves', async () => {
      const { scheduler, clock } = await leftBehind(
        { active: occurrence(1), owed: [run(2), run(3)] },
        {
          _id: occurrence(1),
          status: 'RUNNING',
          lockedBy: 'a dead worker',
          lockedUntil: after(HOUR + MINUTE),
        },
      );
      await passes(scheduler, clock, 8);
      assert.deepEqual(await account(clock), ['job', 'job', 'job']);
      assert.equal((await scheduler.getJob(occurrence(1)))?.crashes, 1);
      assert.ok((await statuses()).every(([, status]) => status === 'COMPLETED'));
    });

    it('F3 for two seconds it is left to whoever decided it', async () => {
      const since = after(3 * HOUR + 30 * MINUTE);
      const { scheduler, clock } = await leftBehind({
        active: occurrence(3),
        owed: [{ ...run(3), since }],
      });
      clock.advance(LEFT_ALONE - 1);
      assert.equal(await scheduler.run(), 0);
      clock.advance(1);
      assert.equal(await scheduler.run(), 1);
    });

    it('B8 B10 paused with a line: no occurrence after the pause is let in', async () => {
      const { scheduler, clock } = await leftBehind(
        { active: occurrence(1), owed: [run(2), run(3)] },
        done(1),
      );
      await scheduler.pauseSchedule('s');
      clock.advance(2 * HOUR);
      await passes(scheduler, clock, 5);
      const { jobs } = database.collections;
      assert.equal(await jobs.countDocuments({ scheduledFor: { $gt: after(3 * HOUR) } }), 0);
      await scheduler.resumeSchedule('s');
      await passes(scheduler, clock, 5);
      assert.deepEqual(await account(clock), ['job', 'job', 'job', 'paused', 'paused']);
    });
  });
});
