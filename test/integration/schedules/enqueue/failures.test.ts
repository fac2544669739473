import assert from 'node:assert/strict';
import { mongo } from 'mongoose';
import { occurrencesOf } from '../../../../src/domain/calendar/occurrences.js';
import type { Rule } from '../../../../src/domain/calendar/rule.js';
import type { ScheduleDocument } from '../../../../src/domain/schedule/schedule.js';
import type { Scheduler, SchedulerEvents } from '../../../../src/index.js';
import { manualScheduler, withoutRenewalThread } from '../../../support/manual-scheduler.js';
import { aSchedule } from '../../../support/factories/schedule.js';
import { nextEvent, recordEvents } from '../../../support/events.js';
import { withFailPoint } from '../../../support/fail-point.js';
import { driverLike } from '../../../support/invalid-documents.js';
import { timeAfter, START } from '../../../support/instants.js';
import type { ManualClock } from '../../../support/manual-clock.js';
import { jobIdsOf, jobsOf, outcomesUntil, TAKEOVER_MS } from '../../../support/schedules.js';
import { useSharedDatabase } from '../../../support/shared-database.js';
import { waitUntil } from '../../../support/wait-until.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

describe('schedules when something fails', () => {
  const database = useSharedDatabase();

  function createWorker(): { scheduler: Scheduler; clock: ManualClock } {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.registerHandler('work', () => undefined);
    return { scheduler, clock };
  }

  /** Stores a schedule that Chronos would not write. */
  async function insertInvalid(fields: Record<string, unknown>): Promise<void> {
    const document: ScheduleDocument = { ...aSchedule(), ...fields };
    await database.collections.schedules.insertOne(document, {
      bypassDocumentValidation: true,
    });
  }

  describe('when the job is inserted', () => {
    it('and the server rejects it, the same occurrence is tried again and nothing is lost [F4]', async () => {
      const { scheduler, clock } = createWorker();
      const due = recordEvents(scheduler, 'schedule:due');
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      clock.advance(HOUR);
      await withFailPoint(database, { commands: ['insert'], how: 'error' }, async () => {
        await assert.rejects(scheduler.run());
        clock.advance(TAKEOVER_MS);
        await assert.rejects(scheduler.run());
      });
      assert.deepEqual([await jobIdsOf(database, 's'), due], [[], []]);
      assert.equal((await scheduler.getSchedule('s'))?.waiting, 0);

      clock.advance(TAKEOVER_MS);
      assert.equal(await scheduler.run(), 1);
      const [job, ...others] = await jobsOf(database, 's');
      assert.deepEqual(others, []);
      assert.deepEqual([job?._id, job?.scheduledFor], ['s@2026-01-01T01:00:00.000Z', timeAfter(HOUR)]);
      assert.deepEqual(
        due.map(({ event }) => (event as SchedulerEvents['schedule:due']).late),
        [2 * TAKEOVER_MS],
      );
      assert.deepEqual((await scheduler.getSchedule('s'))?.nextRunAt, timeAfter(2 * HOUR));
      assert.deepEqual(await outcomesUntil(database, clock.now()), ['job']);
    });

    for (const how of ['lostReply', 'noConnection'] as const) {
      it(`and ${how === 'lostReply' ? 'the reply is lost' : 'the connection breaks'}, there is one job, announced once [F4]`, async () => {
        const { scheduler, clock } = createWorker();
        const due = recordEvents(scheduler, 'schedule:due');
        await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
        clock.advance(HOUR);
        await withFailPoint(database, { commands: ['insert'], how, times: 2 }, () => scheduler.run());
        assert.deepEqual([await jobIdsOf(database, 's'), due.length], [['s@2026-01-01T01:00:00.000Z'], 1]);
        assert.equal((await jobsOf(database, 's'))[0]?.status, 'COMPLETED');
      });
    }

    it('and it fails in a running worker, the error is reported and the insert is retried [F4]', async () => {
      const scheduler = database.scheduler({ ...withoutRenewalThread });
      scheduler.registerHandler('work', () => undefined);
      await scheduler.start();
      const complete = nextEvent(scheduler, 'job:complete');
      await withFailPoint(database, { commands: ['insert'], how: 'error' }, async () => {
        const failure = nextEvent(
          scheduler,
          'worker:error',
          ({ operation, failures }) => operation === 'enqueue schedules' && failures === 1,
        );
        await scheduler.addSchedule({ id: 's', taskType: 'work', every: '1s', maxRuns: 1 });
        assert.match((await failure).error.message, /fail/i);
      });
      const { jobId } = await complete;
      assert.deepEqual(await jobIdsOf(database, 's'), [jobId]);
      const { anchor } = (await scheduler.getSchedule('s'))!;
      assert.equal(jobId, `s@${timeAfter(SECOND, anchor).toISOString()}`);
    });
  });

  describe('when the plan is stored', () => {
    it('and the reply is lost, the stored plan is executed and no second one is made [F3]', async () => {
      const { scheduler, clock } = createWorker();
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
      assert.deepEqual(await jobIdsOf(database, 's'), []);
      clock.advance(20 * MINUTE);
      await scheduler.run();
      assert.deepEqual(await jobIdsOf(database, 's'), ['s@2026-01-01T03:00:00.000Z']);
      assert.deepEqual(await outcomesUntil(database, clock.now()), ['misfire', 'misfire', 'job']);
    });

    it('and the server rejects it, nothing is planned until the next pass [F3]', async () => {
      const { scheduler, clock } = createWorker();
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      const before = await database.collections.schedules.findOne({ _id: 's' });
      clock.advance(HOUR);
      await withFailPoint(database, { commands: ['update'], collection: 'schedules', how: 'error' }, () =>
        assert.rejects(scheduler.run()),
      );
      assert.deepEqual(await database.collections.schedules.findOne({ _id: 's' }), before);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(await jobIdsOf(database, 's'), ['s@2026-01-01T01:00:00.000Z']);
    });

    it('and the skips cannot be recorded, they are recorded later, once [D13]', async () => {
      const { scheduler, clock } = createWorker();
      await scheduler.addSchedule({
        id: 's',
        taskType: 'work',
        cron: '0 * * * *',
        misfire: { policy: 'skip' },
      });
      clock.advance(3 * HOUR + 30 * MINUTE);
      await withFailPoint(database, { commands: ['insert'], collection: 'skips', how: 'error' }, () =>
        assert.rejects(scheduler.run()),
      );
      assert.deepEqual((await scheduler.getSkips('s')).items, []);
      clock.advance(TAKEOVER_MS);
      await withFailPoint(
        database,
        { commands: ['insert'], collection: 'skips', how: 'lostReply', times: 1 },
        async () => {
          await scheduler.run().catch(() => undefined);
        },
      );
      clock.advance(TAKEOVER_MS);
      await scheduler.run();
      assert.deepEqual(await outcomesUntil(database, clock.now()), ['misfire', 'misfire', 'misfire']);
      assert.equal((await scheduler.getSkips('s')).items.length, 1);
    });
  });

  describe('with an invalid stored rule', () => {
    /** Stores an invalid schedule between two valid ones. */
    async function insertBetweenValid(rule: unknown): Promise<{
      scheduler: Scheduler;
      clock: ManualClock;
      disabled: { event: unknown }[];
    }> {
      const { scheduler, clock } = createWorker();
      const disabled = recordEvents(scheduler, 'schedule:disabled');
      await scheduler.addSchedule({ id: 'a', taskType: 'work', cron: '0 * * * *' });
      await insertInvalid({ _id: 'bad', rule, nextRunAt: timeAfter(HOUR) });
      await scheduler.addSchedule({ id: 'z', taskType: 'work', cron: '0 * * * *' });
      return { scheduler, clock, disabled };
    }

    const rules: [string, unknown, RegExp][] = [
      ['its cron is invalid', { cron: 'every day', timezone: 'UTC' }, /cron|every day/],
      ['its cron has a wrong value', { cron: '0 25 * * *', timezone: 'UTC' }, /25/],
      ['it has no cron, fields or interval', { timezone: 'UTC' }, /cron/],
      ['its fields are invalid', { fields: { minutes: 'x' }, timezone: 'UTC' }, /minutes|x/],
      ['its cron is not a string', { cron: 5, timezone: 'UTC' }, /./],
      ['its time zone is missing', { cron: '0 * * * *' }, /zone/i],
      ['its time zone is unknown', { cron: '0 * * * *', timezone: 'Mars/Phobos' }, /time zone.*Mars\/Phobos/],
      ['its time zone is not a string', { cron: '0 * * * *', timezone: 5 }, /time zone/],
      [
        'its constraints are not lists',
        { cron: '0 * * * *', timezone: 'UTC', constraints: { hour: 5 } },
        /hour/,
      ],
      ['its days are not a list', { cron: '0 * * * *', timezone: 'UTC', except: 5 }, /except/],
      ['its period is one time', { cron: '0 * * * *', timezone: 'UTC', between: ['9:00'] }, /between/],
      ['its interval is too short', { every: 1, timezone: 'UTC' }, /at least 1000 ms/],
      ['its end is not a date', { cron: '0 * * * *', timezone: 'UTC', endsAt: 'tomorrow' }, /./],
    ];
    for (const [name, rule, reason] of rules) {
      it(`the schedule is disabled with the reason and others continue: ${name} [F5]`, async () => {
        const { scheduler, clock, disabled } = await insertBetweenValid(rule);
        clock.advance(HOUR);
        assert.equal(await scheduler.run(), 2);
        assert.deepEqual(
          [(await jobIdsOf(database, 'a')).length, (await jobIdsOf(database, 'z')).length],
          [1, 1],
        );

        const bad = await database.collections.schedules.findOne({ _id: 'bad' });
        assert.equal(bad?.isActive, false);
        assert.match(bad?.disabledReason ?? '', reason);
        assert.deepEqual(
          disabled.map(({ event }) => event),
          [{ scheduleId: 'bad', reason: bad?.disabledReason }],
        );
        clock.advance(HOUR);
        assert.equal(await scheduler.run(), 2);
        assert.equal(disabled.length, 1, 'reported once');
      });
    }

    it('the disabled schedule continues when its rule is corrected [F5]', async () => {
      const { scheduler, clock } = await insertBetweenValid({ cron: '0 25 * * *', timezone: 'UTC' });
      clock.advance(HOUR);
      await scheduler.run();
      assert.equal((await scheduler.getSchedule('bad'))?.isActive, false);
      assert.equal(await scheduler.resumeSchedule('bad'), true);
      assert.equal((await scheduler.getSchedule('bad'))?.isActive, false, 'resuming does not enable it');

      assert.equal(await scheduler.updateSchedule('bad', { cron: '30 * * * *' }), true);
      const corrected = await scheduler.getSchedule('bad');
      assert.deepEqual(
        [corrected?.isActive, corrected?.disabledReason, corrected?.nextRunAt],
        [true, null, timeAfter(HOUR + 30 * MINUTE)],
      );
      clock.advance(30 * MINUTE);
      await scheduler.run();
      assert.deepEqual(await jobIdsOf(database, 'bad'), ['bad@2026-01-01T01:30:00.000Z']);
    });

    it('the schedule is disabled once, and its pending runs are kept [F5]', async () => {
      const { scheduler, clock } = createWorker();
      const disabled = recordEvents(scheduler, 'schedule:disabled');
      const run = { kind: 'run', id: 'bad@2026-01-01T00:00:00.000Z', at: START, since: START };
      await insertInvalid({
        _id: 'bad',
        rule: { cron: 'x', timezone: 'UTC' },
        pending: [run],
        active: run.id,
      });
      clock.advance(HOUR);
      for (let pass = 0; pass < 3; pass++) {
        await scheduler.run();
        clock.advance(TAKEOVER_MS);
      }
      assert.equal(disabled.length, 1);
      assert.deepEqual(await jobIdsOf(database, 'bad'), [run.id]);
    });

    it('an interval that does not advance is rejected instead of looping forever [F5]', () => {
      for (const every of [0, -1000, Number.NaN]) {
        const rule: Rule = { every, timezone: 'UTC' };
        assert.throws(() => occurrencesOf(rule, START), { code: 'INVALID_SCHEDULE' }, String(every));
      }
    });
  });

  describe('with a malformed stored document', () => {
    const MALFORMED: Record<string, unknown> = {
      _id: new mongo.ObjectId(),
      owner: undefined,
      taskType: undefined,
      rule: '0 * * * *',
      queue: 5,
      priority: 'high',
      retries: { max: 'x' },
      timeout: -1,
      maxRunningTime: 'long',
      expiresIn: {},
      misfire: { policy: 'all', within: 3e12, cap: 1e9 },
      overlap: 'sometimes',
      jitter: null,
      maxRuns: 'many',
      enabled: 'yes',
      environments: 'production',
      userId: 42,
      hash: null,
      rev: 'first',
      isActive: 'yes',
      paused: true,
      disabledReason: 7,
      anchor: 'long ago',
      nextRunAt: '2026-01-01',
      lastRunAt: 'never',
      active: 5,
      pending: 'everything',
      runs: NaN,
      decision: { $gt: '' },
      payload: { owner: driverLike('ObjectId') },
      createdAt: 0,
      updatedAt: new Date(8.64e15),
    };

    it('each is disabled with a reason, reported and counted once, shown by doctor, and others continue [F5]', async () => {
      const { scheduler, clock } = createWorker();
      const reports: SchedulerEvents['schedule:invalid'][] = [];
      scheduler.on('schedule:invalid', (event) => void reports.push(event));
      await scheduler.addSchedule({ id: 'a', taskType: 'work', cron: '0 * * * *' });
      for (const [field, value] of Object.entries(MALFORMED))
        await insertInvalid({ _id: `bad ${field}`, [field]: value });
      await scheduler.addSchedule({ id: 'z', taskType: 'work', cron: '0 * * * *' });
      for (const hour of [1, 2]) {
        clock.advance(HOUR);
        assert.equal(await scheduler.run(), 2, `hour ${hour}`);
      }
      const disabled = await database.collections.schedules.find({ _id: { $nin: ['a', 'z'] } }).toArray();
      assert.equal(disabled.length, Object.keys(MALFORMED).length);
      for (const { _id, isActive, disabledReason } of disabled) {
        const field = typeof _id === 'string' ? _id.slice(4) : '_id';
        assert.equal(isActive, false, field);
        assert.match(disabledReason ?? '', new RegExp(`^${field} must (be|not contain) `));
      }
      assert.deepEqual(
        reports.map(({ reason }) => reason).toSorted(),
        disabled.map(({ disabledReason }) => disabledReason).toSorted(),
      );
      assert.deepEqual(
        reports.map(({ count }) => count),
        reports.map((_, index) => index + 1),
      );
      assert.equal(await database.collections.jobs.countDocuments(), 4);
      const findings = await scheduler.operations.doctor();
      const finding = findings.find(({ check }) => check === 'disabledSchedules');
      assert.deepEqual(
        [finding?.level, /bad \w+ \(.* must be /.test(finding?.finding ?? '')],
        ['error', true],
      );
    });

    it('a pass over a year of missed runs stays small whatever the stored misfire policy is [F5]', async () => {
      const { scheduler, clock } = createWorker();
      await scheduler.addSchedule({ id: 'a', taskType: 'work', cron: '0 * * * *' });
      await insertInvalid({
        _id: 'bad',
        rule: { every: 1000, timezone: 'UTC' },
        misfire: { policy: 'all', within: 3e12, cap: 1e9 },
        nextRunAt: timeAfter(-365 * 24 * HOUR),
      });
      clock.advance(HOUR);
      assert.equal(await scheduler.run(), 1);
      const bad = await database.collections.schedules.findOne({ _id: 'bad' });
      assert.match(bad?.disabledReason ?? '', /^misfire must be .* up to 1000, got/);
    });

    it('a definition whose stored schedule is malformed does not keep a worker from starting [F5]', async () => {
      const scheduler = database.scheduler(withoutRenewalThread);
      scheduler.schedule('broken', () => undefined).hourly();
      const ran = new Promise<void>((resolve) =>
        scheduler.schedule('healthy', () => resolve()).everySecond(),
      );
      await insertInvalid({ _id: 'broken', owner: 'code', anchor: 'long ago', pending: 5 });
      await scheduler.start();
      await ran;
      const broken = await database.collections.schedules.findOne({ _id: 'broken' });
      assert.match(broken?.disabledReason ?? '', /anchor must be a date.*pending/);
      // Without the malformed document, the definition is registered again.
      await scheduler.removeSchedule('broken');
      await waitUntil('the definition is registered', async () => {
        return (await database.collections.schedules.findOne({ _id: 'broken' }))?.isActive === true;
      });
    });

    it('a list shows what it can of it and marks the row [F5]', async () => {
      const { scheduler } = createWorker();
      await scheduler.addSchedule({ id: 'a', taskType: 'work', cron: '0 * * * *' });
      for (const [field, value] of Object.entries(MALFORMED))
        await insertInvalid({ _id: `bad ${field}`, [field]: value });
      await insertInvalid({ _id: 'bad zone', rule: { cron: '0 * * * *', timezone: 'Mars/Phobos' } });
      const { items, next } = await scheduler.listSchedules({ limit: 100 });
      assert.deepEqual([items.length, next], [Object.keys(MALFORMED).length + 2, null]);
      for (const { id, invalid, taskType } of items) {
        if (id === 'a') assert.equal(invalid, null);
        else assert.match(invalid ?? '', /must/, id);
        if (id !== 'bad taskType') assert.equal(taskType, 'work');
      }
      assert.deepEqual(
        items.map((item) => item.nextRuns(1)).filter((runs) => !Array.isArray(runs)),
        [],
      );
    });

    it('the API rejects calls for it, marks it in lists and can remove it [F5]', async () => {
      const { scheduler } = createWorker();
      await scheduler.addSchedule({ id: 'good', taskType: 'work', cron: '0 * * * *' });
      await insertInvalid({ _id: 'bad', overlap: 'sometimes' });
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
            "the stored schedule 'bad' is malformed: overlap must be one of allow, skip, queue, replace, got 'sometimes'. " +
            'Correct the stored document, or remove it and add it again',
        });
      }
      assert.deepEqual(
        (await scheduler.listSchedules()).items.map(({ id, invalid }) => [id, invalid !== null]),
        [
          ['bad', true],
          ['good', false],
        ],
      );
      assert.equal(await scheduler.removeSchedule('bad'), true);
      assert.equal(await scheduler.getSchedule('bad'), null);
    });

    it('workers that skipped it use it again once it is replaced [F5]', async () => {
      const { scheduler, clock } = createWorker();
      await insertInvalid({ _id: 'bad', overlap: 'sometimes' });
      clock.advance(HOUR);
      await scheduler.run();
      await scheduler.removeSchedule('bad');
      await scheduler.addSchedule({ id: 'bad', taskType: 'work', cron: '0 * * * *' });
      clock.advance(HOUR);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(await jobIdsOf(database, 'bad'), ['bad@2026-01-01T02:00:00.000Z']);
    });

    const REJECTED_BY_SERVER: [string, Record<string, unknown>][] = [
      ['a priority out of range', { priority: 5000 }],
      ['a timeout that is not a number', { timeout: 'soon' }],
      ['a user id that is not a string', { userId: 42 }],
      [
        'a pending skip without `until`',
        { pending: [{ kind: 'skip', id: 'bad@0', at: START, since: START }] },
      ],
      ['a pending skip without `until` and `since`', { pending: [{ kind: 'skip', id: 'bad@0', at: START }] }],
    ];
    for (const [name, fields] of REJECTED_BY_SERVER) {
      it(`documents that the server rejects do not keep other schedules from running: ${name} [F5] [Y8]`, async () => {
        const { scheduler, clock } = createWorker();
        await scheduler.addSchedule({ id: 'a', taskType: 'work', cron: '0 * * * *' });
        await insertInvalid({ _id: 'bad', ...fields });
        await scheduler.addSchedule({ id: 'z', taskType: 'work', cron: '0 * * * *' });
        for (let hour = 1; hour <= 3; hour++) {
          clock.advance(HOUR);
          await scheduler.run().catch(() => undefined);
          clock.advance(TAKEOVER_MS);
          await scheduler.run().catch(() => undefined);
        }
        for (const id of ['a', 'z'])
          assert.deepEqual(await outcomesUntil(database, clock.now(), id), ['job', 'job', 'job'], id);
      });
    }

    it('a next run time that is not a date does not affect workers [F5]', async () => {
      const scheduler = database.scheduler(withoutRenewalThread);
      scheduler.registerHandler('work', () => undefined);
      const troubles = recordEvents(scheduler, 'worker:error');
      await insertInvalid({ _id: 'bad', nextRunAt: '2026-01-01' });
      await scheduler.start();
      const due = nextEvent(scheduler, 'schedule:due');
      await scheduler.addSchedule({ id: 'a', taskType: 'work', every: '1s', maxRuns: 1 });
      await due;
      assert.deepEqual(troubles, []);
    });
  });
});
