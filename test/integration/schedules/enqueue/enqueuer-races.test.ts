import assert from 'node:assert/strict';
import { DEFAULTS } from '../../../../src/config/options.js';
import { type Overlap, OVERLAPS } from '../../../../src/domain/schedule/schedule.js';
import type { JobContext } from '../../../../src/index.js';
import { EventBus } from '../../../../src/runtime/event-bus.js';
import { PlanExecutor } from '../../../../src/schedules/enqueue/plan-executor.js';
import { createStore, type Store } from '../../../../src/store/store.js';
import { manualScheduler, withoutRenewalThread } from '../../../support/manual-scheduler.js';
import { run } from '../../../support/factories/plan.js';
import { aSchedule } from '../../../support/factories/schedule.js';
import { loadOutcomes, type OccurrenceOutcome } from '../../../support/occurrence-outcomes.js';
import { nextEvent, recordEvents } from '../../../support/events.js';
import { timeAfter } from '../../../support/instants.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { seededRandom } from '../../../support/seeded-random.js';
import { createEnqueuer, outcomesUntil, TAKEOVER_MS } from '../../../support/schedules.js';
import { useSharedDatabase } from '../../../support/shared-database.js';
import { recordMeasurements } from '../../../support/measurements.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe('several schedule enqueuers', () => {
  const database = useSharedDatabase();

  describe('working at the same time', () => {
    it('six schedulers create and run each occurrence of stored schedules and definitions once [J15] [F3]', async () => {
      const clock = new ManualClock();
      const runs = new Map<string, number>();
      const work = (_: unknown, { id }: JobContext): void => void runs.set(id, (runs.get(id) ?? 0) + 1);
      const schedulers = Array.from({ length: 6 }, () => {
        const scheduler = database.scheduler({ clock, lockTimeout: '1d', concurrency: 20 });
        scheduler.registerHandler('work', work);
        for (const name of ['code-1', 'code-2', 'code-3']) scheduler.schedule(name, work).everyMinute();
        return scheduler;
      });
      const plans = schedulers.map((scheduler) => recordMeasurements(scheduler, 'plan'));
      const due = schedulers.map((scheduler) => recordEvents(scheduler, 'schedule:due'));
      const ids = Array.from({ length: 12 }, (_, index) => `stored-${index}`);
      await Promise.all(schedulers.map((scheduler) => scheduler.run(1)));
      for (const [index, id] of ids.entries()) {
        const overlap = OVERLAPS[index % OVERLAPS.length]!;
        await schedulers[0]!.addSchedule({ id, taskType: 'work', cron: '*/20 * * * * *', overlap });
      }
      for (let step = 0; step < 6; step++) {
        clock.advance(20 * SECOND);
        await Promise.all(schedulers.map((scheduler) => scheduler.run()));
      }
      for (const id of ids)
        assert.deepEqual(await outcomesUntil(database, clock.now(), id), Array(6).fill('job'), id);
      for (const id of ['code-1', 'code-2', 'code-3'])
        assert.deepEqual(await outcomesUntil(database, clock.now(), id), ['job', 'job'], id);
      const count = 12 * 6 + 3 * 2;
      assert.equal(await database.collections.jobs.countDocuments({ status: 'COMPLETED' }), count);
      assert.deepEqual([...runs.values()], Array(count).fill(1));
      assert.equal(due.flat().length, count, 'only the scheduler that created a job emits schedule:due');
      assert.ok(
        plans.flat().some(({ conflicts }) => conflicts > 0),
        'the schedulers never competed',
      );
    });

    it('three workers in real time create and start one job each second [J15] [F3]', async () => {
      const workers = Array.from({ length: 3 }, () =>
        database.scheduler({ ...withoutRenewalThread, lockTimeout: '20s' }),
      );
      const starts: string[] = [];
      for (const worker of workers) {
        worker.registerHandler('work', (_, { id }) => void starts.push(id));
        await worker.start();
      }
      const allRan = Promise.race(
        workers.map((worker) => nextEvent(worker, 'job:complete', () => starts.length >= 8)),
      );
      const [one] = workers;
      for (const id of ['a', 'b', 'c', 'd'])
        await one!.addSchedule({ id, taskType: 'work', every: '1s', maxRuns: 2, overlap: 'queue' });
      await allRan;
      assert.equal(new Set(starts).size, starts.length);
      for (const id of ['a', 'b', 'c', 'd']) {
        const { createdAt, anchor } = (await one!.getSchedule(id))!;
        const span = { after: createdAt, until: timeAfter(2 * SECOND, anchor) };
        assert.deepEqual(await loadOutcomes(database.stored, id, span), ['job', 'job'], id);
      }
    });

    it('workers and passes side by side create each occurrence once [J19]', async () => {
      const clock = new ManualClock();
      const runs: string[] = [];
      const [worker, pass, another] = [1, 2, 3].map(() => {
        const scheduler = database.scheduler({ clock, lockTimeout: '1d' });
        scheduler.schedule('inline', (_, { id }) => void runs.push(id)).everyMinute();
        scheduler
          .schedule('queued', (_, { id }) => void runs.push(id))
          .everyMinute()
          .queue('default');
        return scheduler;
      });
      await worker!.run();
      for (let minute = 1; minute <= 5; minute++) {
        clock.advance(MINUTE);
        await Promise.all([worker!.run(), pass!.runOnce(), another!.runOnce()]);
        await worker!.run();
      }
      for (const id of ['inline', 'queued'])
        assert.deepEqual(await outcomesUntil(database, clock.now(), id), Array(5).fill('job'), id);
      assert.equal(new Set(runs).size, 10);
      assert.equal(runs.length, 10);
    });

    it('more due schedules than fit in a batch are enqueued in one pass [F3]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      const schedules = Array.from({ length: 1203 }, (_, index) => aSchedule({ _id: `s-${index}` }));
      await database.collections.schedules.insertMany(schedules);
      clock.advance(HOUR);
      await scheduler.run();
      assert.equal(await database.collections.jobs.countDocuments(), 1203);
      assert.equal(await database.collections.schedules.countDocuments({ pending: { $ne: [] } }), 0);
    });
  });

  /** A store that passes every call through `around`. */
  function intercept(store: Store, around: <T>(work: () => Promise<T>) => Promise<T>): Store {
    return new Proxy(store, {
      get:
        (target, name: keyof Store) =>
        (...args: unknown[]) =>
          around(() => (target[name] as (...rest: unknown[]) => Promise<unknown>)(...args)),
    });
  }

  async function reset(): Promise<void> {
    const { jobs, skips, schedules } = database.collections;
    await Promise.all([jobs.deleteMany(), skips.deleteMany(), schedules.deleteMany()]);
  }

  /** Completes all jobs. */
  async function completeJobs(now: Date): Promise<void> {
    await database.collections.jobs.updateMany(
      { status: 'SCHEDULED' },
      { $set: { status: 'COMPLETED', finishedAt: now } },
    );
  }

  /** Lets a healthy process work until nothing is due or pending. */
  async function executeAll(clock: ManualClock, store: Store): Promise<void> {
    const healthy = createEnqueuer(store, clock);
    const { schedules } = database.collections;
    const open = { $or: [{ pending: { $ne: [] } }, { nextRunAt: { $lte: clock.now() } }] };
    for (let round = 0; round < 12 && (await schedules.countDocuments(open)) > 0; round++) {
      await healthy.collect('all');
      await completeJobs(clock.now());
      clock.advance(TAKEOVER_MS);
    }
    assert.deepEqual(await schedules.distinct('pending.id'), [], 'runs stay pending');
  }

  describe('when one crashes', () => {
    class Crash extends Error {}
    const EXPECTED: Record<Overlap, OccurrenceOutcome[]> = {
      allow: ['job', 'job', 'job'],
      skip: ['job', 'job', 'job'],
      queue: ['job', 'job', 'job'],
      replace: ['replaced', 'replaced', 'job'],
    };

    /** Runs an enqueuer that crashes before or after its nth call of the store. Returns false if it made fewer calls. */
    async function crashAt(clock: ManualClock, step: number, when: 'before' | 'after'): Promise<boolean> {
      let calls = 0;
      const crashing = intercept(createStore(database.stored), async (work) => {
        const isLast = ++calls === step;
        if (calls > step || (isLast && when === 'before')) throw new Crash();
        const result = await work();
        if (isLast) throw new Crash();
        return result;
      });
      try {
        await createEnqueuer(crashing, clock).collect('all');
        return false;
      } catch (error) {
        if (error instanceof Crash) return true;
        throw error;
      }
    }

    for (const overlap of OVERLAPS) {
      it(`with overlap ${overlap}, at any step, another executes exactly the stored plan [C7] [F3] [D13]`, async () => {
        const store = createStore(database.stored);
        let step = 1;
        for (let crashed = true; crashed; step++) {
          for (const when of ['before', 'after'] as const) {
            await reset();
            const misfire = { policy: 'all', within: DAY, cap: 100 } as const;
            await database.collections.schedules.insertOne(aSchedule({ overlap, misfire }));
            const clock = new ManualClock();
            clock.advance(3 * HOUR);
            crashed = await crashAt(clock, step, when);
            const until = clock.now();
            clock.advance(TAKEOVER_MS);
            await executeAll(clock, store);
            assert.deepEqual(await outcomesUntil(database, until), EXPECTED[overlap], `${when} step ${step}`);
          }
        }
        assert.ok(step > 6, `there were ${step} steps`);
      });
    }

    for (const overlap of OVERLAPS) {
      it(`with overlap ${overlap}, a finished run that is still pending is neither skipped nor blocks others [C7] [F3]`, async () => {
        const first = run(timeAfter(HOUR));
        const plan = { overlap, pending: [first], active: first.id, runs: 1, nextRunAt: timeAfter(2 * HOUR) };
        const schedule = aSchedule(plan);
        await database.collections.schedules.insertOne(schedule);
        const clock = new ManualClock();
        clock.advance(HOUR);
        const store = createStore(database.stored);
        // The job was inserted and completed, but the process crashed before it removed the run from `pending`.
        await new PlanExecutor({
          store: { ...store, removePending: async () => undefined },
          ...{ clock, events: new EventBus('worker'), options: DEFAULTS },
          jobs: { cancel: () => assert.fail('nothing is canceled') },
          engine: { wake: () => undefined },
        }).execute([{ schedule, plan: { ...schedule, cancel: null } }], clock.now());
        await completeJobs(clock.now());
        clock.advance(HOUR);
        await executeAll(clock, store);
        assert.deepEqual(await outcomesUntil(database, timeAfter(2 * HOUR)), ['job', 'job']);
      });
    }
  });

  describe('when two plan at the same time', () => {
    for (const overlap of OVERLAPS) {
      it(`with overlap ${overlap}, in any order of steps, each occurrence has one outcome and runs overlap only if allowed [J15] [F3] [B10]`, async () => {
        const store = createStore(database.stored);
        for (let seed = 1; seed <= 8; seed++) {
          const random = seededRandom(seed);
          await reset();
          const misfire = { policy: random() < 0.5 ? 'all' : 'once', within: DAY, cap: 100 } as const;
          await database.collections.schedules.insertOne(aSchedule({ overlap, misfire }));

          // Each call of the store waits until it is picked below.
          const waiting: (() => void)[] = [];
          const stepwise = intercept(store, async (work) => {
            await new Promise<void>((resolve) => waiting.push(resolve));
            return work();
          });
          const checkTimes = [
            [HOUR, 2 * HOUR, 3 * HOUR],
            [HOUR + 3 * SECOND, 2 * HOUR + 3 * SECOND, 3 * HOUR + 3 * SECOND],
          ];
          let active = checkTimes.length;
          const processes = checkTimes.map(async (times) => {
            const clock = new ManualClock();
            const enqueuer = createEnqueuer(stepwise, clock);
            try {
              for (const time of times) {
                clock.advance(timeAfter(time).getTime() - clock.now().getTime());
                await enqueuer.collect('all');
              }
            } finally {
              active--;
            }
          });
          while (active > 0) {
            await new Promise(setImmediate);
            if (waiting.length === 0) continue;
            const [next] = waiting.splice(Math.floor(random() * waiting.length), 1);
            next!();
            const unfinished = { status: 'SCHEDULED', cancelRequested: null } as const;
            if (overlap !== 'allow')
              assert.ok((await database.collections.jobs.countDocuments(unfinished)) <= 1, `seed ${seed}`);
            if (random() < 0.2) await completeJobs(timeAfter(HOUR));
          }
          await Promise.all(processes);
          const clock = new ManualClock();
          clock.advance(3 * HOUR + 10 * SECOND);
          await executeAll(clock, store);
          assert.equal((await outcomesUntil(database, timeAfter(3 * HOUR))).length, 3, `seed ${seed}`);
        }
      });
    }

    it('the later one loses the compare-and-set and reports the conflict [F3]', async () => {
      await database.collections.schedules.insertMany(['a', 'b', 'c'].map((_id) => aSchedule({ _id })));
      const store = createStore(database.stored);
      const [clock, events] = [new ManualClock(), new EventBus('late')];
      const plans = recordMeasurements(events, 'plan');
      clock.advance(HOUR);
      const late: Store = {
        ...store,
        storeDecisions: async (token, decisions) => {
          // Another process plans two of them first.
          await store.storeDecisions('other', decisions.slice(0, 2));
          return store.storeDecisions(token, decisions);
        },
      };
      const created = await createEnqueuer(late, clock, events).collect('all');
      assert.equal(created.length, 1);
      assert.deepEqual(plans, [{ stored: 1, conflicts: 2, rejected: 0 }]);
    });

    it('a change, pause or removal in between makes the plan invalid [F1] [F3]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      const changes: [string, () => Promise<boolean>][] = [
        ['changed', () => scheduler.updateSchedule('s', { cron: '30 * * * *' })],
        ['paused', () => scheduler.pauseSchedule('s')],
        ['removed', () => scheduler.removeSchedule('s')],
      ];
      clock.advance(HOUR);
      for (const [name, change] of changes) {
        await database.collections.schedules.deleteMany();
        await database.collections.schedules.insertOne(aSchedule());
        const store = createStore(database.stored);
        const late: Store = {
          ...store,
          storeDecisions: async (...decision) => {
            assert.equal(await change(), true);
            return store.storeDecisions(...decision);
          },
        };
        assert.deepEqual(await createEnqueuer(late, clock).collect('all'), [], name);
        assert.equal(await database.collections.jobs.countDocuments(), 0, name);
      }
    });
  });
});
