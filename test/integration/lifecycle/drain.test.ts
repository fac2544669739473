import assert from 'node:assert/strict';
import { createStore } from '../../../src/store/store.js';
import { runChronos } from '../../support/chronos-command.js';
import { useDatabase } from '../../support/database.js';
import { countEvents, nextEvent, recordEvents, signal } from '../../support/events.js';
import { aWorker } from '../../support/factories/worker.js';
import { timeAfter } from '../../support/instants.js';
import { manualScheduler, withoutRenewalThread } from '../../support/manual-scheduler.js';
import { nextMeasurement } from '../../support/measurements.js';
import { waitUntil } from '../../support/wait-until.js';
import { killWorkers, WorkerProcess } from '../../support/worker-process.js';

describe('draining a worker', () => {
  const db = useDatabase();
  afterEach(killWorkers);

  const jobs = () => db.collections.jobs;

  it('lets running jobs finish, claims nothing more and stays up until it is undrained', async () => {
    const worker = db.scheduler({ ...withoutRenewalThread, concurrency: 2 });
    const events = recordEvents(worker, 'worker:drain');
    const go = signal();
    worker.registerHandler('long', () => go.promise);
    worker.registerHandler('quick', () => 'done');
    await worker.start();
    const started = nextEvent(worker, 'job:start');
    const long = await worker.dispatch('long');
    await started;

    const drained = worker.drain();
    assert.deepEqual([worker.state, worker.load.isDraining, worker.load.running], ['Running', true, 1]);
    const waiting = await worker.dispatch('quick');
    // Several polls pass.
    let polls = 0;
    await nextMeasurement(worker, 'round', ({ operation }) => operation === 'claim jobs' && ++polls === 5);
    assert.equal((await worker.getJob(waiting.id))?.state, 'waiting');
    assert.deepEqual(
      events.map(({ event }) => event),
      [{ state: 'draining' }],
    );

    go.fire();
    assert.equal(await drained, true);
    assert.equal((await worker.getJob(long.id))?.state, 'completed');
    assert.equal(await worker.drain(), true);
    assert.equal(await worker.run(), 0);
    await waitUntil('its heartbeat shows it', async () => {
      const [view] = (await worker.operations.listWorkers()).items;
      return view?.isDraining === true && view.running === 0 && view.isLive;
    });

    worker.undrain();
    await waiting.wait({ timeout: '10s' });
    assert.equal(worker.load.isDraining, false);
    assert.deepEqual(
      events.map(({ event }) => event),
      [{ state: 'draining' }, { state: 'drained' }, { state: 'undrained' }],
    );
  });

  it('still renews locks, sweeps and enqueues due schedules', async () => {
    const worker = db.scheduler({ ...withoutRenewalThread, lockTimeout: '1s' });
    const go = signal();
    worker.registerHandler('long', () => go.promise);
    await worker.addSchedule({ id: 's', taskType: 'other', every: '1s', overlap: 'allow' });
    await worker.start();
    const started = nextEvent(worker, 'job:start');
    const { id } = await worker.dispatch('long');
    await started;
    const drained = worker.drain();
    // Takes longer than the lock lasts without renewal.
    await countEvents(worker, 'schedule:due', 3);
    go.fire();
    assert.equal(await drained, true);
    const job = await worker.getJob(id);
    assert.deepEqual([job?.state, job?.crashes, job?.fence], ['completed', 0, 1]);
    await jobs().insertOne({ ...(await jobs().findOne({ _id: id }))!, _id: 'lost', ...EXPIRED });
    await nextEvent(worker, 'job:stalled', ({ jobId }) => jobId === 'lost');
  });

  it('releases prefetched jobs, which other workers can then run', async () => {
    const worker = db.scheduler({ ...withoutRenewalThread, concurrency: 2 });
    const go = signal();
    worker.registerHandler('quick', () => undefined);
    worker.registerHandler('long', () => go.promise);
    await worker.start();
    // Short handlers make the worker prefetch.
    const trained = countEvents(worker, 'job:complete', 300);
    await worker.dispatchMany(Array.from({ length: 300 }, () => ({ taskType: 'quick' })));
    await trained;
    const long = countEvents(worker, 'job:start', 2);
    await worker.dispatchMany([
      ...Array.from({ length: 2 }, () => ({ taskType: 'long', options: { priority: 1 } })),
      ...Array.from({ length: 20 }, () => ({ taskType: 'quick', options: { priority: 2 } })),
    ]);
    await long;
    assert.ok(worker.load.buffered > 0);
    const drained = worker.drain();
    await waitUntil(
      'only the running jobs are locked',
      async () => (await jobs().countDocuments({ lockToken: { $ne: null } })) === 2,
    );
    assert.equal(await jobs().countDocuments({ priority: 2, status: 'SCHEDULED' }), 20);
    assert.equal(worker.load.buffered, 0);
    go.fire();
    assert.equal(await drained, true);
    assert.equal(await jobs().countDocuments({ priority: 2, status: 'SCHEDULED' }), 20);
  });

  it('resolves to false if it is undrained before its jobs have finished', async () => {
    const worker = db.scheduler(withoutRenewalThread);
    const go = signal();
    worker.registerHandler('long', () => go.promise);
    await worker.start();
    const started = nextEvent(worker, 'job:start');
    await worker.dispatch('long');
    await started;
    const [drained, again] = [worker.drain(), worker.drain()];
    worker.undrain();
    assert.deepEqual(await Promise.all([drained, again]), [false, false]);
    go.fire();
    assert.equal(await worker.drain(), true);
  });

  it('needs a running worker, and does not outlive it', async () => {
    const worker = db.scheduler({ ...withoutRenewalThread, workerId: 'w' });
    worker.registerHandler('work', () => undefined);
    const refused = {
      code: 'WRONG_STATE',
      message: /drain\(\) needs a running worker, and this one is Stopped/,
    };
    await assert.rejects(worker.drain(), refused);
    assert.throws(() => worker.undrain(), { code: 'WRONG_STATE' });
    await worker.start();
    assert.equal(await worker.drain(), true);
    await waitUntil('its document shows it', async () => {
      const found = await db.collections.workers.findOne({ _id: 'w' });
      return found?.isDraining === true && found.drainRequested;
    });
    await worker.stop();
    await worker.start();
    await (await worker.dispatch('work')).wait({ timeout: '10s' });
    await waitUntil('the request is void', async () => {
      const found = await db.collections.workers.findOne({ _id: 'w' });
      return found?.state === 'Running' && !found.isDraining && !found.drainRequested;
    });
  });

  it('works from any process: the worker follows with its next heartbeat', async () => {
    const env = { MONGODB_URI: db.uri, POLL_INTERVAL: '100', LOCK_TIMEOUT: '3s' };
    const [first, second] = await Promise.all([
      WorkerProcess.start('first', { ...env, QUEUES: 'default,own' }),
      WorkerProcess.start('second', env),
    ]);
    const client = db.scheduler();
    const long = await client.dispatch('untilReleased', null, { queue: 'own' });
    await first.line(({ msg }) => msg === 'untilReleased started');
    const cli = (...words: string[]) => runChronos(words, { MONGODB_URI: db.uri });

    const asked = await cli('workers', 'drain', 'first');
    assert.deepEqual([asked.code, asked.stderr], [0, '']);
    assert.match(asked.stdout, /^Asked first to drain; it follows with its next heartbeat/);
    await first.line(({ msg }) => msg.startsWith('worker draining'));
    const handles = await Promise.all(
      Array.from({ length: 20 }, (_, n) => client.dispatch('quick', { echo: n })),
    );
    await Promise.all(handles.map((handle) => handle.wait({ timeout: '20s' })));
    const ran = await db.collections.executions.distinct('workerId', { taskType: 'quick' });
    assert.deepEqual(ran, ['second']);
    const own = await client.dispatch('quick', null, { queue: 'own' });
    assert.match((await cli('workers', 'list')).stdout, /first +Draining +1\/5/);
    const why = await client.operations.explainJob(own.id);
    assert.equal(why?.check, 'draining');
    assert.match(why?.sentence ?? '', /chronos workers undrain first/);
    assert.ok(!first.lines.some(({ msg }) => msg.startsWith('worker drained')));

    await db.connection.collection<{ _id: string }>('released').insertOne({ _id: 'untilReleased' });
    await first.line(({ msg }) => msg.startsWith('worker drained'));
    assert.equal((await client.getJob(long.id))?.state, 'completed');
    await waitUntil('lists show that it is drained', async () =>
      /first +Drained +0\/5/.test((await cli('workers', 'list')).stdout),
    );

    assert.equal((await cli('workers', 'undrain', 'first')).code, 0);
    await own.wait({ timeout: '20s' });
    await Promise.all([first.kill(), second.kill()]);
  });

  it('is refused for workers that are unknown or not live', async () => {
    const { scheduler, clock } = manualScheduler(db);
    const { operations } = scheduler;
    await db.collections.workers.insertMany([
      aWorker({ _id: 'stopped', state: 'Stopped' }),
      aWorker({ _id: 'silent' }),
      aWorker({ _id: 'live', heartbeatAt: timeAfter(60_001) }),
    ]);
    clock.advance(60_001);
    const results = ['stopped', 'silent', 'live', 'nobody'].map((id) => operations.drainWorker(id));
    assert.deepEqual(await Promise.all(results), [
      { result: 'notLive' },
      { result: 'notLive' },
      { result: 'requested' },
      { result: 'notFound' },
    ]);
    assert.deepEqual(await db.collections.workers.distinct('_id', { drainRequested: true }), ['live']);
    await assert.rejects(operations.drainWorker({ $ne: '' } as never), {
      code: 'INVALID_ARGUMENT',
      message: /the id of a worker must be a string/,
    });
  });

  it('is not forgotten by a heartbeat that is sent at the same time', async () => {
    const store = createStore(db.stored);
    const { drainRequested: _, ...worker } = aWorker();
    assert.equal(await store.saveHeartbeat(worker, false), false);
    await store.requestDrain('worker', true, timeAfter(0));
    assert.equal(await store.saveHeartbeat(worker), true);
    // The document expired, and the worker is draining.
    await db.collections.workers.deleteMany();
    assert.equal(await store.saveHeartbeat({ ...worker, isDraining: true }), true);
    assert.equal(await store.saveHeartbeat(worker, false), false);
  });

  it('is taken into account by status, doctor and explain', async () => {
    const { scheduler } = manualScheduler(db);
    const { operations } = scheduler;
    await db.collections.workers.insertMany([
      aWorker({ _id: 'a', isDraining: true, running: 2 }),
      aWorker({ _id: 'b', running: 1 }),
    ]);
    const { id } = await scheduler.dispatch('work');
    const { slots, running, queues } = await operations.status();
    assert.deepEqual([slots, running, queues[0]?.workers], [7, 3, 1]);
    const workersAlive = async () =>
      (await operations.doctor()).find(({ check }) => check === 'workersAlive');
    assert.equal((await workersAlive())?.level, 'ok');
    assert.equal((await operations.explainJob(id))?.check, null);
    // The draining worker has free slots, but does not use them.
    await db.collections.workers.updateOne({ _id: 'b' }, { $set: { running: 5 } });
    const busy = await operations.explainJob(id);
    assert.deepEqual([busy?.check, (busy?.sentence ?? '').includes('5 slots taken')], ['busy', true]);
    await db.collections.workers.updateOne({ _id: 'b' }, { $set: { isDraining: true } });
    assert.match(
      (await operations.explainJob(id))?.sentence ?? '',
      /^All 2 workers that can run it are draining/,
    );
    assert.deepEqual((await workersAlive())?.finding, 'Every live worker is draining: no job starts.');
  });
});

const EXPIRED = {
  status: 'RUNNING',
  lockedBy: 'gone',
  lockToken: 'token',
  lockedUntil: new Date(0),
  finishedAt: null,
} as const;
