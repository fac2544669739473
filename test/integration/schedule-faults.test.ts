import assert from 'node:assert/strict';
import type { Scheduler, SchedulerEvents } from '../../src/index.js';
import type { JobDocument } from '../../src/domain/job.js';
import { occurrencesOf } from '../../src/domain/occurrences.js';
import type { Rule } from '../../src/domain/rule.js';
import type { ScheduleDocument } from '../../src/domain/schedule.js';
import { byHand, inProcess } from '../support/by-hand.js';
import { accountFor, aSchedule } from '../support/calendar.js';
import { nextEvent, recordEvents } from '../support/events.js';
import { failing } from '../support/fail-point.js';
import { after, START } from '../support/instants.js';
import type { ManualClock } from '../support/manual-clock.js';
import { useSharedDatabase } from '../support/shared-database.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** After this long others carry out what somebody decided and did not carry out. */
const LEFT_ALONE = 2 * SECOND;

describe('schedules when something is broken', () => {
  const database = useSharedDatabase();

  /** A worker by hand, with a handler for `work`. */
  function worker(): { scheduler: Scheduler; clock: ManualClock } {
    const { scheduler, clock } = byHand(database);
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

  describe('in creating the job', () => {
    it('F4 the insert is refused: nothing is lost, it is tried again, and the occurrence is the same', async () => {
      const { scheduler, clock } = worker();
      const due = recordEvents(scheduler, 'schedule:due');
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      clock.advance(HOUR);
      await failing(database, { commands: ['insert'], how: 'refused' }, async () => {
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
      assert.deepEqual([job?._id, job?.scheduledFor], ['s@2026-01-01T01:00:00.000Z', after(HOUR)]);
      assert.deepEqual(
        due.map(({ event }) => (event as SchedulerEvents['schedule:due']).late),
        [2 * LEFT_ALONE],
      );
      assert.deepEqual((await scheduler.getSchedule('s'))?.nextRunAt, after(2 * HOUR));
      const span = { after: START, until: clock.now() };
      assert.deepEqual(await accountFor(database.collections, 's', span), ['job']);
    });

    for (const how of ['lostReply', 'noConnection'] as const) {
      it(`F4 ${how === 'lostReply' ? 'its reply is lost' : 'the connection breaks'}: one job, announced once`, async () => {
        const { scheduler, clock } = worker();
        const due = recordEvents(scheduler, 'schedule:due');
        await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
        clock.advance(HOUR);
        await failing(database, { commands: ['insert'], how, times: 2 }, () => scheduler.run());
        assert.deepEqual([await ids('s'), due.length], [['s@2026-01-01T01:00:00.000Z'], 1]);
        assert.equal((await jobs('s'))[0]?.status, 'COMPLETED');
      });
    }

    it('F4 while it fails for a worker that runs: reported with backoff, then made', async () => {
      const scheduler = database.scheduler({ ...inProcess });
      scheduler.registerHandler('work', () => undefined);
      await scheduler.start();
      const complete = nextEvent(scheduler, 'job:complete');
      await failing(database, { commands: ['insert'], how: 'refused' }, async () => {
        const trouble = nextEvent(
          scheduler,
          'worker:trouble',
          ({ operation, failures }) => operation === 'materialise schedules' && failures === 1,
        );
        await scheduler.addSchedule({ id: 's', taskType: 'work', every: '1s', maxRuns: 1 });
        assert.match((await trouble).error.message, /fail/i);
      });
      const { jobId } = await complete;
      assert.deepEqual(await ids('s'), [jobId]);
      const { anchor } = (await scheduler.getSchedule('s'))!;
      assert.equal(jobId, `s@${after(SECOND, anchor).toISOString()}`);
    });
  });

  describe('in deciding', () => {
    it('F3 the reply of the decision is lost: what it decided is carried out, and nothing is decided again', async () => {
      const { scheduler, clock } = worker();
      await scheduler.addSchedule({
        id: 's',
        taskType: 'work',
        cron: '0 * * * *',
        misfire: { policy: 'once' },
      });
      clock.advance(3 * HOUR + 30 * MINUTE);
      await failing(
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
      assert.deepEqual(await accountFor(database.collections, 's', span), ['misfire', 'misfire', 'job']);
    });

    it('F3 the server refuses it: nothing is decided, the next pass does', async () => {
      const { scheduler, clock } = worker();
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      const before = await database.collections.schedules.findOne({ _id: 's' });
      clock.advance(HOUR);
      await failing(database, { commands: ['update'], collection: 'schedules', how: 'refused' }, () =>
        assert.rejects(scheduler.run()),
      );
      assert.deepEqual(await database.collections.schedules.findOne({ _id: 's' }), before);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(await ids('s'), ['s@2026-01-01T01:00:00.000Z']);
    });

    it('D13 the skips cannot be recorded: they are recorded later, once', async () => {
      const { scheduler, clock } = worker();
      await scheduler.addSchedule({
        id: 's',
        taskType: 'work',
        cron: '0 * * * *',
        misfire: { policy: 'skip' },
      });
      clock.advance(3 * HOUR + 30 * MINUTE);
      await failing(database, { commands: ['insert'], collection: 'skips', how: 'refused' }, () =>
        assert.rejects(scheduler.run()),
      );
      assert.deepEqual(await scheduler.getSkips('s'), []);
      clock.advance(LEFT_ALONE);
      await failing(
        database,
        { commands: ['insert'], collection: 'skips', how: 'lostReply', times: 1 },
        async () => {
          await scheduler.run().catch(() => undefined);
        },
      );
      clock.advance(LEFT_ALONE);
      await scheduler.run();
      const span = { after: START, until: clock.now() };
      assert.deepEqual(await accountFor(database.collections, 's', span), ['misfire', 'misfire', 'misfire']);
      assert.equal((await scheduler.getSkips('s')).length, 1);
    });
  });

  describe('in a stored rule', () => {
    /** Two good ones beside it, one found before and one after. */
    async function beside(rule: unknown): Promise<{
      scheduler: Scheduler;
      clock: ManualClock;
      disabled: { event: unknown }[];
    }> {
      const { scheduler, clock } = worker();
      const disabled = recordEvents(scheduler, 'schedule:disabled');
      await scheduler.addSchedule({ id: 'a', taskType: 'work', cron: '0 * * * *' });
      await plant({ _id: 'bad', rule, nextRunAt: after(HOUR) });
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
      it(`F5 ${name}: disabled with the reason, and the others go on`, async () => {
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

    it('F5 a time zone that this process does not know: the others go on, and it is left to those that may know it', async () => {
      const { scheduler, clock, disabled } = await beside({ cron: '0 * * * *', timezone: 'Mars/Phobos' });
      const trouble = recordEvents(scheduler, 'worker:trouble');
      clock.advance(HOUR);
      assert.equal(await scheduler.run(), 2);
      const bad = await database.collections.schedules.findOne({ _id: 'bad' });
      assert.deepEqual([bad?.isActive, bad?.disabledReason, disabled.length], [true, null, 0]);
      const [said] = trouble.map(({ event }) => event as { operation: string; error: Error });
      assert.equal(said?.operation, 'decide on bad');
      assert.match(said.error.message, /Mars\/Phobos/);
    });

    it('F5 disabled until it is changed: then it goes on from there', async () => {
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
        [true, null, after(HOUR + 30 * MINUTE)],
      );
      clock.advance(30 * MINUTE);
      await scheduler.run();
      assert.deepEqual(await ids('bad'), ['bad@2026-01-01T01:30:00.000Z']);
    });

    it('F5 what it owed before is not lost, and it is not disabled over and over', async () => {
      const { scheduler, clock } = worker();
      const disabled = recordEvents(scheduler, 'schedule:disabled');
      const run = { kind: 'run', id: 'bad@2026-01-01T00:00:00.000Z', at: START, since: START };
      await plant({ _id: 'bad', rule: { cron: 'x', timezone: 'UTC' }, owed: [run], active: run.id });
      clock.advance(HOUR);
      for (let pass = 0; pass < 3; pass++) {
        await scheduler.run();
        clock.advance(LEFT_ALONE);
      }
      assert.equal(disabled.length, 1);
      assert.deepEqual(await ids('bad'), [run.id]);
    });

    it('F5 an interval that leads nowhere is refused, instead of being counted for ever', () => {
      for (const every of [0, -1000, Number.NaN]) {
        const rule: Rule = { every, timezone: 'UTC' };
        assert.throws(() => occurrencesOf(rule, START), { code: 'INVALID_SCHEDULE' }, String(every));
      }
    });
  });

  describe('in a stored document', () => {
    it('F5 skipped and counted, and the others go on', async () => {
      const { scheduler, clock } = worker();
      const unreadable = recordEvents(scheduler, 'schedule:unreadable');
      const broken: Record<string, unknown> = {
        taskType: undefined,
        overlap: 'sometimes',
        misfire: null,
        owed: 'everything',
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
        unreadable.map(({ event }) => event),
        Object.keys(broken).map((field, index) => ({
          scheduleId: `no ${field}`,
          reason: `${field} cannot be read`,
          count: index + 1,
        })),
      );
      assert.deepEqual(await find(), before);
      assert.equal(await database.collections.jobs.countDocuments(), 4);
    });

    it('F5 the API says that it cannot be read, lists the others, and removes it', async () => {
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
          message: "the stored schedule 'bad' cannot be read: overlap cannot be read",
        });
      }
      assert.deepEqual(
        (await scheduler.listSchedules()).map(({ id }) => id),
        ['good'],
      );
      assert.equal(await scheduler.removeSchedule('bad'), true);
      assert.equal(await scheduler.getSchedule('bad'), null);
    });

    it('F5 once it is repaired, workers that saw it broken follow it again', async () => {
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
        { owed: [{ kind: 'skip', id: 'bad@0', at: START, since: START }] },
      ],
      ['a skip to record without its time', { owed: [{ kind: 'skip', id: 'bad@0', at: START }] }],
    ];
    for (const [name, fields] of refusedByTheServer) {
      it(`F5 Y8 one whose jobs the server refuses, by ${name}, does not keep the others from running`, async () => {
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
          assert.deepEqual(await accountFor(database.collections, id, span), ['job', 'job', 'job'], id);
      });
    }

    it('F5 with a next time that is no date it disturbs no worker', async () => {
      const scheduler = database.scheduler(inProcess);
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
