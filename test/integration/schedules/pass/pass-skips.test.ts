import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Overlap } from '../../../../src/domain/schedule/schedule.js';
import type { JobContext } from '../../../../src/index.js';
import { manualScheduler, advanceUntilSettled } from '../../../support/manual-scheduler.js';
import { timeAfter } from '../../../support/instants.js';
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
    const filtered: string[] = [];
    const ran: string[] = [];
    const minuteOf = (job: { scheduledFor: Date | null }): string =>
      job.scheduledFor?.toISOString().slice(11, 16) ?? '';
    scheduler
      .schedule('evens', (_, job) => void ran.push(minuteOf(job)))
      .everyMinute()
      .onMisfire('all')
      .when((_, job) => {
        filtered.push(minuteOf(job));
        return filtered.length % 2 === 0;
      });
    await scheduler.run();
    clock.advance(5 * MINUTE);
    const report = await scheduler.runOnce();
    assert.deepEqual(filtered, ['00:01', '00:02', '00:03', '00:04', '00:05']);
    assert.deepEqual(ran, ['00:02', '00:04']);
    assert.deepEqual(
      report.entries.map(({ result }) => result),
      ['skipped', 'run', 'skipped', 'run', 'skipped'],
    );
  });

  /**
   * The first process runs the 00:01 occurrence of `import` until `release` is called or the job is cancelled. The second
   * has the same definitions, and it is `later` milliseconds after the start of that run.
   */
  async function startImport(overlap: Overlap, later = MINUTE) {
    const { scheduler: first, clock } = manualScheduler(database);
    const second = database.scheduler({ clock, lockTimeout: '1d' });
    const [started, released] = [newSignal(), newSignal()];
    const handler = ({ signal }: JobContext): Promise<unknown> => {
      started.fire();
      return Promise.race([released.promise, once(signal, 'abort')]);
    };
    for (const scheduler of [first, second]) {
      scheduler
        .schedule('import', (_, job) => (scheduler === first ? handler(job) : undefined))
        .everyMinute()
        .overlap(overlap);
      scheduler.schedule('other', () => undefined).everyMinute();
    }
    await first.run();
    clock.advance(MINUTE);
    const running = inBackground(first.runOnce());
    await started.promise;
    clock.advance(later);
    return { second, clock, running, release: released.fire };
  }

  it('reports for how long a single instance has been running elsewhere and records the skip [Y5] [D10]', async () => {
    const { second, clock, running, release } = await startImport('skip');
    const report = await second.runOnce();
    const reasons = report.entries.filter(({ name }) => name === 'import').map(({ reason }) => reason ?? '');
    assert.ok(
      reasons.includes("single-instance job 'import' is already running (for 60 s)"),
      reasons.join('\n'),
    );
    assert.ok(report.entries.some(({ name, result }) => name === 'other' && result === 'run'));
    const [skip, ...more] = (await second.getSkips('import')).items;
    assert.deepEqual(more, []);
    assert.deepEqual(
      [skip?.at, skip?.reason, skip?.runningFor, skip?.activeId],
      [timeAfter(2 * MINUTE), 'overlap', MINUTE, 'import@2026-01-01T00:01:00.000Z'],
    );
    release();
    assert.equal(entryOf(await running, 'import').result, 'run');

    clock.advance(MINUTE);
    assert.equal(entryOf(await second.runOnce(), 'import').result, 'run');
    assert.equal(await database.collections.jobs.countDocuments({ schedule: 'import' }), 2);
  });

  it('reports a single instance that already runs for the same minute [D10]', async () => {
    const { second, running, release } = await startImport('skip', 5000);
    const { result, reason } = entryOf(await second.runOnce(), 'import');
    release();
    await running;
    assert.equal(result, 'skipped');
    assert.match(reason ?? '', /single-instance job 'import' is already running.* 5 s/);
  });

  it('with overlap(allow) runs the next minute next to the first [B10]', async () => {
    const { second, running, release } = await startImport('allow');
    const report = await second.runOnce();
    assert.ok(
      report.entries.some(
        ({ result, jobId }) => result === 'run' && jobId === 'import@2026-01-01T00:02:00.000Z',
      ),
      JSON.stringify(report.entries),
    );
    release();
    assert.equal(entryOf(await running, 'import').result, 'run');
  });

  it('with overlap(queue) reports the next minute as waiting and runs it later [B10]', async () => {
    const { second, clock, running, release } = await startImport('queue');
    const report = await second.runOnce();
    assert.deepEqual(
      linesOf(report).filter(([name]) => name === 'import'),
      [['import', 'skipped', 'waits for the previous run to end']],
    );
    release();
    await running;
    clock.advance(1000);
    await second.runOnce();
    assert.equal((await second.getJob('import@2026-01-01T00:02:00.000Z'))?.status, 'COMPLETED');
  });

  it('with overlap(replace) cancels the running job and runs the next [B10]', async () => {
    const { second, clock, running } = await startImport('replace');
    const report = await second.runOnce();
    assert.deepEqual(
      linesOf(report).filter(([name]) => name === 'import'),
      [['import', 'skipped', 'waits for the previous run to end']],
    );
    const replaced = await database.collections.jobs.findOne({ _id: 'import@2026-01-01T00:01:00.000Z' });
    assert.equal(replaced?.cancelRequested?.reason, 'replaced by a newer run of its schedule');
    // In small steps: the occurrence of 00:03 would replace that of 00:02.
    await advanceUntilSettled(clock, running, 10);
    await second.runOnce();
    assert.equal((await second.getJob('import@2026-01-01T00:02:00.000Z'))?.status, 'COMPLETED');
  });
});
