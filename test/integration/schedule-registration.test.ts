import assert from 'node:assert/strict';
import type { Scheduler, SchedulerEvents } from '../../src/index.js';
import type { ScheduleDocument } from '../../src/domain/schedule.js';
import type { ScheduleBuilder } from '../../src/schedules/builder.js';
import { byHand, inProcess } from '../support/by-hand.js';
import { accountFor } from '../support/calendar.js';
import { nextEvent, recordEvents, signal } from '../support/events.js';
import { after, START } from '../support/instants.js';
import { ManualClock } from '../support/manual-clock.js';
import { useSharedDatabase } from '../support/shared-database.js';
import { until } from '../support/until.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

type Define = (builder: ScheduleBuilder<unknown>) => unknown;

describe('registering schedules of the code', () => {
  const releases: (() => void)[] = [];
  afterEach(() => {
    for (const release of releases.splice(0)) release();
  });
  const database = useSharedDatabase();

  /** A replica with this definition of `job`; they share a clock. */
  function replica(clock: ManualClock, define: Define, handler: () => unknown = () => undefined): Scheduler {
    const scheduler = database.scheduler({ clock, lockTimeout: '1d', timeout: '1d' });
    define(scheduler.schedule('job', handler));
    return scheduler;
  }

  async function stored(id = 'job'): Promise<ScheduleDocument> {
    const schedule = await database.collections.schedules.findOne({ _id: id });
    assert.ok(schedule !== null, `there is no schedule '${id}'`);
    return schedule;
  }

  it('C7 the first start stores it: due from then on', async () => {
    const { scheduler, clock } = byHand(database);
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
      ['code', 'job', after(30 * MINUTE), clock.now(), true],
    );
    assert.deepEqual([queue, payload, maxRuns, rule?.timezone], ['reports', { a: 1 }, 5, 'Asia/Kolkata']);
  });

  describe('when another replica starts', () => {
    it('C7 B8 a schedule that runs, is paused, has a line and a history stays exactly as it is', async () => {
      const clock = new ManualClock();
      const free = signal();
      releases.push(free.fire);
      const define: Define = (builder) =>
        builder
          .hourly()
          .overlap('queue')
          .args({ b: 2, a: [1] });
      const first = replica(clock, define, () => free.promise);
      await first.run();
      const started = nextEvent(first, 'job:start');
      clock.advance(HOUR);
      const pass = first.run();
      await started;
      clock.advance(HOUR);
      await first.run();
      await first.pauseSchedule('job', { by: 'ada', reason: 'holidays' });
      const before = await stored();
      assert.deepEqual([before.owed.length, before.runs, before.isActive], [1, 2, false]);
      const jobs = await database.collections.jobs.find().toArray();

      clock.advance(10 * MINUTE);
      // The same definition, its payload written in another order.
      await replica(clock, (builder) =>
        builder
          .overlap('queue')
          .hourly()
          .args({ a: [1], b: 2 }),
      ).start();
      assert.deepEqual(await stored(), before);
      assert.deepEqual(await database.collections.jobs.find().toArray(), jobs);
      free.fire();
      await pass;
    });

    it('C7 five at once: one schedule', async () => {
      const clock = new ManualClock();
      const replicas = Array.from({ length: 5 }, () => replica(clock, (builder) => builder.hourly()));
      await Promise.all(replicas.map((scheduler) => scheduler.start()));
      assert.equal(await database.collections.schedules.countDocuments(), 1);
      assert.equal((await stored()).rev, 0);
    });

    it('C7 five at once with a new definition: it is written, and nothing else is lost', async () => {
      const clock = new ManualClock();
      await replica(clock, (builder) => builder.hourly()).start();
      const before = await stored();
      const replicas = Array.from({ length: 5 }, () =>
        replica(clock, (builder) => builder.hourly().priority(7)),
      );
      await Promise.all(replicas.map((scheduler) => scheduler.start()));
      const now = await stored();
      assert.deepEqual([now.priority, now.nextRunAt, now.rev], [7, before.nextRunAt, 1]);
    });

    it('C7 a changed definition is refreshed: its fields, and only those', async () => {
      const clock = new ManualClock();
      await replica(clock, (builder) => builder.hourly().args(1).priority(5)).run();
      clock.advance(HOUR);
      await replica(clock, (builder) => builder.hourly().args(1).priority(5)).run();
      await replica(clock, (builder) => builder.hourly().args(1).priority(5)).pauseSchedule('job');
      const before = await stored();
      clock.advance(MINUTE);
      const define: Define = (builder) =>
        builder.hourly().args(2).queue('q').timeout('1m').retries({ max: 1 }).jitter('1s').overlap('allow');
      await replica(clock, define).start();
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

    it('F2 a changed rule counts from the change: nothing is made up for by the new rule, nothing is forgotten of the old', async () => {
      const clock = new ManualClock();
      const old = replica(clock, (builder) => builder.hourly());
      await old.run();
      const { rule } = await stored();
      clock.advance(HOUR);
      await old.run();
      await old.stop();
      clock.advance(2 * HOUR + 10 * MINUTE);
      const changedAt = clock.now();
      const next = replica(clock, (builder) => builder.everyFifteenMinutes());
      await next.run();
      const { nextRunAt, lastRunAt, runs } = await stored();
      assert.deepEqual([nextRunAt, lastRunAt, runs], [after(3 * HOUR + 15 * MINUTE), after(HOUR), 1]);
      clock.advance(MINUTE);
      await next.run();
      const span = { after: START, until: changedAt, rule: rule! };
      assert.deepEqual(await accountFor(database.collections, 'job', span), ['job', 'changed', 'changed']);
      clock.advance(4 * MINUTE);
      assert.equal(await next.run(), 1);
    });

    it('D7 disabled in code: no more runs; enabled again: from then on', async () => {
      const clock = new ManualClock();
      await replica(clock, (builder) => builder.hourly()).run();
      const off = replica(clock, (builder) => builder.hourly().disable());
      clock.advance(HOUR);
      assert.equal(await off.run(), 0);
      assert.equal((await stored()).isActive, false);
      clock.advance(HOUR);
      const on = replica(clock, (builder) => builder.hourly());
      assert.equal(await on.run(), 0);
      assert.deepEqual((await stored()).nextRunAt, after(3 * HOUR));
      clock.advance(HOUR);
      assert.equal(await on.run(), 1);
      const span = { after: START, until: clock.now() };
      assert.deepEqual(await accountFor(database.collections, 'job', span), ['changed', 'changed', 'job']);
    });

    it('C7 two versions side by side: the stored rule is the one that counts', async () => {
      const clock = new ManualClock();
      const old = replica(clock, (builder) => builder.hourly());
      await old.run();
      const next = replica(clock, (builder) => builder.everyThirtyMinutes());
      await next.run();
      clock.advance(30 * MINUTE);
      assert.equal(await old.run(), 1);
      assert.equal(await next.run(), 0);
      assert.deepEqual((await stored()).rule, { cron: '*/30 * * * *', timezone: 'UTC' });
    });

    it('F5 one that was found broken and disabled is cured by a replica whose code is right', async () => {
      const clock = new ManualClock();
      const first = replica(clock, (builder) => builder.hourly());
      await first.run();
      await database.collections.schedules.updateOne({ _id: 'job' }, { $set: { 'rule.cron': 'broken' } });
      clock.advance(HOUR);
      await first.run();
      assert.equal((await stored()).isActive, false);
      await replica(clock, (builder) => builder.hourly()).start();
      const { isActive, disabledReason, rule } = await stored();
      assert.deepEqual([isActive, disabledReason, rule?.cron], [true, null, '0 * * * *']);
    });
  });

  describe('when it left the code', () => {
    async function leave(clock: ManualClock): Promise<void> {
      const first = replica(clock, (builder) => builder.hourly());
      await first.run();
      await first.stop();
    }

    function watch(scheduler: Scheduler): () => string[] {
      const orphaned = recordEvents(scheduler, 'schedule:orphaned');
      return () => orphaned.map(({ event }) => (event as SchedulerEvents['schedule:orphaned']).scheduleId);
    }

    it('C7 it is reported and not deleted, and nobody makes its jobs', async () => {
      const clock = new ManualClock();
      await leave(clock);
      const before = await stored();
      const other = database.scheduler({ clock, lockTimeout: '1d' });
      await other.addSchedule({ id: 'stored', taskType: 'work', cron: '@daily' });
      other.schedule('mine', () => undefined).hourly();
      const orphaned = watch(other);
      await other.start();
      assert.deepEqual(orphaned(), ['job']);
      clock.advance(HOUR);
      await other.run();
      assert.deepEqual(await stored(), before);
      assert.equal(await database.collections.jobs.countDocuments({ schedule: 'job' }), 0);
      assert.equal(await other.removeSchedule('job'), true);
    });

    it('C7 not while a worker that is alive has it', async () => {
      const having = database.scheduler(inProcess);
      having.schedule('job', () => undefined).yearly();
      await having.start();
      await until('it is seen', async () => (await database.collections.workers.countDocuments()) === 1);
      const other = database.scheduler(inProcess);
      const orphaned = watch(other);
      await other.start();
      assert.deepEqual(orphaned(), []);
    });

    it('D8 not for a definition that is meant for another environment', async () => {
      const clock = new ManualClock();
      await leave(clock);
      const other = replica(clock, (builder) => builder.hourly().environments('production'));
      const orphaned = watch(other);
      await other.start();
      assert.deepEqual(orphaned(), []);
    });
  });

  describe('beside stored schedules', () => {
    it('F1 one of the same id: the start is refused, nothing is changed', async () => {
      const clock = new ManualClock();
      const api = database.scheduler({ clock, lockTimeout: '1d' });
      await api.addSchedule({ id: 'job', taskType: 'work', cron: '@daily' });
      const before = await stored();
      const scheduler = replica(clock, (builder) => builder.hourly());
      await assert.rejects(scheduler.start(), {
        code: 'SCHEDULE_EXISTS',
        message: /a stored schedule has the id 'job' already/,
      });
      assert.equal(scheduler.state, 'Error');
      await assert.rejects(replica(clock, (builder) => builder.hourly()).run(), { code: 'SCHEDULE_EXISTS' });
      assert.deepEqual(await stored(), before);
      await api.removeSchedule('job');
      await scheduler.start();
      assert.equal((await stored()).owner, 'code');
    });
  });

  describe('by environment', () => {
    it('D8 only where it is meant to be it is registered and makes jobs', async () => {
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

  describe('while it works', () => {
    it('C7 Y8 F5 what is defined after the start takes effect within a poll; what is no good is reported and left out', async () => {
      const scheduler = database.scheduler(inProcess);
      await scheduler.addSchedule({ id: 'taken', taskType: 'work', cron: '@daily' });
      await scheduler.start();
      const disabled = recordEvents(scheduler, 'schedule:disabled');
      const troubles = recordEvents(scheduler, 'worker:trouble');
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
