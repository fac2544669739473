import assert from 'node:assert/strict';
import type { MisfireOptions, NewSchedule, Scheduler } from '../../../../src/index.js';
import type { SkipDocument } from '../../../../src/domain/schedule/schedule.js';
import { manualScheduler } from '../../../support/manual-scheduler.js';
import { countOutcomes, type OccurrenceOutcome } from '../../../support/occurrence-outcomes.js';
import { recordEvents } from '../../../support/events.js';
import { timeAfter } from '../../../support/instants.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { jobsOf, outcomesUntil, TAKEOVER_MS } from '../../../support/schedules.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe('missed runs', () => {
  const database = useSharedDatabase();

  /** Adds a schedule and makes the next pass `downtime` milliseconds later. */
  async function runAfterDowntime(
    options: Partial<NewSchedule>,
    downtime: number,
  ): Promise<{ scheduler: Scheduler; clock: ManualClock; outcomes: () => Promise<OccurrenceOutcome[]> }> {
    const { scheduler, clock } = manualScheduler(database);
    await scheduler.addSchedule({
      id: 's',
      taskType: 'work',
      cron: '*/10 * * * *',
      overlap: 'allow',
      ...options,
    });
    clock.advance(downtime);
    await scheduler.run();
    return { scheduler, clock, outcomes: () => outcomesUntil(database, clock.now()) };
  }

  const timeOfDay = (at: Date): string => at.toISOString().slice(11, 16);

  async function occurrencesWithJob(): Promise<string[]> {
    return (await jobsOf(database, 's')).map(({ scheduledFor }) => timeOfDay(scheduledFor!));
  }

  const policies: [string, MisfireOptions | undefined, string[]][] = [
    ['the default policy: the last one', undefined, ['03:00']],
    ['skip: none', { policy: 'skip' }, []],
    ['once: the last one', { policy: 'once' }, ['03:00']],
    ['once within four minutes: none', { policy: 'once', within: '4m' }, []],
    ['once within five minutes: the last one', { policy: 'once', within: '5m' }, ['03:00']],
    ['all within half an hour', { policy: 'all', within: '30m' }, ['02:40', '02:50', '03:00']],
    ['all, at most two', { policy: 'all', cap: 2 }, ['02:50', '03:00']],
    ['all, at most five within twenty minutes', { policy: 'all', cap: 5, within: '20m' }, ['02:50', '03:00']],
    [
      'all',
      { policy: 'all' },
      Array.from({ length: 18 }, (_, index) => timeOfDay(timeAfter((index + 1) * 10 * MINUTE))),
    ],
  ];
  for (const [name, misfire, expected] of policies) {
    it(`run by the policy after three hours of downtime (${name}), and the others are recorded as skipped [D13] [B10]`, async () => {
      const { outcomes, scheduler } = await runAfterDowntime(
        misfire === undefined ? {} : { misfire },
        3 * HOUR + 5 * MINUTE,
      );
      assert.deepEqual(await occurrencesWithJob(), expected);
      const missed = 18 - expected.length;
      assert.deepEqual(await outcomes(), [
        ...Array<OccurrenceOutcome>(missed).fill('misfire'),
        ...Array<OccurrenceOutcome>(expected.length).fill('job'),
      ]);
      const { items: skips } = await scheduler.getSkips('s');
      assert.deepEqual(
        skips.map(({ at, count, reason }) => [at, count, reason]),
        missed === 0 ? [] : [[timeAfter(10 * MINUTE), missed, 'misfire']],
      );
      assert.deepEqual((await scheduler.getSchedule('s'))?.nextRunAt, timeAfter(3 * HOUR + 10 * MINUTE));
    });
  }

  it('of a definition in code follow the same policy [D13]', async () => {
    const clock = new ManualClock();
    const definedBy = (): Scheduler => {
      const scheduler = database.scheduler({ clock, lockTimeout: '1d' });
      scheduler
        .schedule('s', () => undefined)
        .everyTenMinutes()
        .onMisfire('all', { within: '30m', cap: 2 })
        .overlap('allow');
      return scheduler;
    };
    const before = definedBy();
    await before.run();
    await before.stop();
    clock.advance(3 * HOUR + 5 * MINUTE);
    await definedBy().run();
    assert.deepEqual(await occurrencesWithJob(), ['02:50', '03:00']);
    assert.deepEqual(countOutcomes(await outcomesUntil(database, clock.now())), { misfire: 16, job: 2 });
  });

  it('are occurrences that are more than a minute late, whatever the policy [D13]', async () => {
    const misfire = { policy: 'skip' } as const;
    const { scheduler, clock, outcomes } = await runAfterDowntime({ misfire }, 11 * MINUTE);
    assert.deepEqual([await outcomes(), (await scheduler.getSkips('s')).items], [['job'], []]);
    clock.advance(10 * MINUTE + 1);
    await scheduler.run();
    assert.deepEqual(await outcomes(), ['job', 'misfire']);
  });

  it('are run for at most the last day by default [D13]', async () => {
    const daily = { cron: '0 2 * * *' };
    const { outcomes } = await runAfterDowntime(daily, 3 * DAY + 2 * HOUR - 1);
    // The last of the three was a millisecond less than a day ago.
    assert.deepEqual(await outcomes(), ['misfire', 'misfire', 'job']);
    const other = manualScheduler(database);
    await other.scheduler.addSchedule({ id: 't', taskType: 'work', cron: '0 2 1 * *' });
    other.clock.advance(2 * DAY);
    await other.scheduler.run();
    assert.deepEqual(await outcomesUntil(database, other.clock.now(), 't'), ['misfire']);
  });

  it('keep the time of their occurrence [D13]', async () => {
    const { scheduler, clock } = await runAfterDowntime({}, 3 * HOUR + 5 * MINUTE);
    const times: unknown[] = [];
    scheduler.registerHandler('work', (_, { scheduledFor }) => times.push(scheduledFor));
    await scheduler.run();
    assert.deepEqual(times, [timeAfter(3 * HOUR)]);
    const job = await scheduler.getJob('s@2026-01-01T03:00:00.000Z');
    assert.deepEqual([job?.scheduledFor, job?.createdAt], [timeAfter(3 * HOUR), clock.now()]);
  });

  it('of a schedule for every second are run for the last minute and skipped before [D13]', async () => {
    const { outcomes, scheduler } = await runAfterDowntime({ cron: '* * * * * *' }, 3 * HOUR);
    assert.deepEqual(countOutcomes(await outcomes()), { misfire: 10_738, job: 62 });
    const [skip] = (await scheduler.getSkips('s')).items;
    assert.deepEqual(
      [skip?.at, skip?.until, skip?.count],
      [timeAfter(SECOND), timeAfter(3 * HOUR - 61 * SECOND), null],
    );
  });

  it('are the same however many processes come back, in any order [D13]', async () => {
    const clock = new ManualClock();
    const schedulers = Array.from({ length: 5 }, () => database.scheduler({ clock, lockTimeout: '1d' }));
    const misfire = { policy: 'all', cap: 3 } as const;
    for (const id of ['a', 'b', 'c', 'd'])
      await schedulers[0]!.addSchedule({
        id,
        taskType: 'work',
        cron: '*/10 * * * *',
        misfire,
        overlap: 'allow',
      });
    clock.advance(3 * HOUR + 5 * MINUTE);
    await Promise.all(
      schedulers.map(async (scheduler, index) => {
        await scheduler.run();
        if (index % 2 === 0) await scheduler.run();
      }),
    );
    for (const id of ['a', 'b', 'c', 'd']) {
      const outcomes = await outcomesUntil(database, clock.now(), id);
      assert.deepEqual(countOutcomes(outcomes), { misfire: 15, job: 3 }, id);
    }
  });

  it('run one after another, oldest first, unless they may overlap [D13] [B10]', async () => {
    const { scheduler, clock, outcomes } = await runAfterDowntime(
      { misfire: { policy: 'all', within: '1h' }, overlap: 'skip' },
      3 * HOUR + 5 * MINUTE,
    );
    assert.deepEqual(
      [await occurrencesWithJob(), (await scheduler.getSchedule('s'))?.waiting],
      [['02:10'], 5],
    );
    const order: string[] = [];
    scheduler.registerHandler('work', (_, { scheduledFor }) => {
      order.push(timeOfDay(scheduledFor!));
    });
    for (let round = 0; round < 7; round++) {
      await scheduler.run();
      clock.advance(TAKEOVER_MS);
    }
    assert.deepEqual(order, ['02:10', '02:20', '02:30', '02:40', '02:50', '03:00']);
    assert.deepEqual(countOutcomes(await outcomes()), { misfire: 12, job: 6 });
  });

  it('include the last one when the schedule ended during the downtime [D13]', async () => {
    const { scheduler, outcomes } = await runAfterDowntime({ endsAt: '2026-01-01T01:00:00Z' }, 3 * HOUR);
    assert.deepEqual(await occurrencesWithJob(), ['01:00']);
    assert.deepEqual(countOutcomes(await outcomes()), { misfire: 5, job: 1 });
    assert.equal((await scheduler.getSchedule('s'))?.nextRunAt, null);
  });

  it('are reported as skipped once, and that is kept as long as failed jobs [D13]', async () => {
    const { scheduler, clock } = manualScheduler(database, { retention: { failed: '2d' } });
    const skipped = recordEvents(scheduler, 'schedule:skipped');
    await scheduler.addSchedule({
      id: 's',
      taskType: 'work',
      cron: '0 * * * *',
      misfire: { policy: 'skip' },
    });
    clock.advance(3 * HOUR + 30 * MINUTE);
    await scheduler.run();
    clock.advance(TAKEOVER_MS);
    await scheduler.run();
    const range = { from: timeAfter(HOUR), until: timeAfter(3 * HOUR + 29 * MINUTE), count: 3 };
    assert.deepEqual(
      skipped.map(({ event }) => event),
      [{ scheduleId: 's', ...range, reason: 'misfire', runningFor: null }],
    );
    const since = timeAfter(3 * HOUR + 30 * MINUTE);
    const expected: SkipDocument = {
      _id: 's@2026-01-01T01:00:00.000Z',
      scheduleId: 's',
      at: range.from,
      until: range.until,
      count: 3,
      reason: 'misfire',
      activeId: null,
      runningFor: null,
      since,
      expiresAt: timeAfter(2 * DAY, since),
    };
    assert.deepEqual(await database.collections.skips.find().toArray(), [expected]);
    const { _id, scheduleId, expiresAt, ...view } = expected;
    assert.deepEqual(await scheduler.getSkips('s'), { items: [view], next: null });
  });

  it('do not include occurrences during a pause, which are skipped with the reason `paused` [D13] [B8]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const misfire = { policy: 'all' } as const;
    await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', misfire, overlap: 'allow' });
    clock.advance(HOUR);
    await scheduler.run();
    await scheduler.pauseSchedule('s');
    clock.advance(3 * HOUR);
    await scheduler.run();
    await scheduler.resumeSchedule('s');
    clock.advance(HOUR);
    await scheduler.run();
    clock.advance(TAKEOVER_MS);
    await scheduler.run();
    assert.deepEqual(await outcomesUntil(database, clock.now()), [
      'job',
      'paused',
      'paused',
      'paused',
      'job',
    ]);
  });
});
