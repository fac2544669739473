import assert from 'node:assert/strict';
import type { ScheduleDocument } from '../../../../src/domain/schedule/schedule.js';
import type { ScheduleBuilder } from '../../../../src/index.js';
import { ScheduleBuilder as BuilderClass } from '../../../../src/schedules/definition/builder.js';
import { manualScheduler } from '../../../support/manual-scheduler.js';
import { TestDatabase } from '../../../support/database.js';
import { timeAfter, START } from '../../../support/instants.js';

type Build = (builder: ScheduleBuilder<unknown>) => unknown;

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

describe('methods of ScheduleBuilder', () => {
  const cron = (expression: string, ...overridable: string[]): object => ({
    rule: { cron: expression, ...(overridable.length > 0 && { overridable }), timezone: 'UTC' },
  });
  const daily = (constraints: object): object => ({
    rule: { cron: '0 0 * * *', overridable: ['minute', 'hour'], constraints, timezone: 'UTC' },
  });
  const hourly = (more: object): object => ({ rule: { cron: '0 * * * *', timezone: 'UTC', ...more } });

  /** What each call changes in the stored schedule. The first word of a key is the method. */
  const STORED: Record<string, [Build, object]> = {
    everySecond: [(b) => b.everySecond(), cron('* * * * * *')],
    everyTwoSeconds: [(b) => b.everyTwoSeconds(), cron('*/2 * * * * *')],
    everyFiveSeconds: [(b) => b.everyFiveSeconds(), cron('*/5 * * * * *')],
    everyTenSeconds: [(b) => b.everyTenSeconds(), cron('*/10 * * * * *')],
    everyFifteenSeconds: [(b) => b.everyFifteenSeconds(), cron('*/15 * * * * *')],
    everyTwentySeconds: [(b) => b.everyTwentySeconds(), cron('*/20 * * * * *')],
    everyThirtySeconds: [(b) => b.everyThirtySeconds(), cron('*/30 * * * * *')],
    everyMinute: [(b) => b.everyMinute(), cron('* * * * *')],
    'everyMinute of five': [(b) => b.everyMinute(5), cron('*/5 * * * *')],
    everyXMinutes: [(b) => b.everyXMinutes(5), cron('*/5 * * * *')],
    everyTwoMinutes: [(b) => b.everyTwoMinutes(), cron('*/2 * * * *')],
    everyThreeMinutes: [(b) => b.everyThreeMinutes(), cron('*/3 * * * *')],
    everyFourMinutes: [(b) => b.everyFourMinutes(), cron('*/4 * * * *')],
    everyFiveMinutes: [(b) => b.everyFiveMinutes(), cron('*/5 * * * *')],
    everyTenMinutes: [(b) => b.everyTenMinutes(), cron('*/10 * * * *')],
    everyFifteenMinutes: [(b) => b.everyFifteenMinutes(), cron('*/15 * * * *')],
    everyTwentyMinutes: [(b) => b.everyTwentyMinutes(), cron('*/20 * * * *')],
    everyThirtyMinutes: [(b) => b.everyThirtyMinutes(), cron('*/30 * * * *')],
    hourly: [(b) => b.hourly(), cron('0 * * * *', 'minute')],
    everyHour: [(b) => b.everyHour(), cron('0 * * * *', 'minute')],
    hourlyAt: [(b) => b.hourlyAt(15), cron('15 * * * *')],
    everyTwoHours: [(b) => b.everyTwoHours(), cron('0 */2 * * *', 'minute')],
    everyThreeHours: [(b) => b.everyThreeHours(), cron('0 */3 * * *', 'minute')],
    everyFourHours: [(b) => b.everyFourHours(), cron('0 */4 * * *', 'minute')],
    everySixHours: [(b) => b.everySixHours(), cron('0 */6 * * *', 'minute')],
    everyEightHours: [(b) => b.everyEightHours(), cron('0 */8 * * *', 'minute')],
    everyTwelveHours: [(b) => b.everyTwelveHours(), cron('0 */12 * * *', 'minute')],
    daily: [(b) => b.daily(), cron('0 0 * * *', 'minute', 'hour')],
    dailyAt: [(b) => b.dailyAt('02:30'), cron('30 2 * * *')],
    twiceDaily: [(b) => b.twiceDaily(1, 13), cron('0 1,13 * * *', 'minute')],
    weekly: [(b) => b.weekly(), cron('0 0 * * 0', 'minute', 'hour', 'weekday')],
    weeklyOn: [(b) => b.weeklyOn([1, 4], '08:00'), cron('0 8 * * 1,4')],
    monthly: [(b) => b.monthly(), cron('0 0 1 * *', 'minute', 'hour', 'day')],
    monthlyOn: [(b) => b.monthlyOn(15, '06:00'), cron('0 6 15 * *')],
    twiceMonthly: [(b) => b.twiceMonthly(1, 16), cron('0 0 1,16 * *', 'minute', 'hour')],
    lastDayOfMonth: [(b) => b.lastDayOfMonth('22:00'), cron('0 22 L * *')],
    quarterly: [(b) => b.quarterly(), cron('0 0 1 */3 *', 'minute', 'hour', 'day')],
    yearly: [(b) => b.yearly(), cron('0 0 1 1 *', 'minute', 'hour', 'day', 'month')],
    yearlyOn: [(b) => b.yearlyOn(12, 24, '18:00'), cron('0 18 24 12 *')],
    weekdays: [(b) => b.weekdays(), daily({ weekday: [1, 2, 3, 4, 5] })],
    weekends: [(b) => b.weekends(), daily({ weekday: [0, 6] })],
    sundays: [(b) => b.sundays(), daily({ weekday: [0] })],
    mondays: [(b) => b.mondays(), daily({ weekday: [1] })],
    tuesdays: [(b) => b.tuesdays(), daily({ weekday: [2] })],
    wednesdays: [(b) => b.wednesdays(), daily({ weekday: [3] })],
    thursdays: [(b) => b.thursdays(), daily({ weekday: [4] })],
    fridays: [(b) => b.fridays(), daily({ weekday: [5] })],
    saturdays: [(b) => b.saturdays(), daily({ weekday: [6] })],
    cron: [(b) => b.cron('0 9 * * MON'), cron('0 9 * * MON')],
    fields: [
      (b) => b.fields({ minutes: '*/15', wday: 1 }),
      { rule: { fields: { minutes: '*/15', wday: 1 }, timezone: 'UTC' } },
    ],
    symbol: [(b) => b.symbol('EVERY_DAY'), { rule: { fields: { minutes: 10, hours: 2 }, timezone: 'UTC' } }],
    every: [
      (b) => b.every('45s'),
      { rule: { every: 45_000, timezone: 'UTC' }, anchor: START, nextRunAt: timeAfter(45_000) },
    ],
    seconds: [(b) => b.cron('0 * * * *').seconds([0, 30]), hourly({ constraints: { second: [0, 30] } })],
    minutes: [(b) => b.cron('0 * * * *').minutes(0), hourly({ constraints: { minute: [0] } })],
    hours: [(b) => b.cron('0 * * * *').hours([9, 17]), hourly({ constraints: { hour: [9, 17] } })],
    days: [(b) => b.cron('0 * * * *').days([1, 15]), hourly({ constraints: { day: [1, 15] } })],
    months: [(b) => b.cron('0 * * * *').months(6), hourly({ constraints: { month: [6] } })],
    daysOfWeek: [(b) => b.cron('0 * * * *').daysOfWeek([1, 2]), hourly({ constraints: { weekday: [1, 2] } })],
    between: [(b) => b.cron('0 * * * *').between('09:00', '17:30'), hourly({ between: ['09:00', '17:30'] })],
    except: [
      (b) => b.cron('0 * * * *').except('12-25', '2026-12-24'),
      hourly({ except: ['12-25', '2026-12-24'] }),
    ],
    timezone: [
      (b) => b.cron('0 * * * *').timezone('Asia/Kolkata'),
      { ...hourly({ timezone: 'Asia/Kolkata' }), nextRunAt: timeAfter(30 * MINUTE) },
    ],
    startsAt: [
      (b) => b.cron('0 * * * *').startsAt('2026-02-01'),
      { ...hourly({ startsAt: new Date('2026-02-01') }), nextRunAt: new Date('2026-02-01') },
    ],
    endsAt: [(b) => b.cron('0 * * * *').endsAt('2027-02-01'), hourly({ endsAt: new Date('2027-02-01') })],
    maxRuns: [(b) => b.maxRuns(3), { maxRuns: 3, runs: 0 }],
    jitter: [(b) => b.jitter('30s'), { jitter: 30_000 }],
    args: [(b) => b.args({ to: ['ada'] }), { payload: { to: ['ada'] } }],
    queue: [(b) => b.queue('reports'), { queue: 'reports' }],
    priority: [(b) => b.priority(7), { priority: 7 }],
    retries: [
      (b) => b.retries({ max: 6, base: '2s', cap: '120s', jitter: 'full' }),
      { retries: { max: 6, base: 2000, cap: 120_000, jitter: 'full' } },
    ],
    maxRetries: [(b) => b.maxRetries(3), { retries: { max: 4 } }],
    'maxRetries with retries': [
      (b) => b.retries({ base: '2s' }).maxRetries(3),
      { retries: { base: 2000, max: 4 } },
    ],
    timeout: [(b) => b.timeout('2m'), { timeout: 120_000 }],
    expiresIn: [(b) => b.expiresIn('5m'), { expiresIn: 300_000 }],
    maxRunningTime: [(b) => b.maxRunningTime('10m'), { maxRunningTime: 600_000 }],
    singleInstance: [(b) => b.singleInstance(), { overlap: 'skip', singleInstance: true }],
    'singleInstance of false': [(b) => b.singleInstance(false), { overlap: 'allow', singleInstance: false }],
    'overlap of skip': [(b) => b.overlap('skip'), { overlap: 'skip', singleInstance: false }],
    overlap: [(b) => b.overlap('replace'), { overlap: 'replace' }],
    onMisfire: [
      (b) => b.onMisfire('all', { within: '2h', cap: 5 }),
      { misfire: { policy: 'all', within: 7_200_000, cap: 5 } },
    ],
    'onMisfire without limits': [
      (b) => b.onMisfire('skip'),
      { misfire: { policy: 'skip', within: DAY, cap: 100 } },
    ],
    enabled: [(b) => b.disable().enabled(), { enabled: true, isActive: true }],
    'enabled of false': [(b) => b.enabled(false), { enabled: false, isActive: false }],
    disable: [(b) => b.disable(), { enabled: false, isActive: false }],
    environments: [(b) => b.environments('test', ['staging']), { environments: ['test', 'staging'] }],
    named: [(b) => b.named('another name'), { _id: 'another name', taskType: 'another name' }],
    dependsOn: [(b) => b.dependsOn('named'), {}],
  };
  /** Methods that change nothing in the stored schedule. Other files test them. */
  const NOT_STORED = [
    'lease',
    'when',
    'skip',
    'before',
    'onSuccess',
    'onError',
    'after',
    'nextRuns',
    'delay',
    'at',
    'dispatch',
    'freeze',
  ];
  const INTERNAL = ['constructor'];

  const database = new TestDatabase();
  const stored = new Map<string, ScheduleDocument>();

  before(async () => {
    await database.open();
    const { scheduler } = manualScheduler(database, { environment: 'test' });
    for (const [name, [build]] of Object.entries(STORED)) build(scheduler.schedule(name, () => name));
    await scheduler.run();
    for (const schedule of await database.collections.schedules.find().toArray())
      stored.set(schedule._id, schedule);
    await scheduler.stop();
  });
  after(() => database.close());

  it('are all listed in this test [D1]', () => {
    const listed = Object.keys(STORED).map((name) => name.split(' ')[0]!);
    const all = new Set([...listed, ...NOT_STORED, ...INTERNAL]);
    assert.deepEqual([...all].sort(), Object.getOwnPropertyNames(BuilderClass.prototype).sort());
    assert.equal(stored.size, Object.keys(STORED).length);
  });

  for (const [name, [, expected]] of Object.entries(STORED)) {
    it(`${name} is stored in MongoDB [D1] [J2] [J3]`, () => {
      const document = (stored.get(name) ??
        stored.get((expected as { _id?: string })._id ?? '')) as unknown as Record<string, unknown>;
      assert.ok(document !== undefined, 'it is not stored');
      const part = Object.fromEntries(Object.keys(expected).map((key) => [key, document[key]]));
      assert.deepEqual(part, expected);
      assert.deepEqual(
        [document['owner'], document['paused'], document['active'], document['pending']],
        ['code', null, null, []],
      );
    });
  }

  it('preview the same runs that are stored [B10]', async () => {
    const { scheduler } = manualScheduler(database);
    const builder = scheduler.schedule('preview', () => 1).cron('0 * * * *');
    await scheduler.run();
    const [first, second] = builder.nextRuns(2, START);
    const schedule = await scheduler.getSchedule('preview');
    assert.deepEqual(schedule?.nextRunAt, first);
    assert.deepEqual(schedule?.nextRuns(2), [first, second]);
  });
});
