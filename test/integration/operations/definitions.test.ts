import assert from 'node:assert/strict';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { aSchedule } from '../../support/factories/schedule.js';
import { timeAfter } from '../../support/instants.js';
import { useSharedDatabase } from '../../support/shared-database.js';

describe('operations.definitions', () => {
  const database = useSharedDatabase();

  it('show the loaded definitions, their rules, next times and stored state [Y10]', async () => {
    const { scheduler } = manualScheduler(database, { environment: 'test' });
    scheduler.registerHandler('report', () => undefined);
    scheduler.schedule('nightly', 'report').dailyAt('02:00').queue('reports');
    scheduler
      .schedule('elsewhere', () => undefined)
      .hourly()
      .environments('production');
    const { items, next } = await scheduler.operations.listDefinitions();
    assert.equal(next, null);
    const [nightly, elsewhere] = items;
    assert.deepEqual(
      [nightly?.name, nightly?.runs.label, nightly?.queue, nightly?.isServed, nightly?.stored],
      ['nightly', 'report', 'reports', true, null],
    );
    assert.deepEqual(nightly?.nextRuns, [
      new Date('2026-01-01T02:00:00Z'),
      new Date('2026-01-02T02:00:00Z'),
      new Date('2026-01-03T02:00:00Z'),
    ]);
    assert.deepEqual([elsewhere?.name, elsewhere?.isServed], ['elsewhere', false]);
    await scheduler.operations.collect();
    await scheduler.pauseSchedule('nightly', { by: 'ada' });
    const [paused] = (await scheduler.operations.listDefinitions()).items;
    assert.deepEqual([paused?.stored?.isActive, paused?.stored?.paused?.by], [false, 'ada']);
  });

  it('compare code and stored schedules field by field', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.schedule('same', () => undefined).hourly();
    await scheduler.operations.collect();
    const changed = manualScheduler(database).scheduler;
    changed.schedule('changed', () => undefined).hourly();
    await changed.operations.collect();
    await database.collections.schedules.insertMany([
      aSchedule({ _id: 'taken', owner: 'api' }),
      aSchedule({ _id: 'gone', owner: 'code' }),
    ]);

    scheduler
      .schedule('changed', () => undefined)
      .daily()
      .priority(7);
    scheduler.schedule('new', () => undefined).hourly();
    scheduler.schedule('taken', () => undefined).hourly();
    const differences = await scheduler.operations.diffSchedules();
    assert.deepEqual(
      differences.map(({ name, state }) => [name, state]),
      [
        ['same', 'same'],
        ['changed', 'changed'],
        ['new', 'new'],
        ['taken', 'taken'],
        ['gone', 'orphaned'],
      ],
    );
    const { changes = [] } = differences[1] ?? {};
    assert.deepEqual(
      changes.map(({ field }) => field),
      ['rule', 'priority'],
    );
    assert.deepEqual([changes[1]?.code, changes[1]?.stored], [7, 100]);
  });

  it('enqueue what is due without running it, and count it [J14]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    let runs = 0;
    scheduler.schedule('hourly', () => ++runs).hourly();
    await scheduler.addSchedule({ id: 'stored', taskType: 'work', cron: '0 * * * *' });
    const { operations } = scheduler;
    assert.deepEqual(await operations.collect(), { created: 0, jobs: [] });
    clock.advance(3_600_000);
    const { created, jobs } = await operations.collect();
    assert.equal(created, 2);
    const scheduledFor = timeAfter(3_600_000);
    assert.deepEqual(
      jobs.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
      ['hourly', 'stored'].map((schedule) => ({
        id: `${schedule}@${scheduledFor.toISOString()}`,
        schedule,
        scheduledFor,
      })),
    );
    assert.deepEqual([(await operations.collect()).created, runs], [0, 0]);
    assert.equal(await database.collections.jobs.countDocuments({ status: 'SCHEDULED' }), 2);
  });

  it('show the configuration without the connection string [Y10]', () => {
    const { scheduler } = manualScheduler(database, { workerId: 'me', queues: ['mail'] });
    scheduler.schedule('nightly', () => undefined).daily();
    const { version, workerId, options, taskTypes } = scheduler.operations.configuration();
    assert.match(version, /^\d+\.\d+\.\d+/);
    assert.deepEqual([workerId, options.queues, options.pollInterval], ['me', ['mail'], 100]);
    assert.ok(taskTypes.includes('nightly') && taskTypes.includes('shell'));
    assert.ok(!JSON.stringify(scheduler.operations.configuration()).includes('mongodb'));
    assert.equal(scheduler.state, 'Stopped');
  });
});
