import assert from 'node:assert/strict';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { blocker, recordEvents } from '../../support/events.js';
import { timeAfter } from '../../support/instants.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { recordingDefinition } from '../../support/handlers/recording-definition.js';

const MINUTE = 60_000;

describe('filters', () => {
  const database = useSharedDatabase();

  it('that skip a run record the reason, run no hook and use no attempt [J4]', async () => {
    const { scheduler } = manualScheduler(database);
    const { work, calls } = recordingDefinition(scheduler, () => 1);
    const events = recordEvents(
      scheduler,
      'job:start',
      'job:skipped',
      'job:cancelled',
      'job:complete',
      'job:failed',
    );
    const isProduction = (): boolean => false;
    const { id } = await work.when(isProduction).dispatch({ n: 1 });
    assert.equal(await scheduler.run(), 1);

    assert.deepEqual(calls, []);
    const job = await scheduler.getJob(id);
    assert.deepEqual(
      [job?.status, job?.skipReason, job?.attempts, job?.error, job?.result, job?.lockedBy, job?.finishedAt],
      ['CANCELLED', 'when(isProduction) is false', 0, null, null, null, timeAfter(0)],
    );
    const [row, ...more] = await scheduler.getExecutions(id);
    assert.equal(more.length, 0);
    assert.deepEqual(
      [row?.outcome, row?.attempt, row?.error?.code, row?.error?.message],
      ['skipped', 1, 'JOB_SKIPPED', 'when(isProduction) is false'],
    );
    const about = { jobId: id, taskType: 'work', queue: 'default', attempt: 1, fence: 1 };
    assert.deepEqual(events, [
      { name: 'job:start', event: { ...about, waited: 0 } },
      { name: 'job:skipped', event: { ...about, reason: 'when(isProduction) is false' } },
    ]);
  });

  it('accumulate: every when must be true and every skip false, evaluated in order [J4]', async () => {
    const { scheduler } = manualScheduler(database);
    const evaluated: string[] = [];
    let [maintenance, apiAvailable, diskSpaceLow] = [false, true, false];
    const filter = (name: string, evaluate: () => boolean) => (): boolean => {
      evaluated.push(name);
      return evaluate();
    };
    scheduler
      .schedule('sync', () => 'synced')
      .when(filter('maintenance', () => !maintenance))
      .skip(filter('disk', () => diskSpaceLow))
      .when(filter('api', () => apiAvailable));
    const outcome = async (): Promise<unknown> => {
      evaluated.length = 0;
      const { id } = await scheduler.dispatch('sync');
      await scheduler.run();
      const job = await scheduler.getJob(id);
      return [job?.status, job?.skipReason];
    };
    assert.deepEqual(await outcome(), ['COMPLETED', null]);
    assert.deepEqual(evaluated, ['maintenance', 'api', 'disk']);
    maintenance = true;
    assert.deepEqual(await outcome(), ['CANCELLED', 'when() number 1 is false']);
    assert.deepEqual(evaluated, ['maintenance']);
    [maintenance, apiAvailable] = [false, false];
    assert.deepEqual(await outcome(), ['CANCELLED', 'when() number 2 is false']);
    [apiAvailable, diskSpaceLow] = [true, true];
    assert.deepEqual(await outcome(), ['CANCELLED', 'skip() number 1 is true']);
    diskSpaceLow = false;
    assert.deepEqual(await outcome(), ['COMPLETED', null]);
  });

  it('can be plain booleans [J4]', async () => {
    const { scheduler } = manualScheduler(database);
    const ran: string[] = [];
    scheduler
      .schedule('a', () => ran.push('a'))
      .when(true)
      .skip(false);
    scheduler.schedule('b', () => ran.push('b')).when(false);
    scheduler.schedule('c', () => ran.push('c')).skip(true);
    for (const name of ['a', 'b', 'c']) await scheduler.dispatch(name);
    await scheduler.run();
    assert.deepEqual(ran, ['a']);
  });

  it('receive the args and the job and can be asynchronous [J4]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const seen: unknown[] = [];
    scheduler
      .schedule<{ n: number }>('sync', () => 1)
      .everyMinute()
      .args({ n: 1 })
      .when(async (args, { id, taskType, schedule, scheduledFor, attempt }) => {
        await database.collections.jobs.findOne({ _id: id });
        return seen.push({ args, id, taskType, schedule, scheduledFor, attempt }) > 0;
      });
    await scheduler.run();
    clock.advance(MINUTE);
    await scheduler.run();
    const id = `sync@${timeAfter(MINUTE).toISOString()}`;
    assert.deepEqual(seen, [
      { args: { n: 1 }, id, taskType: 'sync', schedule: 'sync', scheduledFor: timeAfter(MINUTE), attempt: 1 },
    ]);
    assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED');
  });

  it('are evaluated when the job is about to run, not when it is created [J4]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    let open = false;
    let evaluations = 0;
    const work = scheduler
      .schedule('work', () => 'done')
      .when(() => {
        evaluations++;
        return open;
      });
    const { id } = await work.delay('1h').dispatch();
    await scheduler.run();
    assert.equal(evaluations, 0);
    open = true;
    clock.advance(60 * MINUTE);
    await scheduler.run();
    assert.deepEqual([evaluations, (await scheduler.getJob(id))?.status], [1, 'COMPLETED']);
  });

  it('are evaluated in the process that runs the job, not in the one that dispatches it [J4]', async () => {
    const { scheduler: dispatcher } = manualScheduler(database);
    const { scheduler: worker } = manualScheduler(database);
    worker.schedule('work', () => 1).when(false);
    const { id } = await dispatcher.dispatch('work');
    assert.equal(await worker.run(), 1);
    assert.equal((await dispatcher.getJob(id))?.status, 'CANCELLED');
  });

  it('are evaluated at every attempt; a skip after a failure keeps the failed attempt [J4]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    let open = true;
    const { work, calls } = recordingDefinition(scheduler, () => {
      open = false;
      throw new Error('boom');
    });
    const { id } = await work
      .retries({ max: 3, base: '1s', jitter: 'none' })
      .when(() => open)
      .dispatch();
    await scheduler.run();
    clock.advance(1000);
    await scheduler.run();
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.attempts, job?.error?.message], ['CANCELLED', 1, 'boom']);
    assert.equal(job?.skipReason, 'when() number 1 is false');
    assert.deepEqual(calls, ['before', 'handler', 'onError', 'after']);
    assert.deepEqual(
      (await scheduler.getExecutions(id)).map(({ outcome }) => outcome),
      ['retry', 'skipped'],
    );
  });

  it('that throw fail the attempt, which is retried [J4] [J5]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const { work, calls } = recordingDefinition(scheduler, () => 'done');
    let down = true;
    const { id } = await work
      .retries({ max: 2, base: '1s', jitter: 'none' })
      .when(async () => {
        if (down) throw new Error('api is down');
        return true;
      })
      .dispatch();
    await scheduler.run();
    const job = await scheduler.getJob(id);
    assert.deepEqual(
      [job?.status, job?.attempts, job?.error?.message, job?.skipReason],
      ['SCHEDULED', 1, 'api is down', null],
    );
    assert.deepEqual(calls, ['onError', 'after']);
    down = false;
    clock.advance(1000);
    await scheduler.run();
    assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED');
    assert.deepEqual(calls, ['onError', 'after', 'before', 'handler', 'onSuccess', 'after']);
  });

  it('that skip a run neither end its schedule nor block the next run [J4]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    let skipping = true;
    const ran: (Date | null)[] = [];
    scheduler
      .schedule('work', (_, job) => ran.push(job.scheduledFor))
      .everyMinute()
      .skip(() => skipping);
    await scheduler.run();
    for (let minute = 1; minute <= 3; minute++) {
      clock.advance(MINUTE);
      await scheduler.run();
      skipping = minute < 2;
    }
    assert.deepEqual(ran, [timeAfter(3 * MINUTE)]);
    const jobs = await database.collections.jobs.find({}, { sort: { _id: 1 } }).toArray();
    assert.deepEqual(
      jobs.map(({ status, scheduledFor }) => [status, scheduledFor]),
      [
        ['CANCELLED', timeAfter(MINUTE)],
        ['CANCELLED', timeAfter(2 * MINUTE)],
        ['COMPLETED', timeAfter(3 * MINUTE)],
      ],
    );
  });

  it('are evaluated again when a person retries the skipped job [J4] [B17]', async () => {
    const { scheduler } = manualScheduler(database);
    let open = false;
    const { id } = await scheduler
      .schedule('work', () => 'done')
      .when(() => open)
      .dispatch();
    await scheduler.run();
    open = true;
    assert.deepEqual(await scheduler.retry(id), { result: 'changed', state: 'waiting' });
    await scheduler.run();
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.skipReason, job?.result], ['COMPLETED', null, 'done']);
  });

  it('apply to inline runs of a pass [J4] [D6]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const { work, calls } = recordingDefinition(scheduler, () => 1);
    work.everyMinute().skip(function holiday() {
      return true;
    });
    await scheduler.runOnce();
    clock.advance(MINUTE);
    const { entries, failed } = await scheduler.runOnce();
    assert.deepEqual(
      entries.map(({ name, result, reason }) => ({ name, result, reason })),
      [{ name: 'work', result: 'skipped', reason: 'filter: skip(holiday) is true' }],
    );
    assert.deepEqual([calls, failed], [[], 0]);
    assert.equal((await scheduler.getJob(entries[0]!.jobId!))?.skipReason, 'skip(holiday) is true');
  });

  it('that end after the job was cancelled do not start the handler [J4]', async () => {
    const { scheduler } = manualScheduler(database);
    const { work, calls } = recordingDefinition(scheduler, () => 1);
    const { block, entered, release } = blocker<boolean>();
    const handle = await work.when(block).dispatch();
    const pass = scheduler.run();
    await entered;
    assert.deepEqual(await handle.cancel('enough'), { result: 'requested', state: 'running' });
    release(true);
    await pass;
    assert.equal((await scheduler.getJob(handle.id))?.status, 'CANCELLED');
    assert.equal(calls.includes('handler'), false, calls.join());
  });

  it('that end after the timeout do not start the handler [C5] [J4]', async () => {
    const { scheduler, clock } = manualScheduler(database, { timeoutGrace: '5s' });
    const { work, calls } = recordingDefinition(scheduler, () => 1);
    const { block, entered, release } = blocker<boolean>();
    const { id } = await work.timeout('10s').maxRetries(0).when(block).dispatch();
    const pass = scheduler.run();
    await entered;
    await flushEventLoop();
    clock.advance(10_000);
    await flushEventLoop();
    clock.advance(5000);
    await pass;
    assert.equal((await scheduler.getJob(id))?.status, 'FAILED');
    release(true);
    await flushEventLoop();
    assert.deepEqual(calls, ['onError', 'after']);
  });
});
