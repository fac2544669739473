import assert from 'node:assert/strict';
import type { PassEntry, PassReport, Scheduler } from '../../../../src/index.js';
import { manualScheduler } from '../../../support/manual-scheduler.js';
import { useDatabase } from '../../../support/database.js';
import { timeAfter, START } from '../../../support/instants.js';
import { useSharedDatabase } from '../../../support/shared-database.js';
import { entryOf, inBackground, secondPass, useSignals } from '../../../support/pass-reports.js';

const MINUTE = 60_000;

describe('a dry run', () => {
  const newSignal = useSignals();
  const database = useSharedDatabase();

  it('reports what would run at an instant in the time zone of the application [D11] [D12]', async () => {
    const { scheduler } = manualScheduler(database, { timezone: 'Europe/Berlin' });
    scheduler.schedule('nightly', () => assert.fail('ran')).dailyAt('02:00');
    scheduler
      .schedule('report', () => assert.fail('ran'))
      .dailyAt('02:00')
      .queue('reports')
      .dependsOn('mail');
    scheduler
      .schedule('utc', () => assert.fail('ran'))
      .dailyAt('02:00')
      .timezone('UTC');
    scheduler
      .schedule('off', () => assert.fail('ran'))
      .dailyAt('02:00')
      .disable();
    scheduler.schedule('mail', () => assert.fail('ran')).everyMinute();
    const report = await scheduler.runOnce({ at: '2026-06-03 02:00:00', dryRun: true });
    const scheduledFor = new Date('2026-06-03T00:00:00Z');
    assert.deepEqual(report.at, scheduledFor);
    assert.deepEqual(
      report.entries.map(({ name, result, jobId }) => [name, result, jobId]),
      [
        ['nightly', 'run', 'nightly@2026-06-03T00:00:00.000Z'],
        ['mail', 'run', 'mail@2026-06-03T00:00:00.000Z'],
        ['report', 'enqueued', 'report@2026-06-03T00:00:00.000Z'],
        ['utc', 'skipped', null],
        ['off', 'skipped', null],
      ],
    );
    assert.match(entryOf(report, 'utc').reason ?? '', /^not due/);
    const anHourLater = await scheduler.runOnce({ at: '2026-06-03 03:00', dryRun: true });
    assert.deepEqual(
      anHourLater.entries.filter(({ result }) => result !== 'skipped').map(({ name }) => name),
      ['mail'],
    );
    const exact = await scheduler.runOnce({ at: new Date('2026-06-03T02:00:00Z'), dryRun: true });
    assert.deepEqual(
      exact.entries.filter(({ result }) => result !== 'skipped').map(({ name }) => name),
      ['mail', 'utc'],
    );
  });

  it('covers the minute that ends with the instant, like cron [D11]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.schedule('nightly', () => undefined).dailyAt('02:00');
    const resultAt = async (at: string): Promise<string> =>
      entryOf(await scheduler.runOnce({ at, dryRun: true }), 'nightly').result;
    assert.deepEqual(
      [
        await resultAt('2026-06-03T01:59:59.999Z'),
        await resultAt('2026-06-03T02:00:00Z'),
        await resultAt('2026-06-03T02:00:59.999Z'),
        await resultAt('2026-06-03T02:01:00Z'),
      ],
      ['skipped', 'run', 'run', 'skipped'],
    );
  });

  it('uses the definitions of the code, not what was stored before [D11]', async () => {
    const before = manualScheduler(database);
    before.scheduler.schedule('nightly', () => undefined).dailyAt('02:00');
    before.scheduler
      .schedule('mail', () => undefined)
      .everyMinute()
      .queue('mails');
    await before.scheduler.run();
    const { scheduler } = manualScheduler(database);
    scheduler.schedule('nightly', () => undefined).dailyAt('05:00');
    scheduler.schedule('mail', () => undefined).everyMinute();
    const atFive = await scheduler.runOnce({ at: '2026-06-03T05:00:00Z', dryRun: true });
    assert.deepEqual(
      atFive.entries.map(({ name, result }) => [name, result]),
      [
        ['nightly', 'run'],
        ['mail', 'run'],
      ],
    );
    const atTwo = await scheduler.runOnce({ at: '2026-06-03T02:00:00Z', dryRun: true });
    assert.equal(entryOf(atTwo, 'nightly').result, 'skipped');
  });

  it('without an instant reports what the next pass does [D11]', async () => {
    const { scheduler, clock } = manualScheduler(database, { environment: 'staging' });
    scheduler.schedule('inline', () => undefined).everyMinute();
    scheduler
      .schedule('queued', () => undefined)
      .everyFiveMinutes()
      .queue('reports')
      .dependsOn('inline');
    scheduler
      .schedule('all', () => undefined)
      .everyTwoMinutes()
      .onMisfire('all')
      .overlap('allow');
    scheduler
      .schedule('missed', () => undefined)
      .everyMinute()
      .onMisfire('skip');
    scheduler.schedule('later', () => undefined).yearly();
    scheduler
      .schedule('off', () => undefined)
      .everyMinute()
      .disable();
    scheduler
      .schedule('elsewhere', () => undefined)
      .everyMinute()
      .environments('production');
    scheduler.schedule('paused', () => undefined).everyMinute();
    await scheduler.runOnce();
    await scheduler.pauseSchedule('paused');
    for (const minutes of [0, 1, 7, 30, 0.5]) {
      clock.advance(minutes * MINUTE);
      const predicted = await scheduler.runOnce({ dryRun: true });
      const actual = await scheduler.runOnce({ batch: 0 });
      assert.deepEqual(sorted(predicted), sorted(actual), `${minutes} minutes later`);
    }
  });

  for (const [title, fields] of [
    ['another process disabled', { isActive: false, disabledReason: 'no such zone' }],
    ['is malformed', { pending: 'nothing' }],
  ] as const) {
    it(`reports what the next pass does with a schedule that ${title} [D11]`, async () => {
      const { scheduler: first, clock } = manualScheduler(database);
      first.schedule('report', () => undefined).everyMinute();
      await first.run();
      clock.advance(MINUTE);
      await database.collections.schedules.updateOne(
        { _id: 'report' },
        { $set: fields as object },
        { bypassDocumentValidation: true },
      );
      for (const isNew of [false, true]) {
        const scheduler = isNew ? database.scheduler({ clock }) : first;
        if (isNew) scheduler.schedule('report', () => undefined).everyMinute();
        const predicted = await scheduler.runOnce({ dryRun: true });
        const actual = await scheduler.runOnce({ batch: 0 });
        assert.deepEqual(
          predicted.entries,
          actual.entries,
          isNew ? 'a new process' : 'the process that stored it',
        );
      }
    });
  }

  it('reports an occurrence that already has its job [D11]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.schedule('report', () => undefined).everyMinute();
    await scheduler.run();
    clock.advance(MINUTE);
    await scheduler.runOnce();
    const at = clock.now();
    const predicted = await scheduler.runOnce({ at, dryRun: true });
    const actual = await scheduler.runOnce({ at, batch: 0 });
    assert.deepEqual(entryOf(predicted, 'report').reason, 'its job already exists');
    assert.deepEqual(predicted.entries, actual.entries);
  });

  function sorted({ entries }: PassReport): PassEntry[] {
    return entries.toSorted((a, b) => (`${a.name} ${a.jobId}` < `${b.name} ${b.jobId}` ? -1 : 1));
  }

  it('reports that a single instance is still running [D11]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const other = database.scheduler({ clock, lockTimeout: '1d' });
    const [started, release] = [newSignal(), newSignal()];
    for (const process of [scheduler, other])
      process
        .schedule('import', () => {
          started.fire();
          return release.promise;
        })
        .everyMinute();
    await other.run();
    clock.advance(MINUTE);
    const running = inBackground(other.runOnce());
    await started.promise;
    clock.advance(MINUTE);
    const report = await scheduler.runOnce({ dryRun: true });
    release.fire();
    await running;
    const reasons = report.entries.map(({ reason }) => reason ?? '');
    assert.ok(
      reasons.some((reason) => reason.includes("single-instance job 'import' is already running")),
      JSON.stringify(report.entries),
    );
    assert.ok(
      report.entries.every(({ result }) => result === 'skipped'),
      JSON.stringify(report.entries),
    );
  });
});

describe('a dry run writes nothing', () => {
  const database = useDatabase();

  function define(scheduler: Scheduler): void {
    scheduler.schedule('inline', () => assert.fail('ran')).everyMinute();
    scheduler
      .schedule('queued', () => assert.fail('ran'))
      .everyMinute()
      .queue('reports');
    scheduler
      .schedule('changed', () => assert.fail('ran'))
      .everyMinute()
      .overlap('queue');
    scheduler.registerHandler('work', () => assert.fail('ran'));
  }

  it('to an empty database: no collection is created [D11]', async () => {
    await database.connection.dropDatabase();
    const { scheduler } = manualScheduler(database);
    define(scheduler);
    const report = await scheduler.runOnce({ at: '2026-06-03T02:00:00Z', dryRun: true });
    await scheduler.runOnce({ dryRun: true });
    await scheduler.stop();
    assert.equal(entryOf(report, 'inline').result, 'run');
    assert.deepEqual(await database.connection.db?.listCollections().toArray(), []);
  });

  it('to a database in use: all documents stay the same, and the server receives no write [D11]', async () => {
    const { scheduler: earlier, clock } = manualScheduler(database);
    earlier.schedule('inline', () => undefined).everyMinute();
    earlier.schedule('changed', () => undefined).hourly();
    earlier.registerHandler('work', () => undefined);
    await secondPass(earlier, clock);
    // A real pass would recover one job, run the other and enqueue the schedule.
    await earlier.dispatch('work');
    await database.collections.jobs.updateMany(
      { taskType: 'work' },
      { $set: { status: 'RUNNING', lockedBy: 'dead', lockToken: 'old', lockedUntil: START } },
    );
    await earlier.dispatch('work');
    await earlier.addSchedule({ taskType: 'work', cron: '* * * * *' });
    await earlier.stop();
    clock.advance(5 * MINUTE);
    const { db } = database.connection;
    const hashes = async (): Promise<unknown> => (await db!.command({ dbHash: 1 }))['collections'];
    const before = await hashes();
    await db!.command({ profile: 2 });

    const scheduler = database.scheduler({ clock });
    define(scheduler);
    const now = await scheduler.runOnce({ dryRun: true });
    const then = await scheduler.runOnce({ at: timeAfter(5 * MINUTE), dryRun: true });
    await scheduler.stop();

    await db!.command({ profile: 0 });
    assert.ok(now.entries.some(({ result }) => result === 'run'));
    assert.ok(then.entries.some(({ result }) => result === 'enqueued'));
    const seen = await db!
      .collection<{ op: string; ns: string; command: object; appName?: string }>('system.profile')
      .find()
      .toArray();
    const reads = seen.filter(({ op }) => op === 'query' || op === 'getmore');
    assert.ok(reads.length > 0, 'the profiler sees what the dry run reads');
    const others = seen.filter(
      (entry) => !reads.includes(entry) && !('dbHash' in entry.command || 'profile' in entry.command),
    );
    assert.deepEqual(
      others.map(({ op, ns, command }) => [op, ns, Object.keys(command)[0]]),
      [],
    );
    assert.deepEqual(await hashes(), before);
  });
});
