import assert from 'node:assert/strict';
import { aJob } from '../../../support/factories/job.js';
import { manualScheduler } from '../../../support/manual-scheduler.js';
import { JobHistory } from '../../../support/job-history.js';
import { timeAfter, START } from '../../../support/instants.js';
import { useSharedDatabase } from '../../../support/shared-database.js';
import { entryOf, linesOf, recorder, secondPass } from '../../../support/pass-reports.js';

const MINUTE = 60_000;

describe('a pass over the definitions', () => {
  const database = useSharedDatabase();

  it('runs definitions without a queue inline, enqueues those with one, and reports on each [D6] [Y1]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const ran: string[] = [];
    scheduler.schedule('inline', (_, job) => void ran.push(job.id)).everyMinute();
    scheduler
      .schedule('queued', () => void ran.push('queued'))
      .everyMinute()
      .queue('reports');
    scheduler.schedule('later', () => void ran.push('later')).dailyAt('02:00');
    await scheduler.run();
    const first = await scheduler.runOnce();
    assert.deepEqual(linesOf(first), [
      ['inline', 'skipped', 'not due until 2026-01-01T00:01:00.000Z'],
      ['queued', 'skipped', 'not due until 2026-01-01T00:01:00.000Z'],
      ['later', 'skipped', 'not due until 2026-01-01T02:00:00.000Z'],
    ]);

    clock.advance(MINUTE);
    const report = await scheduler.runOnce();
    const scheduledFor = timeAfter(MINUTE);
    assert.deepEqual(report, {
      at: scheduledFor,
      entries: [
        {
          name: 'inline',
          result: 'run',
          reason: null,
          jobId: `inline@${scheduledFor.toISOString()}`,
          scheduledFor,
        },
        {
          name: 'queued',
          result: 'enqueued',
          reason: null,
          jobId: `queued@${scheduledFor.toISOString()}`,
          scheduledFor,
        },
        {
          name: 'later',
          result: 'skipped',
          reason: 'not due until 2026-01-01T02:00:00.000Z',
          jobId: null,
          scheduledFor: null,
        },
      ],
      executed: 0,
      failed: 0,
      isComplete: true,
    });
    assert.deepEqual(ran, [`inline@${scheduledFor.toISOString()}`]);
    const { jobs } = database.collections;
    assert.deepEqual(
      (await jobs.find().sort({ _id: 1 }).toArray()).map(({ schedule, status, queue, fence, lockToken }) => [
        ...[schedule, status, queue, fence, lockToken],
      ]),
      [
        ['inline', 'COMPLETED', 'default', 1, null],
        ['queued', 'SCHEDULED', 'reports', 0, null],
      ],
    );
    assert.deepEqual(
      (await scheduler.getExecutions(`inline@${scheduledFor.toISOString()}`)).map(({ outcome, attempt }) => [
        outcome,
        attempt,
      ]),
      [['completed', 1]],
    );
  });

  it('gives inline runs one attempt and queued jobs all of them [D6]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const attempts: number[] = [];
    scheduler
      .schedule('broken', (_, job) => {
        attempts.push(job.attempt);
        throw new Error('no luck');
      })
      .everyMinute()
      .retries({ max: 5, base: 0 });
    const report = await secondPass(scheduler, clock);
    assert.deepEqual(linesOf(report), [['broken', 'failed', 'no luck']]);
    assert.equal(report.failed, 1);
    assert.equal(report.executed, 0);
    assert.deepEqual(attempts, [1]);
    const job = await scheduler.getJob('broken@2026-01-01T00:01:00.000Z');
    assert.deepEqual([job?.status, job?.attempts, job?.error?.message], ['FAILED', 1, 'no luck']);

    clock.advance(MINUTE);
    await scheduler.run();
    assert.equal((await scheduler.getJob('broken@2026-01-01T00:02:00.000Z'))?.status, 'SCHEDULED');
    await scheduler.run();
    assert.deepEqual(attempts, [1, 1, 2]);
  });

  it('inserts inline runs as RUNNING and locked, so that no other process can claim them [J15]', async () => {
    const history = await JobHistory.begin(database.stored);
    const { scheduler, clock } = manualScheduler(database, { workerId: 'cron' });
    let seen: unknown;
    scheduler
      .schedule('inline', async (_, job) => {
        const stored = await database.collections.jobs.findOne({ _id: job.id });
        seen = [stored?.status, stored?.lockedBy, stored?.lockToken !== null, stored?.fence];
      })
      .everyMinute();
    const other = manualScheduler(database);
    await secondPass(scheduler, clock);
    assert.deepEqual(seen, ['RUNNING', 'cron', true, 1]);
    await other.scheduler.run();
    const changes = await history.read();
    assert.deepEqual(
      changes
        .filter(({ jobId }) => jobId.startsWith('inline@'))
        .map(({ kind, fields }) => [kind, fields.status]),
      [
        ['insert', 'RUNNING'],
        ['update', 'COMPLETED'],
      ],
    );
  });

  it('runs nothing again in a second pass for the same minute [D6] [J15]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const { ran, note } = recorder();
    scheduler.schedule('inline', note).everyMinute();
    scheduler.schedule('queued', note).everyMinute().queue('reports');
    await secondPass(scheduler, clock);
    clock.advance(30_000);
    assert.deepEqual(linesOf(await scheduler.runOnce()), [
      ['inline', 'skipped', 'not due until 2026-01-01T00:02:00.000Z'],
      ['queued', 'skipped', 'not due until 2026-01-01T00:02:00.000Z'],
    ]);
    assert.equal(ran.length, 1);
    assert.equal(await database.collections.jobs.countDocuments(), 2);
  });

  it('runs each definition after its dependencies, also when those are defined later [D9]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const ran: string[] = [];
    const note = (_: unknown, job: { taskType: string }): void => void ran.push(job.taskType);
    scheduler.schedule('load', note).everyMinute().dependsOn('transform');
    scheduler.schedule('alone', note).everyMinute();
    scheduler.schedule('transform', note).everyMinute().dependsOn(['extract', 'clean']);
    scheduler.schedule('extract', note).everyMinute();
    scheduler.schedule('clean', note).everyMinute().dependsOn('extract').queue('etl');
    assert.deepEqual(scheduler.getExecutionOrder(), ['extract', 'clean', 'transform', 'load', 'alone']);
    const report = await secondPass(scheduler, clock);
    assert.deepEqual(
      report.entries.map(({ name, result }) => `${name} ${result}`),
      ['extract run', 'clean enqueued', 'transform run', 'load run', 'alone run'],
    );
    assert.deepEqual(ran, ['extract', 'transform', 'load', 'alone']);
  });

  it('runs a definition even if its dependency failed: dependencies only determine the order [D9]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler
      .schedule('first', () => {
        throw new Error('broken');
      })
      .everyMinute();
    scheduler
      .schedule('second', () => undefined)
      .everyMinute()
      .dependsOn('first');
    assert.deepEqual(linesOf(await secondPass(scheduler, clock)), [
      ['first', 'failed', 'broken'],
      ['second', 'run', null],
    ]);
  });

  it('rejects unknown dependencies and cycles when it computes the order, and runs nothing [D9]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const { ran, note } = recorder();
    scheduler.schedule('fine', note).everyMinute();
    await scheduler.run();
    clock.advance(MINUTE);
    scheduler.schedule('a', note).everyMinute().dependsOn('b');
    await assert.rejects(scheduler.runOnce(), { code: 'DEPENDENCY_UNKNOWN', message: /'a'.*'b'/ });
    scheduler.schedule('b', note).everyMinute().dependsOn('a');
    await assert.rejects(scheduler.runOnce(), { code: 'DEPENDENCY_CYCLE', message: /a → b → a/ });
    await assert.rejects(scheduler.runOnce({ dryRun: true }), { code: 'DEPENDENCY_CYCLE' });
    assert.deepEqual(ran, []);
    assert.equal(await database.collections.jobs.countDocuments(), 0);
  });

  it('runs missed occurrences by the misfire policy and reports the others [D13]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const ran: string[] = [];
    const note = (_: unknown, job: { taskType: string; scheduledFor: Date | null }): void =>
      void ran.push(`${job.taskType} ${job.scheduledFor?.toISOString().slice(11, 16)}`);
    scheduler.schedule('once', note).everyTenMinutes();
    scheduler.schedule('all', note).everyTenMinutes().onMisfire('all');
    scheduler.schedule('none', note).everyTenMinutes().onMisfire('skip');
    await scheduler.run();
    clock.advance(45 * MINUTE);
    const report = await scheduler.runOnce();
    assert.deepEqual(ran, ['once 00:40', 'all 00:10', 'all 00:20', 'all 00:30', 'all 00:40']);
    assert.deepEqual(
      report.entries.map(({ name, result, reason }) => [name, result, reason]),
      [
        ['once', 'run', null],
        ['once', 'skipped', 'misfire'],
        ...Array.from({ length: 4 }, () => ['all', 'run', null]),
        ['none', 'skipped', 'misfire'],
      ],
    );
  });

  it('reports a paused schedule with the reason and does not run it', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.schedule('report', () => assert.fail('paused')).everyMinute();
    await scheduler.runOnce();
    await scheduler.pauseSchedule('report', { by: 'ada', reason: 'maintenance' });
    clock.advance(MINUTE);
    assert.deepEqual(linesOf(await scheduler.runOnce()), [['report', 'skipped', 'paused: maintenance']]);
  });

  it('never runs a definition without a rule', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.schedule('manual', () => undefined);
    assert.deepEqual(linesOf(await secondPass(scheduler, clock)), [['manual', 'skipped', 'not due']]);
  });

  it('also runs up to `batch` due jobs, 32 by default, and counts failed attempts [Y1]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.registerHandler('work', () => undefined);
    scheduler.registerHandler('bad', () => {
      throw new Error('broken');
    });
    scheduler
      .schedule('queued', () => undefined)
      .hourlyAt(1)
      .queue('default');
    await scheduler.dispatchMany(Array.from({ length: 50 }, () => ({ taskType: 'work' })));
    const withoutBatch = await scheduler.runOnce({ batch: 0 });
    assert.deepEqual([withoutBatch.executed, withoutBatch.failed], [0, 0]);
    assert.equal((await scheduler.runOnce({ batch: 8 })).executed, 8);
    assert.equal((await scheduler.runOnce()).executed, 32);
    await scheduler.dispatch('bad', null, { priority: 1, retries: { base: '1h', jitter: 'none' } });
    const report = await scheduler.runOnce({ batch: 5 });
    assert.deepEqual([report.executed, report.failed], [5, 1]);
    clock.advance(MINUTE);
    // The pass serves the queue `default`, so it also runs the job that it enqueued.
    const last = await scheduler.runOnce();
    assert.deepEqual([entryOf(last, 'queued').result, last.executed], ['enqueued', 7]);
  });

  it('recovers jobs of a crashed process and runs them [Y1]', async () => {
    const { scheduler, clock } = manualScheduler(database, { retries: { base: 0 } });
    scheduler.registerHandler('work', () => 'done');
    const lock = { lockedBy: 'dead', lockToken: 'lost', lockedUntil: START };
    const crashed = aJob({ status: 'RUNNING', fence: 1, nextRunAt: START, startedAt: START, ...lock });
    await database.collections.jobs.insertOne(crashed);
    clock.advance(1000);
    assert.equal((await scheduler.runOnce()).executed, 1);
    const job = await scheduler.getJob(crashed._id);
    assert.deepEqual([job?.status, job?.result, job?.crashes], ['COMPLETED', 'done', 1]);
  });

  it('enqueues due stored schedules and reports them after the definitions [F1]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.registerHandler('mail', () => undefined);
    scheduler.schedule('inline', () => undefined).everyMinute();
    await scheduler.addSchedule({ id: 'stored', taskType: 'mail', cron: '* * * * *' });
    await scheduler.run();
    clock.advance(MINUTE);
    const report = await scheduler.runOnce();
    assert.deepEqual(linesOf(report), [
      ['inline', 'run', null],
      ['stored', 'enqueued', null],
    ]);
    assert.equal(report.executed, 1);
    assert.equal((await scheduler.getJob('stored@2026-01-01T00:01:00.000Z'))?.status, 'COMPLETED');
  });

  it('rejects unknown options and invalid values before anything runs', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.schedule('inline', () => assert.fail('ran')).everyMinute();
    for (const options of [
      { batch: -1 },
      { batch: 1.5 },
      { at: 'soon' },
      { dryRun: 'yes' },
      { dryrun: true },
      null,
      5,
    ])
      await assert.rejects(
        scheduler.runOnce(options as object),
        { code: 'INVALID_ARGUMENT' },
        JSON.stringify(options),
      );
    assert.equal(await database.collections.schedules.countDocuments(), 0);
  });
});
