import assert from 'node:assert/strict';
import type { JobContext, Scheduler } from '../../../../src/index.js';
import { manualScheduler, stopAndAbort, withoutRenewalThread } from '../../../support/manual-scheduler.js';
import { signal } from '../../../support/events.js';
import { timeAfter } from '../../../support/instants.js';
import { useSharedDatabase } from '../../../support/shared-database.js';
import { runJob, runStoredSchedule } from '../../../support/handlers/job-outcomes.js';
import { untilAborted } from '../../../support/handlers/recording-definition.js';

const MINUTE = 60_000;

describe('built-in handlers', () => {
  const database = useSharedDatabase();

  describe('command', () => {
    it('runs the command of that name with its arguments and the job [D2]', async () => {
      const { scheduler } = manualScheduler(database);
      const report = (args: unknown, job: JobContext): unknown => [args, job.taskType, job.id];
      assert.equal(scheduler.registerCommand('app:report', report), scheduler);
      const plain = scheduler.define('command', 'app:report').named('daily-report');
      const withArgs = scheduler
        .define('command', { command: 'app:report', args: { month: 5 } })
        .named('monthly-report');
      const first = await runJob(scheduler, plain.dispatch());
      assert.deepEqual(first.result, [null, 'daily-report', first.id]);
      const second = await runJob(scheduler, withArgs.dispatch());
      assert.deepEqual(second.result, [{ month: 5 }, 'monthly-report', second.id]);
      const third = await runJob(scheduler, withArgs.dispatch({ month: 6 }));
      assert.deepEqual(third.result, [{ month: 6 }, 'monthly-report', third.id]);
    });

    it('runs at its time, in its queue, with its retries [D2] [D4]', async () => {
      const { scheduler, clock } = manualScheduler(database, { queues: ['reports'] });
      let attempts = 0;
      scheduler.registerCommand('app:report', () => {
        if (++attempts === 1) throw new Error('not yet');
        return 'reported';
      });
      scheduler
        .define('command', 'app:report')
        .named('daily-report')
        .dailyAt('02:00')
        .queue('reports')
        .maxRetries(3);
      await scheduler.run();
      clock.advance(120 * MINUTE);
      await scheduler.run();
      clock.advance(MINUTE);
      await scheduler.run();
      const job = await scheduler.getJob('daily-report@2026-01-01T02:00:00.000Z');
      assert.deepEqual(
        [job?.status, job?.queue, job?.result, job?.attempts],
        ['COMPLETED', 'reports', 'reported', 1],
      );
    });

    it('has one definition per command when it is not named [D2] [D3]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      const ran: string[] = [];
      for (const name of ['app:report', 'app:purge']) {
        scheduler.registerCommand(name, () => ran.push(name));
        scheduler.define('command', name).everyMinute();
      }
      await scheduler.run();
      clock.advance(MINUTE);
      await scheduler.run();
      assert.deepEqual(ran.sort(), ['app:purge', 'app:report']);
    });

    it('can be a class and can be registered after the definition [D2]', async () => {
      const { scheduler } = manualScheduler(database);
      const purge = scheduler.define('command', 'app:purge').named('purge').cron('30 3 * * 1-5');
      scheduler.registerCommand(
        'app:purge',
        class {
          handle(): string {
            return 'purged';
          }
        },
      );
      assert.equal((await runJob(scheduler, purge.dispatch())).result, 'purged');
    });

    it('is rejected at the start, with a hint, when it is not registered [D2]', async () => {
      const scheduler = database.scheduler(withoutRenewalThread);
      scheduler.registerCommand('app:report', () => 1);
      scheduler.define('command', 'app:reprot').named('nightly').daily();
      await assert.rejects(scheduler.start(), {
        code: 'COMMAND_UNKNOWN',
        message: /^schedule 'nightly' runs the command 'app:reprot', which is not registered.*did you mean/,
      });
    });

    it('has the task type command:<name> for stored schedules and dispatched jobs [D2]', async () => {
      const register = (scheduler: Scheduler): unknown =>
        scheduler.registerCommand('app:report', (args: unknown) => ['ran', args]);
      const { scheduler } = manualScheduler(database);
      register(scheduler);
      const dispatched = await runJob(scheduler, scheduler.dispatch('command:app:report', { n: 1 }));
      assert.deepEqual(dispatched.result, ['ran', { n: 1 }]);
      assert.deepEqual(
        (await runStoredSchedule(database, 'command:app:report', { n: 2 }, {}, register)).result,
        ['ran', { n: 2 }],
      );
    });

    it('is rejected when its name is taken or when it is not a function or class [D2]', () => {
      const { scheduler } = manualScheduler(database);
      scheduler.registerCommand('app:report', () => 1);
      assert.throws(() => scheduler.registerCommand('app:report', () => 2), { code: 'HANDLER_EXISTS' });
      for (const bad of [null, 5, 'app:other', {}])
        assert.throws(() => scheduler.registerCommand('app:bad', bad as never), { code: 'HANDLER_INVALID' });
    });

    it('is rejected with an invalid name [D2]', () => {
      const { scheduler } = manualScheduler(database);
      for (const name of ['a@b', 'a=b', 'a+b', '', undefined, null, 5, {}])
        assert.throws(
          () => scheduler.registerCommand(name as never, () => 1),
          { code: 'INVALID_ARGUMENT' },
          JSON.stringify(name),
        );
    });
  });

  describe('closure', () => {
    it('with a name can be queued and runs in any worker that has the code [D2]', async () => {
      const define = (scheduler: Scheduler): unknown =>
        scheduler
          .define('closure', (_: unknown, job: JobContext) => `done by ${job.lockedBy}`)
          .named('housekeeping')
          .hourly()
          .queue('chores');
      const { scheduler: maker, clock } = manualScheduler(database, { workerId: 'maker' });
      define(maker);
      await maker.run();
      clock.advance(60 * MINUTE);
      await maker.run();
      const other = database.scheduler({ clock, lockTimeout: '1d', queues: ['chores'], workerId: 'other' });
      define(other);
      assert.equal(await other.run(), 1);
      const job = await other.getJob(`housekeeping@${timeAfter(60 * MINUTE).toISOString()}`);
      assert.equal(job?.result, 'done by other');
    });

    it('without a name runs inline in a pass [D2] [D3]', async () => {
      const { scheduler } = manualScheduler(database);
      const ran: unknown[] = [];
      scheduler
        .define('closure', (args: unknown) => ran.push(args))
        .args({ n: 1 })
        .everyMinute();
      scheduler.define('closure', () => ran.push('another')).everyMinute();
      const { entries } = await scheduler.runOnce();
      assert.deepEqual(ran, [{ n: 1 }, 'another']);
      for (const { name, result } of entries) {
        assert.match(name, /^closure-[0-9a-f]{16}$/);
        assert.equal(result, 'run');
      }
    });

    it('without a name can neither be queued nor run by a worker [D2]', async () => {
      const { scheduler } = manualScheduler(database);
      scheduler
        .define('closure', () => 1)
        .hourly()
        .queue('chores');
      await assert.rejects(scheduler.runOnce(), {
        code: 'INVALID_SCHEDULE',
        message: /cannot be queued.*named\(\)/,
      });
      for (const how of ['start', 'run'] as const) {
        const worker = database.scheduler(withoutRenewalThread);
        worker.define('closure', () => 1).hourly();
        await assert.rejects(worker[how](), { code: 'INVALID_SCHEDULE', message: /in a pass.*named\(\)/ });
      }
      assert.equal(await database.collections.schedules.countDocuments(), 0);
    });

    it('without a name cannot be dispatched, because no worker would find it [D2]', async () => {
      const { scheduler } = manualScheduler(database);
      const unnamed = scheduler.define('closure', () => 1);
      await assert.rejects(async () => unnamed.dispatch(), {
        code: 'INVALID_SCHEDULE',
        message: /named\(\)/,
      });
      await assert.rejects(async () => unnamed.delay('1h').dispatch(), { code: 'INVALID_SCHEDULE' });
      assert.equal(await database.collections.jobs.countDocuments(), 0);
    });

    it('with a name receives its signal like any handler [D2] [C12]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      const reached = signal();
      const { id } = await scheduler
        .define('closure', (payload: unknown, job: JobContext) => {
          reached.fire();
          return untilAborted(payload, job);
        })
        .named('waits')
        .dispatch();
      await scheduler.start();
      await reached.promise;
      assert.deepEqual(await stopAndAbort(scheduler, clock), { left: [] });
      assert.equal((await database.collections.jobs.findOne({ _id: id }))?.status, 'SCHEDULED');
    });
  });
});
