import assert from 'node:assert/strict';
import { manualScheduler, advanceUntilSettled } from '../../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../../support/shared-database.js';
import {
  entryOf,
  inBackground,
  linesOf,
  recorder,
  secondPass,
  useSignals,
} from '../../../support/pass-reports.js';

const MINUTE = 60_000;

describe('a pass', () => {
  const newSignal = useSignals();
  const database = useSharedDatabase();

  it('skips a disabled definition before it evaluates its rule [D7]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const { ran, note } = recorder();
    scheduler.schedule('off', note).everyMinute().disable();
    scheduler.schedule('alsoOff', note).everyMinute().enabled(false).queue('reports');
    scheduler.schedule('on', note).everyMinute().disable().enabled();
    assert.deepEqual(linesOf(await secondPass(scheduler, clock)), [
      ['off', 'skipped', 'disabled'],
      ['alsoOff', 'skipped', 'disabled'],
      ['on', 'run', null],
    ]);
    assert.equal(ran.length, 1);
    assert.equal((await scheduler.getSchedule('off'))?.isActive, false);
  });

  it('skips definitions for other environments; an empty list is no restriction [D8]', async () => {
    const { scheduler, clock } = manualScheduler(database, { environment: 'staging' });
    scheduler
      .schedule('here', () => undefined)
      .everyMinute()
      .environments('production', 'staging');
    scheduler
      .schedule('hereToo', () => undefined)
      .everyMinute()
      .environments(['staging']);
    scheduler
      .schedule('anywhere', () => undefined)
      .everyMinute()
      .environments();
    scheduler
      .schedule('elsewhere', () => undefined)
      .everyMinute()
      .environments('production', 'test');
    assert.deepEqual(linesOf(await secondPass(scheduler, clock)), [
      ['here', 'run', null],
      ['hereToo', 'run', null],
      ['anywhere', 'run', null],
      ['elsewhere', 'skipped', 'environment: runs in production, test, this is staging'],
    ]);
    const byDefault = manualScheduler(database);
    byDefault.scheduler
      .schedule('tested', () => undefined)
      .everyMinute()
      .environments('test');
    byDefault.scheduler
      .schedule('developed', () => undefined)
      .everyMinute()
      .environments('development');
    assert.deepEqual(
      (await secondPass(byDefault.scheduler, byDefault.clock)).entries.map(({ result }) => result),
      ['run', 'skipped'],
    );
  });

  it('reports a run that a filter skipped, with no hook and no attempt [J4]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const called: string[] = [];
    scheduler
      .schedule('closed', () => void called.push('handler'))
      .everyMinute()
      .before(() => void called.push('before'))
      .after(() => void called.push('after'))
      .when(function isOpen() {
        return false;
      });
    scheduler
      .schedule('holiday', () => void called.push('handler'))
      .everyMinute()
      .skip(true);
    const report = await secondPass(scheduler, clock);
    assert.deepEqual(
      report.entries.map(({ name, result }) => [name, result]),
      [
        ['closed', 'skipped'],
        ['holiday', 'skipped'],
      ],
    );
    assert.equal(entryOf(report, 'closed').reason, 'filter: when(isOpen) is false');
    assert.match(entryOf(report, 'holiday').reason ?? '', /^filter: skip\(/);
    assert.deepEqual(called, []);
    assert.equal(report.failed, 0);
    const job = await scheduler.getJob('closed@2026-01-01T00:01:00.000Z');
    assert.deepEqual([job?.status, job?.attempts], ['CANCELLED', 0]);
  });

  it('runs the jobs after a run that a filter skipped [J4]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const asked: string[] = [];
    const ran: string[] = [];
    const minuteOf = (job: { scheduledFor: Date | null }): string =>
      job.scheduledFor?.toISOString().slice(11, 16) ?? '';
    scheduler
      .schedule('evens', (_, job) => void ran.push(minuteOf(job)))
      .everyMinute()
      .onMisfire('all')
      .when((_, job) => {
        asked.push(minuteOf(job));
        return asked.length % 2 === 0;
      });
    await scheduler.runOnce();
    clock.advance(5 * MINUTE);
    const report = await scheduler.runOnce();
    assert.deepEqual(asked, ['00:01', '00:02', '00:03', '00:04', '00:05']);
    assert.deepEqual(ran, ['00:02', '00:04']);
    assert.deepEqual(
      report.entries.map(({ result }) => result),
      ['skipped', 'run', 'skipped', 'run', 'skipped'],
    );
  });

  it('reports for how long a single instance has been running elsewhere and records the skip [Y5] [D10]', async () => {
    const { scheduler: first, clock } = manualScheduler(database);
    const second = database.scheduler({ clock, lockTimeout: '1d' });
    const started = newSignal();
    const release = newSignal();
    for (const scheduler of [first, second]) {
      scheduler
        .schedule('import', () => {
          started.fire();
          return release.promise;
        })
        .everyMinute()
        .singleInstance();
      scheduler.schedule('other', () => undefined).everyMinute();
    }
    await first.runOnce();
    clock.advance(MINUTE);
    const running = inBackground(first.runOnce());
    await started.promise;
    clock.advance(MINUTE);
    const report = await second.runOnce();
    const reasons = report.entries.filter(({ name }) => name === 'import').map(({ reason }) => reason ?? '');
    assert.ok(
      reasons.includes("single-instance job 'import' is already running (for 60 s)"),
      reasons.join('\n'),
    );
    assert.ok(report.entries.some(({ name, result }) => name === 'other' && result === 'run'));
    const [skip, ...more] = await second.getSkips('import');
    assert.deepEqual(more, []);
    assert.deepEqual(
      [skip?._id, skip?.reason, skip?.runningFor, skip?.activeId],
      ['import@2026-01-01T00:02:00.000Z', 'overlap', MINUTE, 'import@2026-01-01T00:01:00.000Z'],
    );
    release.fire();
    assert.equal(entryOf(await running, 'import').result, 'run');

    clock.advance(MINUTE);
    assert.equal(entryOf(await second.runOnce(), 'import').result, 'run');
    assert.equal(await database.collections.jobs.countDocuments({ schedule: 'import' }), 2);
  });

  it('reports a single instance that already runs for the same minute [D10]', async () => {
    const { scheduler: first, clock } = manualScheduler(database);
    const second = database.scheduler({ clock, lockTimeout: '1d' });
    const started = newSignal();
    const release = newSignal();
    for (const scheduler of [first, second])
      scheduler
        .schedule('import', () => {
          started.fire();
          return release.promise;
        })
        .everyMinute();
    await first.runOnce();
    clock.advance(MINUTE);
    const running = inBackground(first.runOnce());
    await started.promise;
    clock.advance(5000);
    const { result, reason } = entryOf(await second.runOnce(), 'import');
    release.fire();
    await running;
    assert.equal(result, 'skipped');
    assert.match(reason ?? '', /single-instance job 'import' is already running.* 5 s/);
  });

  it('with overlap(allow) runs the next minute next to the first [B10]', async () => {
    const { scheduler: first, clock } = manualScheduler(database);
    const second = database.scheduler({ clock, lockTimeout: '1d' });
    const started = newSignal();
    const release = newSignal();
    first
      .schedule('import', () => {
        started.fire();
        return release.promise;
      })
      .everyMinute()
      .overlap('allow');
    second
      .schedule('import', () => undefined)
      .everyMinute()
      .overlap('allow');
    await first.runOnce();
    clock.advance(MINUTE);
    const running = inBackground(first.runOnce());
    await started.promise;
    clock.advance(MINUTE);
    const report = await second.runOnce();
    assert.ok(
      report.entries.some(({ result, jobId }) => result === 'run' && jobId?.includes('00:02:00')),
      JSON.stringify(report.entries),
    );
    release.fire();
    assert.equal(entryOf(await running, 'import').result, 'run');
  });

  it('with overlap(queue) reports the next minute as waiting and runs it later [B10]', async () => {
    const { scheduler: first, clock } = manualScheduler(database);
    const second = database.scheduler({ clock, lockTimeout: '1d' });
    const started = newSignal();
    const release = newSignal();
    for (const scheduler of [first, second])
      scheduler
        .schedule('import', () => {
          started.fire();
          return release.promise;
        })
        .everyMinute()
        .overlap('queue');
    await first.runOnce();
    clock.advance(MINUTE);
    const running = inBackground(first.runOnce());
    await started.promise;
    clock.advance(MINUTE);
    const report = await second.runOnce();
    assert.ok(
      report.entries.some(({ result, reason }) => result === 'skipped' && (reason ?? '').includes('waits')),
      `the report names it: ${JSON.stringify(report.entries)}`,
    );
    release.fire();
    await running;
    clock.advance(1000);
    await second.runOnce();
    assert.equal((await second.getJob('import@2026-01-01T00:02:00.000Z'))?.status, 'COMPLETED');
  });

  it('with overlap(replace) cancels the running job and runs the next [B10]', async () => {
    const { scheduler: first, clock } = manualScheduler(database);
    const second = database.scheduler({ clock, lockTimeout: '1d' });
    const started = newSignal();
    first
      .schedule('import', (_, job) => {
        started.fire();
        return new Promise((resolve) => job.signal.addEventListener('abort', resolve));
      })
      .everyMinute()
      .overlap('replace');
    second
      .schedule('import', () => undefined)
      .everyMinute()
      .overlap('replace');
    await first.runOnce();
    clock.advance(MINUTE);
    const running = inBackground(first.runOnce());
    await started.promise;
    clock.advance(MINUTE);
    const report = await second.runOnce();
    const replaced = await second.getJob('import@2026-01-01T00:01:00.000Z');
    const asked = (await database.collections.jobs.findOne({ _id: replaced?.id ?? '' }))?.cancelRequested;
    if (asked == null) await first.cancel(replaced?.id ?? '');
    await advanceUntilSettled(clock, running, 100);
    assert.ok(asked != null, 'nobody asked the running one to make way');
    assert.ok(report.entries.length > 0, 'the report names it');
    await second.runOnce();
    assert.equal((await second.getJob('import@2026-01-01T00:02:00.000Z'))?.status, 'COMPLETED');
  });
});
