import assert from 'node:assert/strict';
import type { JobDocument } from '../../../../src/domain/job/job.js';
import type { PendingRun, PendingSkip, ScheduleDocument } from '../../../../src/domain/schedule/schedule.js';
import type { Scheduler, SchedulerEvents } from '../../../../src/index.js';
import { aJob } from '../../../support/factories/job.js';
import { manualScheduler } from '../../../support/manual-scheduler.js';
import { run as pendingRun } from '../../../support/factories/plan.js';
import { aSchedule } from '../../../support/factories/schedule.js';
import { recordEvents } from '../../../support/events.js';
import { timeAfter } from '../../../support/instants.js';
import type { ManualClock } from '../../../support/manual-clock.js';
import { hourlyJobId, jobsOf, outcomesUntil, TAKEOVER_MS } from '../../../support/schedules.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

describe('a schedule with pending runs', () => {
  const database = useSharedDatabase();

  async function statuses(): Promise<[string, string][]> {
    return (await jobsOf(database, 's')).map(({ _id, status }) => [_id, status]);
  }

  const run = (hour: number): PendingRun => pendingRun(timeAfter(hour * HOUR));

  /** Stores the schedule and its jobs as a crashed process left them. It is half past three. */
  async function afterCrash(
    fields: Partial<ScheduleDocument>,
    ...jobs: Partial<JobDocument>[]
  ): Promise<{ scheduler: Scheduler; clock: ManualClock }> {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.registerHandler('work', () => undefined);
    await database.collections.schedules.insertOne(
      aSchedule({ overlap: 'queue', nextRunAt: timeAfter(4 * HOUR), runs: 3, ...fields }),
    );
    const documents = jobs.map((job) => {
      const scheduledFor = new Date(job._id!.slice(2));
      return aJob({ schedule: 's', scheduledFor, nextRunAt: scheduledFor, ...job });
    });
    if (documents.length > 0) await database.collections.jobs.insertMany(documents);
    clock.advance(3 * HOUR + 30 * MINUTE);
    return { scheduler, clock };
  }

  /** Passes that each execute what earlier ones left pending. */
  async function runPasses(scheduler: Scheduler, clock: ManualClock, count: number): Promise<void> {
    for (let pass = 0; pass < count; pass++) {
      await scheduler.run();
      clock.advance(TAKEOVER_MS);
    }
  }

  const done = (hour: number): Partial<JobDocument> => ({ _id: hourlyJobId(hour), status: 'COMPLETED' });

  const states: [string, Partial<ScheduleDocument>, Partial<JobDocument>[]][] = [
    [
      'the active run was planned, but not inserted',
      { active: hourlyJobId(1), pending: [run(1), run(2), run(3)] },
      [],
    ],
    [
      'the active run was inserted, but is still pending',
      { active: hourlyJobId(1), pending: [run(1), run(2), run(3)] },
      [{ _id: hourlyJobId(1) }],
    ],
    [
      'the active run is finished, but still pending',
      { active: hourlyJobId(1), pending: [run(1), run(2), run(3)] },
      [done(1)],
    ],
    [
      'the active run is finished, and the next was not started',
      { active: hourlyJobId(1), pending: [run(2), run(3)] },
      [done(1)],
    ],
    [
      'the active run and one of the waiting runs are finished',
      { active: hourlyJobId(1), pending: [run(2), run(3)] },
      [done(1), done(2)],
    ],
    ['there is no active run', { active: null, pending: [run(2), run(3)] }, [done(1)]],
  ];
  for (const [name, fields, jobs] of states) {
    it(`runs each once, in order, when ${name} [B10] [C7]`, async () => {
      const { scheduler, clock } = await afterCrash(fields, ...jobs);
      const starts = recordEvents(scheduler, 'job:start');
      await runPasses(scheduler, clock, 5);
      assert.deepEqual(await outcomesUntil(database, clock.now()), ['job', 'job', 'job']);
      assert.ok((await statuses()).every(([, status]) => status === 'COMPLETED'));
      const order = starts.map(({ event }) => (event as SchedulerEvents['job:start']).jobId);
      const unfinished = [1, 2, 3]
        .map(hourlyJobId)
        .filter((id) => !jobs.some((job) => job._id === id && job.status));
      assert.deepEqual(order, unfinished);
      assert.deepEqual((await scheduler.getSchedule('s'))?.waiting, 0);
    });
  }

  it('ignores an active run that was pruned long ago [B10]', async () => {
    for (const overlap of ['skip', 'queue', 'replace'] as const) {
      await database.collections.schedules.deleteMany();
      const { scheduler, clock } = await afterCrash({ overlap, active: 's@2025-01-01T00:00:00.000Z' });
      clock.advance(30 * MINUTE);
      assert.equal(await scheduler.run(), 1, overlap);
      await database.collections.jobs.deleteMany();
    }
  });

  it('records a skip that was planned and never recorded [D13]', async () => {
    const skip: PendingSkip = {
      ...{ kind: 'skip', id: hourlyJobId(1), at: timeAfter(HOUR), until: timeAfter(2 * HOUR), count: 1 },
      ...{ reason: 'misfire', activeId: null, runningFor: null, since: timeAfter(2 * HOUR) },
    };
    const { scheduler, clock } = await afterCrash({
      pending: [skip, run(2), run(3)],
      active: hourlyJobId(2),
    });
    await runPasses(scheduler, clock, 3);
    assert.deepEqual(await outcomesUntil(database, clock.now()), ['misfire', 'job', 'job']);
  });

  it('requests a cancellation again when the process that planned it crashed [B10]', async () => {
    const { scheduler, clock } = await afterCrash(
      { overlap: 'replace', active: hourlyJobId(2), pending: [run(3)] },
      done(1),
      { _id: hourlyJobId(2), status: 'RUNNING', lockedUntil: timeAfter(10 * HOUR), lockedBy: 'another' },
    );
    await scheduler.run();
    const replaced = await database.collections.jobs.findOne({ _id: hourlyJobId(2) });
    assert.equal(replaced?.cancelRequested?.reason, 'replaced by a newer run of its schedule');
    await database.collections.jobs.updateOne(
      { _id: hourlyJobId(2) },
      { $set: { status: 'CANCELLED', finishedAt: clock.now(), lockToken: null, lockedUntil: null } },
    );
    await runPasses(scheduler, clock, 1);
    assert.deepEqual((await statuses()).at(-1), [hourlyJobId(3), 'COMPLETED']);
  });

  it('recovers the active run of a crashed worker first, then continues [C9]', async () => {
    const { scheduler, clock } = await afterCrash(
      { active: hourlyJobId(1), pending: [run(2), run(3)] },
      {
        _id: hourlyJobId(1),
        status: 'RUNNING',
        lockedBy: 'a dead worker',
        lockedUntil: timeAfter(HOUR + MINUTE),
      },
    );
    await runPasses(scheduler, clock, 8);
    assert.deepEqual(await outcomesUntil(database, clock.now()), ['job', 'job', 'job']);
    assert.equal((await scheduler.getJob(hourlyJobId(1)))?.crashes, 1);
    assert.ok((await statuses()).every(([, status]) => status === 'COMPLETED'));
  });

  it('leaves its runs for two seconds to the process that planned them [F3]', async () => {
    const since = timeAfter(3 * HOUR + 30 * MINUTE);
    const { scheduler, clock } = await afterCrash({
      active: hourlyJobId(3),
      pending: [{ ...run(3), since }],
    });
    clock.advance(TAKEOVER_MS - 1);
    assert.equal(await scheduler.run(), 0);
    clock.advance(1);
    assert.equal(await scheduler.run(), 1);
  });

  it('adds no occurrence after it is paused [B8] [B10]', async () => {
    const { scheduler, clock } = await afterCrash(
      { active: hourlyJobId(1), pending: [run(2), run(3)] },
      done(1),
    );
    await scheduler.pauseSchedule('s');
    clock.advance(2 * HOUR);
    await runPasses(scheduler, clock, 5);
    const { jobs } = database.collections;
    assert.equal(await jobs.countDocuments({ scheduledFor: { $gt: timeAfter(3 * HOUR) } }), 0);
    await scheduler.resumeSchedule('s');
    await runPasses(scheduler, clock, 5);
    assert.deepEqual(await outcomesUntil(database, clock.now()), ['job', 'job', 'job', 'paused', 'paused']);
  });
});
