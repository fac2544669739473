import assert from 'node:assert/strict';
import type { JobActions } from '../../../../src/jobs/job-actions.js';
import { type Overlap, OVERLAPS } from '../../../../src/domain/schedule/schedule.js';
import type { JobContext } from '../../../../src/index.js';
import { EventBus } from '../../../../src/runtime/event-bus.js';
import type { DefinitionSync } from '../../../../src/schedules/enqueue/definition-sync.js';
import { PlanExecutor } from '../../../../src/schedules/enqueue/plan-executor.js';
import { PlanningLock } from '../../../../src/schedules/enqueue/planning-lock.js';
import { ScheduleEnqueuer } from '../../../../src/schedules/enqueue/schedule-enqueuer.js';
import { SchedulePlanner } from '../../../../src/schedules/enqueue/schedule-planner.js';
import { createStore, type Store } from '../../../../src/store/store.js';
import { manualScheduler, withoutRenewalThread } from '../../../support/manual-scheduler.js';
import { aSchedule } from '../../../support/factories/schedule.js';
import { loadOutcomes, type OccurrenceOutcome } from '../../../support/occurrence-outcomes.js';
import { nextEvent, recordEvents } from '../../../support/events.js';
import { timeAfter, START } from '../../../support/instants.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { seededRandom } from '../../../support/seeded-random.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const LEFT_ALONE = 2 * SECOND;

describe('several schedule enqueuers', () => {
  const database = useSharedDatabase();

  function account(id: string, until: Date): Promise<OccurrenceOutcome[]> {
    return loadOutcomes(database.collections, id, { after: START, until });
  }

  describe('working at the same time', () => {
    it('six schedulers create and run each occurrence of stored and coded schedules once [J15] [F3]', async () => {
      const clock = new ManualClock();
      const runs = new Map<string, number>();
      const work = (_: unknown, { id }: JobContext): void => void runs.set(id, (runs.get(id) ?? 0) + 1);
      const schedulers = Array.from({ length: 6 }, () => {
        const scheduler = database.scheduler({ clock, lockTimeout: '1d', concurrency: 20 });
        scheduler.registerHandler('work', work);
        for (const name of ['code-1', 'code-2', 'code-3']) scheduler.schedule(name, work).everyMinute();
        return scheduler;
      });
      const contended = schedulers.flatMap((scheduler) => [recordEvents(scheduler, 'schedule:contended')]);
      const due = schedulers.flatMap((scheduler) => [recordEvents(scheduler, 'schedule:due')]);
      const ids = Array.from({ length: 12 }, (_, index) => `stored-${index}`);
      await Promise.all(schedulers.map((scheduler) => scheduler.run(1)));
      for (const [index, id] of ids.entries()) {
        const overlap = OVERLAPS[index % OVERLAPS.length]!;
        await schedulers[0]!.addSchedule({ id, taskType: 'work', cron: '*/20 * * * * *', overlap });
      }
      for (let step = 0; step < 6; step++) {
        clock.advance(20 * SECOND);
        // The last ones first, and all of them at the same time.
        await Promise.all([...schedulers].reverse().map((scheduler) => scheduler.run()));
      }
      for (const id of ids) assert.deepEqual(await account(id, clock.now()), Array(6).fill('job'), id);
      for (const id of ['code-1', 'code-2', 'code-3'])
        assert.deepEqual(await account(id, clock.now()), ['job', 'job'], id);
      const made = 12 * 6 + 3 * 2;
      assert.equal(await database.collections.jobs.countDocuments({ status: 'COMPLETED' }), made);
      assert.deepEqual([...runs.values()], Array(made).fill(1));
      assert.equal(due.flat().length, made, 'each is announced by the one that made it');
      assert.ok(contended.flat().length > 0, 'nobody ever met another');
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
      const ended = Promise.all(
        workers.map((worker) => nextEvent(worker, 'job:complete', () => starts.length >= 8)),
      );
      const [one] = workers;
      for (const id of ['a', 'b', 'c', 'd'])
        await one!.addSchedule({ id, taskType: 'work', every: '1s', maxRuns: 2, overlap: 'queue' });
      await Promise.race([
        ended,
        ...workers.map((w) => nextEvent(w, 'job:complete', () => starts.length >= 8)),
      ]);
      assert.equal(new Set(starts).size, starts.length);
      for (const id of ['a', 'b', 'c', 'd']) {
        const { createdAt, anchor } = (await one!.getSchedule(id))!;
        const span = { after: createdAt, until: timeAfter(2 * SECOND, anchor) };
        assert.deepEqual(await loadOutcomes(database.collections, id, span), ['job', 'job'], id);
      }
    });

    it('workers and one-pass runs side by side create each occurrence once [J19]', async () => {
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
        assert.deepEqual(await account(id, clock.now()), Array(5).fill('job'), id);
      assert.equal(new Set(runs).size, 10);
      assert.equal(runs.length, 10);
    });

    it('more than a batch of due schedules is enqueued in one pass [F3]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      const schedules = Array.from({ length: 1203 }, (_, index) => aSchedule({ _id: `s-${index}` }));
      await database.collections.schedules.insertMany(schedules);
      clock.advance(HOUR);
      await scheduler.run();
      assert.equal(await database.collections.jobs.countDocuments(), 1203);
      assert.equal(await database.collections.schedules.countDocuments({ pending: { $ne: [] } }), 0);
    });
  });

  /** One process with a store and a clock of its own, and nothing around it that would run the jobs. */
  function process(store: Store, clock: ManualClock, events = new EventBus()): ScheduleEnqueuer {
    const cancel: JobActions['cancel'] = (jobId, reason = '') => store.cancel(jobId, reason, clock.now());
    const options = { environment: 'test', pollInterval: 5000, executionRetention: DAY };
    const deps = { clock, events, store, random: () => 0, options };
    return new ScheduleEnqueuer({
      ...deps,
      planner: new SchedulePlanner(deps),
      executor: new PlanExecutor({ ...deps, jobs: { cancel }, engine: { wake: () => undefined } }),
      definitionSync: { names: [] } as unknown as DefinitionSync,
      planningLock: new PlanningLock({ clock, store, workerId: 'me' }),
      changes: { intervalMultiplier: 1 },
    });
  }

  /** Everything that a store is asked, one after another. */
  function watched(
    store: Store,
    around: <T>(operation: string, work: () => Promise<T>) => Promise<T>,
  ): Store {
    return new Proxy(store, {
      get:
        (target, name: keyof Store) =>
        (...args: unknown[]) =>
          around(name, () => (target[name] as (...rest: unknown[]) => Promise<unknown>)(...args)),
    });
  }

  /** All runs that are under way come to their end. */
  async function finish(now: Date): Promise<void> {
    await database.collections.jobs.updateMany(
      { status: 'SCHEDULED' },
      { $set: { status: 'COMPLETED', finishedAt: now } },
    );
  }

  /** A healthy process until nothing is pending any more. */
  async function settle(clock: ManualClock, store: Store): Promise<void> {
    const healthy = process(store, clock);
    const { schedules } = database.collections;
    const open = { $or: [{ pending: { $ne: [] } }, { nextRunAt: { $lte: clock.now() } }] };
    for (let round = 0; round < 12 && (await schedules.countDocuments(open)) > 0; round++) {
      await healthy.collect('all');
      await finish(clock.now());
      clock.advance(LEFT_ALONE);
    }
    assert.deepEqual(await schedules.distinct('pending.id'), [], 'something is pending for ever');
  }

  describe('when one crashes after planning', () => {
    class Death extends Error {}
    const policies: Record<Overlap, OccurrenceOutcome[]> = {
      allow: ['job', 'job', 'job'],
      skip: ['job', 'job', 'job'],
      queue: ['job', 'job', 'job'],
      replace: ['replaced', 'replaced', 'job'],
    };

    /** Dies before or after the nth thing it asks the store; returns whether it lived. */
    async function dies(clock: ManualClock, step: number, when: 'before' | 'after'): Promise<boolean> {
      let count = 0;
      const mortal = watched(createStore(database.collections), async (_, work) => {
        const isLast = ++count === step;
        if (count > step || (isLast && when === 'before')) throw new Death();
        const answer = await work();
        if (isLast) throw new Death();
        return answer;
      });
      try {
        await process(mortal, clock).collect('all');
        return true;
      } catch (error) {
        if (error instanceof Death) return false;
        throw error;
      }
    }

    for (const overlap of OVERLAPS) {
      it(`${overlap}: at any step, another one executes the stored plan and nothing else [C7] [F3] [D13]`, async () => {
        const store = createStore(database.collections);
        let step = 1;
        for (let lived = false; !lived; step++) {
          for (const when of ['before', 'after'] as const) {
            await Promise.all([
              database.collections.jobs.deleteMany(),
              database.collections.skips.deleteMany(),
              database.collections.schedules.deleteMany(),
            ]);
            const misfire = { policy: 'all', within: DAY, cap: 100 } as const;
            await database.collections.schedules.insertOne(aSchedule({ overlap, misfire }));
            const clock = new ManualClock();
            clock.advance(3 * HOUR);
            lived = await dies(clock, step, when);
            const until = clock.now();
            clock.advance(LEFT_ALONE);
            await settle(clock, store);
            assert.deepEqual(await account('s', until), policies[overlap], `${when} step ${step}`);
          }
        }
        assert.ok(step > 6, `there were ${step} steps`);
      });
    }

    for (const overlap of OVERLAPS) {
      it(`${overlap}: a finished run that is still listed as pending is neither skipped nor blocks others [C7] [F3]`, async () => {
        const first = {
          kind: 'run',
          id: 's@2026-01-01T01:00:00.000Z',
          at: timeAfter(HOUR),
          since: timeAfter(HOUR),
        } as const;
        const fields = {
          overlap,
          pending: [first],
          active: first.id,
          runs: 1,
          nextRunAt: timeAfter(2 * HOUR),
        };
        await database.collections.schedules.insertOne(aSchedule(fields));
        const clock = new ManualClock();
        clock.advance(HOUR);
        const store = createStore(database.collections);
        // Inserted and run to its end; whoever decided it died before taking it off the list.
        const later = aSchedule({ ...fields, _id: 's' });
        await new PlanExecutor({
          store: { ...store, removePending: async () => undefined },
          ...{ clock, events: new EventBus(), options: { executionRetention: DAY } },
          jobs: { cancel: () => assert.fail('nothing is canceled') },
          engine: { wake: () => undefined },
        }).execute(
          [{ schedule: later, plan: { ...later, pending: [first], active: first.id, cancel: null } }],
          clock.now(),
        );
        await finish(clock.now());
        // Nobody looks until the next occurrence.
        clock.advance(HOUR);
        await settle(clock, store);
        assert.deepEqual(await account('s', timeAfter(2 * HOUR)), ['job', 'job']);
      });
    }
  });

  describe('when two plan at the same time', () => {
    for (const overlap of OVERLAPS) {
      it(`${overlap}: in any order of steps, every occurrence has one outcome and no forbidden overlap happens [J15] [F3] [B10]`, async () => {
        const store = createStore(database.collections);
        for (let seed = 1; seed <= 8; seed++) {
          const random = seededRandom(seed);
          await Promise.all([
            database.collections.jobs.deleteMany(),
            database.collections.skips.deleteMany(),
            database.collections.schedules.deleteMany(),
          ]);
          const misfire = { policy: random() < 0.5 ? 'all' : 'once', within: DAY, cap: 100 } as const;
          await database.collections.schedules.insertOne(aSchedule({ overlap, misfire }));

          // Each step of either waits here for its turn.
          const waiting: (() => void)[] = [];
          const inTurn = watched(store, async (_, work) => {
            await new Promise<void>((resolve) => waiting.push(resolve));
            return work();
          });
          const looks = [
            [HOUR, 2 * HOUR, 3 * HOUR],
            [HOUR + 3 * SECOND, 2 * HOUR + 3 * SECOND, 3 * HOUR + 3 * SECOND],
          ];
          let atWork = looks.length;
          const lives = looks.map(async (times) => {
            const clock = new ManualClock();
            const one = process(inTurn, clock);
            for (const time of times) {
              clock.advance(timeAfter(time).getTime() - clock.now().getTime());
              await one.collect('all');
            }
            atWork--;
          });
          while (atWork > 0) {
            await new Promise(setImmediate);
            if (waiting.length === 0) continue;
            const [next] = waiting.splice(Math.floor(random() * waiting.length), 1);
            next!();
            const unfinished = { status: 'SCHEDULED', cancelRequested: null } as const;
            if (overlap !== 'allow')
              assert.ok((await database.collections.jobs.countDocuments(unfinished)) <= 1, `seed ${seed}`);
            if (random() < 0.2) await finish(timeAfter(HOUR));
          }
          await Promise.all(lives);
          const clock = new ManualClock();
          clock.advance(3 * HOUR + 10 * SECOND);
          await settle(clock, store);
          assert.equal((await account('s', timeAfter(3 * HOUR))).length, 3, `seed ${seed}`);
        }
      });
    }

    it('the later one loses the compare-and-set and reports the conflict [F3]', async () => {
      await database.collections.schedules.insertMany(['a', 'b', 'c'].map((_id) => aSchedule({ _id })));
      const store = createStore(database.collections);
      const [clock, events] = [new ManualClock(), new EventBus()];
      const contended = recordEvents(events, 'schedule:contended');
      clock.advance(HOUR);
      const late: Store = {
        ...store,
        storeDecisions: async (token, decisions) => {
          // Somebody decides on two of them in between.
          const first = decisions.slice(0, 2);
          await store.storeDecisions('other', first);
          return store.storeDecisions(token, decisions);
        },
      };
      const made = await process(late, clock, events).collect('all');
      assert.equal(made.length, 1);
      assert.deepEqual(
        contended.map(({ event }) => event),
        [{ won: 1, lost: 2 }],
      );
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
        const store = createStore(database.collections);
        const late: Store = {
          ...store,
          storeDecisions: async (...decision) => {
            assert.equal(await change(), true);
            return store.storeDecisions(...decision);
          },
        };
        assert.deepEqual(await process(late, clock).collect('all'), [], name);
        assert.equal(await database.collections.jobs.countDocuments(), 0, name);
      }
    });
  });
});
