import assert from 'node:assert/strict';
import { jitterOf } from '../../../../src/domain/schedule/schedule.js';
import type { JobContext } from '../../../../src/index.js';
import { manualScheduler } from '../../../support/manual-scheduler.js';
import { timeAfter } from '../../../support/instants.js';
import { jobsOf } from '../../../support/schedules.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const MINUTE = 60_000;

describe('jobs of a definition', () => {
  const database = useSharedDatabase();

  it('are created once per occurrence, with all settings of the definition [C7] [D1] [J15]', async () => {
    const { scheduler, clock } = manualScheduler(database, { queues: ['reports'] });
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
    const [job, ...more] = await jobsOf(database, 'report');
    assert.equal(more.length, 0);
    assert.deepEqual(job, {
      ...job,
      _id: 'report@2026-01-01T00:01:00.000Z',
      taskType: 'report',
      payload: { n: 1 },
      queue: 'reports',
      priority: 7,
      retries: { max: 5, base: 2000 },
      timeout: 120_000,
      maxRunningTime: 600_000,
      scheduledFor: timeAfter(MINUTE),
      status: 'COMPLETED',
      result: 'done',
    });
    assert.deepEqual([seen?.schedule, seen?.scheduledFor], ['report', timeAfter(MINUTE)]);
  });

  it('are created once per name and second, however many workers run [J15]', async () => {
    const { scheduler: first, clock } = manualScheduler(database);
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
    const expected = [1, 2, 3, 4, 5].map((second) => `tick@${timeAfter(second * 1000).toISOString()}`);
    assert.deepEqual(ran.sort(), expected);
    assert.deepEqual(
      (await jobsOf(database, 'tick')).map(({ _id }) => _id),
      expected,
    );
  });

  it('are locked for the duration of lease() [J12] [D1]', async () => {
    const { scheduler } = manualScheduler(database);
    let lockedUntil: Date | null | undefined;
    scheduler
      .schedule('work', async (_, job) => {
        lockedUntil = (await database.collections.jobs.findOne({ _id: job.id }))?.lockedUntil;
      })
      .lease('30s');
    await scheduler.dispatch('work');
    await scheduler.run();
    assert.deepEqual(lockedUntil, timeAfter(30_000));
  });

  it('run with the filters and hooks of the definition [J4] [J5] [D1]', async () => {
    const { scheduler } = manualScheduler(database);
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
    assert.deepEqual(await outcome({ skip: true }), ['skipped', 'when() number 1 is false', []]);
    assert.deepEqual(await outcome({}), ['skipped', 'skip() number 1 is true', []]);
    assert.deepEqual(await outcome({ skip: false }), ['completed', null, ['before', 'onSuccess', 'after']]);
    assert.deepEqual(await outcome({ skip: false, fail: true }), [
      'failed',
      null,
      ['before', 'onError', 'after'],
    ]);
  });

  it('have three attempts with maxRetries(2) [D14]', async () => {
    const { scheduler, clock } = manualScheduler(database);
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
    const [job] = await jobsOf(database, 'flaky');
    assert.deepEqual([attempts, job?.status, job?.attempts], [3, 'FAILED', 3]);
  });

  it('have one attempt with maxRetries(0) [D14]', async () => {
    const { scheduler } = manualScheduler(database);
    const { id } = await scheduler
      .schedule('flaky', () => Promise.reject(new Error('boom')))
      .maxRetries(0)
      .dispatch();
    await scheduler.run();
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.attempts], ['FAILED', 1]);
  });

  it('are delayed by jitter(), by the same time for the same occurrence [B10]', async () => {
    const { scheduler, clock } = manualScheduler(database);
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
    const jobs = await jobsOf(database, 'work');
    const delays = jobs.map(({ nextRunAt, scheduledFor }) => nextRunAt.getTime() - scheduledFor!.getTime());
    assert.deepEqual(
      delays,
      jobs.map(({ _id }) => jitterOf(_id, 30_000)),
    );
    assert.equal(new Set(delays).size, 4);
    for (const delay of delays) assert.ok(delay >= 0 && delay < 30_000, String(delay));
  });

  it('end after maxRuns() [B10]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    scheduler
      .schedule('work', () => 1)
      .everyMinute()
      .maxRuns(2);
    await scheduler.run();
    for (let minute = 1; minute <= 4; minute++) {
      clock.advance(MINUTE);
      await scheduler.run();
    }
    assert.equal((await jobsOf(database, 'work')).length, 2);
    const schedule = await scheduler.getSchedule('work');
    assert.deepEqual([schedule?.runs, schedule?.nextRunAt], [2, null]);
  });

  it('continue when a newer version of the code has a higher maxRuns() [B10]', async () => {
    const { scheduler, clock } = manualScheduler(database);
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
    assert.equal((await jobsOf(database, 'work')).length, 2);
  });
});
