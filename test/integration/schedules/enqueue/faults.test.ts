import assert from 'node:assert/strict';
import { occurrencesOf } from '../../../../src/domain/calendar/occurrences.js';
import type { Rule } from '../../../../src/domain/calendar/rule.js';
import type { JobDocument } from '../../../../src/domain/job/job.js';
import type { ScheduleDocument } from '../../../../src/domain/schedule/schedule.js';
import type { Scheduler, SchedulerEvents } from '../../../../src/index.js';
import { manualScheduler, withoutRenewalThread } from '../../../support/manual-scheduler.js';
import { aSchedule } from '../../../support/factories/schedule.js';
import { loadOutcomes } from '../../../support/occurrence-outcomes.js';
import { nextEvent, recordEvents } from '../../../support/events.js';
import { withFailPoint } from '../../../support/fail-point.js';
import { timeAfter, START } from '../../../support/instants.js';
import type { ManualClock } from '../../../support/manual-clock.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** After this long others carry out what somebody decided and did not carry out. */
const LEFT_ALONE = 2 * SECOND;

describe('schedules when something fails', () => {
  const database = useSharedDatabase();

  /** A worker by hand, with a handler for `work`. */
  function worker(): { scheduler: Scheduler; clock: ManualClock } {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.registerHandler('work', () => undefined);
    return { scheduler, clock };
  }

  /** What no worker would write. */
  async function plant(fields: Record<string, unknown>): Promise<void> {
    const document: ScheduleDocument = { ...aSchedule(), ...fields };
    await database.collections.schedules.insertOne(document, {
      bypassDocumentValidation: true,
    });
  }

  async function jobs(schedule: string): Promise<JobDocument[]> {
    return database.collections.jobs.find({ schedule }, { sort: { _id: 1 } }).toArray();
  }

  async function ids(schedule: string): Promise<string[]> {
    return (await jobs(schedule)).map(({ _id }) => _id);
  }

  describe('when the job is inserted', () => {
    it('and the server rejects it, the same occurrence is tried again and nothing is lost [F4]', async () => {
      const { scheduler, clock } = worker();
      const due = recordEvents(scheduler, 'schedule:due');
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      clock.advance(HOUR);
      await withFailPoint(database, { commands: ['insert'], how: 'refused' }, async () => {
        await assert.rejects(scheduler.run());
        clock.advance(LEFT_ALONE);
        await assert.rejects(scheduler.run());
      });
      assert.deepEqual([await ids('s'), due], [[], []]);
      assert.equal((await scheduler.getSchedule('s'))?.waiting, 0);

      clock.advance(LEFT_ALONE);
      assert.equal(await scheduler.run(), 1);
      const [job, ...others] = await jobs('s');
      assert.deepEqual(others, []);
      assert.deepEqual([job?._id, job?.scheduledFor], ['s@2026-01-01T01:00:00.000Z', timeAfter(HOUR)]);
      assert.deepEqual(
        due.map(({ event }) => (event as SchedulerEvents['schedule:due']).late),
        [2 * LEFT_ALONE],
      );
      assert.deepEqual((await scheduler.getSchedule('s'))?.nextRunAt, timeAfter(2 * HOUR));
      const span = { after: START, until: clock.now() };
      assert.deepEqual(await loadOutcomes(database.collections, 's', span), ['job']);
    });

    for (const how of ['lostReply', 'noConnection'] as const) {
      it(`and ${how === 'lostReply' ? 'the reply is lost' : 'the connection breaks'}, there is one job, announced once [F4]`, async () => {
        const { scheduler, clock } = worker();
        const due = recordEvents(scheduler, 'schedule:due');
        await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
        clock.advance(HOUR);
        await withFailPoint(database, { commands: ['insert'], how, times: 2 }, () => scheduler.run());
        assert.deepEqual([await ids('s'), due.length], [['s@2026-01-01T01:00:00.000Z'], 1]);
        assert.equal((await jobs('s'))[0]?.status, 'COMPLETED');
      });
    }

    it('and it keeps failing in a running worker, the error is reported with backoff until it works [F4]', async () => {
      const scheduler = database.scheduler({ ...withoutRenewalThread });
      scheduler.registerHandler('work', () => undefined);
      await scheduler.start();
      const complete = nextEvent(scheduler, 'job:complete');
      await withFailPoint(database, { commands: ['insert'], how: 'refused' }, async () => {
        const trouble = nextEvent(
          scheduler,
          'worker:trouble',
          ({ operation, failures }) => operation === 'enqueue schedules' && failures === 1,
        );
        await scheduler.addSchedule({ id: 's', taskType: 'work', every: '1s', maxRuns: 1 });
        assert.match((await trouble).error.message, /fail/i);
      });
      const { jobId } = await complete;
      assert.deepEqual(await ids('s'), [jobId]);
      const { anchor } = (await scheduler.getSchedule('s'))!;
      assert.equal(jobId, `s@${timeAfter(SECOND, anchor).toISOString()}`);
    });
  });

  describe('when the plan is stored', () => {
    it('and the reply is lost, the stored plan is executed and no second one is made [F3]', async () => {
      const { scheduler, clock } = worker();
      await scheduler.addSchedule({
        id: 's',
        taskType: 'work',
        cron: '0 * * * *',
        misfire: { policy: 'once' },
      });
      clock.advance(3 * HOUR + 30 * MINUTE);
      await withFailPoint(
        database,
        { commands: ['update'], collection: 'schedules', how: 'lostReply', times: 1 },
        async () => {
          await assert.rejects(scheduler.run());
        },
      );
      assert.deepEqual(await ids('s'), []);
      // Two hours later another would decide for another one.
      clock.advance(20 * MINUTE);
      await scheduler.run();
      assert.deepEqual(await ids('s'), ['s@2026-01-01T03:00:00.000Z']);
      const span = { after: START, until: clock.now() };
      assert.deepEqual(await loadOutcomes(database.collections, 's', span), ['misfire', 'misfire', 'job']);
    });

    it('and the server rejects it, nothing is planned until the next pass [F3]', async () => {
      const { scheduler, clock } = worker();
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      const before = await database.collections.schedules.findOne({ _id: 's' });
      clock.advance(HOUR);
      await withFailPoint(database, { commands: ['update'], collection: 'schedules', how: 'refused' }, () =>
        assert.rejects(scheduler.run()),
      );
      assert.deepEqual(await database.collections.schedules.findOne({ _id: 's' }), before);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(await ids('s'), ['s@2026-01-01T01:00:00.000Z']);
    });

    it('and the skips cannot be recorded, they are recorded later, once [D13]', async () => {
      const { scheduler, clock } = worker();
      await scheduler.addSchedule({
        id: 's',
        taskType: 'work',
        cron: '0 * * * *',
        misfire: { policy: 'skip' },
      });
      clock.advance(3 * HOUR + 30 * MINUTE);
      await withFailPoint(database, { commands: ['insert'], collection: 'skips', how: 'refused' }, () =>
        assert.rejects(scheduler.run()),
      );
      assert.deepEqual(await scheduler.getSkips('s'), []);
      clock.advance(LEFT_ALONE);
      await withFailPoint(
        database,
        { commands: ['insert'], collection: 'skips', how: 'lostReply', times: 1 },
        async () => {
          await scheduler.run().catch(() => undefined);
        },
      );
      clock.advance(LEFT_ALONE);
      await scheduler.run();
      const span = { after: START, until: clock.now() };
      assert.deepEqual(await loadOutcomes(database.collections, 's', span), [
        'misfire',
        'misfire',
        'misfire',
      ]);
      assert.equal((await scheduler.getSkips('s')).length, 1);
    });
  });

  describe('with an invalid stored rule', () => {
    /** Two good ones beside it, one found before and one after. */
    async function beside(rule: unknown): Promise<{
      scheduler: Scheduler;
      clock: ManualClock;
      disabled: { event: unknown }[];
    }> {
      const { scheduler, clock } = worker();
      const disabled = recordEvents(scheduler, 'schedule:disabled');
      await scheduler.addSchedule({ id: 'a', taskType: 'work', cron: '0 * * * *' });
      await plant({ _id: 'bad', rule, nextRunAt: timeAfter(HOUR) });
      await scheduler.addSchedule({ id: 'z', taskType: 'work', cron: '0 * * * *' });
      return { scheduler, clock, disabled };
    }

    const rules: [string, unknown, RegExp][] = [
      ['its cron is invalid', { cron: 'every day', timezone: 'UTC' }, /cron|every day/],
      ['its cron has a wrong value', { cron: '0 25 * * *', timezone: 'UTC' }, /25/],
      ['it has no base', { timezone: 'UTC' }, /cron/],
      ['its fields are no fields', { fields: { minutes: 'x' }, timezone: 'UTC' }, /minutes|x/],
      ['its cron is no text', { cron: 5, timezone: 'UTC' }, /./],
      ['its time zone is missing', { cron: '0 * * * *' }, /zone/i],
      ['its end is no date', { cron: '0 * * * *', timezone: 'UTC', endsAt: 'tomorrow' }, /./],
    ];
    for (const [name, rule, reason] of rules) {
      it(`${name}: the schedule is disabled with the reason, and others continue [F5]`, async () => {
        const { scheduler, clock, disabled } = await beside(rule);
        clock.advance(HOUR);
        assert.equal(await scheduler.run(), 2);
        assert.deepEqual([(await ids('a')).length, (await ids('z')).length], [1, 1]);

        const bad = await database.collections.schedules.findOne({ _id: 'bad' });
        assert.equal(bad?.isActive, false);
        assert.match(bad?.disabledReason ?? '', reason);
        assert.deepEqual(
          disabled.map(({ event }) => event),
          [{ scheduleId: 'bad', reason: bad?.disabledReason }],
        );
        clock.advance(HOUR);
        assert.equal(await scheduler.run(), 2);
        assert.equal(disabled.length, 1, 'said once');
      });
    }

    it('an unknown time zone: the schedule is left to processes that may know it, and others continue [F5]', async () => {
      const { scheduler, clock, disabled } = await beside({ cron: '0 * * * *', timezone: 'Mars/Phobos' });
      const trouble = recordEvents(scheduler, 'worker:trouble');
      clock.advance(HOUR);
      assert.equal(await scheduler.run(), 2);
      const bad = await database.collections.schedules.findOne({ _id: 'bad' });
      assert.deepEqual([bad?.isActive, bad?.disabledReason, disabled.length], [true, null, 0]);
      const [report] = trouble.map(({ event }) => event as SchedulerEvents['worker:trouble']);
      assert.deepEqual([report?.operation, report?.subject], ['plan schedule', 'bad']);
      assert.match(report?.error.message ?? '', /Mars\/Phobos/);
    });

    it('a disabled schedule continues when its rule is corrected [F5]', async () => {
      const { scheduler, clock } = await beside({ cron: '0 25 * * *', timezone: 'UTC' });
      clock.advance(HOUR);
      await scheduler.run();
      assert.equal((await scheduler.getSchedule('bad'))?.isActive, false);
      assert.equal(await scheduler.resumeSchedule('bad'), true);
      assert.equal((await scheduler.getSchedule('bad'))?.isActive, false, 'resuming does not cure it');

      assert.equal(await scheduler.updateSchedule('bad', { cron: '30 * * * *' }), true);
      const cured = await scheduler.getSchedule('bad');
      assert.deepEqual(
        [cured?.isActive, cured?.disabledReason, cured?.nextRunAt],
        [true, null, timeAfter(HOUR + 30 * MINUTE)],
      );
      clock.advance(30 * MINUTE);
      await scheduler.run();
      assert.deepEqual(await ids('bad'), ['bad@2026-01-01T01:30:00.000Z']);
    });

    it('pending runs are kept, and it is disabled only once [F5]', async () => {
      const { scheduler, clock } = worker();
      const disabled = recordEvents(scheduler, 'schedule:disabled');
      const run = { kind: 'run', id: 'bad@2026-01-01T00:00:00.000Z', at: START, since: START };
      await plant({ _id: 'bad', rule: { cron: 'x', timezone: 'UTC' }, pending: [run], active: run.id });
      clock.advance(HOUR);
      for (let pass = 0; pass < 3; pass++) {
        await scheduler.run();
        clock.advance(LEFT_ALONE);
      }
      assert.equal(disabled.length, 1);
      assert.deepEqual(await ids('bad'), [run.id]);
    });

    it('an interval that never ends is rejected instead of computed for ever [F5]', () => {
      for (const every of [0, -1000, Number.NaN]) {
        const rule: Rule = { every, timezone: 'UTC' };
        assert.throws(() => occurrencesOf(rule, START), { code: 'INVALID_SCHEDULE' }, String(every));
      }
    });
  });

  describe('with a malformed stored document', () => {
    it('it is skipped and counted, and others continue [F5]', async () => {
      const { scheduler, clock } = worker();
      const unreadable: SchedulerEvents['schedule:unreadable'][] = [];
      scheduler.on('schedule:unreadable', (event) => void unreadable.push(event));
      const broken: Record<string, unknown> = {
        taskType: undefined,
        overlap: 'sometimes',
        misfire: null,
        pending: 'everything',
        anchor: 'long ago',
        rule: '0 * * * *',
      };
      await scheduler.addSchedule({ id: 'a', taskType: 'work', cron: '0 * * * *' });
      for (const [field, value] of Object.entries(broken))
        await plant({ _id: `no ${field}`, [field]: value });
      await scheduler.addSchedule({ id: 'z', taskType: 'work', cron: '0 * * * *' });
      const find = (): Promise<ScheduleDocument[]> =>
        database.collections.schedules.find({ _id: /^no / }).toArray();
      const before = await find();
      for (const hour of [1, 2]) {
        clock.advance(HOUR);
        assert.equal(await scheduler.run(), 2, `hour ${hour}`);
      }
      assert.deepEqual(
        unreadable.map(({ scheduleId, count }) => ({ scheduleId, count })),
        Object.keys(broken).map((field, index) => ({ scheduleId: `no ${field}`, count: index + 1 })),
      );
      for (const { scheduleId, reason } of unreadable)
        assert.match(reason, new RegExp(`^${scheduleId.slice(3)} must be `));
      assert.deepEqual(await find(), before);
      assert.equal(await database.collections.jobs.countDocuments(), 4);
    });

    it('the API reports it as malformed, lists the others and can remove it [F5]', async () => {
      const { scheduler } = worker();
      await scheduler.addSchedule({ id: 'good', taskType: 'work', cron: '0 * * * *' });
      await plant({ _id: 'bad', overlap: 'sometimes' });
      for (const call of [
        () => scheduler.getSchedule('bad'),
        () => scheduler.updateSchedule('bad', { priority: 1 }),
        () => scheduler.pauseSchedule('bad'),
        () => scheduler.triggerSchedule('bad'),
        () => scheduler.backfill('bad', START, START),
      ]) {
        await assert.rejects(call(), {
          code: 'INVALID_SCHEDULE',
          message:
            "the stored schedule 'bad' is malformed: overlap must be one of allow, skip, queue, replace, got 'sometimes'",
        });
      }
      assert.deepEqual(
        (await scheduler.listSchedules()).map(({ id }) => id),
        ['good'],
      );
      assert.equal(await scheduler.removeSchedule('bad'), true);
      assert.equal(await scheduler.getSchedule('bad'), null);
    });

    it('workers that saw it malformed use it again once it is repaired [F5]', async () => {
      const { scheduler, clock } = worker();
      await plant({ _id: 'bad', overlap: 'sometimes' });
      clock.advance(HOUR);
      await scheduler.run();
      await scheduler.removeSchedule('bad');
      await scheduler.addSchedule({ id: 'bad', taskType: 'work', cron: '0 * * * *' });
      clock.advance(HOUR);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(await ids('bad'), ['bad@2026-01-01T02:00:00.000Z']);
    });

    const refusedByTheServer: [string, Record<string, unknown>][] = [
      ['a priority out of range', { priority: 5000 }],
      ['a timeout that is no number', { timeout: 'soon' }],
      ['an owner that is no text', { userId: 42 }],
      [
        'a skip to record without its end',
        { pending: [{ kind: 'skip', id: 'bad@0', at: START, since: START }] },
      ],
      ['a skip to record without its time', { pending: [{ kind: 'skip', id: 'bad@0', at: START }] }],
    ];
    for (const [name, fields] of refusedByTheServer) {
      it(`jobs that the server rejects by ${name} do not keep other schedules from running [F5] [Y8]`, async () => {
        const { scheduler, clock } = worker();
        await scheduler.addSchedule({ id: 'a', taskType: 'work', cron: '0 * * * *' });
        await plant({ _id: 'bad', ...fields });
        await scheduler.addSchedule({ id: 'z', taskType: 'work', cron: '0 * * * *' });
        for (let hour = 1; hour <= 3; hour++) {
          clock.advance(HOUR);
          await scheduler.run().catch(() => undefined);
          clock.advance(LEFT_ALONE);
          await scheduler.run().catch(() => undefined);
        }
        const span = { after: START, until: clock.now() };
        for (const id of ['a', 'z'])
          assert.deepEqual(await loadOutcomes(database.collections, id, span), ['job', 'job', 'job'], id);
      });
    }

    it('a next run time that is not a date disturbs no worker [F5]', async () => {
      const scheduler = database.scheduler(withoutRenewalThread);
      scheduler.registerHandler('work', () => undefined);
      const troubles = recordEvents(scheduler, 'worker:trouble');
      await plant({ _id: 'bad', nextRunAt: '2026-01-01' });
      await scheduler.start();
      const due = nextEvent(scheduler, 'schedule:due');
      await scheduler.addSchedule({ id: 'a', taskType: 'work', every: '1s', maxRuns: 1 });
      await due;
      assert.deepEqual(troubles, []);
    });
  });
});
