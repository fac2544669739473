import assert from 'node:assert/strict';
import type { QueueSettings, Scheduler } from '../../../src/index.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { createStore } from '../../../src/store/store.js';
import { JobPicker, type PickRequest } from '../../../src/worker/job-picker.js';
import { countEvents, recordEvents, signal } from '../../support/events.js';
import { aRegistry } from '../../support/factories/handler-registry.js';
import { aJob } from '../../support/factories/job.js';
import { aWorker } from '../../support/factories/worker.js';
import { timeAfter } from '../../support/instants.js';
import { ManualClock } from '../../support/manual-clock.js';
import { manualScheduler, withoutRenewalThread } from '../../support/manual-scheduler.js';
import { assertBounded } from '../../support/query-bounds.js';
import { collectionName } from '../../support/database.js';
import { profileQueries } from '../../support/query-profiler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { noInvalidJobs } from '../../support/no-invalid-jobs.js';

describe('queueSettings.slots', () => {
  const database = useSharedDatabase();

  const queues = ['slow', 'fast'];
  const many = (count: number, taskType: string, priority = 100) =>
    Array.from({ length: count }, () => ({ taskType, options: { queue: taskType, priority } }));

  /** How many jobs of a task type run now, and the most so far. */
  class Gauge {
    current = 0;
    peak = 0;

    async during<T>(work: Promise<T>): Promise<T> {
      this.peak = Math.max(this.peak, ++this.current);
      try {
        return await work;
      } finally {
        this.current--;
      }
    }
  }

  function limited(scheduler: Scheduler): Record<string, number> {
    return Object.fromEntries(scheduler.load.queueSlots.map(({ queue, taken }) => [queue, taken]));
  }

  it('keeps long jobs of one queue from taking all slots, and neither queue starves', async () => {
    const worker = database.scheduler({
      ...withoutRenewalThread,
      ...{ concurrency: 4, queues, queueSettings: { slow: { slots: 1 } } },
    });
    const [slow, fast, all] = [new Gauge(), new Gauge(), new Gauge()];
    const [go, threeFast] = [signal(), signal()];
    worker.registerHandler('slow', () => all.during(slow.during(go.promise)));
    // The first fast jobs end when three of them run at the same time, beside the slow one.
    worker.registerHandler('fast', () => {
      if (fast.current === 2) threeFast.fire();
      return all.during(fast.during(threeFast.promise));
    });
    const client = database.scheduler(withoutRenewalThread);
    // The slow ones are older and more urgent.
    await client.dispatchMany(many(20, 'slow', 1));
    await client.dispatchMany(many(20, 'fast', 100));
    const fastDone = countEvents(worker, 'job:complete', 20);
    await worker.start();
    assert.deepEqual(new Set((await fastDone).map(({ taskType }) => taskType)), new Set(['fast']));
    assert.deepEqual([slow.peak, fast.peak, all.peak], [1, 3, 4]);
    assert.deepEqual(worker.load.queueSlots, [{ queue: 'slow', slots: 1, taken: 1 }]);
    assert.equal(await database.collections.jobs.countDocuments({ queue: 'slow', status: 'SCHEDULED' }), 19);

    const slowDone = countEvents(worker, 'job:complete', 20);
    go.fire();
    await slowDone;
    assert.equal(slow.peak, 1);
  });

  it('claims the next job of a queue as soon as one of its slots is free, without a poll', async () => {
    const worker = database.scheduler({
      ...withoutRenewalThread,
      ...{ concurrency: 4, queues, queueSettings: { slow: { slots: 2 } }, pollInterval: '1h' },
    });
    const slow = new Gauge();
    worker.registerHandler('slow', () => slow.during(new Promise(setImmediate)));
    const done = countEvents(worker, 'job:complete', 12);
    await database.scheduler(withoutRenewalThread).dispatchMany(many(12, 'slow'));
    await worker.start();
    await done;
    assert.equal(slow.peak, 2);
  });

  it('also limits what is prefetched', async () => {
    const worker = database.scheduler({
      ...withoutRenewalThread,
      ...{ concurrency: 3, queues, queueSettings: { slow: { slots: 2 } } },
    });
    for (const taskType of queues) worker.registerHandler(taskType, () => undefined);
    let buffered = 0;
    const seen = new Set<number>();
    worker.on('job:start', () => {
      seen.add(limited(worker)['slow'] ?? 0);
      buffered = Math.max(buffered, worker.load.buffered);
    });
    const client = database.scheduler(withoutRenewalThread);
    const requests = Array.from({ length: 600 }, (_, n) => many(1, queues[n % 2] ?? '')).flat();
    const done = countEvents(worker, 'job:complete', 600);
    await client.dispatchMany(requests);
    await worker.start();
    await done;
    assert.ok(buffered > 0, 'nothing was prefetched');
    assert.equal(Math.max(...seen), 2);
    assert.equal(limited(worker)['slow'], 0);
  });

  for (const [slots, title] of [
    [1, 'one by one'],
    [2, 'two at a time'],
  ] as const) {
    it(`is obeyed by a pass, which still runs every due job: ${title}`, async () => {
      const { scheduler } = manualScheduler(database, {
        ...{ concurrency: 4, queues, queueSettings: { slow: { slots } } },
      });
      const slow = new Gauge();
      scheduler.registerHandler('slow', () => slow.during(new Promise(setImmediate)));
      scheduler.registerHandler('fast', () => undefined);
      await scheduler.dispatchMany([...many(10, 'slow', 1), ...many(10, 'fast')]);
      assert.equal(await scheduler.run(), 20);
      assert.equal(slow.peak, slots);
    });
  }

  it('frees the slot of a job that fails', async () => {
    const { scheduler } = manualScheduler(database, { queues, queueSettings: { slow: { slots: 1 } } });
    const failed = recordEvents(scheduler, 'job:failed');
    scheduler.registerHandler('slow', () => Promise.reject(new Error('no')), {
      retries: { max: 2, base: 0 },
    });
    await scheduler.dispatchMany(many(3, 'slow'));
    for (let pass = 0; pass < 4; pass++) await scheduler.run();
    assert.equal(failed.length, 6);
    assert.deepEqual(scheduler.load.queueSlots, [{ queue: 'slow', slots: 1, taken: 0 }]);
  });

  describe('in a claim', () => {
    function picker() {
      const registry = aRegistry();
      for (const taskType of queues) registry.register(taskType, () => undefined);
      return new JobPicker({
        usesMongos: false,
        invalidJobs: noInvalidJobs,
        store: createStore(database.stored),
        clock: new ManualClock(timeAfter(10_000)),
        random: Math.random,
        workerId: 'me',
        queues,
        registry,
        events: new EventBus('worker'),
        uncertainClaims: { add: () => assert.fail('no claim of this test fails') },
      });
    }

    const request = (slots: number, room: Record<string, number>) => ({
      ...{ slots, prefetch: 0, withoutCrashSuspects: false, exclude: [] },
      queueRoom: new Map(Object.entries(room)),
    });

    const aSlow = (_id: string, priority: number) => aJob({ _id, priority, queue: 'slow', taskType: 'slow' });
    const aFast = (_id: string, priority: number) => aJob({ _id, priority, queue: 'fast', taskType: 'fast' });

    it('the order of priorities holds across queues', async () => {
      await database.collections.jobs.insertMany([
        ...[aSlow('a', 1), aSlow('d', 4), aSlow('e', 5)],
        ...[aFast('b', 2), aFast('c', 3), aFast('f', 6), aFast('g', 7)],
      ]);
      const claimed = await picker().pick(request(4, { slow: 2 }));
      assert.deepEqual(
        claimed.map(({ job }) => job._id),
        ['a', 'b', 'c', 'd'],
      );
      const rest = await picker().pick(request(4, { slow: 0 }));
      assert.deepEqual(
        rest.map(({ job }) => job._id),
        ['f', 'g'],
      );
    });

    it('a full queue is left out, also when one job is claimed', async () => {
      await database.collections.jobs.insertMany([aSlow('a', 1), aFast('b', 2)]);
      const mine = picker();
      assert.equal((await mine.pick(request(1, { slow: 0 })))[0]?.job._id, 'b');
      assert.deepEqual(await mine.pick(request(1, { slow: 0, fast: 0 })), []);
      assert.equal((await mine.pick(request(1, { slow: 1 })))[0]?.job._id, 'a');
    });

    it('a backlog in a limited queue is not read', async () => {
      const { jobs } = database.collections;
      await jobs.insertMany(
        Array.from({ length: 5000 }, (_, n) => aSlow(`slow-${String(n).padStart(4, '0')}`, 1)),
      );
      await jobs.insertMany(Array.from({ length: 20 }, (_, n) => aFast(`fast-${n}`, 100)));
      const mine = picker();
      const find = () =>
        profileQueries(database, [collectionName('jobs')], () => mine.pick(request(10, { slow: 2 })));
      // Two limited slow jobs and eight fast ones; the claim itself reads the ten documents by id.
      const work = await find();
      assertBounded(
        work.filter(({ command }) => command === 'query'),
        12 + 2 * queues.length,
        12,
      );
      const full = await profileQueries(database, [collectionName('jobs')], () =>
        mine.pick(request(4, { slow: 0 })),
      );
      assertBounded(
        full.filter(({ command }) => command === 'query'),
        4 + queues.length,
        4,
      );
    });

    it('there is one query unless a queue has room for fewer jobs than wanted', async () => {
      await database.collections.jobs.insertMany([aSlow('a', 1), aFast('b', 2)]);
      const { queueRoom: _, ...unlimited } = request(3, {});
      const queries = async (claim: PickRequest): Promise<number> => {
        const work = await profileQueries(database, [collectionName('jobs')], () => picker().pick(claim));
        return work.filter(({ command }) => command === 'query').length;
      };
      assert.equal(await queries(unlimited), 1);
      assert.equal(await queries(request(3, { slow: 3 })), 1);
      assert.equal(await queries(request(3, { slow: 2 })), 2);
    });
  });

  it('is explained to those who ask why a job waits', async () => {
    const { scheduler } = manualScheduler(database, { queues });
    const queueSlots = [{ queue: 'slow', slots: 2, taken: 2 }];
    const worker = aWorker({ queues, taskTypes: queues, running: 2, queueSlots });
    await database.collections.workers.insertOne(worker);
    const [slow, fast] = await Promise.all(queues.map((queue) => scheduler.dispatch(queue, null, { queue })));
    const why = await scheduler.operations.explainJob(slow!.id);
    assert.deepEqual(
      [why?.check, why?.sentence],
      [
        'busy',
        "It waits for a free slot of its queue 'slow': queueSettings limits the slots, and they are taken in worker.",
      ],
    );
    assert.equal((await scheduler.operations.explainJob(fast!.id))?.check, null);
  });

  it('is stored with the heartbeat', async () => {
    const settings: Record<string, QueueSettings> = { slow: { slots: 2 }, fast: {} };
    const worker = database.scheduler({ ...withoutRenewalThread, queues, queueSettings: settings });
    await worker.start();
    await worker.drain();
    await worker.stop();
    const [view] = (await worker.operations.listWorkers()).items;
    assert.deepEqual(view?.queueSlots, [{ queue: 'slow', slots: 2, taken: 0 }]);
    await worker.stop();
  });
});
