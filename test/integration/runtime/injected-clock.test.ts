import assert from 'node:assert/strict';
import { manualScheduler, advanceUntilSettled } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { nextEvent } from '../../support/events.js';
import { timeAfter, START } from '../../support/instants.js';
import { ManualClock } from '../../support/manual-clock.js';
import { waitUntil } from '../../support/wait-until.js';

const YEAR = 365 * 86_400_000;

describe('an injected clock', () => {
  const database = useSharedDatabase();

  it('is the source of every stored instant [J16]', async () => {
    const { scheduler, clock } = manualScheduler(database, { workerId: 'me' });
    scheduler.registerHandler('work', async (_, job) => {
      await job.reportProgress(1);
      clock.advance(10);
      if (job.attempt === 1) throw new Error('again');
    });
    const { id } = await scheduler.dispatch('work', null, { retries: { base: '1s', jitter: 'none' } });
    await scheduler.run();
    clock.advance(1000);
    await scheduler.run();
    await scheduler.withLock('report', () => undefined);
    await scheduler.start();
    await waitUntil('a heartbeat', async () => (await database.collections.workers.countDocuments()) === 1);
    await scheduler.stop();

    const { jobs, executions, workers } = database.collections;
    const everything = [
      await jobs.find().toArray(),
      await executions.find({ jobId: id }).toArray(),
      await workers.find().toArray(),
    ];
    const dates = collectDates(everything);
    assert.ok(dates.length > 15, String(dates.length));
    for (const date of dates)
      assert.ok(date >= START && date < timeAfter(31 * 86_400_000), date.toISOString());
  });

  it('controls due times, backoff and the loops of a worker [J16]', async () => {
    const { scheduler, clock } = manualScheduler(database, { pollInterval: '1m', lockTimeout: 2 * YEAR });
    scheduler.registerHandler('work', (_, job) => {
      if (job.attempt < 3) throw new Error('again');
    });
    await scheduler.start();
    const { id } = await scheduler.dispatch('work', null, {
      delay: '3d',
      retries: { base: '7d', cap: '14d', jitter: 'none' },
    });
    await advanceUntilSettled(clock, nextEvent(scheduler, 'job:complete'), 6 * 3_600_000);
    const rows = await scheduler.getExecutions(id);
    const days = (from: Date | undefined, to: Date | undefined): number =>
      ((to?.getTime() ?? NaN) - (from?.getTime() ?? NaN)) / 86_400_000;
    const [first, second, third] = rows;
    // Time goes on while the worker works: it may come late by a step or two, but never early.
    const waits = [
      days(START, first?.startedAt),
      days(first?.finishedAt, second?.startedAt),
      days(second?.finishedAt, third?.startedAt),
    ];
    assert.ok(
      [3, 7, 14].every((due, index) => (waits[index] ?? 0) >= due && (waits[index] ?? 0) < due + 5),
      waits.join(', '),
    );
  });

  it('makes two workers agree on what is due [J16]', async () => {
    const clock = new ManualClock('2031-05-05T05:05:05Z');
    const [one, other] = [database.scheduler({ clock }), database.scheduler({ clock })];
    other.registerHandler('work', () => undefined);
    await one.dispatch('work', null, { at: '2031-05-05 05:05:06' });
    assert.equal(await other.run(), 0);
    clock.advance(1000);
    assert.equal(await other.run(), 1);
  });

  it('is by default the clock of the database, whatever the clock of this machine shows', async () => {
    const scheduler = database.scheduler();
    const { localTime } = (await database.admin({ hello: 1 })) as { localTime: Date };
    const { id } = await scheduler.dispatch('work');
    const after = ((await database.admin({ hello: 1 })) as { localTime: Date }).localTime;
    const created = (await scheduler.getJob(id))!.createdAt;
    assert.ok(created.getTime() >= localTime.getTime() - 50, 'not before the dispatch');
    assert.ok(created.getTime() <= after.getTime() + 50, 'not after it');
  });
});

function collectDates(value: unknown): Date[] {
  if (value instanceof Date) return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(collectDates);
}
