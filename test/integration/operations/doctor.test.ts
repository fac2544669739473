import assert from 'node:assert/strict';
import { startMongod } from '@chronos/mongod';
import { type Finding, Scheduler } from '../../../src/index.js';
import { runChecks } from '../../../src/operations/doctor/doctor.js';
import { createStore } from '../../../src/store/store.js';
import { aJob } from '../../support/factories/job.js';
import { aWorker } from '../../support/factories/worker.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { aSchedule } from '../../support/factories/schedule.js';
import { collectionName, useDatabase } from '../../support/database.js';
import { withFailPoint, NO_STREAM } from '../../support/fail-point.js';
import { timeAfter } from '../../support/instants.js';
import { ManualClock } from '../../support/manual-clock.js';

describe('doctor', () => {
  const database = useDatabase();

  /** Findings that are not ok, by check. */
  async function problems(scheduler: Scheduler): Promise<Record<string, Finding>> {
    const findings = await scheduler.operations.doctor();
    for (const { level, advice } of findings) assert.equal(advice === null, level === 'ok');
    const bad = findings.filter(({ level }) => level !== 'ok');
    return Object.fromEntries(bad.map((finding) => [finding.check, finding]));
  }

  it('finds nothing wrong with a system that works [B18]', async () => {
    const scheduler = database.scheduler({ taskHandlers: { work: () => undefined } });
    await scheduler.start();
    await database.collections.workers.insertOne(
      aWorker({ state: 'Running', heartbeatAt: new Date(), expiresAt: new Date(Date.now() + 60_000) }),
    );
    await scheduler.addSchedule({ taskType: 'work', every: '1h' });
    assert.deepEqual(await problems(scheduler), {});
    const findings = await scheduler.operations.doctor();
    assert.ok(findings.length >= 15);
    assert.equal(new Set(findings.map(({ check }) => check)).size, findings.length);
  });

  it('reports missing and different indexes, validators and expiry [B18]', async () => {
    const { scheduler } = manualScheduler(database);
    const { jobs, executions, skips, workers } = database.collections;
    await database.collections.workers.insertOne(aWorker());
    await jobs.dropIndex('claim');
    await executions.dropIndex('expiry');
    const first = await problems(scheduler);
    assert.deepEqual(Object.keys(first), ['indexes', 'expiry', 'handlers', 'queues', 'hangingQueues']);
    assert.match(first['indexes']?.finding ?? '', /: chronos_jobs\.claim, chronos_executions\.expiry\.$/);
    assert.match(first['expiry']?.finding ?? '', /executions/);
    assert.match(first['indexes']?.advice ?? '', /install/);
    // A check that fails without its index is a finding, too.
    assert.match(first['handlers']?.finding ?? '', /The check failed: .*index/);

    await scheduler.install();
    await skips.dropIndex('schedule');
    await skips.createIndex({ at: 1 }, { name: 'schedule' }, {});
    await workers.createIndex({ host: 1 }, { name: 'by_host' }, {});
    await database.connection.db?.command({ collMod: collectionName('workers'), validator: {} });
    const second = await problems(scheduler);
    assert.match(second['indexes']?.finding ?? '', /differ.*skips\.schedule/);
    assert.match(second['validators']?.finding ?? '', /workers/);
    await skips.dropIndex('schedule');
    await scheduler.install();
    const third = await problems(scheduler);
    assert.deepEqual(Object.keys(third), ['indexes']);
    assert.equal(third['indexes']?.level, 'warning');
    assert.match(third['indexes'].finding, /workers\.by_host/);
  });

  it('reports a database that is not installed [B18]', async () => {
    const { scheduler } = manualScheduler(database);
    await database.connection.dropDatabase();
    const { queues, stored } = await scheduler.operations.status();
    assert.deepEqual([queues, stored, (await scheduler.operations.listJobs()).items], [[], 0, []]);
    const found = await problems(scheduler);
    assert.deepEqual(Object.keys(found), ['installation', 'indexes', 'validators', 'expiry', 'workersAlive']);
    assert.equal((await database.connection.db?.listCollections().toArray())?.length, 0);
  });

  it('reports jobs that no worker can run, and locks that no worker sweeps [B18]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const { jobs, workers } = database.collections;
    await jobs.insertOne(aJob({ taskType: 'mail', queue: 'post' }));
    assert.deepEqual(
      Object.entries(await problems(scheduler)).map(([name, { level }]) => [name, level]),
      [['workersAlive', 'error']],
    );
    clock.advance(600_000);
    await workers.insertMany([
      aWorker({ _id: 'a', heartbeatAt: timeAfter(600_000), version: '0.0.9' }),
      aWorker({ _id: 'b', heartbeatAt: timeAfter(600_000), clockError: 1500 }),
    ]);
    await jobs.insertOne(aJob({ _id: 'stuck', status: 'RUNNING', lockedUntil: timeAfter(400_000) }));
    const found = await problems(scheduler);
    assert.deepEqual(Object.keys(found), [
      'workerVersions',
      'workerClocks',
      'handlers',
      'queues',
      'expiredLocks',
    ]);
    assert.match(found['handlers']?.finding ?? '', /: mail\.$/);
    assert.match(found['queues']?.finding ?? '', /: post\.$/);
    assert.match(found['expiredLocks']?.finding ?? '', /stuck/);
    assert.match(found['workerClocks']?.finding ?? '', /b \(1500 ms\)/);
    assert.match(found['workerVersions']?.finding ?? '', /0\.0\.9/);
  });

  it('reports jobs whose queue and handler are on different workers [B18]', async () => {
    const { scheduler } = manualScheduler(database);
    const { jobs, workers } = database.collections;
    await workers.insertMany([
      aWorker({ _id: 'a', taskTypes: ['mail'], queues: ['default'] }),
      aWorker({ _id: 'b', taskTypes: ['work'], queues: ['default', 'post'] }),
    ]);
    await jobs.insertMany([aJob({ taskType: 'mail', queue: 'post' }), aJob({ queue: 'post' })]);
    const found = await problems(scheduler);
    assert.deepEqual(Object.keys(found), ['queues']);
    assert.match(found['queues']?.finding ?? '', /no live worker has both .*: mail in post\.$/);
  });

  it('reads each fact once, and says when not all due jobs were checked [B18]', async () => {
    const store = createStore(database.stored);
    await database.collections.workers.insertOne(aWorker());
    await database.collections.jobs.insertOne(aJob());
    const asked: string[] = [];
    const counting = new Proxy(store, {
      get: (target, method: keyof typeof store) => {
        asked.push(method);
        return target[method];
      },
    });
    // The clock runs so fast that the time is over after the first read.
    let looks = 0;
    const hasty = Object.assign(new ManualClock(), { monotonic: () => looks++ * 1500 });
    const findings = await runChecks({ store: counting, clock: hasty, wallClock: { now: () => new Date() } });
    assert.deepEqual(
      asked.filter((method, place) => asked.indexOf(method) !== place),
      [],
    );
    for (const name of ['handlers', 'queues']) {
      const found = findings.find(({ check }) => check === name);
      assert.equal(found?.level, 'ok');
      assert.match(found?.finding ?? '', /that were checked/);
    }
  });

  it('reports late schedules [B18]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    clock.advance(100_000_000);
    await database.collections.workers.insertOne(aWorker({ heartbeatAt: timeAfter(100_000_000) }));
    await database.collections.schedules.insertMany([
      aSchedule({ _id: 'late', nextRunAt: timeAfter(0) }),
      aSchedule({ _id: 'paused', nextRunAt: timeAfter(0), isActive: false }),
      aSchedule({ _id: 'broken', isActive: false, disabledReason: 'bad cron' }),
      aSchedule({
        _id: 'pending',
        nextRunAt: null,
        pending: [{ kind: 'run', id: 'pending@x', at: timeAfter(0), since: timeAfter(0) }],
      }),
    ]);
    const found = await problems(scheduler);
    assert.deepEqual(Object.keys(found), ['lateSchedules', 'disabledSchedules', 'pendingRuns']);
    assert.match(found['lateSchedules']?.finding ?? '', /late: late \(2026-01-01/);
    assert.match(found['disabledSchedules']?.finding ?? '', /broken \(bad cron\)/);
    assert.match(found['pendingRuns']?.finding ?? '', /: pending\.$/);
  });

  it('reports a wrong clock, and a check that throws [B18]', async () => {
    const { scheduler } = manualScheduler(database);
    const { operations } = scheduler;
    assert.equal((await operations.doctor()).find(({ check }) => check === 'ownClock')?.level, 'ok');
    const clock = new ManualClock();
    const wallClock = { now: () => new Date(Date.now() - 90_000) };
    const late = await runChecks({ store: createStore(database.stored), clock, wallClock });
    const own = late.find(({ check }) => check === 'ownClock');
    assert.equal(own?.level, 'warning');
    assert.match(own?.finding ?? '', /(89|90)\d{3} ms behind/);
    const findings = await runChecks({} as never, {
      broken: () => Promise.reject(new Error('at mongodb://me:secret@host')),
    });
    assert.equal(findings[0]?.level, 'error');
    assert.match(findings[0]?.finding ?? '', /The check failed: at mongodb:\/\/\*\*\*@host/);
  });

  it('reports a change stream that is refused, with advice [B18]', async () => {
    const scheduler = database.scheduler();
    await scheduler.install();
    const found = await withFailPoint(database, NO_STREAM, () => problems(scheduler));
    assert.equal(found['changeStreams']?.level, 'warning');
    assert.match(found['changeStreams'].advice ?? '', /by polling: grant the action changeStream/);
    assert.equal((await problems(scheduler))['changeStreams'], undefined);
  });

  it('reports that a standalone server has no change streams [B18]', async () => {
    const mongod = await startMongod({ replicaSet: false });
    const scheduler = new Scheduler({ uri: mongod.uri, logger: false });
    try {
      await scheduler.install();
      const found = await problems(scheduler);
      assert.deepEqual(Object.keys(found), ['changeStreams', 'workersAlive']);
    } finally {
      await scheduler.stop();
      await mongod.stop();
    }
  });
});
