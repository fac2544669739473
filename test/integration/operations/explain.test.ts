import assert from 'node:assert/strict';
import { aJob } from '../../support/factories/job.js';
import { aWorker } from '../../support/factories/worker.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { aSchedule } from '../../support/factories/schedule.js';
import { signal } from '../../support/events.js';
import { timeAfter, START } from '../../support/instants.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { waitUntil } from '../../support/wait-until.js';

describe('explain', () => {
  const database = useSharedDatabase();

  it('explains a job at every step, from no workers to its end [B11]', async () => {
    const { scheduler } = manualScheduler(database);
    const { operations } = scheduler;
    const { id } = await scheduler.dispatch('work');
    const check = async (): Promise<string | null | undefined> => (await operations.explainJob(id))?.check;
    assert.equal(await check(), 'alive');
    const { workers } = database.collections;
    await workers.insertOne(aWorker({ taskTypes: ['wok'] }));
    assert.match((await operations.explainJob(id))?.sentence ?? '', /handler for 'work'.*'wok'/);
    await workers.updateOne({}, { $set: { taskTypes: ['work'], queues: ['mail'] } });
    assert.equal(await check(), 'queue');
    await workers.updateOne({}, { $set: { queues: ['default'], running: 5 } });
    assert.equal(await check(), 'busy');
    await workers.updateOne({}, { $set: { running: 4 } });
    assert.equal(await check(), null);
    await scheduler.hold(id);
    assert.equal(await check(), 'held');
    await scheduler.unhold(id);

    const [started, finish] = [signal(), signal()];
    scheduler.registerHandler('work', async (_, job) => {
      await job.reportProgress(40, 'halfway');
      started.fire();
      await finish.promise;
    });
    const pass = scheduler.run();
    await started.promise;
    const running = await operations.explainJob(id);
    assert.deepEqual([running?.state, running?.check], ['running', 'running']);
    assert.match(
      running?.sentence ?? '',
      new RegExp(`worker ${scheduler.workerId} since .*progress 40: halfway`),
    );
    finish.fire();
    await pass;
    assert.match((await operations.explainJob(id))?.sentence ?? '', /^It completed at/);
    assert.equal(await operations.explainJob('nobody'), null);
    await assert.rejects(operations.explainJob({ $gt: '' } as never), { code: 'INVALID_ARGUMENT' });
  });

  it('ignores a worker without recent heartbeats [B11]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const job = aJob();
    await database.collections.jobs.insertOne(job);
    await database.collections.workers.insertOne(aWorker());
    assert.equal((await scheduler.operations.explainJob(job._id))?.check, null);
    clock.advance(61_000);
    assert.equal((await scheduler.operations.explainJob(job._id))?.check, 'alive');
  });

  it('finds that a live worker can run the job [B11]', async () => {
    const scheduler = database.scheduler();
    scheduler.registerHandler('work', () => undefined);
    await scheduler.start();
    const { workers } = database.collections;
    await waitUntil(
      'its heartbeat is stored',
      async () => (await workers.countDocuments({ state: 'Running' })) === 1,
    );
    const { id } = await scheduler.dispatch('work', null, { delay: '1h' });
    const explanation = await scheduler.operations.explainJob(id);
    assert.deepEqual(
      explanation?.checked.filter(({ passed }) => !passed).map(({ check }) => check),
      ['due'],
    );
  });

  it('says that a crash suspect waits for another one [B11]', async () => {
    const { scheduler } = manualScheduler(database);
    const { jobs, workers } = database.collections;
    const [waiting, other] = [aJob({ crashes: 1 }), aJob({ status: 'RUNNING', lostWhileQueued: 1 })];
    await jobs.insertMany([waiting, other, aJob({ status: 'RUNNING', lockedBy: 'second' })]);
    await workers.insertOne(aWorker({ running: 1 }));
    const explanation = await scheduler.operations.explainJob(waiting._id);
    assert.equal(explanation?.check, 'suspect');
    assert.match(explanation.sentence, new RegExp(`is running ${other._id}\\.`));
    await workers.insertOne(aWorker({ _id: 'second', running: 1 }));
    assert.equal((await scheduler.operations.explainJob(waiting._id))?.check, null);
  });

  it('reports a malformed schedule for its occurrences [B11]', async () => {
    const { operations } = manualScheduler(database).scheduler;
    await database.collections.schedules.insertOne(aSchedule({ pending: 'nothing' as never }), {
      bypassDocumentValidation: true,
    });
    for (const id of [`s@${timeAfter(3_600_000).toISOString()}`, 's+asked']) {
      const explanation = await operations.explainJob(id);
      assert.deepEqual([explanation?.check, explanation?.state], ['invalidSchedule', null]);
      assert.match(explanation?.sentence ?? '', /schedule 's' is malformed: pending/);
    }
  });

  it('does not take the key of a deleted job for the time of an occurrence [B11]', async () => {
    await database.collections.schedules.insertOne(aSchedule({ _id: 'sendEmail' }));
    const { operations } = database.scheduler();
    assert.equal(await operations.explainJob('sendEmail=ada@example.org'), null);
    assert.equal(await operations.explainJob('sendEmail=a+b'), null);
  });

  it('explains occurrences that have no job: future, paused, pending, skipped [B11]', async () => {
    const { scheduler } = manualScheduler(database);
    const { operations } = scheduler;
    const { jobs, schedules, skips } = database.collections;
    const id = `s@${timeAfter(3_600_000).toISOString()}`;
    assert.equal(await operations.explainJob(id), null);
    await schedules.insertOne(aSchedule());
    assert.deepEqual((await operations.explainJob(id))?.at, timeAfter(3_600_000));
    const withSpace = id.replace('T', ' ').replace('.000Z', '');
    for (const written of [id.replace('.000Z', 'Z'), id.replace('.000Z', '+00:00'), withSpace])
      assert.equal((await operations.explainJob(written))?.jobId, id);
    assert.equal(await operations.explainJob('s@tomorrow'), null);
    assert.equal(await operations.explainJob('s#2026-11-16@2026-11-16'), null);
    assert.equal(await operations.explainJob('s+somebody-asked'), null);

    await scheduler.pauseSchedule('s', { by: 'ada', reason: 'moving' });
    assert.match((await operations.explainJob(id))?.sentence ?? '', /paused since .* by ada: moving/);
    await scheduler.resumeSchedule('s');

    const before = aJob({ _id: 's@before', status: 'RUNNING', schedule: 's' });
    await jobs.insertOne(before);
    const pending = [{ kind: 'run' as const, id: 's+asked', at: START, since: START }];
    await schedules.updateOne({ _id: 's' }, { $set: { active: before._id, pending, overlap: 'queue' } });
    const pendingRun = await operations.explainJob('s+asked');
    assert.deepEqual([pendingRun?.check, pendingRun?.state], ['runningElsewhere', null]);

    await skips.insertOne({
      ...{
        _id: 'skip',
        scheduleId: 's',
        at: START,
        until: timeAfter(7_200_000),
        count: null,
        reason: 'paused',
      },
      ...{ activeId: null, runningFor: null, since: START, expiresAt: timeAfter(86_400_000) },
    });
    assert.match((await operations.explainJob(id))?.sentence ?? '', /skipped at .*\(paused\)/);
  });
});
