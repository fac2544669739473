import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type EmbeddedMongod, startMongod } from '@chronos/mongod';
import mongoose from 'mongoose';
import { CancelJob, Scheduler, SnoozeJob } from '../../../src/index.js';
import { attachMetrics, type Metrics } from '../../../src/metrics/attach.js';
import { aJob } from '../../support/factories/job.js';
import { manualScheduler, withoutRenewalThread } from '../../support/manual-scheduler.js';
import { collectionName, SHORT_INTERVALS } from '../../support/database.js';
import { blocker, nextEvent, signal } from '../../support/events.js';
import { type Family, parseMetrics } from '../../support/metrics-text.js';
import { withFailPoint } from '../../support/fail-point.js';
import { profileQueries } from '../../support/query-profiler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { waitUntil } from '../../support/wait-until.js';
import { countMeasurements, nextMeasurement } from '../../support/measurements.js';

describe('metrics of a worker', () => {
  const database = useSharedDatabase();
  let attached: Metrics[] = [];

  function attach(scheduler: Scheduler): Metrics {
    const metrics = attachMetrics(scheduler);
    attached.push(metrics);
    return metrics;
  }

  afterEach(() => {
    for (const metrics of attached) metrics.detach();
    attached = [];
  });

  async function scrape(metrics: Metrics): Promise<Map<string, Family>> {
    return parseMetrics(await metrics.text());
  }

  function valueOf(
    families: Map<string, Family>,
    name: string,
    labels: Record<string, string> = {},
  ): number | undefined {
    const family = families.get(name) ?? families.get(name.replace(/_(bucket|sum|count)$/, ''));
    const found = family?.samples.filter(
      (one) => one.name === name && Object.entries(labels).every(([key, text]) => one.labels[key] === text),
    );
    assert.ok((found?.length ?? 0) <= 1, `${name} is ambiguous`);
    return found?.[0]?.value;
  }

  it('count jobs by outcome, with durations, waits, claims and schedules [B13] [F7]', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread, retries: { base: 0, jitter: 'none' } });
    const metrics = attach(scheduler);
    scheduler.registerHandler('works', () => 'done');
    scheduler.registerHandler('fails', () => Promise.reject(new Error('broken')));
    scheduler.registerHandler('cancels', () => Promise.reject(new CancelJob('not needed')));
    scheduler.registerHandler('snoozes', () => Promise.reject(new SnoozeJob('1h')));
    const loops = ['claim jobs', 'enqueue schedules', 'sweep', 'heartbeat'] as const;
    const cycles = loops.map((loop) =>
      nextMeasurement(scheduler, 'round', ({ operation }) => operation === loop),
    );
    await scheduler.start();
    const snoozed = nextEvent(scheduler, 'job:snoozed');
    const scheduled = nextEvent(scheduler, 'job:complete', ({ jobId }) => jobId.includes('@'));
    await scheduler.addSchedule({ cron: '* * * * * *', taskType: 'works', id: 'each second' });
    const jobs = await Promise.all([
      scheduler.dispatch('works'),
      scheduler.dispatch('works'),
      scheduler.dispatch('fails', null, { retries: { max: 3 } }),
      scheduler.dispatch('cancels'),
    ]);
    await scheduler.dispatch('snoozes');
    for (const job of jobs) await job.wait({ timeout: '60s' });
    await Promise.all([snoozed, scheduled, ...cycles]);
    await scheduler.removeSchedule('each second');
    const waiting = await scheduler.dispatch('works', null, { delay: '1h' });
    await waiting.cancel('changed my mind');

    const families = await scrape(metrics);
    const count = (task_type: string, outcome: string): number | undefined =>
      valueOf(families, 'chronos_jobs_total', { task_type, outcome });
    const completed = count('works', 'completed');
    assert.ok(completed !== undefined && completed >= 3);
    assert.deepEqual([count('fails', 'retry'), count('fails', 'failed')], [2, 1]);
    assert.deepEqual([count('cancels', 'cancelled'), count('works', 'cancelled')], [1, 1]);
    assert.equal(count('snoozes', 'snoozed'), 1);
    assert.equal(valueOf(families, 'chronos_job_duration_seconds_count', { task_type: 'fails' }), 3);
    assert.ok((valueOf(families, 'chronos_queue_wait_seconds_count', { queue: 'default' }) ?? 0) >= 8);
    const finished = valueOf(families, 'chronos_queue_finished_jobs_total', { queue: 'default' });
    assert.equal(finished, completed + 1, 'completed or failed');
    assert.ok((valueOf(families, 'chronos_claim_rounds_total', { result: 'won' }) ?? 0) > 0);
    assert.ok((valueOf(families, 'chronos_claimed_jobs_total', { result: 'won' }) ?? 0) >= 8);
    assert.ok((valueOf(families, 'chronos_schedule_decisions_total', { result: 'won' }) ?? 0) >= 1);
    assert.ok((valueOf(families, 'chronos_pushes_total', { result: 'ok' }) ?? 0) >= 1);
    assert.equal(valueOf(families, 'chronos_push_success_ratio'), 1);
    assert.ok((valueOf(families, 'chronos_schedule_lateness_seconds_count') ?? 0) >= 1);
    for (const loop of loops) {
      assert.ok((valueOf(families, 'chronos_cycle_duration_seconds_count', { loop }) ?? 0) > 0, loop);
      assert.ok((valueOf(families, 'chronos_last_good_cycle_timestamp_seconds', { loop }) ?? 0) > 1e9, loop);
    }
    for (const [name, { help, type }] of families) {
      assert.match(name, /^chronos_/);
      assert.ok(help.length > 5, name);
      assert.equal(name.endsWith('_total'), type === 'counter', name);
    }
    assert.equal(metrics.contentType, 'text/plain; version=0.0.4; charset=utf-8');
  });

  it('show what is running now, the connections and the state [B13] [F7]', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread, concurrency: 2 });
    const metrics = attach(scheduler);
    const before = await scrape(metrics);
    assert.equal(valueOf(before, 'chronos_connected'), 0);
    assert.equal(valueOf(before, 'chronos_worker_state', { state: 'Stopped' }), 1);
    assert.equal(valueOf(before, 'chronos_uptime_seconds'), 0);
    assert.equal(metrics.health().isConnected, false);

    const { block, entered, release } = blocker();
    scheduler.registerHandler('waits', block);
    const cycle = nextMeasurement(scheduler, 'round');
    await scheduler.start();
    const completed = nextEvent(scheduler, 'job:complete');
    await scheduler.dispatch('waits');
    await entered;
    const during = await scrape(metrics);
    assert.equal(valueOf(during, 'chronos_slots'), 2);
    assert.equal(valueOf(during, 'chronos_slots_running'), 1);
    assert.equal(valueOf(during, 'chronos_connected'), 1);
    assert.equal(valueOf(during, 'chronos_worker_state', { state: 'Running' }), 1);
    assert.equal(valueOf(during, 'chronos_worker_state', { state: 'Stopped' }), 0);
    assert.ok((valueOf(during, 'chronos_pool_connections', { use: 'open' }) ?? 0) >= 1);
    assert.equal(valueOf(during, 'chronos_pool_connections_max'), 7);
    assert.ok((valueOf(during, 'chronos_event_loop_lag_seconds', { stat: 'max' }) ?? -1) >= 0);
    release();
    await Promise.all([completed, cycle]);

    const { state, isConnected, lastGoodCycle, uptime } = metrics.health();
    assert.deepEqual([state, isConnected], ['Running', true]);
    assert.ok(lastGoodCycle !== null && uptime > 0);
    await scheduler.stop();
    assert.equal(metrics.health().isConnected, false);
    assert.equal(metrics.health().state, 'Stopped');
  });

  it('count renewed locks [F7]', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread, lockTimeout: '600ms' });
    const metrics = attach(scheduler);
    const go = signal();
    scheduler.registerHandler('waits', () => go.promise);
    await scheduler.start();
    const renewed = countMeasurements(scheduler, 'renewal', 2);
    await scheduler.dispatch('waits');
    await renewed;
    const done = nextEvent(scheduler, 'job:complete');
    go.fire();
    await done;
    assert.ok((valueOf(await scrape(metrics), 'chronos_locks_renewed_total') ?? 0) >= 2);
  });

  it('count connection errors separately from jobs of schedules that could not be created [F6] [F7]', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread });
    const metrics = attach(scheduler);
    scheduler.registerHandler('works', () => 'done');
    await scheduler.start();
    await scheduler.addSchedule({ cron: '* * * * * *', taskType: 'works', id: 'each second' });
    await withFailPoint(database, { commands: ['insert'], how: 'error' }, () =>
      nextMeasurement(scheduler, 'enqueue', ({ failed }) => failed > 0),
    );
    await nextMeasurement(scheduler, 'enqueue', ({ inserted }) => inserted > 0);
    const { push, connection } = metrics.health().errors;
    assert.ok(push > 0);
    assert.equal(connection, 0);
    await withFailPoint(database, { commands: ['find', 'findAndModify'], how: 'noConnection' }, () =>
      nextEvent(scheduler, 'worker:error', ({ operation }) => operation === 'claim jobs'),
    );
    assert.ok(metrics.health().errors.connection > 0);
    assert.ok(metrics.health().pushSuccess < 1);
    const families = await scrape(metrics);
    assert.ok((valueOf(families, 'chronos_errors_total', { kind: 'connection' }) ?? 0) > 0);
    assert.ok((valueOf(families, 'chronos_pushes_total', { result: 'failed' }) ?? 0) > 0);
  });

  it('show the oldest waiting job of each queue, whatever its task type and priority [F7]', async () => {
    const { scheduler, clock } = manualScheduler(database, { queues: ['mail', 'reports', 'empty'] });
    const now = clock.now().getTime();
    const ago = (seconds: number): Date => new Date(now - seconds * 1000);
    const job = (queue: string, priority: number, seconds: number, taskType = 'send') =>
      aJob({ queue, priority, taskType, nextRunAt: ago(seconds), status: 'SCHEDULED' });
    await database.collections.jobs.insertMany([
      job('mail', 1, 10),
      job('mail', 900, 90),
      job('mail', 5, 20, 'other'),
      job('reports', 5, 30),
      job('foreign', 5, 500),
      job('empty', 5, -60),
    ]);
    const metrics = attach(scheduler);
    assert.equal(
      valueOf(await scrape(metrics), 'chronos_queue_waiting_jobs'),
      undefined,
      'a scrape does not connect',
    );
    await scheduler.getJob('connect first');
    assert.deepEqual(await scheduler.backlog(), [
      { queue: 'mail', waiting: 3, oldest: ago(90), age: 90_000 },
      { queue: 'reports', waiting: 1, oldest: ago(30), age: 30_000 },
      { queue: 'empty', waiting: 0, oldest: null, age: 0 },
    ]);
    const families = await scrape(attach(scheduler));
    assert.equal(valueOf(families, 'chronos_queue_oldest_waiting_seconds', { queue: 'mail' }), 90);
    assert.equal(valueOf(families, 'chronos_queue_waiting_jobs', { queue: 'reports' }), 1);
  });

  it('read the backlog without scanning future jobs and other queues', async () => {
    const { scheduler, clock } = manualScheduler(database, { queues: ['mail'] });
    await scheduler.getJob('connect first');
    const later = new Date(clock.now().getTime() + 3_600_000);
    const jobs = [...Array(3000).keys()].map((i) =>
      aJob({
        queue: i % 2 === 0 ? 'mail' : 'foreign',
        taskType: `t${i % 3}`,
        nextRunAt: i % 2 === 0 ? later : clock.now(),
        status: 'SCHEDULED',
      }),
    );
    await database.collections.jobs.insertMany(jobs);
    const queries = await profileQueries(database, [collectionName('jobs')], () => scheduler.backlog());
    assert.equal(queries.length, 1, 'nothing is due: one find');
    assert.ok(queries[0]!.keys < 20, `${queries[0]!.keys} keys`);
  });
});

describe('metrics of a worker without a primary', () => {
  let mongod: EmbeddedMongod;
  let scheduler: Scheduler;
  let metrics: Metrics;

  beforeEach(async () => {
    mongod = await startMongod();
    scheduler = new Scheduler({
      uri: mongod.uri,
      ...SHORT_INTERVALS,
      ...withoutRenewalThread,
      logger: false,
    });
    metrics = attachMetrics(scheduler);
  });

  afterEach(async () => {
    metrics.detach();
    await scheduler.stop('1s');
    await mongod.stop();
  });

  it('show the outage and its end, and can be scraped during it [F7]', async () => {
    await scheduler.start();
    assert.ok(metrics.health().isConnected);
    const connection = await mongoose.createConnection(mongod.members[0]?.uri ?? '').asPromise();
    const admin = connection.getClient().db('admin');
    await admin.command({ replSetStepDown: 60, force: true });
    await waitUntil('there is no primary', async () => !metrics.health().isConnected);
    const families = parseMetrics(await metrics.text());
    assert.equal(families.get('chronos_connected')?.samples[0]?.value, 0);
    // Ends the step-down, so that the member is elected again.
    await admin.command({ replSetFreeze: 0 });
    await connection.destroy();
    await waitUntil('there is a primary again', async () => metrics.health().isConnected);
  });
});

describe('a program that does not import the metrics', () => {
  it('does not load prom-client', async () => {
    const program = `
      import { createRequire } from 'node:module';
      import 'chronos-worker';
      const loaded = () => Object.keys(createRequire(process.cwd() + '/').cache).some((f) => f.includes('prom-client'));
      const before = loaded();
      const { attachMetrics } = await import('chronos-worker/metrics');
      console.log(JSON.stringify([before, loaded(), typeof attachMetrics]));`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
      cwd: fileURLToPath(new URL('../../..', import.meta.url)),
    });
    assert.deepEqual(JSON.parse(stdout), [false, true, 'function']);
  });
});
