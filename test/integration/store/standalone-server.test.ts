import assert from 'node:assert/strict';
import { once } from 'node:events';
import { startMongod, type EmbeddedMongod } from '@chronos/mongod';
import { Scheduler, type JobContext, type SchedulerOptions } from '../../../src/index.js';
import { withoutRenewalThread } from '../../support/manual-scheduler.js';
import { SHORT_INTERVALS } from '../../support/database.js';
import { nextEvent, recordEvents, signal } from '../../support/events.js';

describe('a standalone server without change streams', () => {
  let mongod: EmbeddedMongod;
  let worker: Scheduler;
  let other: Scheduler;
  let errors: unknown[];

  before(async () => {
    mongod = await startMongod({ replicaSet: false });
  });

  after(() => mongod.stop());

  beforeEach(async () => {
    const options: SchedulerOptions = {
      ...{ uri: mongod.uri, ...SHORT_INTERVALS, ...withoutRenewalThread, logger: false },
    };
    [worker, other] = [new Scheduler(options), new Scheduler(options)];
    errors = recordEvents(worker, 'worker:error');
    worker.registerHandler('work', () => 'done');
    await worker.start();
  });

  afterEach(async () => {
    await Promise.all([worker.stop('3s'), other.stop('3s')]);
    assert.deepEqual(errors, [], 'a missing change stream is not an error');
  });

  it('jobs of other processes are found by polling [C1]', async () => {
    for (const options of [{}, { delay: '500ms' }]) {
      const handle = await other.dispatch('work', null, options);
      const { status, result } = await handle.wait();
      assert.deepEqual([status, result], ['COMPLETED', 'done']);
    }
  });

  it('cancel requests of other processes are found by polling', async () => {
    const started = signal<string>();
    worker.registerHandler('endless', async (_: unknown, job: JobContext) => {
      started.fire(job.id);
      await once(job.signal, 'abort');
    });
    const cancelled = nextEvent(worker, 'job:cancelled');
    await other.dispatch('endless');
    await other.cancel(await started.promise, 'enough');
    assert.equal((await cancelled).reason, 'enough');
  });

  it('a connection string with a replica set fails with an error that says so', async () => {
    const scheduler = new Scheduler({
      uri: `${mongod.uri}?replicaSet=rs0`,
      connectTimeout: '500ms',
      logger: false,
    });
    await assert.rejects(scheduler.getJob('any'), {
      code: 'MONGODB_UNREACHABLE',
      message: /answer are not members of the replica set 'rs0'\. Correct replicaSet .*, or leave it out/,
    });
  });

  it('an invalid connection string fails without a retry', async () => {
    const scheduler = new Scheduler({
      uri: `${mongod.uri}?replicaset=rs0&bogus=1`,
      connectTimeout: '10s',
      logger: false,
    });
    await assert.rejects(scheduler.getJob('any'), {
      code: 'INVALID_OPTIONS',
      message: /connection string is invalid: .*bogus is not supported\. Correct it/,
    });
  });

  it('due schedules are found by polling [F1]', async () => {
    const due = nextEvent(worker, 'schedule:due');
    await other.addSchedule({ id: 's', taskType: 'work', every: '1s', maxRuns: 1 });
    assert.equal((await due).scheduleId, 's');
    await other.removeSchedule('s');
  });
});
