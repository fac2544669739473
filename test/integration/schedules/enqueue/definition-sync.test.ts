import assert from 'node:assert/strict';
import type { ScheduleDocument } from '../../../../src/domain/schedule/schedule.js';
import type { Scheduler, SchedulerEvents } from '../../../../src/index.js';
import type { ScheduleBuilder } from '../../../../src/schedules/definition/builder.js';
import { manualScheduler, withoutRenewalThread } from '../../../support/manual-scheduler.js';
import { loadOutcomes } from '../../../support/occurrence-outcomes.js';
import { nextEvent, recordEvents } from '../../../support/events.js';
import { useSignals } from '../../../support/pass-reports.js';
import { timeAfter, START } from '../../../support/instants.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { outcomesUntil } from '../../../support/schedules.js';
import { useSharedDatabase } from '../../../support/shared-database.js';
import { waitUntil } from '../../../support/wait-until.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

type Define = (builder: ScheduleBuilder<unknown>) => unknown;

describe('storing definitions', () => {
  const newSignal = useSignals();
  const database = useSharedDatabase();

  /** A process whose code has this definition of `job`. */
  function createReplica(
    clock: ManualClock,
    define: Define,
    handler: () => unknown = () => undefined,
  ): Scheduler {
    const scheduler = database.scheduler({ clock, lockTimeout: '1d', timeout: '1d' });
    define(scheduler.schedule('job', handler));
    return scheduler;
  }

  async function stored(id = 'job'): Promise<ScheduleDocument> {
    const schedule = await database.collections.schedules.findOne({ _id: id });
    assert.ok(schedule !== null, `there is no schedule '${id}'`);
    return schedule;
  }

  it('at the first start counts the occurrences from then on [C7]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    clock.advance(10 * MINUTE);
    scheduler
      .schedule('job', () => undefined)
      .hourly()
      .timezone('Asia/Kolkata')
      .queue('reports')
      .args({ a: 1 })
      .maxRuns(5);
    await scheduler.start();
    const { owner, taskType, nextRunAt, anchor, isActive, queue, payload, maxRuns, rule } = await stored();
    assert.deepEqual(
      [owner, taskType, nextRunAt, anchor, isActive],
      ['code', 'job', timeAfter(30 * MINUTE), clock.now(), true],
    );
    assert.deepEqual([queue, payload, maxRuns, rule?.timezone], ['reports', { a: 1 }, 5, 'Asia/Kolkata']);
  });

  describe('when another worker starts', () => {
    it('leaves a schedule unchanged that is running, is paused, and has pending runs and a history [C7] [B8]', async () => {
      const clock = new ManualClock();
      const released = newSignal();
      const define: Define = (builder) =>
        builder
          .hourly()
          .overlap('queue')
          .args({ b: 2, a: [1] });
      const first = createReplica(clock, define, () => released.promise);
      await first.run();
      const started = nextEvent(first, 'job:start');
      clock.advance(HOUR);
      const pass = first.run();
      await started;
      clock.advance(HOUR);
      await first.run();
      await first.pauseSchedule('job', { by: 'ada', reason: 'holidays' });
      const before = await stored();
      assert.deepEqual([before.pending.length, before.runs, before.isActive], [1, 2, false]);
      const jobs = await database.collections.jobs.find().toArray();

      clock.advance(10 * MINUTE);
      // The same definition in another order.
      await createReplica(clock, (builder) =>
        builder
          .overlap('queue')
          .hourly()
          .args({ a: [1], b: 2 }),
      ).start();
      assert.deepEqual(await stored(), before);
      assert.deepEqual(await database.collections.jobs.find().toArray(), jobs);
      released.fire();
      await pass;
    });

    it('stores one schedule when five start at once [C7]', async () => {
      const clock = new ManualClock();
      const replicas = Array.from({ length: 5 }, () => createReplica(clock, (builder) => builder.hourly()));
      await Promise.all(replicas.map((scheduler) => scheduler.start()));
      assert.equal(await database.collections.schedules.countDocuments(), 1);
      assert.equal((await stored()).rev, 0);
    });

    it('updates a changed definition once when five start at once, and keeps the next run [C7]', async () => {
      const clock = new ManualClock();
      await createReplica(clock, (builder) => builder.hourly()).start();
      const before = await stored();
      const replicas = Array.from({ length: 5 }, () =>
        createReplica(clock, (builder) => builder.hourly().priority(7)),
      );
      await Promise.all(replicas.map((scheduler) => scheduler.start()));
      const updated = await stored();
      assert.deepEqual([updated.priority, updated.nextRunAt, updated.rev], [7, before.nextRunAt, 1]);
    });

    it('updates the fields that changed, and only those [C7]', async () => {
      const clock = new ManualClock();
      await createReplica(clock, (builder) => builder.hourly().args(1).priority(5)).run();
      clock.advance(HOUR);
      await createReplica(clock, (builder) => builder.hourly().args(1).priority(5)).run();
      await createReplica(clock, (builder) => builder.hourly().args(1).priority(5)).pauseSchedule('job');
      const before = await stored();
      clock.advance(MINUTE);
      const define: Define = (builder) =>
        builder.hourly().args(2).queue('q').timeout('1m').retries({ max: 1 }).jitter('1s').overlap('allow');
      await createReplica(clock, define).start();
      assert.deepEqual(await stored(), {
        ...before,
        payload: 2,
        queue: 'q',
        priority: 100,
        timeout: MINUTE,
        retries: { max: 1 },
        jitter: SECOND,
        overlap: 'allow',
        hash: (await stored()).hash,
        decision: (await stored()).decision,
        rev: before.rev + 1,
        updatedAt: clock.now(),
      });
      assert.notEqual((await stored()).hash, before.hash);
      assert.equal((await stored()).isActive, false, 'still paused');
    });

    it('counts a changed rule from now on and records occurrences of the old rule as skipped [F2]', async () => {
      const clock = new ManualClock();
      const old = createReplica(clock, (builder) => builder.hourly());
      await old.run();
      const { rule } = await stored();
      clock.advance(HOUR);
      await old.run();
      await old.stop();
      clock.advance(2 * HOUR + 10 * MINUTE);
      const changedAt = clock.now();
      const next = createReplica(clock, (builder) => builder.everyFifteenMinutes());
      await next.run();
      const { nextRunAt, lastRunAt, runs } = await stored();
      assert.deepEqual([nextRunAt, lastRunAt, runs], [timeAfter(3 * HOUR + 15 * MINUTE), timeAfter(HOUR), 1]);
      clock.advance(MINUTE);
      await next.run();
      const span = { after: START, until: changedAt, rule: rule! };
      assert.deepEqual(await loadOutcomes(database.stored, 'job', span), ['job', 'changed', 'changed']);
      clock.advance(4 * MINUTE);
      assert.equal(await next.run(), 1);
    });

    it('stops a schedule whose definition is disabled, and continues when it is enabled again [D7]', async () => {
      const clock = new ManualClock();
      await createReplica(clock, (builder) => builder.hourly()).run();
      const off = createReplica(clock, (builder) => builder.hourly().disable());
      clock.advance(HOUR);
      assert.equal(await off.run(), 0);
      assert.equal((await stored()).isActive, false);
      clock.advance(HOUR);
      const on = createReplica(clock, (builder) => builder.hourly());
      assert.equal(await on.run(), 0);
      assert.deepEqual((await stored()).nextRunAt, timeAfter(3 * HOUR));
      clock.advance(HOUR);
      assert.equal(await on.run(), 1);
      assert.deepEqual(await outcomesUntil(database, clock.now(), 'job'), ['changed', 'changed', 'job']);
    });

    it('uses the stored rule when two versions run side by side [C7]', async () => {
      const clock = new ManualClock();
      const old = createReplica(clock, (builder) => builder.hourly());
      await old.run();
      const next = createReplica(clock, (builder) => builder.everyThirtyMinutes());
      await next.run();
      clock.advance(30 * MINUTE);
      assert.equal(await old.run(), 1);
      assert.equal(await next.run(), 0);
      assert.deepEqual((await stored()).rule, { cron: '*/30 * * * *', timezone: 'UTC' });
    });

    it('repairs a schedule that was disabled as invalid, from the code [F5]', async () => {
      const clock = new ManualClock();
      const first = createReplica(clock, (builder) => builder.hourly());
      await first.run();
      await database.collections.schedules.updateOne({ _id: 'job' }, { $set: { 'rule.cron': 'broken' } });
      clock.advance(HOUR);
      await first.run();
      assert.equal((await stored()).isActive, false);
      await createReplica(clock, (builder) => builder.hourly()).start();
      const { isActive, disabledReason, rule } = await stored();
      assert.deepEqual([isActive, disabledReason, rule?.cron], [true, null, '0 * * * *']);
    });
  });

  describe('when a definition is removed from the code', () => {
    /** A replica with the definition has run and stopped. */
    async function runFormerReplica(clock: ManualClock): Promise<void> {
      const first = createReplica(clock, (builder) => builder.hourly());
      await first.run();
      await first.stop();
    }

    function watchOrphaned(scheduler: Scheduler): () => string[] {
      const orphaned = recordEvents(scheduler, 'schedule:orphaned');
      return () => orphaned.map(({ event }) => (event as SchedulerEvents['schedule:orphaned']).scheduleId);
    }

    it('reports the schedule, keeps it, and enqueues no more jobs [C7]', async () => {
      const clock = new ManualClock();
      await runFormerReplica(clock);
      const before = await stored();
      const other = database.scheduler({ clock, lockTimeout: '1d' });
      await other.addSchedule({ id: 'stored', taskType: 'work', cron: '@daily' });
      other.schedule('mine', () => undefined).hourly();
      const orphaned = watchOrphaned(other);
      await other.start();
      assert.deepEqual(orphaned(), ['job']);
      clock.advance(HOUR);
      await other.run();
      assert.deepEqual(await stored(), before);
      assert.equal(await database.collections.jobs.countDocuments({ schedule: 'job' }), 0);
      assert.equal(await other.removeSchedule('job'), true);
    });

    it('reports nothing while a live worker defines it [C7]', async () => {
      const live = database.scheduler(withoutRenewalThread);
      live.schedule('job', () => undefined).yearly();
      await live.start();
      await waitUntil(
        'its heartbeat is stored',
        async () => (await database.collections.workers.countDocuments()) === 1,
      );
      const other = database.scheduler(withoutRenewalThread);
      const orphaned = watchOrphaned(other);
      await other.start();
      assert.deepEqual(orphaned(), []);
    });

    it('reports nothing for a definition of another environment [D8]', async () => {
      const clock = new ManualClock();
      await runFormerReplica(clock);
      const other = createReplica(clock, (builder) => builder.hourly().environments('production'));
      const orphaned = watchOrphaned(other);
      await other.start();
      assert.deepEqual(orphaned(), []);
    });
  });

  describe('next to stored schedules', () => {
    it('rejects the start when a stored schedule has the same id, and changes nothing [F1]', async () => {
      const clock = new ManualClock();
      const api = database.scheduler({ clock, lockTimeout: '1d' });
      await api.addSchedule({ id: 'job', taskType: 'work', cron: '@daily' });
      const before = await stored();
      const scheduler = createReplica(clock, (builder) => builder.hourly());
      await assert.rejects(scheduler.start(), {
        code: 'SCHEDULE_EXISTS',
        message: /there is already a stored schedule with the id 'job'/,
      });
      assert.equal(scheduler.state, 'Error');
      await assert.rejects(createReplica(clock, (builder) => builder.hourly()).run(), {
        code: 'SCHEDULE_EXISTS',
      });
      assert.deepEqual(await stored(), before);
      await api.removeSchedule('job');
      await scheduler.start();
      assert.equal((await stored()).owner, 'code');
    });
  });

  describe('in several environments', () => {
    it('stores and runs a definition only in its environments [D8]', async () => {
      const clock = new ManualClock();
      const [production, staging] = ['production', 'staging'].map((environment) => {
        const scheduler = database.scheduler({ clock, environment, lockTimeout: '1d' });
        scheduler
          .schedule('job', () => undefined)
          .hourly()
          .environments('production', 'test');
        scheduler
          .schedule('anywhere', () => undefined)
          .hourly()
          .environments();
        return scheduler;
      });
      await staging!.run();
      assert.deepEqual(await database.collections.schedules.distinct('_id'), ['anywhere']);
      await production!.run();
      clock.advance(HOUR);
      assert.equal(await staging!.run(), 1);
      assert.equal(await production!.run(), 1);
      assert.equal(
        await database.collections.jobs.countDocuments({ schedule: 'job', status: 'COMPLETED' }),
        1,
      );
    });
  });

  describe('while a worker runs', () => {
    it('stores definitions made after the start, and reports and ignores invalid ones [C7] [Y8] [F5]', async () => {
      const scheduler = database.scheduler(withoutRenewalThread);
      await scheduler.addSchedule({ id: 'taken', taskType: 'work', cron: '@daily' });
      await scheduler.start();
      const disabled = recordEvents(scheduler, 'schedule:disabled');
      const troubles = recordEvents(scheduler, 'worker:error');
      const complete = nextEvent(scheduler, 'job:complete');
      scheduler.schedule('never', () => undefined).cron('0 0 30 2 *');
      scheduler.schedule('taken', () => undefined).hourly();
      scheduler.schedule('good', () => undefined).every('1s');
      assert.match((await complete).jobId, /^good@/);
      assert.deepEqual(
        disabled.map(({ event }) => (event as SchedulerEvents['schedule:disabled']).scheduleId).sort(),
        ['never', 'taken'],
      );
      assert.deepEqual(troubles, []);
    });
  });
});
