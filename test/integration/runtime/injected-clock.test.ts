import assert from 'node:assert/strict';
import { manualScheduler, advanceUntilSettled } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { nextEvent } from '../../support/events.js';
import { timeAfter, START } from '../../support/instants.js';
import { ManualClock } from '../../support/manual-clock.js';
import { waitUntil } from '../../support/wait-until.js';

const DAY = 86_400_000;
const YEAR = 365 * DAY;

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
    await waitUntil(
      'its heartbeat is stored',
      async () => (await database.collections.workers.countDocuments()) === 1,
    );
    await scheduler.stop();

    const { jobs, executions, workers } = database.collections;
    const everything = [
      await jobs.find().toArray(),
      await executions.find({ jobId: id }).toArray(),
      await workers.find().toArray(),
    ];
    const dates = collectDates(everything);
    assert.ok(dates.length > 12, String(dates.length));
    for (const date of dates) assert.ok(date >= START && date < timeAfter(31 * DAY), date.toISOString());
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
    for (const [delay, ending] of [
      [3, 'job:failed'],
      [7, 'job:failed'],
      [14, 'job:complete'],
    ] as const) {
      const ended = nextEvent(scheduler, ending);
      clock.advance(delay * DAY - 1);
      await advanceUntilSettled(clock, ended);
    }
    const [first, second, third] = await scheduler.getExecutions(id);
    const days = (from: Date | undefined, to: Date | undefined): number =>
      ((to?.getTime() ?? NaN) - (from?.getTime() ?? NaN)) / DAY;
    // The clock moves by seconds while the worker waits for the database, so it may be late by minutes, but never early.
    assert.deepEqual(
      [
        days(START, first?.startedAt),
        days(first?.finishedAt, second?.startedAt),
        days(second?.finishedAt, third?.startedAt),
      ].map(Math.floor),
      [3, 7, 14],
    );
  });

  it('decides what is due in every scheduler that shares it [J16]', async () => {
    const clock = new ManualClock('2031-05-05T05:05:05Z');
    const [one, other] = [database.scheduler({ clock }), database.scheduler({ clock })];
    other.registerHandler('work', () => undefined);
    await one.dispatch('work', null, { at: '2031-05-05 05:05:06' });
    assert.equal(await other.run(), 0);
    clock.advance(1000);
    assert.equal(await other.run(), 1);
  });

  it('is replaced by the clock of the database by default', async () => {
    const scheduler = database.scheduler();
    const { localTime } = (await database.admin({ hello: 1 })) as { localTime: Date };
    const { id } = await scheduler.dispatch('work');
    const after = ((await database.admin({ hello: 1 })) as { localTime: Date }).localTime;
    const created = (await scheduler.getJob(id))!.createdAt;
    assert.ok(created.getTime() >= localTime.getTime() - 50, 'created before the dispatch');
    assert.ok(created.getTime() <= after.getTime() + 50, 'created after the dispatch');
  });
});

function collectDates(value: unknown): Date[] {
  if (value instanceof Date) return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(collectDates);
}
