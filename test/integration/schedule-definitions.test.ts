import assert from 'node:assert/strict';
import { z } from 'zod';
import {
  type JobContext,
  type JobHandle,
  type ScheduleBuilder,
  type Scheduler,
  type SchedulerOptions,
} from '../../src/index.js';
import type { JobDocument } from '../../src/domain/job.js';
import { jitterOf, type ScheduleDocument } from '../../src/domain/schedule.js';
import { ScheduleBuilder as BuilderClass } from '../../src/schedules/builder.js';
import { byHand, inProcess } from '../support/by-hand.js';
import { TestDatabase } from '../support/database.js';
import { nextEvent, recordEvents, signal } from '../support/events.js';
import { after as later, START } from '../support/instants.js';
import { useSharedDatabase } from '../support/shared-database.js';
import { until } from '../support/until.js';

type Build = (builder: ScheduleBuilder<unknown>) => unknown;

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

describe('every method of the builder', () => {
  const cron = (expression: string, ...loose: string[]): object => ({
    rule: { cron: expression, ...(loose.length > 0 && { loose }), timezone: 'UTC' },
  });
  const daily = (only: object): object => ({
    rule: { cron: '0 0 * * *', loose: ['minute', 'hour'], only, timezone: 'UTC' },
  });
  const hourly = (more: object): object => ({ rule: { cron: '0 * * * *', timezone: 'UTC', ...more } });
  const everyHour: Build = (b) => b.cron('0 * * * *');

  /** What each call comes to in the schedule's document. */
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
      { rule: { every: 45_000, timezone: 'UTC' }, anchor: START, nextRunAt: later(45_000) },
    ],
    seconds: [(b) => b.cron('0 * * * *').seconds([0, 30]), hourly({ only: { second: [0, 30] } })],
    minutes: [(b) => b.cron('0 * * * *').minutes(0), hourly({ only: { minute: [0] } })],
    hours: [(b) => b.cron('0 * * * *').hours([9, 17]), hourly({ only: { hour: [9, 17] } })],
    days: [(b) => b.cron('0 * * * *').days([1, 15]), hourly({ only: { day: [1, 15] } })],
    months: [(b) => b.cron('0 * * * *').months(6), hourly({ only: { month: [6] } })],
    daysOfWeek: [(b) => b.cron('0 * * * *').daysOfWeek([1, 2]), hourly({ only: { weekday: [1, 2] } })],
    between: [(b) => b.cron('0 * * * *').between('09:00', '17:30'), hourly({ between: ['09:00', '17:30'] })],
    except: [
      (b) => b.cron('0 * * * *').except('12-25', '2026-12-24'),
      hourly({ except: ['12-25', '2026-12-24'] }),
    ],
    timezone: [
      (b) => b.cron('0 * * * *').timezone('Asia/Kolkata'),
      { ...hourly({ timezone: 'Asia/Kolkata' }), nextRunAt: later(30 * MINUTE) },
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
    maxRunningTime: [(b) => b.maxRunningTime('10m'), { maxRunningTime: 600_000 }],
    singleInstance: [(b) => b.singleInstance(), { overlap: 'skip' }],
    'singleInstance of false': [(b) => b.singleInstance(false), { overlap: 'allow' }],
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
  /** Those that reach the job, its execution or nothing that is stored: each has a test below. */
  const ELSEWHERE = [
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
  const INTERNAL = ['constructor', 'frequency', 'onDays'];

  const database = new TestDatabase();
  const stored = new Map<string, ScheduleDocument>();

  before(async () => {
    await database.open();
    const { scheduler } = byHand(database, { environment: 'test' });
    for (const [name, [build]] of Object.entries(STORED)) build(scheduler.schedule(name, () => name));
    await scheduler.run();
    for (const schedule of await database.collections.schedules.find().toArray())
      stored.set(schedule._id, schedule);
    await scheduler.stop();
  });
  after(() => database.close());

  it('D1 is in this list', () => {
    const listed = Object.keys(STORED).map((name) => name.split(' ')[0]!);
    const all = new Set([...listed, ...ELSEWHERE, ...INTERNAL]);
    assert.deepEqual([...all].sort(), Object.getOwnPropertyNames(BuilderClass.prototype).sort());
    assert.equal(stored.size, Object.keys(STORED).length);
  });

  for (const [name, [, expected]] of Object.entries(STORED)) {
    it(`D1 J2 J3 reaches MongoDB: ${name}`, () => {
      const document = (stored.get(name) ??
        stored.get((expected as { _id?: string })._id ?? '')) as unknown as Record<string, unknown>;
      assert.ok(document !== undefined, 'it is stored');
      const part = Object.fromEntries(Object.keys(expected).map((key) => [key, document[key]]));
      assert.deepEqual(part, expected);
      assert.deepEqual(
        [document['owner'], document['paused'], document['active'], document['owed']],
        ['code', null, null, []],
      );
    });
  }

  it('B10 the preview and what is stored say the same', async () => {
    const { scheduler } = byHand(database);
    const hour = scheduler.schedule('preview', () => 1);
    everyHour(hour);
    await scheduler.run();
    const [first, second] = hour.nextRuns(2, START);
    const schedule = await scheduler.getSchedule('preview');
    assert.deepEqual(schedule?.nextRunAt, first);
    assert.deepEqual(schedule?.nextRuns(2), [first, second]);
  });
});

describe('definitions', () => {
  const database = useSharedDatabase();

  function jobsOf(schedule: string): Promise<JobDocument[]> {
    return database.collections.jobs.find({ schedule }, { sort: { scheduledFor: 1 } }).toArray();
  }

  describe('make jobs', () => {
    it('C7 D1 J15 one for each occurrence, with everything that was said', async () => {
      const { scheduler, clock } = byHand(database, { queues: ['reports'] });
      let seen: JobContext | undefined;
      scheduler
        .schedule('report', (_: { n: number }, job) => {
          seen = job;
          return 'done';
        })
        .everyMinute()
        .args({ n: 1 })
        .queue('reports')
        .priority(7)
        .retries({ max: 5, base: '2s' })
        .timeout('2m')
        .maxRunningTime('10m');
      await scheduler.run();
      clock.advance(MINUTE);
      assert.equal(await scheduler.run(), 1);
      const [job, ...more] = await jobsOf('report');
      assert.equal(more.length, 0);
      const {
        _id,
        taskType,
        payload,
        queue,
        priority,
        retries,
        timeout,
        maxRunningTime,
        scheduledFor,
        status,
        result,
      } = job!;
      assert.deepEqual(
        {
          _id,
          taskType,
          payload,
          queue,
          priority,
          retries,
          timeout,
          maxRunningTime,
          scheduledFor,
          status,
          result,
        },
        {
          _id: 'report@2026-01-01T00:01:00.000Z',
          taskType: 'report',
          payload: { n: 1 },
          queue: 'reports',
          priority: 7,
          retries: { max: 5, base: 2000 },
          timeout: 120_000,
          maxRunningTime: 600_000,
          scheduledFor: later(MINUTE),
          status: 'COMPLETED',
          result: 'done',
        },
      );
      assert.deepEqual([seen?.schedule, seen?.scheduledFor], ['report', later(MINUTE)]);
    });

    it('J15 one per name and second, however many workers look', async () => {
      const { scheduler: first, clock } = byHand(database);
      const workers = [
        first,
        ...Array.from({ length: 4 }, () => database.scheduler({ clock, lockTimeout: '1d' })),
      ];
      const ran: string[] = [];
      for (const worker of workers)
        worker
          .schedule('tick', (_, job) => ran.push(job.id))
          .everySecond()
          .overlap('allow');
      await Promise.all(workers.map((worker) => worker.run()));
      for (let second = 1; second <= 5; second++) {
        clock.advance(1000);
        await Promise.all(workers.map((worker) => worker.run()));
      }
      await first.run();
      const expected = [1, 2, 3, 4, 5].map((second) => `tick@${later(second * 1000).toISOString()}`);
      assert.deepEqual(ran.sort(), expected);
      assert.deepEqual(
        (await jobsOf('tick')).map(({ _id }) => _id),
        expected,
      );
    });

    it('J12 D1 lease() is how long their locks hold', async () => {
      const { scheduler } = byHand(database);
      let lockedUntil: Date | null | undefined;
      scheduler
        .schedule('work', async (_, job) => {
          lockedUntil = (await database.collections.jobs.findOne({ _id: job.id }))?.lockedUntil;
        })
        .lease('30s');
      await scheduler.dispatch('work');
      await scheduler.run();
      assert.deepEqual(lockedUntil, later(30_000));
    });

    it('J4 J5 D1 filters and hooks leave their marks', async () => {
      const { scheduler } = byHand(database);
      scheduler
        .schedule('work', (args: { skip?: boolean; fail?: boolean }) => {
          if (args.fail === true) throw new Error('boom');
        })
        .maxRetries(0)
        .when((args) => args.skip !== true)
        .skip((args) => args.skip === undefined)
        .before((_, job) => job.log('before'))
        .onSuccess((_, job) => job.log('onSuccess'))
        .onError((_error, _, job) => job.log('onError'))
        .after((_, job) => job.log('after'));
      const outcome = async (payload: object): Promise<unknown> => {
        const { id } = await scheduler.dispatch('work', payload);
        await scheduler.run();
        const [row] = await scheduler.getExecutions(id);
        return [row?.outcome, (await scheduler.getJob(id))?.skipReason, row?.log];
      };
      assert.deepEqual(await outcome({ skip: true }), ['skipped', 'when() number 1 does not hold', []]);
      assert.deepEqual(await outcome({}), ['skipped', 'skip() number 1 holds', []]);
      assert.deepEqual(await outcome({ skip: false }), ['completed', null, ['before', 'onSuccess', 'after']]);
      assert.deepEqual(await outcome({ skip: false, fail: true }), [
        'failed',
        null,
        ['before', 'onError', 'after'],
      ]);
    });

    it('D14 maxRetries(2) is three attempts', async () => {
      const { scheduler, clock } = byHand(database);
      let attempts = 0;
      scheduler
        .schedule('flaky', () => {
          attempts++;
          throw new Error('boom');
        })
        .everyMinute()
        .maxRetries(2);
      await scheduler.run();
      clock.advance(MINUTE);
      for (let pass = 0; pass < 5; pass++) {
        await scheduler.run();
        clock.advance(5000);
      }
      const [job] = await jobsOf('flaky');
      assert.deepEqual([attempts, job?.status, job?.attempts], [3, 'FAILED', 3]);
    });

    it('D14 maxRetries(0) is one', async () => {
      const { scheduler } = byHand(database);
      const { id } = await scheduler
        .schedule('flaky', () => Promise.reject(new Error('boom')))
        .maxRetries(0)
        .dispatch();
      await scheduler.run();
      const job = await scheduler.getJob(id);
      assert.deepEqual([job?.status, job?.attempts], ['FAILED', 1]);
    });

    it('B10 jitter() delays each by up to that, the same for the same occurrence', async () => {
      const { scheduler, clock } = byHand(database);
      scheduler
        .schedule('work', () => 1)
        .everyMinute()
        .overlap('allow')
        .jitter('30s');
      await scheduler.run();
      for (let minute = 0; minute < 4; minute++) {
        clock.advance(MINUTE);
        await scheduler.run();
      }
      const jobs = await jobsOf('work');
      const delays = jobs.map(({ nextRunAt, scheduledFor }) => nextRunAt.getTime() - scheduledFor!.getTime());
      assert.deepEqual(
        delays,
        jobs.map(({ _id }) => jitterOf(_id, 30_000)),
      );
      assert.equal(new Set(delays).size, 4);
      for (const delay of delays) assert.ok(delay >= 0 && delay < 30_000, String(delay));
    });

    it('B10 maxRuns() ends it', async () => {
      const { scheduler, clock } = byHand(database);
      scheduler
        .schedule('work', () => 1)
        .everyMinute()
        .maxRuns(2);
      await scheduler.run();
      for (let minute = 1; minute <= 4; minute++) {
        clock.advance(MINUTE);
        await scheduler.run();
      }
      assert.equal((await jobsOf('work')).length, 2);
      const schedule = await scheduler.getSchedule('work');
      assert.deepEqual([schedule?.runs, schedule?.nextRunAt], [2, null]);
    });

    it('B10 a higher maxRuns() in the code lets it go on', async () => {
      const { scheduler, clock } = byHand(database);
      scheduler
        .schedule('work', () => 1)
        .everyMinute()
        .maxRuns(1);
      await scheduler.run();
      clock.advance(MINUTE);
      await scheduler.run();
      await scheduler.stop();
      const next = database.scheduler({ clock, lockTimeout: '1d' });
      next
        .schedule('work', () => 1)
        .everyMinute()
        .maxRuns(2);
      await next.run();
      clock.advance(MINUTE);
      await next.run();
      assert.equal((await jobsOf('work')).length, 2);
    });
  });

  describe('freeze', () => {
    const frozen = { code: 'SCHEDULE_FROZEN', message: /the definition 'work' is in use/ };

    it('D1 at start()', async () => {
      const scheduler = database.scheduler(inProcess);
      const work = scheduler.schedule('work', () => 1);
      await scheduler.start();
      assert.throws(() => work.daily(), frozen);
    });

    it('D1 at a pass', async () => {
      for (const pass of ['run', 'runOnce'] as const) {
        const { scheduler } = byHand(database);
        const work = scheduler.schedule('work', () => 1);
        await scheduler[pass]();
        assert.throws(() => work.daily(), frozen, pass);
      }
    });

    it('D1 at a pass that only tells what it would do', async () => {
      const { scheduler } = byHand(database);
      const work = scheduler.schedule('work', () => 1);
      await scheduler.runOnce({ dryRun: true });
      assert.throws(() => work.daily(), frozen);
      assert.equal(await database.collections.schedules.countDocuments(), 0);
    });

    it('D1 J6 at a dispatch, by the builder or by its name', async () => {
      const dispatches: ((scheduler: Scheduler, work: ScheduleBuilder<unknown>) => Promise<unknown>)[] = [
        (_, work) => work.dispatch(),
        (_, work) => work.delay('1h').dispatch(),
        (scheduler) => scheduler.dispatch('work'),
        (scheduler) => scheduler.delay('1h').dispatch('work'),
      ];
      for (const dispatch of dispatches) {
        const { scheduler } = byHand(database);
        const work = scheduler.schedule<unknown>('work', () => 1);
        await dispatch(scheduler, work);
        assert.throws(() => work.daily(), frozen, String(dispatch));
      }
    });

    it('D1 what was said before counts, what is refused changes nothing', async () => {
      const { scheduler } = byHand(database);
      const work = scheduler.schedule('work', () => 1).dailyAt('09:00');
      await scheduler.run();
      assert.throws(() => work.dailyAt('10:00'), frozen);
      await scheduler.run();
      assert.deepEqual((await scheduler.getSchedule('work'))?.rule?.cron, '0 9 * * *');
    });
  });

  describe('that are wrong', () => {
    it('D5 keep a worker from starting, and one that was made right lets it', async () => {
      const scheduler = database.scheduler(inProcess);
      const work = scheduler.schedule('work', () => 1).cron('0 0 31 2 *');
      await assert.rejects(scheduler.start(), { code: 'SCHEDULE_NEVER_RUNS' });
      assert.equal(scheduler.state, 'Error');
      assert.equal(await database.collections.schedules.countDocuments(), 0);
      work.cron('0 0 28 2 *');
      await scheduler.start();
      assert.equal(scheduler.state, 'Running');
    });

    it('D5 keep a pass from running, for every reason there is', async () => {
      const wrong: [(scheduler: Scheduler) => unknown, string][] = [
        [(scheduler) => scheduler.schedule('work', () => 1).cron('0 0 30 2 *'), 'SCHEDULE_NEVER_RUNS'],
        [(scheduler) => scheduler.schedule('work').daily(), 'HANDLER_INVALID'],
        [(scheduler) => scheduler.define('command', 'app:none').daily(), 'COMMAND_UNKNOWN'],
        [(scheduler) => scheduler.schedule('work', () => 1).between('09:00', '10:00'), 'INVALID_SCHEDULE'],
        [(scheduler) => scheduler.schedule('work', () => 1).args(() => 1), 'INVALID_PAYLOAD'],
        [
          (scheduler) =>
            scheduler
              .define('closure', () => 1)
              .queue('mails')
              .daily(),
          'INVALID_SCHEDULE',
        ],
      ];
      for (const [define, code] of wrong) {
        for (const pass of ['run', 'runOnce'] as const) {
          const { scheduler } = byHand(database);
          define(scheduler);
          await assert.rejects(scheduler[pass](), { code }, `${pass} ${code}`);
        }
      }
      assert.equal(await database.collections.schedules.countDocuments(), 0);
    });

    it('D9 unknown dependencies and cycles are errors of a pass, which computes the order, not of a worker', async () => {
      const define = (scheduler: Scheduler): void => {
        scheduler
          .schedule('load', () => 1)
          .daily()
          .dependsOn('extrakt');
        scheduler.schedule('extract', () => 2).daily();
      };
      const { scheduler } = byHand(database);
      define(scheduler);
      const unknown = {
        code: 'DEPENDENCY_UNKNOWN',
        message: /'load' depends on 'extrakt'.*did you mean 'extract'\?/,
      };
      await assert.rejects(scheduler.runOnce(), unknown);
      assert.throws(() => scheduler.getExecutionOrder(), unknown);
      const { scheduler: circular } = byHand(database);
      circular
        .schedule('a', () => 1)
        .daily()
        .dependsOn('b');
      circular
        .schedule('b', () => 2)
        .daily()
        .dependsOn('a');
      await assert.rejects(circular.runOnce(), { code: 'DEPENDENCY_CYCLE', message: /a → b → a/ });
      const { scheduler: worker } = byHand(database);
      define(worker);
      await worker.run();
    });

    it('D3 have the id of a stored schedule', async () => {
      const { scheduler } = byHand(database);
      scheduler.registerHandler('work', () => 1);
      await scheduler.addSchedule({ id: 'nightly', taskType: 'work', cron: '0 2 * * *' });
      const { scheduler: other } = byHand(database);
      other.schedule('nightly', () => 2).daily();
      await assert.rejects(other.run(), {
        code: 'SCHEDULE_EXISTS',
        message: /^a stored schedule has the id 'nightly' already/,
      });
      assert.equal((await scheduler.getSchedule('nightly'))?.owner, 'api');
    });
  });

  describe('made after the start', () => {
    it('J21 take effect within a poll', async () => {
      const scheduler = database.scheduler({ ...inProcess, pollInterval: '50ms' });
      await scheduler.start();
      const complete = nextEvent(scheduler, 'job:complete');
      scheduler.schedule('late', () => 'done').everySecond();
      assert.equal((await complete).taskType, 'late');
    });

    it('J21 one that is wrong is reported and left out, the others are not affected', async () => {
      const scheduler = database.scheduler({ ...inProcess, pollInterval: '50ms' });
      await scheduler.start();
      const disabled = nextEvent(scheduler, 'schedule:disabled');
      scheduler.schedule('never', () => 1).cron('0 0 31 2 *');
      scheduler.schedule('good', () => 1).daily();
      const { scheduleId, reason } = await disabled;
      assert.equal(scheduleId, 'never');
      assert.match(reason, /never runs/);
      await until('the good one is stored', async () => (await scheduler.getSchedule('good')) !== null);
      assert.equal(await scheduler.getSchedule('never'), null);
    });

    it('J21 one that was left out can be defined again, right', async () => {
      const scheduler = database.scheduler({ ...inProcess, pollInterval: '50ms' });
      await scheduler.start();
      const disabled = nextEvent(scheduler, 'schedule:disabled');
      scheduler.schedule('work', () => 1).cron('0 0 31 2 *');
      await disabled;
      scheduler.schedule('work', () => 1).daily();
      await until('it is stored', async () => (await scheduler.getSchedule('work')) !== null, 3000);
    });

    it('J21 one without a handler is reported once, and taken as soon as it has one', async () => {
      const { scheduler, clock } = byHand(database);
      await scheduler.start();
      const disabled = recordEvents(scheduler, 'schedule:disabled');
      scheduler.schedule('work').daily();
      await until('it is reported', async () => {
        clock.advance(100);
        return disabled.length > 0;
      });
      // One that comes later is stored by a later look at all of them.
      scheduler.schedule('other', () => 1).daily();
      await until('the other is stored', async () => {
        clock.advance(100);
        return (await scheduler.getSchedule('other')) !== null;
      });
      assert.equal(await scheduler.getSchedule('work'), null);
      scheduler.registerHandler('work', () => 2);
      await until('it is stored', async () => {
        clock.advance(100);
        return (await scheduler.getSchedule('work')) !== null;
      });
      assert.equal(disabled.length, 1);
      assert.match(JSON.stringify(disabled), /schedule 'work' has no handler/);
    });

    it('D2 an unnamed closure is reported too: other workers would not find its code', async () => {
      const { scheduler, clock } = byHand(database);
      await scheduler.start();
      const disabled = recordEvents(scheduler, 'schedule:disabled');
      const stored = (): Promise<number> => database.collections.schedules.countDocuments();
      scheduler.define('closure', () => 1).daily();
      await until('it was looked at', async () => {
        clock.advance(100);
        return disabled.length > 0 || (await stored()) > 0;
      });
      assert.deepEqual([disabled.length, await stored()], [1, 0]);
    });

    it('J6 can be dispatched at once', async () => {
      const scheduler = database.scheduler(inProcess);
      await scheduler.start();
      const complete = nextEvent(scheduler, 'job:complete');
      const { id } = await scheduler
        .schedule('late', (args: { n: number }) => args.n)
        .args({ n: 7 })
        .dispatch();
      const { jobId, result } = await complete;
      assert.deepEqual([jobId, result], [id, 7]);
    });
  });

  describe('in a newer version of the code', () => {
    const define = (build: Build, options: Partial<SchedulerOptions> = {}): Scheduler => {
      const { scheduler } = byHand(database, options);
      build(scheduler.schedule('work', () => 1));
      return scheduler;
    };

    it('C7 the same definition writes nothing', async () => {
      await define((b) => b.daily().priority(7)).run();
      const before = await database.collections.schedules.findOne({ _id: 'work' });
      await define((b) => b.priority(7).daily()).run();
      assert.deepEqual(await database.collections.schedules.findOne({ _id: 'work' }), before);
    });

    it('C7 another one is taken over, and what people decided stays', async () => {
      const old = define((b) => b.daily());
      await old.run();
      await old.pauseSchedule('work', { by: 'ada', reason: 'holidays' });
      await define((b) => b.dailyAt('09:00').queue('mails')).run();
      const schedule = await old.getSchedule('work');
      assert.deepEqual(
        [schedule?.rule?.cron, schedule?.queue, schedule?.nextRunAt],
        ['0 9 * * *', 'mails', later(9 * 60 * MINUTE)],
      );
      assert.deepEqual([schedule?.isActive, schedule?.paused?.by], [false, 'ada']);
    });

    it('D7 disabled and enabled again', async () => {
      await define((b) => b.daily()).run();
      const off = define((b) => b.daily().disable());
      await off.run();
      assert.equal((await off.getSchedule('work'))?.isActive, false);
      await define((b) => b.daily()).run();
      assert.equal((await off.getSchedule('work'))?.isActive, true);
    });
  });

  describe('dispatched', () => {
    const fieldsOf = async (scheduler: Scheduler, { id }: JobHandle): Promise<unknown> => {
      const job = await scheduler.getJob(id);
      return (
        job && { payload: job.payload, queue: job.queue, priority: job.priority, nextRunAt: job.nextRunAt }
      );
    };

    function reindex(scheduler: Scheduler): ScheduleBuilder<{ deep: boolean }> {
      return scheduler
        .schedule('reindex', (args: { deep: boolean }) => args.deep)
        .queue('maintenance')
        .priority(50)
        .args({ deep: true });
    }
    const usual = { payload: { deep: true }, queue: 'maintenance', priority: 50, nextRunAt: START };

    it('J6 J7 as defined, now, later and at a time', async () => {
      const { scheduler } = byHand(database, { timezone: 'Asia/Tokyo' });
      const builder = reindex(scheduler);
      assert.deepEqual(await fieldsOf(scheduler, await builder.dispatch()), usual);
      assert.deepEqual(await fieldsOf(scheduler, await builder.delay('10s').dispatch()), {
        ...usual,
        nextRunAt: later(10_000),
      });
      assert.deepEqual(await fieldsOf(scheduler, await builder.at('2026-11-01 03:15').dispatch()), {
        ...usual,
        nextRunAt: new Date('2026-10-31T18:15:00Z'),
      });
      assert.deepEqual(await fieldsOf(scheduler, await builder.at(later(5)).dispatch()), {
        ...usual,
        nextRunAt: later(5),
      });
    });

    it('J6 J7 with a payload of its own', async () => {
      const { scheduler } = byHand(database);
      const builder = reindex(scheduler);
      const other = { ...usual, payload: { deep: false } };
      assert.deepEqual(await fieldsOf(scheduler, await builder.dispatch({ deep: false })), other);
      const drafted = await builder.delay('10s').args({ deep: false }).dispatch();
      assert.deepEqual(await fieldsOf(scheduler, drafted), { ...other, nextRunAt: later(10_000) });
      assert.deepEqual(
        await fieldsOf(scheduler, await builder.dispatch()),
        usual,
        'the definition stays as it is',
      );
    });

    it('J6 J7 by its name: what the dispatch leaves open is as defined', async () => {
      const { scheduler } = byHand(database);
      reindex(scheduler);
      const cases: [Promise<JobHandle>, object][] = [
        [scheduler.dispatch('reindex'), {}],
        [scheduler.dispatch('reindex', { deep: false }), { payload: { deep: false } }],
        [scheduler.dispatch('reindex', null), { payload: null }],
        [scheduler.dispatch('reindex', undefined, { queue: 'now' }), { queue: 'now' }],
        [scheduler.dispatch('reindex', undefined, { priority: 0 }), { priority: 0 }],
        [scheduler.delay('1h').dispatch('reindex'), { nextRunAt: later(60 * MINUTE) }],
        [
          scheduler.at(later(7)).args({ deep: false }).dispatch('reindex'),
          { payload: { deep: false }, nextRunAt: later(7) },
        ],
        [scheduler.delay(0).queue('now').priority(1).dispatch('reindex'), { queue: 'now', priority: 1 }],
      ];
      for (const [dispatched, changed] of cases)
        assert.deepEqual(await fieldsOf(scheduler, await dispatched), { ...usual, ...changed });
    });

    it('J6 J22 in bulk: the same', async () => {
      const { scheduler } = byHand(database);
      reindex(scheduler);
      const results = await scheduler.dispatchMany([
        { taskType: 'reindex' },
        { taskType: 'reindex', payload: { deep: false } },
      ]);
      const [one, two] = await Promise.all(results.map((result) => scheduler.getJob(result.id!)));
      assert.deepEqual([one?.payload, one?.queue, one?.priority], [{ deep: true }, 'maintenance', 50]);
      assert.deepEqual([two?.payload, two?.queue, two?.priority], [{ deep: false }, 'maintenance', 50]);
    });

    it('D8 J6 from an environment that it does not run in: the same, and it waits for the right one', async () => {
      const { scheduler: laptop } = byHand(database, { environment: 'development', queues: ['maintenance'] });
      reindex(laptop).environments('production');
      const handle = await laptop.dispatch('reindex');
      assert.deepEqual(await fieldsOf(laptop, handle), usual);
      assert.equal(await laptop.run(), 0);
      const { scheduler: server } = byHand(database, { environment: 'production', queues: ['maintenance'] });
      reindex(server).environments('production');
      assert.equal(await server.run(), 1);
      assert.equal((await server.getJob(handle.id))?.status, 'COMPLETED');
    });

    it('J6 retries, timeout and limits are those of the definition', async () => {
      const { scheduler, clock } = byHand(database);
      scheduler
        .schedule('work', () => Promise.reject(new Error('boom')))
        .retries({ max: 2, base: '7s', jitter: 'none' })
        .maxRunningTime('1h');
      const { id } = await scheduler.dispatch('work');
      await scheduler.run();
      const job = await scheduler.getJob(id);
      assert.deepEqual([job?.nextRunAt, job?.maxRunningTime], [later(7000), 3_600_000]);
      clock.advance(7000);
      await scheduler.run();
      assert.equal((await scheduler.getJob(id))?.status, 'FAILED');
    });

    it('J6 beside its schedule: a separate job, which changes nothing about it', async () => {
      const { scheduler, clock } = byHand(database);
      const ran: (string | null)[] = [];
      scheduler.schedule('sync', (_, job) => ran.push(job.schedule)).everyHour();
      await scheduler.run();
      const { id } = await scheduler.dispatch('sync');
      await scheduler.run();
      assert.deepEqual(ran, [null]);
      const schedule = await scheduler.getSchedule('sync');
      assert.deepEqual(
        [schedule?.nextRunAt, schedule?.runs, schedule?.active],
        [later(60 * MINUTE), 0, null],
      );
      clock.advance(60 * MINUTE);
      await scheduler.run();
      assert.deepEqual(ran, [null, 'sync']);
      assert.equal(await database.collections.jobs.countDocuments(), 2);
      assert.notEqual(id, (await jobsOf('sync'))[0]?._id);
    });

    it('J6 without any rule: it runs when it is dispatched, and only then', async () => {
      const { scheduler, clock } = byHand(database);
      let runs = 0;
      const work = scheduler.schedule('work', () => ++runs);
      await scheduler.run();
      clock.advance(400 * DAY);
      assert.equal(await scheduler.run(), 0);
      await work.dispatch();
      assert.equal(await scheduler.run(), 1);
      assert.equal(runs, 1);
      const schedule = await scheduler.getSchedule('work');
      assert.deepEqual([schedule?.rule, schedule?.nextRunAt], [null, null]);
    });

    it('D7 disabled: it can be dispatched all the same', async () => {
      const { scheduler } = byHand(database);
      const { id } = await scheduler
        .schedule('work', () => 'done')
        .everyMinute()
        .disable()
        .dispatch();
      await scheduler.run();
      assert.equal((await scheduler.getJob(id))?.result, 'done');
    });

    it('J6 refused when the definition is, and nothing is stored', async () => {
      const { scheduler } = byHand(database);
      scheduler.schedule('work', () => 1).cron('0 0 31 2 *');
      await assert.rejects(scheduler.dispatch('work'), { code: 'SCHEDULE_NEVER_RUNS' });
      assert.equal(await database.collections.jobs.countDocuments(), 0);
    });

    it('J7 refused with a delay or an instant that is none', async () => {
      const { scheduler } = byHand(database);
      const work = scheduler.schedule('work', () => 1);
      await assert.rejects(async () => work.delay(-5).dispatch(), { code: 'INVALID_ARGUMENT' });
      await assert.rejects(async () => work.delay('soon').dispatch(), { code: 'INVALID_ARGUMENT' });
      await assert.rejects(async () => work.at('tomorrow').dispatch(), { code: 'INVALID_ARGUMENT' });
      assert.equal(await database.collections.jobs.countDocuments(), 0);
    });

    it('J6 J7 a handle may be moved as long as the job is not claimed', async () => {
      const { scheduler } = byHand(database);
      const handle = await scheduler
        .schedule('task', () => 1)
        .delay('1h')
        .dispatch();
      assert.deepEqual(await handle.at(START), { moved: true, nextRunAt: START });
      assert.equal(await scheduler.run(), 1);
    });
  });

  describe('handlers', () => {
    it('J6 the name of a task type: with the schema, timeout and retries it was registered with', async () => {
      const { scheduler } = byHand(database);
      const received: unknown[] = [];
      scheduler.registerHandler('report', (payload) => received.push(payload), {
        schema: z.object({ month: z.string().transform(Number), copies: z.number().default(1) }),
        retries: { max: 1 },
      });
      const { id } = await scheduler.schedule('monthly-report', 'report').args({ month: '5' }).dispatch();
      await scheduler.run();
      assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED');
      assert.deepEqual(received, [{ month: 5, copies: 1 }]);
    });

    it('J6 a class with a static handle, an instance handle, an object', async () => {
      class Static {
        static handle(payload: unknown): unknown {
          return ['static', payload];
        }
      }
      class Instance {
        handle(payload: unknown): unknown {
          return ['instance', payload];
        }
      }
      const { scheduler } = byHand(database);
      const handles = [
        await scheduler.schedule('a', Static).args(1).dispatch(),
        await scheduler.schedule('b', Instance).args(2).dispatch(),
        await scheduler
          .schedule('c', { handle: (payload: unknown) => ['object', payload] })
          .args(3)
          .dispatch(),
        await scheduler.define(Static, 4).named('d').dispatch(),
      ];
      await scheduler.run();
      const results = await Promise.all(handles.map(async ({ id }) => (await scheduler.getJob(id))?.result));
      assert.deepEqual(results, [
        ['static', 1],
        ['instance', 2],
        ['object', 3],
        ['static', 4],
      ]);
    });

    it('J18 a worker without the definition leaves its jobs to one that has it', async () => {
      const { scheduler: plain, clock } = byHand(database);
      const featured = database.scheduler({ clock, lockTimeout: '1d' });
      featured.schedule('send-emails', () => 'sent').everyFiveMinutes();
      plain.schedule('other', () => 1).daily();
      await featured.run();
      clock.advance(5 * MINUTE);
      assert.equal(await plain.run(), 0);
      assert.equal((await jobsOf('send-emails')).length, 0, 'nor does it make them');
      assert.equal(await featured.run(), 1);
    });
  });

  describe('environments', () => {
    it('D8 only where the environment is one of them', async () => {
      const ran: string[] = [];
      const { clock } = byHand(database);
      const worker = (environment: string): Scheduler => {
        const scheduler = database.scheduler({ clock, lockTimeout: '1d', environment });
        scheduler
          .schedule('report', () => ran.push(`report in ${environment}`))
          .everyMinute()
          .environments('production');
        scheduler
          .schedule('debug', () => ran.push(`debug in ${environment}`))
          .everyMinute()
          .environments(['development', 'testing']);
        scheduler
          .schedule('both', () => ran.push(`both in ${environment}`))
          .everyMinute()
          .environments();
        return scheduler;
      };
      const [server, laptop] = [worker('production'), worker('development')];
      await server.run();
      await laptop.run();
      clock.advance(MINUTE);
      await server.run();
      await laptop.run();
      assert.deepEqual(ran.sort(), ['both in production', 'debug in development', 'report in production']);
    });

    it('D8 NODE_ENV unless said', async () => {
      const define = (scheduler: Scheduler): Scheduler => {
        scheduler.schedule('work', () => 'done').environments(process.env['NODE_ENV'] ?? 'development');
        return scheduler;
      };
      const elsewhere = define(byHand(database, { environment: 'elsewhere' }).scheduler);
      const here = define(byHand(database).scheduler);
      await elsewhere.dispatch('work');
      assert.equal(await elsewhere.run(), 0);
      assert.equal(await here.run(), 1);
    });

    it('D8 also when its handler was registered by itself', async () => {
      const { clock } = byHand(database);
      const ran: string[] = [];
      const worker = (environment: string): Scheduler => {
        const scheduler = database.scheduler({ clock, lockTimeout: '1d', environment, concurrency: 1 });
        scheduler.registerHandler('report', () => ran.push(environment));
        scheduler.schedule('report').everyMinute().environments('production');
        return scheduler;
      };
      const [server, laptop] = [worker('production'), worker('development')];
      await server.run();
      await laptop.run();
      clock.advance(MINUTE);
      // The server has made the job; the laptop comes first.
      await server.triggerSchedule('report');
      await laptop.run();
      assert.deepEqual(ran, []);
      await server.run();
      assert.deepEqual(ran.at(0), 'production');
    });
  });

  describe('recipes', () => {
    it('J6 J22 enqueue a thousand jobs', async () => {
      const { scheduler } = byHand(database, { concurrency: 100 });
      const resized = new Set<number>();
      const resize = scheduler.schedule('resize', (args: { id: number }) => resized.add(args.id).size);
      for (let id = 0; id < 20; id++) await resize.dispatch({ id });
      await scheduler.dispatchMany(
        Array.from({ length: 980 }, (_, i) => ({ taskType: 'resize', payload: { id: 20 + i } })),
      );
      assert.equal(await scheduler.run(1000), 1000);
      assert.equal(resized.size, 1000);
    });

    it('J6 J7 on demand, by class, with a delay and with args', async () => {
      class SendReport {
        static handle(args: { type: string } | null): string {
          return `Sending report: ${args?.type ?? 'any'}`;
        }
      }
      const { scheduler, clock } = byHand(database);
      const now = await scheduler.dispatch(SendReport);
      const later = await scheduler.delay('1h').args({ type: 'daily' }).dispatch(SendReport);
      assert.equal(await scheduler.run(), 1);
      clock.advance(60 * MINUTE);
      assert.equal(await scheduler.run(), 1);
      assert.equal((await scheduler.getJob(now.id))?.result, 'Sending report: any');
      assert.equal((await scheduler.getJob(later.id))?.result, 'Sending report: daily');
    });

    it('J8 retries with full jitter for calls of an API', async () => {
      const { scheduler } = byHand(database);
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

    it('J3 J15 recurring without duplicates, by two workers', async () => {
      const { scheduler: one, clock } = byHand(database);
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

    it('J10 a priority queue with delays', async () => {
      const { scheduler, clock } = byHand(database, { concurrency: 1 });
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

    it('Y5 only one at a time: an occurrence is skipped while the one before runs', async () => {
      const { scheduler, clock } = byHand(database, { timeout: '1d' });
      const [reached, release] = [signal(), signal()];
      scheduler
        .schedule('long-import', () => {
          reached.fire();
          return release.promise;
        })
        .everyMinute()
        .singleInstance();
      await scheduler.run();
      clock.advance(MINUTE);
      const pass = scheduler.run();
      await reached.promise;
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
        (await jobsOf('long-import')).map(({ scheduledFor }) => scheduledFor),
        [later(MINUTE), later(3 * MINUTE)],
      );
    });

    it('J3 business hours only', async () => {
      const { scheduler } = byHand(database);
      scheduler
        .schedule('notifications', () => 1)
        .everyFiveMinutes()
        .hours([9, 10, 11, 12, 13, 14, 15, 16, 17])
        .weekdays();
      await scheduler.run();
      const schedule = await scheduler.getSchedule('notifications');
      assert.deepEqual(schedule?.nextRunAt, later(9 * 60 * MINUTE));
      assert.deepEqual(schedule?.nextRuns(1, '2026-01-02T17:55:00Z'), [new Date('2026-01-05T09:00:00Z')]);
    });

    it('D6 D9 extract, transform, load: in this order, in place', async () => {
      const { scheduler, clock } = byHand(database);
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

    it('D6 with a queue it is enqueued, without one it runs in place, one attempt', async () => {
      const { scheduler, clock } = byHand(database, { queues: ['reports'] });
      scheduler.registerCommand('app:report', () => 'reported');
      scheduler.registerCommand('app:vacuum', () => Promise.reject(new Error('no space')));
      scheduler
        .define('command', 'app:report')
        .named('report')
        .dailyAt('02:00')
        .queue('reports')
        .maxRetries(3);
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
      const [report] = await jobsOf('report');
      assert.deepEqual(
        [report?.status, report?.queue, report?.retries],
        ['SCHEDULED', 'reports', { max: 4 }],
      );
      const [vacuum] = await jobsOf('vacuum');
      assert.deepEqual([vacuum?.status, vacuum?.attempts], ['FAILED', 1]);
      assert.equal(await scheduler.run(), 1);
      assert.equal((await jobsOf('report'))[0]?.result, 'reported');
    });

    it('D7 D8 a ping that is disabled and meant for production', async () => {
      const { scheduler, clock } = byHand(database);
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

    it('D2 D3 J21 closures: named later, found by their names in every worker that has the code', async () => {
      const define = (scheduler: Scheduler): void => {
        scheduler
          .define('closure', (): string => 'done')
          .hourly()
          .named('housekeeping');
      };
      const { scheduler: maker, clock } = byHand(database);
      define(maker);
      await maker.run();
      clock.advance(60 * MINUTE);
      const other = database.scheduler({ clock, lockTimeout: '1d' });
      define(other);
      assert.equal(await other.run(), 1);
      assert.equal((await jobsOf('housekeeping'))[0]?.result, 'done');
    });

    it('J21 configure first, name later', async () => {
      const { scheduler } = byHand(database);
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
});
