import assert from 'node:assert/strict';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { type ChronosError, type JobContext, Scheduler, type SchedulerOptions } from '../../../src/index.js';
import { aJob } from '../../support/factories/job.js';
import { ROLES, SecuredDatabase } from '../../support/secured-database.js';
import { collectionName, collectionsOf, SHORT_INTERVALS } from '../../support/database.js';
import { nextEvent, recordEvents } from '../../support/events.js';
import { runChronosInProcess } from '../../support/fake-terminal.js';
import { nextMeasurement } from '../../support/measurements.js';

describe('database roles', () => {
  let database: SecuredDatabase;
  let uris: Record<string, string>;
  const schedulers: Scheduler[] = [];

  before(async () => {
    database = await SecuredDatabase.start();
    uris = {};
    for (const [role, privileges] of Object.entries(ROLES))
      uris[role] = await database.addUser(role, privileges);
    await database.recordWrites();
  });

  after(() => database.stop());

  afterEach(async () => {
    await Promise.all(schedulers.splice(0).map((scheduler) => scheduler.stop('3s')));
  });

  function schedulerAs(role: string, options: Partial<SchedulerOptions> = {}): Scheduler {
    const scheduler = new Scheduler({
      uri: uris[role] ?? '',
      ...SHORT_INTERVALS,
      lockTimeout: '2s',
      logger: false,
      ...options,
    });
    schedulers.push(scheduler);
    return scheduler;
  }

  it('a worker that may not install fails with an error that says to install', async () => {
    await assert.rejects(schedulerAs('chronosWorker').start(), (error: ChronosError) => {
      assert.equal(error.code, 'NOT_INSTALLED');
      assert.match(error.message, /install/);
      return true;
    });
  });

  it('the installer role is enough to install repeatedly and to repair indexes, and cannot write jobs', async () => {
    const installer = schedulerAs('chronosInstaller');
    await installer.install();
    await installer.install();
    await database.superuser.db?.command({ collMod: collectionName('workers'), validator: {} });
    await collectionsOf(database.superuser).jobs.dropIndex('claim');
    await installer.install();
    const findings = await schedulerAs('chronosReader').operations.doctor();
    for (const name of ['indexes', 'validators', 'expiry'])
      assert.equal(findings.find(({ check }) => check === name)?.level, 'ok', name);
    await assert.rejects(installer.dispatch('work'), /not authorized/);
  });

  it('the worker role is enough for everything a worker does', async () => {
    // With such rare polls, everything is found through the change stream.
    const worker = schedulerAs('chronosWorker', { pollInterval: '1h', retries: { base: '10ms' } });
    const other = schedulerAs('chronosWorker');
    const errors = recordEvents(worker, 'worker:error', 'listener:error');
    const renewed = nextMeasurement(worker, 'renewal');
    let fails = 1;
    worker.registerHandler('work', () => 'done');
    worker.registerHandler('fails once', () => {
      if (fails-- > 0) throw new Error('once');
    });
    worker.registerHandler('long', async (_: unknown, job: JobContext) => {
      await job.reportProgress(0.5);
      await renewed;
    });
    worker.registerHandler('endless', async (_: unknown, job: JobContext) => {
      await once(job.signal, 'abort');
    });
    worker.schedule('from code', () => undefined).everySecond();
    await worker.start();

    const due = nextEvent(worker, 'schedule:due', ({ scheduleId }) => scheduleId === 'stored');
    const skipped = nextEvent(worker, 'schedule:skipped');
    await other.addSchedule({ id: 'stored', taskType: 'endless', every: '1s', overlap: 'skip' });
    const handles = [
      await other.dispatch('work', null, { key: 'a' }),
      await other.dispatch('work', null, { key: 'a' }),
      await other.dispatch('fails once'),
      await other.dispatch('long'),
    ];
    await other.dispatchMany([{ taskType: 'work' }]);
    for (const handle of handles) {
      const { status, error } = await handle.wait();
      assert.equal(status, 'COMPLETED', error?.message ?? '');
    }

    const { jobId } = await due;
    await skipped;
    await other.pauseSchedule('stored');
    const cancelled = nextEvent(worker, 'job:cancelled');
    await other.cancel(jobId, 'enough');
    await cancelled;
    await other.removeSchedule('stored');

    await other.hold((await other.dispatch('work', null, { delay: '1h', key: 'held' })).id);
    await other.unhold('work=held');
    await other.withLock('a lock', () => undefined);
    const stalled = nextEvent(worker, 'job:stalled');
    const job = aJob({ _id: 'lost', status: 'RUNNING', taskType: 'work', queue: 'elsewhere' });
    await collectionsOf(database.superuser).jobs.insertOne(job);
    assert.equal((await stalled).jobId, 'lost');

    const { code, stderr } = await runChronosInProcess(['dispatch', 'work'], {
      MONGODB_URI: uris['chronosWorker'] ?? '',
    });
    assert.equal(code, 0, stderr);
    await other.operations.cancelJobs({ state: 'retrying', queue: 'elsewhere' });
    await other.prune('0s');
    for (const { id } of handles) assert.equal(await other.getJob(id), null);
    await other.runOnce();
    assert.deepEqual(errors, []);
  });

  it('the worker role has no write permission that a worker does not need', async () => {
    const granted = (ROLES['chronosWorker'] ?? []).flatMap(({ resource: { collection }, actions }) =>
      collection === '' ? [] : actions.map((action) => `${collection}: ${action}`),
    );
    assert.deepEqual(await database.writesOf('chronosWorker'), granted.sort());
  });

  it('the reader role is enough for reading and cannot change anything', async () => {
    const { operations } = schedulerAs('chronosReader');
    await operations.status();
    await operations.listJobs();
    await operations.listExecutions();
    await operations.listAudit();
    const unchecked = (await operations.doctor()).filter(({ finding }) => finding.includes('could not be'));
    assert.deepEqual(unchecked, []);
    await assert.rejects(schedulerAs('chronosReader').dispatch('work'), /not authorized/);
  });

  it('a command changes nothing when its user may not write audit entries', async () => {
    for (const role of ['chronosReader', 'chronosDispatcher']) {
      const uri = uris[role] ?? '';
      const { code, stderr } = await runChronosInProcess(['dispatch', 'work', '--key', role], {
        MONGODB_URI: uri,
      });
      assert.equal(code, 1, role);
      assert.match(stderr, /no change made: the audit entry could not be written\n.*not authorized/);
      assert.equal(await schedulerAs(role).getJob(`work=${role}`), null);
    }
  });

  it('the dispatcher role is enough for dispatching jobs and waiting for them', async () => {
    const dispatcher = schedulerAs('chronosDispatcher');
    const handle = await dispatcher.dispatch('work', null, { key: 'b' });
    assert.equal((await dispatcher.dispatch('work', null, { key: 'b' })).duplicate, true);
    const worker = schedulerAs('chronosWorker', {
      taskHandlers: { work: () => 'done', slow: () => pause(1000, 'late') },
    });
    await worker.start();
    assert.equal((await handle.wait()).result, 'done');
    assert.equal((await handle.executions()).length, 1);

    // Long enough that the dispatcher tries to open a change stream, which it may not.
    const errors = recordEvents(dispatcher, 'worker:error');
    const slow = await dispatcher.dispatch('slow');
    assert.equal(await slow.result(), 'late');
    assert.deepEqual(errors, [], 'that is not an error');
    await assert.rejects(dispatcher.cancel(handle.id), /not authorized/);
  });
});
