import assert from 'node:assert/strict';
import type { WorkerLoad } from '../../../src/index.js';
import { attachMetrics, type Metrics } from '../../../src/metrics/attach.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import type { QueueBacklog } from '../../../src/store/jobs/counts.js';
import { parseMetrics } from '../../support/metrics-text.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { ManualClock } from '../../support/manual-clock.js';

const LOAD: WorkerLoad = {
  ...{ concurrency: 5, running: 2, buffered: 3, unsettled: 4, isDraining: false, queueSlots: [] },
  queues: ['default', 'mail'],
  taskTypes: ['send'],
  connection: { open: 7, inUse: 2, waiting: 1, max: 10, isConnected: true },
};

describe('attachMetrics', () => {
  const attempt = { jobId: 'a', taskType: 'send', queue: 'mail', attempt: 1, fence: 1 };
  let bus: EventBus;
  let clock: ManualClock;
  let metrics: Metrics;
  let queries: number;
  let backlog: () => Promise<QueueBacklog[]>;

  beforeEach(() => {
    bus = new EventBus('worker');
    clock = new ManualClock();
    queries = 0;
    backlog = async () => [{ queue: 'mail', waiting: 30, oldest: clock.now(), age: 9000 }];
    const observed = {
      workerId: bus.workerId,
      on: bus.on.bind(bus),
      off: bus.off.bind(bus),
      state: 'Running' as const,
      load: LOAD,
      backlog: () => (queries++, backlog()),
    };
    metrics = attachMetrics(observed, { clock, labels: { cluster: 'blue' } });
  });

  afterEach(() => metrics.detach());

  /** The value of a sample, by name and some of its labels. */
  async function value(name: string, labels: Record<string, string> = {}): Promise<number | undefined> {
    const families = parseMetrics(await metrics.text());
    return [...families.values()]
      .flatMap(({ samples }) => samples)
      .find(
        (sample) =>
          sample.name === name && Object.entries(labels).every(([key, text]) => sample.labels[key] === text),
      )?.value;
  }

  const complete = (changes: object = {}): void =>
    bus.emit('job:complete', { ...attempt, result: null, duration: 20, ...changes });

  it('shows which task types hang', async () => {
    const hanging = (): Promise<number | undefined> =>
      value('chronos_task_type_hanging', { task_type: 'send' });
    const since = clock.now();
    bus.emit('type:hanging', { taskType: 'send', running: 2, since, usualDuration: 20 });
    assert.equal(await hanging(), 1);
    bus.emit('type:recovered', { taskType: 'send', hungFor: 70_000 });
    assert.equal(await hanging(), 0);
  });

  it('adds the configured labels to every sample and rejects invalid labels', async () => {
    for (const { samples } of parseMetrics(await metrics.text()).values())
      for (const { labels } of samples) assert.equal(labels['cluster'], 'blue');
    const wrong = { 'no-label': 'x' };
    const observed = {
      workerId: 'w',
      on: () => 0,
      off: () => 0,
      state: 'Stopped',
      load: LOAD,
      backlog,
    } as const;
    assert.throws(() => attachMetrics(observed, { labels: wrong }), /no-label/);
  });

  it('labels unknown task types and queues as `other`', async () => {
    complete();
    for (let i = 0; i < 50; i++) complete({ taskType: `unknown-${i}`, queue: `unknown-${i}` });
    assert.equal(await value('chronos_jobs_total', { task_type: 'send', outcome: 'completed' }), 1);
    assert.equal(await value('chronos_jobs_total', { task_type: 'other', outcome: 'completed' }), 50);
    assert.equal(await value('chronos_queue_finished_jobs_total', { queue: 'other' }), 50);
    assert.doesNotMatch(await metrics.text(), /unknown/);
  });

  it('computes success ratios of claims, plans and job inserts [F7]', async () => {
    assert.equal(metrics.health().lockSuccess, 1);
    bus.measure('claim', { wanted: 5, found: 4, claimed: 3 });
    bus.measure('claim', { wanted: 5, found: 2, claimed: 0 });
    bus.measure('claim', { wanted: 5, found: 0, claimed: 0 });
    bus.measure('plan', { stored: 6, conflicts: 0, rejected: 1 });
    bus.measure('enqueue', { inserted: 3, failed: 1 });
    assert.equal(await value('chronos_lock_success_ratio'), 0.75);
    assert.equal(await value('chronos_push_success_ratio'), 0.75);
    for (const result of ['won', 'lost', 'empty'])
      assert.equal(await value('chronos_claim_rounds_total', { result }), 1, result);
    assert.deepEqual([metrics.health().lockSuccess, metrics.health().pushSuccess], [0.75, 0.75]);
  });

  it('counts only loops that query the database as the last good cycle [F7]', async () => {
    bus.measure('round', { operation: 'check locks', duration: 1 });
    assert.equal(metrics.health().lastGoodCycle, null);
    bus.measure('round', { operation: 'claim jobs', duration: 40 });
    clock.advance(5000);
    assert.equal(metrics.health().sinceGoodCycle, 5000);
    assert.equal(metrics.health().uptime, 5000);
    assert.equal(
      await value('chronos_last_good_cycle_timestamp_seconds', { loop: 'claim jobs' }),
      Date.UTC(2026, 0, 1) / 1000,
    );
    assert.equal(await value('chronos_cycle_duration_seconds_sum', { loop: 'claim jobs' }), 0.04);
  });

  it('measures the age of the last good cycle independently of the wall clock [F7]', () => {
    bus.measure('round', { operation: 'claim jobs', duration: 40 });
    clock.advance(5000);
    clock.set('2026-01-01T06:00:00Z');
    assert.equal(metrics.health().sinceGoodCycle, 5000);
    clock.set('2025-12-31T00:00:00Z');
    assert.equal(metrics.health().sinceGoodCycle, 5000);
    assert.deepEqual(metrics.health().lastGoodCycle, new Date('2026-01-01T00:00:00Z'));
  });

  it('counts errors by kind, starting at zero [F6]', async () => {
    assert.equal(await value('chronos_errors_total', { kind: 'push' }), 0);
    const retry = { failures: 1, retryIn: 0 };
    bus.emit('worker:error', { operation: 'connect', error: new Error('no'), ...retry });
    bus.emit('worker:error', { operation: 'insert job', error: new Error('no'), ...retry });
    bus.measure('enqueue', { inserted: 0, failed: 1 });
    bus.emit('job:lockLost', attempt);
    bus.emit('schedule:disabled', { scheduleId: 'a', reason: 'no' });
    bus.emit('schedule:invalid', { scheduleId: 'a', reason: 'no', count: 1 });
    const errors = { connection: 1, lock: 1, decode: 1, push: 1, cron: 1, other: 0 };
    assert.deepEqual(metrics.health().errors, errors);
    for (const [kind, count] of Object.entries(errors))
      assert.equal(await value('chronos_errors_total', { kind }), count, kind);
  });

  it('queries the database at most every 15 seconds, however often it is scraped', async () => {
    await Promise.all([metrics.text(), metrics.text()]);
    clock.advance(14_999);
    await metrics.text();
    assert.equal(queries, 1);
    clock.advance(1);
    await metrics.text();
    assert.equal(queries, 2);
  });

  it('estimates the drain time of a queue from the jobs finished since the last query', async () => {
    for (let i = 0; i < 10; i++) complete();
    clock.advance(20_000);
    assert.equal(await value('chronos_queue_oldest_waiting_seconds', { queue: 'mail' }), 9);
    assert.equal(await value('chronos_queue_drain_seconds', { queue: 'mail' }), 60);
    clock.advance(20_000);
    assert.equal(await value('chronos_queue_drain_seconds', { queue: 'mail' }), Infinity, 'no job finished');
    backlog = async () => [{ queue: 'mail', waiting: 0, oldest: null, age: 0 }];
    clock.advance(20_000);
    assert.equal(await value('chronos_queue_drain_seconds', { queue: 'mail' }), 0);
  });

  it('omits only the metrics of queues if the database does not respond', async () => {
    await metrics.text();
    backlog = () => Promise.reject(new Error('no response'));
    clock.advance(15_000);
    assert.equal(await value('chronos_queue_waiting_jobs'), undefined);
    assert.equal(await value('chronos_slots_running'), 2);
  });

  it('waits at most a second for the database and shows a late response at the next scrape', async () => {
    let respond: (found: QueueBacklog[]) => void = () => undefined;
    backlog = () => new Promise((resolve) => (respond = resolve));
    const scrape = metrics.text();
    await flushEventLoop();
    clock.advance(1000);
    parseMetrics(await scrape);
    respond([{ queue: 'mail', waiting: 1, oldest: clock.now(), age: 1 }]);
    assert.equal(await value('chronos_queue_waiting_jobs', { queue: 'mail' }), 1);
  });

  it('counts nothing after detach()', async () => {
    metrics.detach();
    complete();
    assert.equal(await value('chronos_jobs_total'), undefined);
  });
});
