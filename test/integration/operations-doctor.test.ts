import assert from 'node:assert/strict';
import { startMongod } from '@chronos/mongod';
import { Scheduler, type Finding } from '../../src/index.js';
import { examine } from '../../src/operations/doctor.js';
import { createStore } from '../../src/store/store.js';
import { aJob } from '../support/a-job.js';
import { aWorker } from '../support/a-worker.js';
import { byHand } from '../support/by-hand.js';
import { aSchedule } from '../support/calendar.js';
import { useDatabase } from '../support/database.js';
import { failing, NO_STREAM } from '../support/fail-point.js';
import { after } from '../support/instants.js';
import { ManualClock } from '../support/manual-clock.js';

describe('operations: doctor', () => {
  const database = useDatabase();

  /** What is not as it should be. */
  async function troubles(scheduler: Scheduler): Promise<Record<string, Finding>> {
    const findings = await scheduler.operations.doctor();
    for (const { level, advice } of findings) assert.equal(advice === null, level === 'ok');
    const bad = findings.filter(({ level }) => level !== 'ok');
    return Object.fromEntries(bad.map((finding) => [finding.check, finding]));
  }

  it('B18 finds nothing wrong with a system that works', async () => {
    const scheduler = database.scheduler({ taskHandlers: { work: () => undefined } });
    await scheduler.start();
    await database.collections.workers.insertOne(
      aWorker({ state: 'Running', heartbeatAt: new Date(), expiresAt: new Date(Date.now() + 60_000) }),
    );
    await scheduler.addSchedule({ taskType: 'work', every: '1h' });
    assert.deepEqual(await troubles(scheduler), {});
    const findings = await scheduler.operations.doctor();
    assert.ok(findings.length >= 15);
    assert.equal(new Set(findings.map(({ check }) => check)).size, findings.length);
  });

  it('B18 indexes, validators and expiry that are missing or different', async () => {
    const { scheduler } = byHand(database);
    const { jobs, executions, skips, workers } = database.collections;
    await database.collections.workers.insertOne(aWorker());
    await jobs.dropIndex('claim');
    await executions.dropIndex('expiry');
    const first = await troubles(scheduler);
    assert.deepEqual(Object.keys(first), ['indexes', 'expiry', 'handlers', 'queues']);
    assert.match(first['indexes']?.finding ?? '', /jobs\.claim, executions\.expiry/);
    assert.match(first['expiry']?.finding ?? '', /executions/);
    assert.match(first['indexes']?.advice ?? '', /install/);
    // What could not be looked at without its index is a finding of its own.
    assert.match(first['handlers']?.finding ?? '', /could not be checked.*index/);

    await scheduler.install();
    await skips.dropIndex('schedule');
    await skips.createIndex({ at: 1 }, { name: 'schedule' }, {});
    await workers.createIndex({ host: 1 }, { name: 'by_host' }, {});
    await database.connection.db?.command({ collMod: 'workers', validator: {} });
    const second = await troubles(scheduler);
    assert.match(second['indexes']?.finding ?? '', /differ.*skips\.schedule/);
    assert.match(second['validators']?.finding ?? '', /workers/);
    await skips.dropIndex('schedule');
    await scheduler.install();
    const third = await troubles(scheduler);
    assert.deepEqual(Object.keys(third), ['indexes']);
    assert.equal(third['indexes']?.level, 'warning');
    assert.match(third['indexes'].finding, /workers\.by_host/);
  });

  it('B18 a database that nobody has installed is read as an empty one, and found to be that', async () => {
    const { scheduler } = byHand(database);
    await database.connection.dropDatabase();
    const { queues, stored } = await scheduler.operations.status();
    assert.deepEqual([queues, stored, (await scheduler.operations.listJobs()).jobs], [[], 0, []]);
    const found = await troubles(scheduler);
    assert.deepEqual(Object.keys(found), ['indexes', 'validators', 'expiry', 'workersAlive']);
    assert.equal((await database.connection.db?.listCollections().toArray())?.length, 0);
  });

  it('B18 jobs that nobody can run, and locks that nobody sweeps', async () => {
    const { scheduler, clock } = byHand(database);
    const { jobs, workers } = database.collections;
    await jobs.insertOne(aJob({ taskType: 'mail', queue: 'post' }));
    assert.deepEqual(
      Object.entries(await troubles(scheduler)).map(([name, { level }]) => [name, level]),
      [['workersAlive', 'error']],
    );
    clock.advance(600_000);
    await workers.insertMany([
      aWorker({ _id: 'a', heartbeatAt: after(600_000), version: '0.0.9' }),
      aWorker({ _id: 'b', heartbeatAt: after(600_000), clockError: 1500 }),
    ]);
    await jobs.insertOne(aJob({ _id: 'stuck', status: 'RUNNING', lockedUntil: after(400_000) }));
    const found = await troubles(scheduler);
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

  it('B18 jobs whose queue one worker serves and whose handler only another has', async () => {
    const { scheduler } = byHand(database);
    const { jobs, workers } = database.collections;
    await workers.insertMany([
      aWorker({ _id: 'a', taskTypes: ['mail'], queues: ['default'] }),
      aWorker({ _id: 'b', taskTypes: ['work'], queues: ['default', 'post'] }),
    ]);
    await jobs.insertMany([aJob({ taskType: 'mail', queue: 'post' }), aJob({ queue: 'post' })]);
    const found = await troubles(scheduler);
    assert.deepEqual(Object.keys(found), ['queues']);
    assert.match(found['queues']?.finding ?? '', /none does both: mail in post\.$/);
  });

  it('B18 reads each fact once, and says when it has not looked at all that is due', async () => {
    const store = createStore(database.collections);
    await database.collections.workers.insertOne(aWorker());
    await database.collections.jobs.insertOne(aJob());
    const asked: string[] = [];
    const counting = new Proxy(store, {
      get: (target, method: keyof typeof store) => {
        asked.push(method);
        return target[method];
      },
    });
    // So fast a clock that the time for looking is over after the first head.
    let looks = 0;
    const hasty = Object.assign(new ManualClock(), { monotonic: () => looks++ * 1500 });
    const findings = await examine({ store: counting, clock: hasty, wallClock: { now: () => new Date() } });
    assert.deepEqual(
      asked.filter((method, place) => asked.indexOf(method) !== place),
      [],
    );
    for (const name of ['handlers', 'queues']) {
      const found = findings.find(({ check }) => check === name);
      assert.equal(found?.level, 'ok');
      assert.match(found?.finding ?? '', /of those looked at/);
    }
  });

  it('B18 schedules that fall behind', async () => {
    const { scheduler, clock } = byHand(database);
    clock.advance(100_000_000);
    await database.collections.workers.insertOne(aWorker({ heartbeatAt: after(100_000_000) }));
    await database.collections.schedules.insertMany([
      aSchedule({ _id: 'late', nextRunAt: after(0) }),
      aSchedule({ _id: 'paused', nextRunAt: after(0), isActive: false }),
      aSchedule({ _id: 'broken', isActive: false, disabledReason: 'bad cron' }),
      aSchedule({
        _id: 'owing',
        nextRunAt: null,
        owed: [{ kind: 'run', id: 'owing@x', at: after(0), since: after(0) }],
      }),
    ]);
    const found = await troubles(scheduler);
    assert.deepEqual(Object.keys(found), ['lateSchedules', 'disabledSchedules', 'owedRuns']);
    assert.match(found['lateSchedules']?.finding ?? '', /behind: late \(2026-01-01/);
    assert.match(found['disabledSchedules']?.finding ?? '', /broken \(bad cron\)/);
    assert.match(found['owedRuns']?.finding ?? '', /: owing\.$/);
  });

  it('B18 a clock that is wrong, and a check that throws', async () => {
    const { scheduler } = byHand(database);
    const { operations } = scheduler;
    assert.equal((await operations.doctor()).find(({ check }) => check === 'ownClock')?.level, 'ok');
    const clock = new ManualClock();
    const wallClock = { now: () => new Date(Date.now() - 90_000) };
    const late = await examine({ store: createStore(database.collections), clock, wallClock });
    const own = late.find(({ check }) => check === 'ownClock');
    assert.equal(own?.level, 'warning');
    assert.match(own?.finding ?? '', /(89|90)\d{3} ms behind/);
    const findings = await examine({} as never, [
      { name: 'broken', examine: () => Promise.reject(new Error('at mongodb://me:secret@host')) },
    ]);
    assert.equal(findings[0]?.level, 'error');
    assert.match(findings[0]?.finding ?? '', /could not be checked: at mongodb:\/\/\*\*\*@host/);
  });

  it('B18 says when a change stream is refused, and what then', async () => {
    const scheduler = database.scheduler();
    await scheduler.install();
    const found = await failing(database, NO_STREAM, () => troubles(scheduler));
    assert.equal(found['changeStreams']?.level, 'warning');
    assert.match(found['changeStreams'].advice ?? '', /by polling: grant the action changeStream/);
    assert.equal((await troubles(scheduler))['changeStreams'], undefined);
  });

  it('B18 a standalone server has no change streams', async () => {
    const mongod = await startMongod({ replicaSet: false });
    const scheduler = new Scheduler({ uri: mongod.uri });
    try {
      await scheduler.install();
      const found = await troubles(scheduler);
      assert.deepEqual(Object.keys(found), ['changeStreams', 'workersAlive']);
    } finally {
      await scheduler.stop();
      await mongod.stop();
    }
  });
});
