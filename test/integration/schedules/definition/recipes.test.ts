import assert from 'node:assert/strict';
import type { Scheduler } from '../../../../src/index.js';
import { manualScheduler } from '../../../support/manual-scheduler.js';
import { nextEvent, recordEvents, signal } from '../../../support/events.js';
import { timeAfter, START } from '../../../support/instants.js';
import { jobsOf } from '../../../support/schedules.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const MINUTE = 60_000;

describe('recipes for definitions', () => {
  const database = useSharedDatabase();

  it('enqueue a thousand jobs [J6] [J22]', async () => {
    const { scheduler } = manualScheduler(database, { concurrency: 100 });
    const resized = new Set<number>();
    const resize = scheduler.schedule('resize', (args: { id: number }) => resized.add(args.id).size);
    for (let id = 0; id < 20; id++) await resize.dispatch({ id });
    await scheduler.dispatchMany(
      Array.from({ length: 980 }, (_, i) => ({ taskType: 'resize', payload: { id: 20 + i } })),
    );
    assert.equal(await scheduler.run(1000), 1000);
    assert.equal(resized.size, 1000);
  });

  it('dispatch on demand, by class, with a delay and with args [J6] [J7]', async () => {
    class SendReport {
      static handle(args: { type: string } | null): string {
        return `Sending report: ${args?.type ?? 'any'}`;
      }
    }
    const { scheduler, clock } = manualScheduler(database);
    const now = await scheduler.dispatch(SendReport);
    const delayed = await scheduler.delay('1h').args({ type: 'daily' }).dispatch(SendReport);
    assert.equal(await scheduler.run(), 1);
    clock.advance(60 * MINUTE);
    assert.equal(await scheduler.run(), 1);
    assert.equal((await scheduler.getJob(now.id))?.result, 'Sending report: any');
    assert.equal((await scheduler.getJob(delayed.id))?.result, 'Sending report: daily');
  });

  it('retry API calls with full jitter [J8]', async () => {
    const { scheduler } = manualScheduler(database);
    const { id } = await scheduler
      .schedule('call-api', () => Promise.reject(new Error('503')))
      .retries({ max: 6, base: '2s', cap: '120s', jitter: 'full' })
      .dispatch();
    await scheduler.run();
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.attempts], ['SCHEDULED', 1]);
    const delay = job!.nextRunAt.getTime() - START.getTime();
    assert.ok(delay >= 0 && delay <= 2000, String(delay));
  });

  it('run a recurring job without duplicates on two workers [J3] [J15]', async () => {
    const { scheduler: one, clock } = manualScheduler(database);
    const two = database.scheduler({ clock, lockTimeout: '1d' });
    let runs = 0;
    for (const worker of [one, two]) worker.schedule('sync', () => ++runs).everyFiveMinutes();
    await Promise.all([one.run(), two.run()]);
    for (let tick = 0; tick < 3; tick++) {
      clock.advance(5 * MINUTE);
      await Promise.all([one.run(), two.run()]);
      await one.run();
    }
    assert.equal(runs, 3);
  });

  it('use a priority queue with delays [J10]', async () => {
    const { scheduler, clock } = manualScheduler(database, { concurrency: 1 });
    const ran: string[] = [];
    await scheduler
      .schedule('cleanup', () => ran.push('cleanup'))
      .priority(100)
      .delay('1h')
      .dispatch();
    await scheduler
      .schedule('normal', () => ran.push('normal'))
      .priority(50)
      .dispatch();
    await scheduler
      .schedule('critical', () => ran.push('critical'))
      .priority(10)
      .dispatch();
    assert.equal(await scheduler.run(), 2);
    clock.advance(60 * MINUTE);
    assert.equal(await scheduler.run(), 1);
    assert.deepEqual(ran, ['critical', 'normal', 'cleanup']);
  });

  it('run one instance at a time: an occurrence is skipped while the previous one runs [Y5]', async () => {
    const { scheduler, clock } = manualScheduler(database, { timeout: '1d' });
    const [started, release] = [signal(), signal()];
    scheduler
      .schedule('long-import', () => {
        started.fire();
        return release.promise;
      })
      .everyMinute()
      .singleInstance();
    await scheduler.run();
    clock.advance(MINUTE);
    const pass = scheduler.run();
    await started.promise;
    const skipped = nextEvent(scheduler, 'schedule:skipped');
    clock.advance(MINUTE);
    await scheduler.run();
    const { scheduleId, reason, runningFor } = await skipped;
    assert.deepEqual([scheduleId, reason, runningFor], ['long-import', 'overlap', MINUTE]);
    release.fire();
    await pass;
    clock.advance(MINUTE);
    await scheduler.run();
    assert.deepEqual(
      (await jobsOf(database, 'long-import')).map(({ scheduledFor }) => scheduledFor),
      [timeAfter(MINUTE), timeAfter(3 * MINUTE)],
    );
  });

  it('run during business hours only [J3]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler
      .schedule('notifications', () => 1)
      .everyFiveMinutes()
      .hours([9, 10, 11, 12, 13, 14, 15, 16, 17])
      .weekdays();
    await scheduler.run();
    const schedule = await scheduler.getSchedule('notifications');
    assert.deepEqual(schedule?.nextRunAt, timeAfter(9 * 60 * MINUTE));
    assert.deepEqual(schedule?.nextRuns(1, '2026-01-02T17:55:00Z'), [new Date('2026-01-05T09:00:00Z')]);
  });

  it('extract, transform and load in this order, inline [D6] [D9]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const ran: string[] = [];
    for (const name of ['extract', 'transform', 'load'])
      scheduler.registerCommand(`app:${name}`, () => ran.push(name));
    scheduler.define('command', 'app:load').named('load').dailyAt('01:00').dependsOn('transform');
    scheduler.define('command', 'app:transform').named('transform').dailyAt('01:00').dependsOn('extract');
    scheduler.define('command', 'app:extract').named('extract').dailyAt('01:00');
    assert.deepEqual(scheduler.getExecutionOrder(), ['extract', 'transform', 'load']);
    await scheduler.runOnce();
    assert.deepEqual(ran, []);
    clock.advance(60 * MINUTE);
    const { entries } = await scheduler.runOnce();
    assert.deepEqual(ran, ['extract', 'transform', 'load']);
    assert.deepEqual(
      entries.map(({ name, result }) => [name, result]),
      [
        ['extract', 'run'],
        ['transform', 'run'],
        ['load', 'run'],
      ],
    );
  });

  it('enqueue with queue(); without it, run inline with one attempt [D6]', async () => {
    const { scheduler, clock } = manualScheduler(database, { queues: ['reports'] });
    scheduler.registerCommand('app:report', () => 'reported');
    scheduler.registerCommand('app:vacuum', () => Promise.reject(new Error('no space')));
    scheduler.define('command', 'app:report').named('report').dailyAt('02:00').queue('reports').maxRetries(3);
    scheduler.define('command', 'app:vacuum').named('vacuum').dailyAt('02:00').maxRetries(3);
    await scheduler.runOnce();
    clock.advance(120 * MINUTE);
    const { entries, failed } = await scheduler.runOnce({ batch: 0 });
    assert.deepEqual(
      entries.map(({ name, result, reason }) => ({ name, result, reason })),
      [
        { name: 'report', result: 'enqueued', reason: null },
        { name: 'vacuum', result: 'failed', reason: 'no space' },
      ],
    );
    assert.equal(failed, 1);
    const [report] = await jobsOf(database, 'report');
    assert.deepEqual([report?.status, report?.queue, report?.retries], ['SCHEDULED', 'reports', { max: 4 }]);
    const [vacuum] = await jobsOf(database, 'vacuum');
    assert.deepEqual([vacuum?.status, vacuum?.attempts], ['FAILED', 1]);
    assert.equal(await scheduler.run(), 1);
    assert.equal((await jobsOf(database, 'report'))[0]?.result, 'reported');
  });

  it('define a ping that is disabled and for production only [D7] [D8]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const events = recordEvents(scheduler, 'job:start', 'schedule:due');
    const ping = { method: 'GET', url: 'https://example.com/ping' };
    scheduler.define('url', ping).named('ping').everyMinute().environments('production').disable();
    scheduler
      .schedule('experimental', () => 1)
      .everyMinute()
      .disable();
    await scheduler.runOnce();
    clock.advance(MINUTE);
    const { entries } = await scheduler.runOnce();
    assert.deepEqual(
      entries.map(({ name, result, reason }) => [name, result, reason]),
      [
        ['ping', 'skipped', 'disabled'],
        ['experimental', 'skipped', 'disabled'],
      ],
    );
    assert.deepEqual(events, []);
  });

  it('name a closure later, so that every worker with the code finds it [D2] [D3] [J21]', async () => {
    const define = (scheduler: Scheduler): void => {
      scheduler
        .define('closure', (): string => 'done')
        .hourly()
        .named('housekeeping');
    };
    const { scheduler: first, clock } = manualScheduler(database);
    define(first);
    await first.run();
    clock.advance(60 * MINUTE);
    const other = database.scheduler({ clock, lockTimeout: '1d' });
    define(other);
    assert.equal(await other.run(), 1);
    assert.equal((await jobsOf(database, 'housekeeping'))[0]?.result, 'done');
  });

  it('configure first and name later [J21]', async () => {
    const { scheduler } = manualScheduler(database);
    const draft = scheduler
      .define((args: { n: number }) => args.n, { n: 7 })
      .dailyAt('03:00')
      .priority(1);
    const { id } = await draft.named('late-name').dispatch();
    await scheduler.run();
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.taskType, job?.result, job?.priority], ['late-name', 7, 1]);
    assert.equal((await scheduler.getSchedule('late-name'))?.rule?.cron, '0 3 * * *');
  });
});
