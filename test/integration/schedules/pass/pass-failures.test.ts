import assert from 'node:assert/strict';
import {
  manualScheduler,
  withoutRenewalThread,
  advanceUntilSettled,
} from '../../../support/manual-scheduler.js';
import type { Scheduler } from '../../../../src/index.js';
import { nextEvent } from '../../../support/events.js';
import { withFailPoint } from '../../../support/fail-point.js';
import { useSharedDatabase } from '../../../support/shared-database.js';
import { entryOf, linesOf, recorder } from '../../../support/pass-reports.js';

const MINUTE = 60_000;

describe('a pass with failures', () => {
  const database = useSharedDatabase();

  /** Makes hourly schedules due: moves them back by an hour. */
  async function makeDue(): Promise<void> {
    const earlier = (field: string) => ({ [field]: { $subtract: [`$${field}`, 3_600_000] } });
    await database.collections.schedules.updateMany({}, [
      { $set: { ...earlier('anchor'), ...earlier('nextRunAt') } },
    ]);
  }

  it('runs the other definitions, however one of them fails [Y8]', async () => {
    const { scheduler, clock } = manualScheduler(database, { concurrency: 2, timeoutGrace: '10ms' });
    const ran: string[] = [];
    const note = (_: unknown, job: { taskType: string }): void => void ran.push(job.taskType);
    const broken = (): never => {
      throw new Error('broken');
    };
    scheduler.schedule('throws', broken).everyMinute();
    scheduler.schedule('rejects', () => Promise.reject(new Error('broken'))).everyMinute();
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors
    scheduler.schedule('nothing', () => Promise.reject(undefined)).everyMinute();
    scheduler.schedule('hook', note).everyMinute().before(broken);
    scheduler.schedule('filter', note).everyMinute().when(broken);
    scheduler
      .schedule('slow', (_, job) => new Promise((resolve) => job.signal.addEventListener('abort', resolve)))
      .everyMinute()
      .timeout('1s');
    scheduler
      .schedule(
        'false',
        class {
          execute(): boolean {
            return false;
          }
        },
      )
      .everyMinute();
    scheduler.schedule('after', note).everyMinute().after(broken);
    scheduler.schedule('good', note).everyMinute().dependsOn('throws', 'slow');
    await scheduler.run();
    clock.advance(MINUTE);
    const report = await advanceUntilSettled(clock, scheduler.runOnce(), 100);
    assert.deepEqual(
      report.entries.map(({ name, result }) => [name, result]),
      [
        ['throws', 'failed'],
        ['rejects', 'failed'],
        ['nothing', 'failed'],
        ['hook', 'failed'],
        ['filter', 'failed'],
        ['slow', 'failed'],
        ['false', 'failed'],
        ['after', 'run'],
        ['good', 'run'],
      ],
    );
    assert.equal(report.failed, 7);
    assert.deepEqual(ran, ['after', 'good']);
  });

  it('ends even if a handler that ignores its signal occupies the only slot [Y8] [Y6]', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread, concurrency: 1, timeoutGrace: '50ms' });
    scheduler
      .schedule('ignores abort', () => new Promise(() => undefined))
      .every('1h')
      .timeout('50ms');
    scheduler.schedule('good', () => undefined).every('1h');
    await scheduler.runOnce();
    await makeDue();
    const report = await scheduler.runOnce();
    assert.deepEqual(
      report.entries.map(({ name, result }) => [name, result]),
      [
        ['ignores abort', 'failed'],
        ['good', 'failed'],
      ],
    );
  });

  it('skips a definition whose stored schedule is malformed and runs the others [Y8] [F5]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.schedule('malformed', () => undefined).everyMinute();
    scheduler.schedule('good', () => undefined).everyMinute();
    await scheduler.runOnce();
    await database.collections.schedules.updateOne(
      { _id: 'malformed' },
      { $set: { misfire: null as never } },
    );
    clock.advance(MINUTE);
    const report = await scheduler.runOnce();
    assert.equal(entryOf(report, 'malformed').result, 'skipped');
    assert.equal(entryOf(report, 'good').result, 'run');
  });

  it('reports a job that the server rejects and runs the others [Y8]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.schedule('rejected', () => undefined).everyMinute();
    scheduler.schedule('good', () => undefined).everyMinute();
    await scheduler.run();
    clock.advance(MINUTE);
    const report = await withFailPoint(database, { commands: ['insert'], times: 1, how: 'error' }, () =>
      scheduler.runOnce(),
    );
    assert.notEqual(entryOf(report, 'rejected').result, 'run');
    assert.equal(entryOf(report, 'good').result, 'run');
    // The next pass creates the job.
    clock.advance(1000);
    await scheduler.runOnce();
    assert.equal((await scheduler.getJob('rejected@2026-01-01T00:01:00.000Z'))?.status, 'COMPLETED');
  });

  it('runs a job once when the reply of its insert was lost [J15]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const { ran, note } = recorder();
    scheduler.schedule('inline', note).everyMinute();
    await scheduler.run();
    clock.advance(MINUTE);
    const report = await withFailPoint(database, { commands: ['insert'], times: 1, how: 'lostReply' }, () =>
      scheduler.runOnce(),
    );
    assert.deepEqual(linesOf(report), [['inline', 'run', null]]);
    await scheduler.runOnce();
    assert.deepEqual(ran, ['inline@2026-01-01T00:01:00.000Z']);
  });

  it('ends a run that exceeds maxRunningTime, records it and runs the next [Y6]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    let runs = 0;
    scheduler
      .schedule('long', (_, job) =>
        runs++ > 0 ? 'quick' : new Promise((resolve) => job.signal.addEventListener('abort', resolve)),
      )
      .everyMinute()
      .maxRunningTime('10s');
    scheduler.schedule('other', () => undefined).everyMinute();
    await scheduler.run();
    clock.advance(MINUTE);
    const report = await advanceUntilSettled(clock, scheduler.runOnce());
    assert.equal(entryOf(report, 'long').result, 'failed');
    assert.match(entryOf(report, 'long').reason ?? '', /maxRunningTime/);
    assert.equal(entryOf(report, 'other').result, 'run');
    const job = await scheduler.getJob('long@2026-01-01T00:01:00.000Z');
    assert.deepEqual([job?.status, job?.error?.code], ['FAILED', 'JOB_RAN_TOO_LONG']);
    clock.advance(MINUTE);
    assert.ok(
      (await scheduler.runOnce()).entries.some(({ name, result }) => name === 'long' && result === 'run'),
    );
  });
});

describe('a pass in a process that also runs a worker', () => {
  const database = useSharedDatabase();
  let scheduler: Scheduler;

  beforeEach(() => {
    scheduler = database.scheduler({ ...withoutRenewalThread, timezone: 'UTC' });
    scheduler.registerHandler('other', () => {
      throw new Error('not part of the pass');
    });
  });

  async function failAJobInTheWorker(): Promise<void> {
    await scheduler.start();
    const failed = nextEvent(scheduler, 'job:failed');
    await scheduler.dispatch('other', null, { retries: { max: 1 } });
    await failed;
  }

  it('counts only its own failures while a definition runs inline [Y1]', async () => {
    scheduler.schedule('inline', failAJobInTheWorker).cron('0 0 1 1 *');
    const report = await scheduler.runOnce({ at: '2040-01-01T00:00:00Z', batch: 0 });
    assert.deepEqual([entryOf(report, 'inline').result, report.failed], ['run', 0]);
  });

  it('counts only its own failures while it executes due jobs [Y1]', async () => {
    scheduler.registerHandler('own', failAJobInTheWorker);
    await scheduler.dispatch('own');
    const { executed, failed } = await scheduler.runOnce({ batch: 1 });
    assert.deepEqual([executed, failed], [1, 0]);
  });
});
