import assert from 'node:assert/strict';
import { RetryAfter, type Scheduler, UnrecoverableError } from '../../../src/index.js';
import { nextEvent, recordEvents } from '../../support/events.js';
import { throwing } from '../../support/handlers/recording-definition.js';
import { timeAfter } from '../../support/instants.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';

const NOT_IN_CODE = /retries\.if is a function and cannot be stored.*options of the handler/;

describe('how a handler decides about retries', () => {
  const database = useSharedDatabase();

  /** Status, counted attempts and time of the next run. */
  async function stateOf(scheduler: Scheduler, id: string): Promise<unknown[]> {
    const job = await scheduler.getJob(id);
    return [job?.status, job?.attempts, job?.nextRunAt];
  }

  describe('UnrecoverableError', () => {
    it('fails the job at once; it is listed among the dead jobs, with its error [B25]', async () => {
      const { scheduler } = manualScheduler(database);
      class AccountClosed extends UnrecoverableError {
        override readonly name = 'AccountClosed';
      }
      const fatal = new AccountClosed('the account is closed', { cause: new Error('HTTP 410') });
      scheduler.registerHandler('work', throwing(fatal), { retries: { max: 5 } });
      const failed = nextEvent(scheduler, 'job:failed');
      const { id } = await scheduler.dispatch('work');
      await scheduler.run();

      const job = await scheduler.getJob(id);
      assert.deepEqual([job?.status, job?.attempts, job?.error?.name], ['FAILED', 1, 'AccountClosed']);
      assert.equal(job?.error?.message, 'the account is closed');
      const { error, willRetry, attempt } = await failed;
      assert.deepEqual([error, willRetry, attempt], [fatal, false, 1]);
      const { items: jobs } = await scheduler.operations.listDead({ taskType: 'work' });
      assert.deepEqual(
        jobs.map((dead) => dead.id),
        [id],
      );
    });

    it('is recognized if it is from another copy of the package [B25]', async () => {
      const { scheduler } = manualScheduler(database);
      const brand = { [Symbol.for('chronos.UnrecoverableError')]: true };
      scheduler.registerHandler('work', throwing(Object.assign(new Error('of another copy'), brand)));
      const { id } = await scheduler.dispatch('work');
      await scheduler.run();
      assert.equal((await scheduler.getJob(id))?.status, 'FAILED');
    });

    it('is retried as the cause of another error [B25]', async () => {
      const { scheduler } = manualScheduler(database);
      const wrapped = new Error('failed', { cause: new UnrecoverableError('no') });
      scheduler.registerHandler('work', throwing(wrapped));
      const { id } = await scheduler.dispatch('work');
      await scheduler.run();
      assert.equal((await scheduler.getJob(id))?.status, 'SCHEDULED');
    });

    it('is not meant by an invalid payload of another job that the handler dispatches [B25]', async () => {
      const { scheduler } = manualScheduler(database);
      const validate = (): { issues: { message: string }[] } => ({ issues: [{ message: 'wrong' }] });
      const schema = { '~standard': { version: 1, vendor: 'test', validate } } as const;
      scheduler.registerHandler('mail', () => 1, { schema });
      scheduler.registerHandler('work', () => scheduler.dispatch('mail', {}));
      const { id } = await scheduler.dispatch('work');
      await scheduler.run();
      const job = await scheduler.getJob(id);
      assert.deepEqual([job?.status, job?.error?.code], ['SCHEDULED', 'INVALID_PAYLOAD']);
    });
  });

  it('RetryAfter runs the next attempt after exactly that time, and fails the job at the last one [B25]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    let runs = 0;
    scheduler.registerHandler('work', () => {
      runs++;
      throw new RetryAfter('10m', 'rate limited');
    });
    const { id } = await scheduler.dispatch('work', null, { retries: { max: 2, cap: '1m' } });
    await scheduler.run();
    assert.deepEqual(await stateOf(scheduler, id), ['SCHEDULED', 1, timeAfter(600_000)]);
    clock.advance(599_999);
    assert.equal(await scheduler.run(), 0);
    clock.advance(1);
    assert.equal(await scheduler.run(), 1);
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.attempts, job?.error?.message], ['FAILED', 2, 'rate limited']);
    assert.equal(runs, 2);
    assert.deepEqual(
      (await scheduler.getExecutions(id)).map(({ attempt, outcome }) => [attempt, outcome]),
      [
        [1, 'retry'],
        [2, 'failed'],
      ],
    );
  });

  describe('retries', () => {
    it('use the delay that a function returns for the attempt and its error [B25]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      const seen: unknown[] = [];
      scheduler.registerHandler('work', (_, job) => assert.fail(`attempt ${job.attempt}`), {
        retries: {
          max: 3,
          delay: (attempt, error) => {
            seen.push(attempt, error.message);
            return `${attempt * 5}m`;
          },
        },
      });
      const { id } = await scheduler.dispatch('work');
      await scheduler.run();
      assert.deepEqual(await stateOf(scheduler, id), ['SCHEDULED', 1, timeAfter(300_000)]);
      clock.advance(300_000);
      await scheduler.run();
      assert.deepEqual(await stateOf(scheduler, id), ['SCHEDULED', 2, timeAfter(900_000)]);
      clock.advance(600_000);
      await scheduler.run();
      assert.equal((await scheduler.getJob(id))?.status, 'FAILED');
      assert.deepEqual(seen, [1, 'attempt 1', 2, 'attempt 2']);
    });

    it('end with the first error for which `if` returns false, also with the retries of a dispatch [B25]', async () => {
      const { scheduler, clock } = manualScheduler(database, { retries: { jitter: 'none' } });
      scheduler.registerHandler('work', (_, job) => assert.fail(job.attempt < 3 ? 'temporary' : 'final'), {
        retries: { if: (error) => error.message === 'temporary' },
      });
      const { id } = await scheduler.dispatch('work', null, { retries: { max: 9, base: '1s' } });
      for (const wait of [0, 1000, 2000, 4000]) {
        clock.advance(wait);
        await scheduler.run();
      }
      const job = await scheduler.getJob(id);
      assert.deepEqual([job?.status, job?.attempts, job?.error?.message], ['FAILED', 3, 'final']);
    });

    it('work in a definition and in the Scheduler, and are not stored [B25]', async () => {
      const { scheduler } = manualScheduler(database, {
        retries: { if: (error) => error.message !== 'final' },
      });
      scheduler
        .schedule('work', throwing(new Error('again')))
        .retries({ max: 4, delay: () => '7m' })
        .maxRetries(4)
        .everyMinute();
      scheduler.registerHandler('other', throwing(new Error('final')));
      await scheduler.start();
      await scheduler.stop();
      const stored = await database.collections.schedules.findOne({ _id: 'work' });
      assert.deepEqual(stored?.retries, { max: 5 });
      const { id } = await scheduler.dispatch('work');
      const other = await scheduler.dispatch('other');
      await scheduler.run();
      assert.deepEqual(await stateOf(scheduler, id), ['SCHEDULED', 1, timeAfter(420_000)]);
      assert.equal((await scheduler.getJob(other.id))?.status, 'FAILED');
    });

    it('are as without the functions when these fail, which is reported; the process goes on [B25]', async () => {
      const { scheduler } = manualScheduler(database, { retries: { jitter: 'none', base: '3s' } });
      const events = recordEvents(scheduler, 'job:hookFailed', 'job:failed');
      scheduler.registerHandler('work', throwing(new Error('boom')), {
        retries: {
          if: throwing(new Error('no idea')),
          // An async function does not compile; in JavaScript it may be written by mistake.
          delay: (() => Promise.reject(new Error('later'))) as never,
        },
      });
      const { id } = await scheduler.dispatch('work');
      await scheduler.run();
      assert.deepEqual(await stateOf(scheduler, id), ['SCHEDULED', 1, timeAfter(3000)]);
      assert.deepEqual(
        events.map(({ name, event }) => [name, (event as { hook?: string }).hook]),
        [
          ['job:hookFailed', 'retries.if'],
          ['job:hookFailed', 'retries.delay'],
          ['job:failed', undefined],
        ],
      );
    });

    it('are rejected with functions in dispatches, drafts and stored schedules [B25]', async () => {
      const { scheduler } = manualScheduler(database);
      const retries = { if: () => true } as object;
      const invalid = { code: 'INVALID_ARGUMENT', message: NOT_IN_CODE };
      await assert.rejects(scheduler.dispatch('work', null, { retries }), invalid);
      await assert.rejects(scheduler.args(null).retries(retries).dispatch('work'), invalid);
      const [many] = await scheduler.dispatchMany([{ taskType: 'work', options: { retries } }]);
      assert.match((many as { error: Error }).error.message, NOT_IN_CODE);
      const invalidSchedule = { code: 'INVALID_SCHEDULE', message: NOT_IN_CODE };
      const schedule = { taskType: 'work', cron: '* * * * *' };
      await assert.rejects(scheduler.addSchedule({ ...schedule, retries }), invalidSchedule);
      const id = await scheduler.addSchedule(schedule);
      await assert.rejects(scheduler.updateSchedule(id, { retries }), invalidSchedule);
    });
  });
});
