import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import mongoose from 'mongoose';
import { freeStablePort, startMongod, type EmbeddedMongod } from '@chronos/mongod';
import { Scheduler, type SchedulerOptions } from '../../../src/index.js';
import { DatabaseClock } from '../../../src/runtime/database-clock.js';
import { SHORT_INTERVALS } from '../../support/database.js';
import { waitUntil } from '../../support/wait-until.js';
import { countEvents, nextEvent, signal } from '../../support/events.js';

/** With its own MongoDB, which can be killed and started again with the same data and port. */
describe('a worker during a MongoDB outage', () => {
  let folder: string;
  let port: number;
  let mongod: EmbeddedMongod | undefined;
  let scheduler: Scheduler | undefined;

  const uri = (): string => `mongodb://127.0.0.1:${port}/chronos?replicaSet=chronos`;
  const create = (options: Partial<SchedulerOptions> = {}): Scheduler =>
    (scheduler = new Scheduler({
      uri: uri(),
      ...SHORT_INTERVALS,
      lockTimeout: '10s',
      logger: false,
      ...options,
    }));

  async function startServer(): Promise<void> {
    mongod = await startMongod({ dataPath: folder, port });
  }

  /** As in a power failure, without a shutdown. */
  async function killServer(): Promise<void> {
    const pid = mongod!.members[0]!.pid;
    process.kill(pid, 'SIGKILL');
    await waitUntil('mongod is dead', () => Promise.resolve(!isAlive(pid)));
    await mongod?.stop();
    mongod = undefined;
  }

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'chronos-outage-'));
    port = await freeStablePort();
  });

  afterEach(async () => {
    await scheduler?.stop('2s');
    await mongod?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it('reports the error and retries when MongoDB is unreachable at the start, and works when it is back [Y9]', async () => {
    const worker = create({ taskHandlers: { hello: () => 'world' }, connectTimeout: '30s' });
    const reported = nextEvent(worker, 'worker:error', ({ operation }) => operation === 'connect');
    const started = worker.start();
    assert.equal((await reported).failures, 1);
    assert.equal(worker.state, 'Starting');
    await startServer();
    await started;
    const complete = nextEvent(worker, 'job:complete');
    await worker.dispatch('hello');
    assert.equal((await complete).result, 'world');
  }).timeout(60_000);

  it('settles jobs that ended during the outage when MongoDB is back, and loses nothing [Y9]', async () => {
    await startServer();
    const worker = create({ concurrency: 2 });
    const go = signal();
    worker.registerHandler('waits', async () => {
      await go.promise;
      return 'done';
    });
    const starts = countEvents(worker, 'job:start', 2);
    await worker.start();
    const handles = await Promise.all([1, 2, 3, 4].map((n) => worker.dispatch('waits', { n })));
    await starts;

    await killServer();
    const settleFailed = nextEvent(worker, 'worker:error', ({ operation }) => operation === 'settle');
    // The two running handlers return while their outcomes cannot be written.
    go.fire();
    await settleFailed;
    assert.deepEqual(
      await worker.backlog(),
      [],
      'the backlog is unknown: it neither waits nor returns old numbers',
    );
    const completed = countEvents(worker, 'job:complete', 4);
    await startServer();
    await completed;
    for (const { id } of handles) {
      const job = await worker.getJob(id);
      assert.deepEqual([job?.status, job?.result, job?.attempts, job?.crashes], ['COMPLETED', 'done', 0, 0]);
      assert.equal(
        (await worker.getExecutions(id)).filter(({ outcome }) => outcome === 'completed').length,
        1,
      );
    }
    assert.equal(worker.state, 'Running');
  }).timeout(90_000);

  it('fails a dispatch with an error code when the database clock cannot be read', async () => {
    await startServer();
    const dispatcher = create();
    await dispatcher.dispatch('hello');
    await killServer();
    const age = Object.getOwnPropertyDescriptor(DatabaseClock.prototype, 'age')!;
    Object.defineProperty(DatabaseClock.prototype, 'age', { ...age, get: () => Infinity });
    try {
      await assert.rejects(dispatcher.dispatch('hello'), { code: 'MONGODB_UNREACHABLE' });
    } finally {
      Object.defineProperty(DatabaseClock.prototype, 'age', age);
    }
  }).timeout(60_000);

  it('continues through a failover when the primary of three members is killed', async () => {
    mongod = await startMongod({ members: 3 });
    const worker = (scheduler = new Scheduler({
      uri: mongod.uri,
      ...SHORT_INTERVALS,
      lockTimeout: '20s',
      concurrency: 4,
      logger: false,
    }));
    worker.registerHandler('step', () => undefined);
    await worker.start();
    const half = countEvents(worker, 'job:complete', 100);
    const all = countEvents(worker, 'job:complete', 200);
    const results = await worker.dispatchMany(Array.from({ length: 200 }, () => ({ taskType: 'step' })));
    await half;
    process.kill(await primaryPid(mongod), 'SIGKILL');
    await all;
    const jobs = await Promise.all(results.map(({ id }) => worker.getJob(id ?? '')));
    assert.ok(jobs.every((job) => job?.status === 'COMPLETED' && job.attempts === 0 && job.crashes === 0));
  }).timeout(90_000);
});

async function primaryPid({ uri, members }: EmbeddedMongod): Promise<number> {
  const connection = await mongoose.createConnection(uri).asPromise();
  const hello = await connection.getClient().db('admin').command({ hello: 1 });
  await connection.destroy();
  return members.find(({ host }) => host === hello['primary'])!.pid;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
