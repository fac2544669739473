import assert from 'node:assert/strict';
import { manualScheduler } from '../../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../../support/shared-database.js';
import { linesOf } from '../../../support/pass-reports.js';

const HOUR = 3_600_000;

describe('a pass with the option `at`', () => {
  const database = useSharedDatabase();

  it('runs the occurrences of that minute once and does not advance the schedules [D11]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const ran: string[] = [];
    scheduler.schedule('nightly', (_, job) => void ran.push(job.id)).dailyAt('02:00');
    scheduler
      .schedule('queued', () => undefined)
      .dailyAt('02:00')
      .queue('reports')
      .overlap('allow');
    await scheduler.runOnce();
    clock.advance(3 * HOUR);
    const at = '2025-12-31T02:00:30Z';
    const report = await scheduler.runOnce({ at });
    assert.deepEqual(
      report.entries.map(({ name, result, jobId }) => [name, result, jobId]),
      [
        ['nightly', 'run', 'nightly@2025-12-31T02:00:00.000Z'],
        ['queued', 'enqueued', 'queued@2025-12-31T02:00:00.000Z'],
      ],
    );
    const again = await scheduler.runOnce({ at });
    assert.deepEqual(linesOf(again), [
      ['nightly', 'skipped', 'its job already exists'],
      ['queued', 'skipped', 'its job already exists'],
    ]);
    assert.deepEqual(ran, ['nightly@2025-12-31T02:00:00.000Z']);
    const today = await scheduler.runOnce();
    assert.deepEqual(
      today.entries.filter(({ result }) => result !== 'skipped').map(({ jobId }) => jobId),
      ['nightly@2026-01-01T02:00:00.000Z', 'queued@2026-01-01T02:00:00.000Z'],
    );
  });

  it('records no skip for an occurrence that has a job [D11]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler
      .schedule('queued', () => undefined)
      .dailyAt('02:00')
      .queue('reports');
    await scheduler.runOnce();
    clock.advance(3 * HOUR);
    const at = '2025-12-31T02:00:30Z';
    await scheduler.runOnce({ at });
    await scheduler.runOnce({ at });
    assert.deepEqual(await database.collections.jobs.distinct('_id'), ['queued@2025-12-31T02:00:00.000Z']);
    assert.deepEqual((await scheduler.getSkips('queued')).items, []);
  });
});
