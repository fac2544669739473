// Schedules in code: filters and hooks have the payload type of the handler.
import {
  Scheduler,
  type BoundDraft,
  type Definition,
  type JobContext,
  type JobHandle,
  type PassReport,
  type ScheduleBuilder,
  type StoredSchedule,
} from '../../../src/index.js';

type NotThenable<T> = T extends { then: unknown } ? never : T;

class Report {
  static handle(payload: { month: number }, job: JobContext): string {
    return `${payload.month} ${job.attempt}`;
  }
}

class Tidy {
  handle(payload: { deep: boolean }): boolean {
    return payload.deep;
  }
}

const scheduler = new Scheduler({
  uri: 'mongodb://localhost/app',
  environment: 'production',
  symbols: { EVERY_SHIFT: { minutes: 0, hours: '6,14,22' }, AT_LUNCH: '30 12 * * MON-FRI' },
  shellFiles: ['/usr/bin/pg_dump'],
  urlHosts: ['10.0.0.0/8'],
});

// A builder is not a promise, and every call returns the same builder.
export const builder: NotThenable<ScheduleBuilder<{ n: number }>> = scheduler
  .schedule('sync', (args: { n: number }, job) => args.n + job.attempt)
  .args({ n: 1 })
  .daily()
  .hours([9, 17])
  .minutes(30)
  .weekdays()
  .between('09:00', '17:30')
  .except('12-25', ['2026-12-24', '2026-12-31'])
  .timezone('Europe/Berlin')
  .startsAt('2026-01-01')
  .endsAt(new Date('2027-01-01'))
  .maxRuns(3)
  .jitter('30s')
  .queue('reports')
  .priority(7)
  .retries({ max: 5, base: '2s', cap: '60s', jitter: 'full' })
  .maxRetries(3)
  .timeout('2m')
  .lease(30_000)
  .maxRunningTime('10m')
  .singleInstance()
  .singleInstance(false)
  .overlap('replace')
  .onMisfire('all', { within: '2h', cap: 5 })
  .enabled()
  .enabled(false)
  .disable()
  .environments('production', ['staging'])
  .dependsOn('extract', ['transform'])
  .named('orders')
  .when(true)
  .when((args) => args.n > 0)
  .when(async (args, job) => Promise.resolve(args.n > job.attempts))
  .skip(({ n }) => n === 7)
  .before((args, job) => job.log(String(args.n)))
  .onSuccess((args, job, result) => [args.n, job.id, result satisfies unknown])
  .onError((error, args, job) => `${error.message} ${args.n} ${job.attempt}`)
  .after(async (args) => Promise.resolve(args.n));

// Frequencies, without the optional arguments.
scheduler
  .schedule('a', () => 1)
  .everySecond()
  .everyMinute()
  .everyMinute(5)
  .everyXMinutes(5)
  .hourly()
  .hourlyAt(15);
scheduler
  .schedule('b', () => 1)
  .dailyAt('02:30')
  .twiceDaily()
  .twiceDaily(1)
  .twiceDaily(1, 13);
scheduler
  .schedule('c', () => 1)
  .weekly()
  .weeklyOn(1)
  .weeklyOn([1, 4], '08:00')
  .mondays()
  .sundays();
scheduler
  .schedule('d', () => 1)
  .monthly()
  .monthlyOn(15)
  .monthlyOn([1, 15], '06:00')
  .lastDayOfMonth();
scheduler
  .schedule('e', () => 1)
  .twiceMonthly()
  .twiceMonthly(1, 16, '06:00')
  .quarterly()
  .yearly()
  .yearlyOn(6);
scheduler
  .schedule('f', () => 1)
  .cron('*/5 * * * *')
  .symbol('EVERY_HOUR')
  .every('45s')
  .every(45_000);
scheduler
  .schedule('g', () => 1)
  .fields({ minutes: '*/15', hours: 9, mday: 1, wday: '1-5', mon: '*', year: 2026 });

// With a class, an object, the name of a task type, or the name of the schedule as the task type.
scheduler
  .schedule('report', Report)
  .args({ month: 5 })
  .when(({ month }) => month > 1);
scheduler.schedule('tidy', Tidy).args({ deep: true });
scheduler.schedule('object', { handle: (payload: { n: number }) => payload.n }).args({ n: 1 });
scheduler.schedule('nightly', 'report').args({ month: 5 });
scheduler.schedule('own').args({ any: 'thing' }).daily();
scheduler.schedule<{ n: number }>('typed', 'report').args({ n: 1 });

scheduler
  .registerCommand('app:report', (args: { month: number }) => args.month)
  .registerCommand('app:tidy', Tidy);
scheduler.define('command', 'app:report').named('monthly').monthly();
scheduler.define('shell', ['pg_dump', '-Fc', 'app']).daily();
scheduler
  .define('url', { method: 'GET', url: 'https://example.com/ping' })
  .everyMinute()
  .environments('production')
  .disable();
scheduler.define('event', { event: 'tick', data: 1 }).everySecond();
scheduler
  .define('closure', () => 'done')
  .named('housekeeping')
  .hourly();
scheduler.define((args: { n: number }) => args.n, { n: 1 }).when((args) => args.n > 0);
scheduler.channel.on('tick', (data: unknown, job: JobContext) => [data, job.id]);
scheduler.channel.once('tick', async () => Promise.resolve());

export async function use(): Promise<PassReport> {
  const now: JobHandle = await builder.dispatch();
  await builder.dispatch({ n: 2 });
  const draft: NotThenable<BoundDraft> = builder.delay('10s').args({ n: 3 });
  const later: JobHandle = await draft.dispatch();
  await builder.at('2026-11-01 03:15').dispatch();
  await scheduler.delay('1h').dispatch('orders');

  const runs: Date[] = builder.nextRuns(5, '2026-01-01');
  const definitions: Definition[] = scheduler.getDefinitions();
  const order: string[] = scheduler.getExecutionOrder();
  const [first] = definitions;
  const rule = first?.schedule.rule?.cron;
  const stored: StoredSchedule | null = await scheduler.getSchedule('orders');
  stored?.nextRuns(3).map((at) => at.toISOString());

  scheduler
    .on('job:skipped', ({ jobId, taskType, attempt, reason }) => `${jobId} ${taskType} ${attempt} ${reason}`)
    .on('job:hookFailed', ({ hook, error }) => `${hook} ${error.message}`)
    .on('schedule:disabled', ({ scheduleId, reason }) => `${scheduleId} ${reason}`);

  return scheduler.runOnce({
    at: runs[0] ?? [rule, now.id, later.id, ...order].join(),
    dryRun: true,
    batch: 0,
  });
}
