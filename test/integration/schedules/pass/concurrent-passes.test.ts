import assert from 'node:assert/strict';
import type { PassReport, Scheduler } from '../../../../src/index.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { manualScheduler, advanceUntilSettled } from '../../../support/manual-scheduler.js';
import { timeAfter } from '../../../support/instants.js';
import { useSharedDatabase } from '../../../support/shared-database.js';
import { waitUntil } from '../../../support/wait-until.js';
import { onMeasurement } from '../../../../src/runtime/measurements.js';

const MINUTE = 60_000;

describe('passes at the same time', () => {
  const database = useSharedDatabase();

  /** Schedulers with the same definitions and one clock. */
  function createSchedulers(count: number, define: (scheduler: Scheduler) => void) {
    const clock = new ManualClock();
    const schedulers = Array.from({ length: count }, () => database.scheduler({ clock, lockTimeout: '1d' }));
    schedulers.forEach(define);
    return { schedulers, clock };
  }

  it('run and enqueue each occurrence once, and conflicts are counted [J15] [Y12] [F3]', async () => {
    const ran: string[] = [];
    const { schedulers, clock } = createSchedulers(8, (scheduler) => {
      scheduler.schedule('inline', (_, job) => void ran.push(job.id)).everyMinute();
      scheduler
        .schedule('allowed', (_, job) => void ran.push(job.id))
        .everyMinute()
        .overlap('allow');
      scheduler
        .schedule('queued', () => undefined)
        .everyMinute()
        .queue('reports')
        .overlap('allow');
    });
    let contended = 0;
    for (const scheduler of schedulers)
      onMeasurement(scheduler.workerId, 'plan', ({ conflicts }) => (contended += conflicts));
    await Promise.all(schedulers.map((scheduler) => scheduler.run()));
    const reports: PassReport[] = [];
    for (let minute = 1; minute <= 10; minute++) {
      clock.advance(MINUTE);
      reports.push(...(await Promise.all(schedulers.map((scheduler) => scheduler.runOnce()))));
    }
    const expected = ['allowed', 'inline', 'queued'].flatMap((name) =>
      Array.from({ length: 10 }, (_, index) => `${name}@${timeAfter((index + 1) * MINUTE).toISOString()}`),
    );
    assert.deepEqual([...ran].sort(), expected.slice(0, 20));
    assert.deepEqual(await database.collections.jobs.distinct('_id'), expected);
    assert.equal(await database.collections.skips.countDocuments(), 0);
    const reported = reports
      .flatMap(({ entries }) => entries)
      .filter(({ result }) => result === 'run' || result === 'enqueued');
    assert.deepEqual(reported.map(({ jobId }) => jobId).sort(), expected);
    assert.ok(contended > 0);
  });

  it('next to a worker run each occurrence once [J19]', async () => {
    const ran: string[] = [];
    const { schedulers, clock } = createSchedulers(3, (scheduler) => {
      const note = (_: unknown, job: { id: string }): void => void ran.push(job.id);
      scheduler.schedule('single', note).everyMinute();
      scheduler.schedule('allowed', note).everyMinute().overlap('allow');
      scheduler.schedule('queued', note).everyMinute().overlap('allow').queue('reports');
    });
    const [worker, ...passes] = schedulers as [Scheduler, ...Scheduler[]];
    await worker.start();
    for (let minute = 1; minute <= 15; minute++) {
      clock.advance(MINUTE);
      await Promise.all(passes.map((scheduler) => scheduler.runOnce({ batch: 0 })));
    }
    const { jobs, schedules, skips } = database.collections;
    const unfinished = { schedule: { $in: ['single', 'allowed'] }, finishedAt: null };
    await advanceUntilSettled(
      clock,
      waitUntil(
        'every plan is executed and every job is finished',
        async () => !(await schedules.findOne({ pending: { $ne: [] } })) && !(await jobs.findOne(unfinished)),
      ),
      10,
    );
    const expected = (name: string): string[] =>
      Array.from({ length: 15 }, (_, index) => `${name}@${timeAfter((index + 1) * MINUTE).toISOString()}`);
    const skipped = (await skips.find().toArray()).map(({ _id }) => _id);
    const stored = await jobs.distinct('_id');
    assert.deepEqual(
      [...ran].sort(),
      stored.filter((id) => !id.startsWith('queued')),
    );
    assert.deepEqual([...stored, ...skipped].sort(), ['allowed', 'queued', 'single'].flatMap(expected));
    assert.deepEqual(
      skipped.filter((id) => !id.startsWith('single@')),
      [],
    );
  });
});

describe('a worker', () => {
  const database = useSharedDatabase();

  it('runs definitions without a queue in the queue `default` [J19]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler.schedule('inline', () => 'done').everyMinute();
    await scheduler.start();
    clock.advance(MINUTE);
    const { jobs } = database.collections;
    await advanceUntilSettled(
      clock,
      waitUntil(
        'the job is completed',
        async () => (await jobs.countDocuments({ schedule: 'inline', status: 'COMPLETED' })) > 0,
      ),
      10,
    );
    const job = await scheduler.getJob('inline@2026-01-01T00:01:00.000Z');
    assert.deepEqual([job?.queue, job?.status], ['default', 'COMPLETED']);
  });
});
