import assert from 'node:assert/strict';
import type { JobDocument } from '../../../../src/domain/job/job.js';
import type { PendingRun, PendingSkip, ScheduleDocument } from '../../../../src/domain/schedule/schedule.js';
import type { Scheduler, SchedulerEvents } from '../../../../src/index.js';
import { aJob } from '../../../support/factories/job.js';
import { manualScheduler } from '../../../support/manual-scheduler.js';
import { aSchedule } from '../../../support/factories/schedule.js';
import { loadOutcomes, type OccurrenceOutcome } from '../../../support/occurrence-outcomes.js';
import { recordEvents } from '../../../support/events.js';
import { timeAfter, START } from '../../../support/instants.js';
import type { ManualClock } from '../../../support/manual-clock.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const LEFT_ALONE = 2 * SECOND;

describe('a schedule', () => {
  /** Lets the handlers of a test end, whatever became of it: nobody can wait for them on a clock that stands still. */
  const releases: (() => void)[] = [];
  afterEach(() => {
    for (const release of releases.splice(0)) release();
  });
  const database = useSharedDatabase();

  function occurrence(hour: number): string {
    return `s@${timeAfter(hour * HOUR).toISOString()}`;
  }

  async function statuses(): Promise<[string, string][]> {
    const jobs = await database.collections.jobs.find({ schedule: 's' }, { sort: { _id: 1 } }).toArray();
    return jobs.map(({ _id, status }) => [_id, status]);
  }

  function account(clock: ManualClock): Promise<OccurrenceOutcome[]> {
    return loadOutcomes(database.collections, 's', { after: START, until: clock.now() });
  }

  describe('with pending runs', () => {
    const run = (hour: number): PendingRun => ({
      kind: 'run',
      id: occurrence(hour),
      at: timeAfter(hour * HOUR),
      since: timeAfter(hour * HOUR),
    });

    /** A schedule as somebody left it at half past three, and the jobs that were there. */
    async function leftBehind(
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
        { active: occurrence(1), pending: [run(1), run(2), run(3)] },
        [],
      ],
      [
        'it was inserted and never taken off the list',
        { active: occurrence(1), pending: [run(1), run(2), run(3)] },
        [{ _id: occurrence(1) }],
      ],
      [
        'it is over, and was never taken off the list',
        { active: occurrence(1), pending: [run(1), run(2), run(3)] },
        [done(1)],
      ],
      [
        'it is over, and nobody was there to let the next go',
        { active: occurrence(1), pending: [run(2), run(3)] },
        [done(1)],
      ],
      [
        'it is over, and so is one of those in line',
        { active: occurrence(1), pending: [run(2), run(3)] },
        [done(1), done(2)],
      ],
      ['nobody knows of a current run', { active: null, pending: [run(2), run(3)] }, [done(1)]],
    ];
    for (const [name, fields, jobs] of states) {
      it(`${name}: runs each once, in order [B10] [C7]`, async () => {
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

    it('ignores an active run that was pruned long ago [B10]', async () => {
      for (const overlap of ['skip', 'queue', 'replace'] as const) {
        await database.collections.schedules.deleteMany();
        const { scheduler, clock } = await leftBehind({ overlap, active: 's@2025-01-01T00:00:00.000Z' });
        clock.advance(30 * MINUTE);
        assert.equal(await scheduler.run(), 1, overlap);
        await database.collections.jobs.deleteMany();
      }
    });

    it('records a skip that was planned and never recorded [D13]', async () => {
      const skip: PendingSkip = {
        ...{ kind: 'skip', id: occurrence(1), at: timeAfter(HOUR), until: timeAfter(2 * HOUR), count: 1 },
        ...{ reason: 'misfire', activeId: null, runningFor: null, since: timeAfter(2 * HOUR) },
      };
      const { scheduler, clock } = await leftBehind({
        pending: [skip, run(2), run(3)],
        active: occurrence(2),
      });
      await passes(scheduler, clock, 3);
      assert.deepEqual(await account(clock), ['misfire', 'job', 'job']);
    });

    it('requests a cancellation again when the process that planned it crashed [B10]', async () => {
      const { scheduler, clock } = await leftBehind(
        { overlap: 'replace', active: occurrence(2), pending: [run(3)] },
        done(1),
        { _id: occurrence(2), status: 'RUNNING', lockedUntil: timeAfter(10 * HOUR), lockedBy: 'another' },
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

    it('recovers the active run of a crashed worker first, then continues [C9]', async () => {
      const { scheduler, clock } = await leftBehind(
        { active: occurrence(1), pending: [run(2), run(3)] },
        {
          _id: occurrence(1),
          status: 'RUNNING',
          lockedBy: 'a dead worker',
          lockedUntil: timeAfter(HOUR + MINUTE),
        },
      );
      await passes(scheduler, clock, 8);
      assert.deepEqual(await account(clock), ['job', 'job', 'job']);
      assert.equal((await scheduler.getJob(occurrence(1)))?.crashes, 1);
      assert.ok((await statuses()).every(([, status]) => status === 'COMPLETED'));
    });

    it('leaves them for two seconds to the process that planned them [F3]', async () => {
      const since = timeAfter(3 * HOUR + 30 * MINUTE);
      const { scheduler, clock } = await leftBehind({
        active: occurrence(3),
        pending: [{ ...run(3), since }],
      });
      clock.advance(LEFT_ALONE - 1);
      assert.equal(await scheduler.run(), 0);
      clock.advance(1);
      assert.equal(await scheduler.run(), 1);
    });

    it('adds no occurrence after it is paused [B8] [B10]', async () => {
      const { scheduler, clock } = await leftBehind(
        { active: occurrence(1), pending: [run(2), run(3)] },
        done(1),
      );
      await scheduler.pauseSchedule('s');
      clock.advance(2 * HOUR);
      await passes(scheduler, clock, 5);
      const { jobs } = database.collections;
      assert.equal(await jobs.countDocuments({ scheduledFor: { $gt: timeAfter(3 * HOUR) } }), 0);
      await scheduler.resumeSchedule('s');
      await passes(scheduler, clock, 5);
      assert.deepEqual(await account(clock), ['job', 'job', 'job', 'paused', 'paused']);
    });
  });
});
