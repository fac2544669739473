import assert from 'node:assert/strict';
import type { ScheduleBuilder, Scheduler, SchedulerOptions } from '../../../../src/index.js';
import { manualScheduler, withoutRenewalThread } from '../../../support/manual-scheduler.js';
import { nextEvent, recordEvents } from '../../../support/events.js';
import { timeAfter } from '../../../support/instants.js';
import type { ManualClock } from '../../../support/manual-clock.js';
import { useSharedDatabase } from '../../../support/shared-database.js';
import { waitUntil } from '../../../support/wait-until.js';

type Build = (builder: ScheduleBuilder<unknown>) => unknown;

const MINUTE = 60_000;

describe('definitions', () => {
  const database = useSharedDatabase();

  describe('are frozen', () => {
    const frozen = { code: 'SCHEDULE_FROZEN', message: /the definition 'work' is in use/ };

    it('by start() [D1]', async () => {
      const scheduler = database.scheduler(withoutRenewalThread);
      const work = scheduler.schedule('work', () => 1);
      await scheduler.start();
      assert.throws(() => work.daily(), frozen);
    });

    it('by a pass [D1]', async () => {
      for (const pass of ['run', 'runOnce'] as const) {
        const { scheduler } = manualScheduler(database);
        const work = scheduler.schedule('work', () => 1);
        await scheduler[pass]();
        assert.throws(() => work.daily(), frozen, pass);
      }
    });

    it('by a dry run [D1]', async () => {
      const { scheduler } = manualScheduler(database);
      const work = scheduler.schedule('work', () => 1);
      await scheduler.runOnce({ dryRun: true });
      assert.throws(() => work.daily(), frozen);
      assert.equal(await database.collections.schedules.countDocuments(), 0);
    });

    it('by a dispatch, through the builder or by name [D1] [J6]', async () => {
      const dispatches: ((scheduler: Scheduler, work: ScheduleBuilder<unknown>) => Promise<unknown>)[] = [
        (_, work) => work.dispatch(),
        (_, work) => work.delay('1h').dispatch(),
        (scheduler) => scheduler.dispatch('work'),
        (scheduler) => scheduler.delay('1h').dispatch('work'),
      ];
      for (const dispatch of dispatches) {
        const { scheduler } = manualScheduler(database);
        const work = scheduler.schedule<unknown>('work', () => 1);
        await dispatch(scheduler, work);
        assert.throws(() => work.daily(), frozen, String(dispatch));
      }
    });

    it('with the settings made before; later calls are rejected and change nothing [D1]', async () => {
      const { scheduler } = manualScheduler(database);
      const work = scheduler.schedule('work', () => 1).dailyAt('09:00');
      await scheduler.run();
      assert.throws(() => work.dailyAt('10:00'), frozen);
      await scheduler.run();
      assert.deepEqual((await scheduler.getSchedule('work'))?.rule?.cron, '0 9 * * *');
    });
  });

  describe('that are invalid', () => {
    it('keep a worker from starting until they are corrected [D5]', async () => {
      const scheduler = database.scheduler(withoutRenewalThread);
      const work = scheduler.schedule('work', () => 1).cron('0 0 31 2 *');
      await assert.rejects(scheduler.start(), { code: 'SCHEDULE_NEVER_RUNS' });
      assert.equal(scheduler.state, 'Error');
      assert.equal(await database.collections.schedules.countDocuments(), 0);
      work.cron('0 0 28 2 *');
      await scheduler.start();
      assert.equal(scheduler.state, 'Running');
    });

    it('keep a pass from running, for each kind of error [D5]', async () => {
      const wrong: [(scheduler: Scheduler) => unknown, string][] = [
        [(scheduler) => scheduler.schedule('work', () => 1).cron('0 0 30 2 *'), 'SCHEDULE_NEVER_RUNS'],
        [(scheduler) => scheduler.schedule('work').daily(), 'HANDLER_INVALID'],
        [(scheduler) => scheduler.define('command', 'app:none').daily(), 'COMMAND_UNKNOWN'],
        [(scheduler) => scheduler.schedule('work', () => 1).between('09:00', '10:00'), 'INVALID_SCHEDULE'],
        [(scheduler) => scheduler.schedule('work', () => 1).args(() => 1), 'INVALID_PAYLOAD'],
        [
          (scheduler) =>
            scheduler
              .define('closure', () => 1)
              .queue('mails')
              .daily(),
          'INVALID_SCHEDULE',
        ],
      ];
      for (const [define, code] of wrong) {
        for (const pass of ['run', 'runOnce'] as const) {
          const { scheduler } = manualScheduler(database);
          define(scheduler);
          await assert.rejects(scheduler[pass](), { code }, `${pass} ${code}`);
        }
      }
      assert.equal(await database.collections.schedules.countDocuments(), 0);
    });

    it('because of their dependencies are rejected by a pass, which computes the order, but not by a worker [D9]', async () => {
      const define = (scheduler: Scheduler): void => {
        scheduler
          .schedule('load', () => 1)
          .daily()
          .dependsOn('extrakt');
        scheduler.schedule('extract', () => 2).daily();
      };
      const { scheduler } = manualScheduler(database);
      define(scheduler);
      const unknown = {
        code: 'DEPENDENCY_UNKNOWN',
        message: /'load' depends on 'extrakt'.*did you mean 'extract'\?/,
      };
      await assert.rejects(scheduler.runOnce(), unknown);
      assert.throws(() => scheduler.getExecutionOrder(), unknown);
      const { scheduler: circular } = manualScheduler(database);
      circular
        .schedule('a', () => 1)
        .daily()
        .dependsOn('b');
      circular
        .schedule('b', () => 2)
        .daily()
        .dependsOn('a');
      await assert.rejects(circular.runOnce(), { code: 'DEPENDENCY_CYCLE', message: /a → b → a/ });
      const { scheduler: worker } = manualScheduler(database);
      define(worker);
      await worker.run();
    });

    it('because a stored schedule has their id are rejected [D3]', async () => {
      const { scheduler } = manualScheduler(database);
      scheduler.registerHandler('work', () => 1);
      await scheduler.addSchedule({ id: 'nightly', taskType: 'work', cron: '0 2 * * *' });
      const { scheduler: other } = manualScheduler(database);
      other.schedule('nightly', () => 2).daily();
      await assert.rejects(other.run(), {
        code: 'SCHEDULE_EXISTS',
        message: /^there is already a stored schedule with the id 'nightly'/,
      });
      assert.equal((await scheduler.getSchedule('nightly'))?.owner, 'api');
    });
  });

  describe('that are made after start()', () => {
    /** Lets the worker poll until the condition is met. */
    function pollUntil(clock: ManualClock, condition: string, isMet: () => Promise<boolean>): Promise<void> {
      return waitUntil(condition, () => {
        clock.advance(100);
        return isMet();
      });
    }

    it('take effect within a poll [J21]', async () => {
      const scheduler = database.scheduler({ ...withoutRenewalThread, pollInterval: '50ms' });
      await scheduler.start();
      const complete = nextEvent(scheduler, 'job:complete');
      scheduler.schedule('late', () => 'done').everySecond();
      assert.equal((await complete).taskType, 'late');
    });

    it('are reported and left out when they are invalid, and others are not affected [J21]', async () => {
      const scheduler = database.scheduler({ ...withoutRenewalThread, pollInterval: '50ms' });
      await scheduler.start();
      const disabled = nextEvent(scheduler, 'schedule:disabled');
      scheduler.schedule('never', () => 1).cron('0 0 31 2 *');
      scheduler.schedule('good', () => 1).daily();
      const { scheduleId, reason } = await disabled;
      assert.equal(scheduleId, 'never');
      assert.match(reason, /never runs/);
      await waitUntil('the good one is stored', async () => (await scheduler.getSchedule('good')) !== null);
      assert.equal(await scheduler.getSchedule('never'), null);
    });

    it('can be corrected after they were left out [J21]', async () => {
      const scheduler = database.scheduler({ ...withoutRenewalThread, pollInterval: '50ms' });
      await scheduler.start();
      const disabled = nextEvent(scheduler, 'schedule:disabled');
      scheduler.schedule('work', () => 1).cron('0 0 31 2 *');
      await disabled;
      scheduler.schedule('work', () => 1).daily();
      await waitUntil('it is stored', async () => (await scheduler.getSchedule('work')) !== null);
    });

    it('are reported once without a handler, and used as soon as they have one [J21]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      await scheduler.start();
      const disabled = recordEvents(scheduler, 'schedule:disabled');
      scheduler.schedule('work').daily();
      await pollUntil(clock, 'it is reported', async () => disabled.length > 0);
      // When a later definition is stored, all of them were checked again.
      scheduler.schedule('other', () => 1).daily();
      await pollUntil(
        clock,
        'the other is stored',
        async () => (await scheduler.getSchedule('other')) !== null,
      );
      assert.equal(await scheduler.getSchedule('work'), null);
      scheduler.registerHandler('work', () => 2);
      await pollUntil(clock, 'it is stored', async () => (await scheduler.getSchedule('work')) !== null);
      assert.equal(disabled.length, 1);
      assert.match(JSON.stringify(disabled), /schedule 'work' has no handler/);
    });

    it('are reported when they are unnamed closures, because other workers cannot find their code [D2]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      await scheduler.start();
      const disabled = recordEvents(scheduler, 'schedule:disabled');
      const stored = (): Promise<number> => database.collections.schedules.countDocuments();
      scheduler.define('closure', () => 1).daily();
      await pollUntil(
        clock,
        'it is reported or stored',
        async () => disabled.length > 0 || (await stored()) > 0,
      );
      assert.deepEqual([disabled.length, await stored()], [1, 0]);
    });

    it('can be dispatched at once [J6]', async () => {
      const scheduler = database.scheduler(withoutRenewalThread);
      await scheduler.start();
      const complete = nextEvent(scheduler, 'job:complete');
      const { id } = await scheduler
        .schedule('late', (args: { n: number }) => args.n)
        .args({ n: 7 })
        .dispatch();
      const { jobId, result } = await complete;
      assert.deepEqual([jobId, result], [id, 7]);
    });
  });

  describe('in a newer version of the code', () => {
    const define = (build: Build, options: Partial<SchedulerOptions> = {}): Scheduler => {
      const { scheduler } = manualScheduler(database, options);
      build(scheduler.schedule('work', () => 1));
      return scheduler;
    };

    it('write nothing when they have not changed [C7]', async () => {
      await define((b) => b.daily().priority(7)).run();
      const before = await database.collections.schedules.findOne({ _id: 'work' });
      await define((b) => b.priority(7).daily()).run();
      assert.deepEqual(await database.collections.schedules.findOne({ _id: 'work' }), before);
    });

    it('are updated when they changed, and a pause is kept [C7]', async () => {
      const old = define((b) => b.daily());
      await old.run();
      await old.pauseSchedule('work', { by: 'ada', reason: 'holidays' });
      await define((b) => b.dailyAt('09:00').queue('mails')).run();
      const schedule = await old.getSchedule('work');
      assert.deepEqual(
        [schedule?.rule?.cron, schedule?.queue, schedule?.nextRunAt],
        ['0 9 * * *', 'mails', timeAfter(9 * 60 * MINUTE)],
      );
      assert.deepEqual([schedule?.isActive, schedule?.paused?.by], [false, 'ada']);
    });

    it('can be disabled and enabled again [D7]', async () => {
      await define((b) => b.daily()).run();
      const off = define((b) => b.daily().disable());
      await off.run();
      assert.equal((await off.getSchedule('work'))?.isActive, false);
      await define((b) => b.daily()).run();
      assert.equal((await off.getSchedule('work'))?.isActive, true);
    });
  });
});
