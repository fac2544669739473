import assert from 'node:assert/strict';
import type { JobHandle, ScheduleBuilder, Scheduler } from '../../../../src/index.js';
import { manualScheduler } from '../../../support/manual-scheduler.js';
import { timeAfter, START } from '../../../support/instants.js';
import { jobsOf } from '../../../support/schedules.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

describe('a dispatched definition', () => {
  const database = useSharedDatabase();

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
  const defaults = { payload: { deep: true }, queue: 'maintenance', priority: 50, nextRunAt: START };

  it('runs with its settings now, after a delay or at an instant [J6] [J7]', async () => {
    const { scheduler } = manualScheduler(database, { timezone: 'Asia/Tokyo' });
    const builder = reindex(scheduler);
    assert.deepEqual(await fieldsOf(scheduler, await builder.dispatch()), defaults);
    assert.deepEqual(await fieldsOf(scheduler, await builder.delay('10s').dispatch()), {
      ...defaults,
      nextRunAt: timeAfter(10_000),
    });
    assert.deepEqual(await fieldsOf(scheduler, await builder.at('2026-11-01 03:15').dispatch()), {
      ...defaults,
      nextRunAt: new Date('2026-10-31T18:15:00Z'),
    });
    assert.deepEqual(await fieldsOf(scheduler, await builder.at(timeAfter(5)).dispatch()), {
      ...defaults,
      nextRunAt: timeAfter(5),
    });
  });

  it('can have another payload [J6] [J7]', async () => {
    const { scheduler } = manualScheduler(database);
    const builder = reindex(scheduler);
    const other = { ...defaults, payload: { deep: false } };
    assert.deepEqual(await fieldsOf(scheduler, await builder.dispatch({ deep: false })), other);
    const drafted = await builder.delay('10s').args({ deep: false }).dispatch();
    assert.deepEqual(await fieldsOf(scheduler, drafted), { ...other, nextRunAt: timeAfter(10_000) });
    assert.deepEqual(
      await fieldsOf(scheduler, await builder.dispatch()),
      defaults,
      'the definition is unchanged',
    );
  });

  it('by name has the settings that the dispatch does not override [J6] [J7]', async () => {
    const { scheduler } = manualScheduler(database);
    reindex(scheduler);
    const cases: [Promise<JobHandle>, object][] = [
      [scheduler.dispatch('reindex'), {}],
      [scheduler.dispatch('reindex', { deep: false }), { payload: { deep: false } }],
      [scheduler.dispatch('reindex', null), { payload: null }],
      [scheduler.dispatch('reindex', undefined, { queue: 'now' }), { queue: 'now' }],
      [scheduler.dispatch('reindex', undefined, { priority: 0 }), { priority: 0 }],
      [scheduler.delay('1h').dispatch('reindex'), { nextRunAt: timeAfter(60 * MINUTE) }],
      [
        scheduler.at(timeAfter(7)).args({ deep: false }).dispatch('reindex'),
        { payload: { deep: false }, nextRunAt: timeAfter(7) },
      ],
      [scheduler.delay(0).queue('now').priority(1).dispatch('reindex'), { queue: 'now', priority: 1 }],
    ];
    for (const [dispatched, changed] of cases)
      assert.deepEqual(await fieldsOf(scheduler, await dispatched), { ...defaults, ...changed });
  });

  it('in bulk has its settings, too [J6] [J22]', async () => {
    const { scheduler } = manualScheduler(database);
    reindex(scheduler);
    const results = await scheduler.dispatchMany([
      { taskType: 'reindex' },
      { taskType: 'reindex', payload: { deep: false } },
    ]);
    const [one, two] = await Promise.all(results.map((result) => scheduler.getJob(result.id!)));
    assert.deepEqual([one?.payload, one?.queue, one?.priority], [{ deep: true }, 'maintenance', 50]);
    assert.deepEqual([two?.payload, two?.queue, two?.priority], [{ deep: false }, 'maintenance', 50]);
  });

  it('from another environment waits for a worker of its own environment [D8] [J6]', async () => {
    const { scheduler: laptop } = manualScheduler(database, {
      environment: 'development',
      queues: ['maintenance'],
    });
    reindex(laptop).environments('production');
    const handle = await laptop.dispatch('reindex');
    assert.deepEqual(await fieldsOf(laptop, handle), defaults);
    assert.equal(await laptop.run(), 0);
    const { scheduler: server } = manualScheduler(database, {
      environment: 'production',
      queues: ['maintenance'],
    });
    reindex(server).environments('production');
    assert.equal(await server.run(), 1);
    assert.equal((await server.getJob(handle.id))?.status, 'COMPLETED');
  });

  it('has the retries, timeout and limits of the definition [J6]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler
      .schedule('work', () => Promise.reject(new Error('boom')))
      .retries({ max: 2, base: '7s', jitter: 'none' })
      .maxRunningTime('1h');
    const { id } = await scheduler.dispatch('work');
    await scheduler.run();
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.nextRunAt, job?.maxRunningTime], [timeAfter(7000), 3_600_000]);
    clock.advance(7000);
    await scheduler.run();
    assert.equal((await scheduler.getJob(id))?.status, 'FAILED');
  });

  it('creates a separate job and does not change its schedule [J6]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const ran: (string | null)[] = [];
    scheduler.schedule('sync', (_, job) => ran.push(job.schedule)).everyHour();
    await scheduler.run();
    const { id } = await scheduler.dispatch('sync');
    await scheduler.run();
    assert.deepEqual(ran, [null]);
    const schedule = await scheduler.getSchedule('sync');
    assert.deepEqual(
      [schedule?.nextRunAt, schedule?.runs, schedule?.active],
      [timeAfter(60 * MINUTE), 0, null],
    );
    clock.advance(60 * MINUTE);
    await scheduler.run();
    assert.deepEqual(ran, [null, 'sync']);
    assert.equal(await database.collections.jobs.countDocuments(), 2);
    assert.notEqual(id, (await jobsOf(database, 'sync'))[0]?._id);
  });

  it('without a rule runs only when it is dispatched [J6]', async () => {
    const { scheduler, clock } = manualScheduler(database);
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

  it('runs although its schedule is disabled [D7]', async () => {
    const { scheduler } = manualScheduler(database);
    const { id } = await scheduler
      .schedule('work', () => 'done')
      .everyMinute()
      .disable()
      .dispatch();
    await scheduler.run();
    assert.equal((await scheduler.getJob(id))?.result, 'done');
  });

  it('is rejected when it is invalid, and nothing is stored [J6]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.schedule('work', () => 1).cron('0 0 31 2 *');
    await assert.rejects(scheduler.dispatch('work'), { code: 'SCHEDULE_NEVER_RUNS' });
    assert.equal(await database.collections.jobs.countDocuments(), 0);
  });

  it('is rejected with an invalid delay or instant [J7]', async () => {
    const { scheduler } = manualScheduler(database);
    const work = scheduler.schedule('work', () => 1);
    await assert.rejects(async () => work.delay(-5).dispatch(), { code: 'INVALID_ARGUMENT' });
    await assert.rejects(async () => work.delay('soon').dispatch(), { code: 'INVALID_ARGUMENT' });
    await assert.rejects(async () => work.at('tomorrow').dispatch(), { code: 'INVALID_ARGUMENT' });
    assert.equal(await database.collections.jobs.countDocuments(), 0);
  });

  it('can be rescheduled with the job handle until it is claimed [J6] [J7]', async () => {
    const { scheduler } = manualScheduler(database);
    const handle = await scheduler
      .schedule('task', () => 1)
      .delay('1h')
      .dispatch();
    assert.deepEqual(await handle.at(START), { result: 'changed', state: 'waiting' });
    assert.equal(await scheduler.run(), 1);
  });
});
