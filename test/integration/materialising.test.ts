import assert from 'node:assert/strict';
import type { JobContext, NewSchedule, Scheduler, SchedulerEvents } from '../../src/index.js';
import type { JobDocument } from '../../src/domain/job.js';
import { OVERLAPS, type Overlap } from '../../src/domain/schedule.js';
import { EventBus } from '../../src/runtime/event-bus.js';
import { Decisions } from '../../src/schedules/decisions.js';
import { Fulfilment } from '../../src/schedules/fulfilment.js';
import { Materialiser } from '../../src/schedules/materialiser.js';
import { Turn } from '../../src/schedules/turn.js';
import type { Registrar } from '../../src/schedules/registrar.js';
import { createStore, type Store } from '../../src/store/store.js';
import { byHand, inProcess } from '../support/by-hand.js';
import { accountFor, aSchedule, tally, type Fate } from '../support/calendar.js';
import { nextEvent, recordEvents } from '../support/events.js';
import { after, START } from '../support/instants.js';
import { ManualClock } from '../support/manual-clock.js';
import { seeded } from '../support/seeded.js';
import { useSharedDatabase } from '../support/shared-database.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const LEFT_ALONE = 2 * SECOND;

describe('materialising', () => {
  const database = useSharedDatabase();

  async function jobs(schedule: string): Promise<JobDocument[]> {
    return database.collections.jobs.find({ schedule }, { sort: { _id: 1 } }).toArray();
  }

  function account(id: string, until: Date): Promise<Fate[]> {
    return accountFor(database.collections, id, { after: START, until });
  }

  it('C7 J15 a stored schedule: one job per occurrence, with all that was said about it', async () => {
    const { scheduler, clock } = byHand(database, { queues: ['default', 'reports'] });
    const seen: Pick<JobContext, 'id' | 'schedule' | 'scheduledFor' | 'userId'>[] = [];
    scheduler.registerHandler('report', (_, { id, schedule, scheduledFor, userId }) => {
      seen.push({ id, schedule, scheduledFor, userId });
    });
    const due = recordEvents(scheduler, 'schedule:due');
    const said: NewSchedule = {
      id: 'daily report',
      taskType: 'report',
      cron: '30 * * * *',
      payload: { to: ['ada'], 'a.b': {}, none: null },
      queue: 'reports',
      priority: 7,
      retries: { max: 2, base: '5s' },
      timeout: '1m',
      maxRunningTime: '10m',
      userId: 'ada@example.org',
    };
    assert.equal(await scheduler.addSchedule(said), 'daily report');
    clock.advance(30 * MINUTE - 1);
    assert.equal(await scheduler.run(), 0);
    clock.advance(1);
    assert.equal(await scheduler.run(), 1);
    clock.advance(HOUR);
    assert.equal(await scheduler.run(), 1);

    const made = await jobs('daily report');
    assert.deepEqual(
      made.map(({ _id }) => _id),
      ['daily report@2026-01-01T00:30:00.000Z', 'daily report@2026-01-01T01:30:00.000Z'],
    );
    const [first] = made;
    assert.deepEqual(
      [first?.taskType, first?.queue, first?.priority, first?.payload, first?.userId],
      ['report', 'reports', 7, said.payload, 'ada@example.org'],
    );
    assert.deepEqual(
      [first?.retries, first?.timeout, first?.maxRunningTime],
      [{ max: 2, base: 5000 }, MINUTE, 10 * MINUTE],
    );
    assert.deepEqual(
      [first?.status, first?.schedule, first?.scheduledFor, first?.createdAt],
      ['COMPLETED', 'daily report', after(30 * MINUTE), after(30 * MINUTE)],
    );
    assert.deepEqual(seen[0], {
      id: first?._id,
      schedule: 'daily report',
      scheduledFor: after(30 * MINUTE),
      userId: 'ada@example.org',
    });
    assert.deepEqual(due[0]?.event, {
      scheduleId: 'daily report',
      jobId: first?._id,
      scheduledFor: after(30 * MINUTE),
      late: 0,
    });
  });

  it('C7 J15 a definition in code: the same', async () => {
    const { scheduler, clock } = byHand(database);
    const seen: unknown[] = [];
    scheduler
      .schedule('tidy', (payload) => {
        seen.push(payload);
      })
      .hourly()
      .args({ deep: true })
      .priority(3);
    assert.equal(await scheduler.run(), 0);
    clock.advance(HOUR);
    assert.equal(await scheduler.run(), 1);
    const [job] = await jobs('tidy');
    assert.deepEqual(
      [job?._id, job?.taskType, job?.priority, job?.status],
      ['tidy@2026-01-01T01:00:00.000Z', 'tidy', 3, 'COMPLETED'],
    );
    assert.deepEqual(seen, [{ deep: true }]);
  });

  it('C7 late or not, its time is the schedule’s', async () => {
    const { scheduler, clock } = byHand(database);
    scheduler.registerHandler('work', () => undefined);
    const due = nextEvent(scheduler, 'schedule:due');
    await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
    clock.advance(HOUR + 59 * SECOND);
    await scheduler.run();
    const [job] = await jobs('s');
    assert.deepEqual(
      [job?._id, job?.scheduledFor, job?.nextRunAt, job?.createdAt],
      ['s@2026-01-01T01:00:00.000Z', after(HOUR), after(HOUR), after(HOUR + 59 * SECOND)],
    );
    assert.equal((await due).late, 59 * SECOND);
    // And the next one comes from the rule, not from when this one ran.
    assert.deepEqual((await scheduler.getSchedule('s'))?.nextRunAt, after(2 * HOUR));
  });

  it('F2 last and next run are stored, and follow', async () => {
    const { scheduler, clock } = byHand(database);
    await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', overlap: 'allow' });
    const look = async (): Promise<unknown[]> => {
      const schedule = await scheduler.getSchedule('s');
      return [schedule?.lastRunAt, schedule?.nextRunAt, schedule?.runs];
    };
    assert.deepEqual(await look(), [null, after(HOUR), 0]);
    for (const hour of [1, 2, 3]) {
      clock.advance(HOUR);
      await scheduler.run();
      assert.deepEqual(await look(), [after(hour * HOUR), after((hour + 1) * HOUR), hour]);
    }
  });

  describe('whatever becomes of a run', () => {
    it('C7 C6 an occurrence that runs out of attempts is FAILED, and its schedule goes on', async () => {
      const { scheduler, clock } = byHand(database, { retries: { base: '1s', jitter: 'none', max: 3 } });
      const failed = recordEvents(scheduler, 'job:failed');
      scheduler.registerHandler('work', () => {
        throw new Error('broken');
      });
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      for (const hour of [1, 2]) {
        clock.advance(after(hour * HOUR).getTime() - clock.now().getTime());
        for (const wait of [0, SECOND, 2 * SECOND]) {
          clock.advance(wait);
          assert.equal(await scheduler.run(), 1);
        }
      }
      const made = await jobs('s');
      assert.deepEqual(
        made.map(({ _id, status, attempts }) => [_id, status, attempts]),
        [
          ['s@2026-01-01T01:00:00.000Z', 'FAILED', 3],
          ['s@2026-01-01T02:00:00.000Z', 'FAILED', 3],
        ],
      );
      assert.deepEqual(
        failed.map(({ event }) => (event as SchedulerEvents['job:failed']).willRetry),
        [true, true, false, true, true, false],
      );
      assert.equal((await scheduler.getExecutions(made[0]!._id)).length, 3);
      const schedule = await scheduler.getSchedule('s');
      assert.deepEqual([schedule?.isActive, schedule?.nextRunAt], [true, after(3 * HOUR)]);
    });

    it('C7 its retries are its own, and the time of the occurrence stays', async () => {
      const { scheduler, clock } = byHand(database);
      const attempts: [number, Date | null][] = [];
      scheduler.registerHandler('work', (_, { attempt, scheduledFor }) => {
        attempts.push([attempt, scheduledFor]);
        if (attempt < 2) throw new Error('not yet');
      });
      const retries = { max: 2, base: '10s', jitter: 'none' } as const;
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', retries });
      clock.advance(HOUR);
      await scheduler.run();
      clock.advance(10 * SECOND);
      await scheduler.run();
      assert.deepEqual(attempts, [
        [1, after(HOUR)],
        [2, after(HOUR)],
      ]);
      assert.deepEqual(
        (await jobs('s')).map(({ status }) => status),
        ['COMPLETED'],
      );
    });

    it('C7 B9 one that kills its process ends FAILED and does not loop; its schedule goes on', async () => {
      const { scheduler, clock } = byHand(database, { retries: { base: '1s', jitter: 'none' } });
      await scheduler.addSchedule({ id: 's', taskType: 'deadly', cron: '0 * * * *' });
      clock.advance(HOUR);
      await scheduler.run();
      const id = 's@2026-01-01T01:00:00.000Z';
      for (let crash = 1; crash <= 3; crash++) {
        // A worker took it, and was never heard of again.
        const { matchedCount } = await database.collections.jobs.updateOne(
          { _id: id, status: 'SCHEDULED', crashes: crash - 1 },
          {
            $set: {
              status: 'RUNNING',
              lockedBy: 'a dead worker',
              lockToken: `token ${crash}`,
              lockedUntil: after(-1, clock.now()),
              startedAt: clock.now(),
            },
            $inc: { fence: 1 },
          },
        );
        assert.equal(matchedCount, 1);
        clock.advance(5 * SECOND);
        await scheduler.run();
      }
      const [job] = await jobs('s');
      assert.deepEqual([job?.status, job?.crashes, job?.error?.code], ['FAILED', 3, 'JOB_CRASHED']);
      clock.advance(HOUR);
      await scheduler.run();
      assert.deepEqual(
        (await jobs('s')).map(({ _id, status }) => [_id, status]),
        [
          [id, 'FAILED'],
          ['s@2026-01-01T02:00:00.000Z', 'SCHEDULED'],
        ],
      );
    });

    it('C7 one that is cancelled, or retried by a person later, neither ends nor repeats its schedule', async () => {
      const { scheduler, clock } = byHand(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      clock.advance(HOUR);
      await scheduler.run();
      const first = 's@2026-01-01T01:00:00.000Z';
      assert.equal((await scheduler.cancel(first)).answer, 'cancelled');
      scheduler.registerHandler('work', () => undefined);
      clock.advance(HOUR);
      assert.equal(await scheduler.run(), 1);
      await scheduler.retry(first);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(await account('s', clock.now()), ['job', 'job']);
      assert.equal(
        (await jobs('s')).every(({ status }) => status === 'COMPLETED'),
        true,
      );
    });
  });

  describe('by many at once', () => {
    it('J15 F3 six schedulers race over stored and coded schedules: each occurrence once, run once', async () => {
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

    it('J15 F3 three workers on real time, every second: each second one job, one start', async () => {
      const workers = Array.from({ length: 3 }, () =>
        database.scheduler({ ...inProcess, lockTimeout: '20s' }),
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
        const span = { after: createdAt, until: after(2 * SECOND, anchor) };
        assert.deepEqual(await accountFor(database.collections, id, span), ['job', 'job'], id);
      }
    });

    it('J19 workers and one-pass runs side by side: each occurrence once, whoever is first', async () => {
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

    it('F3 more than a batch is due: all of them, in one pass', async () => {
      const { scheduler, clock } = byHand(database);
      const schedules = Array.from({ length: 1203 }, (_, index) => aSchedule({ _id: `s-${index}` }));
      await database.collections.schedules.insertMany(schedules);
      clock.advance(HOUR);
      await scheduler.run();
      assert.equal(await database.collections.jobs.countDocuments(), 1203);
      assert.equal(await database.collections.schedules.countDocuments({ owed: { $ne: [] } }), 0);
    });
  });

  /** One process with a store and a clock of its own, and nothing around it that would run the jobs. */
  function process(store: Store, clock: ManualClock, events = new EventBus()): Materialiser {
    const cancel = (jobId: string, reason: string): Promise<unknown> =>
      store.cancel(jobId, reason, clock.now());
    const nudge = (): void => undefined;
    return new Materialiser({
      ...{ clock, events, store, random: () => 0, environment: 'test', pollInterval: 5000 },
      patience: () => 1,
      decisions: new Decisions({ store, events }),
      fulfilment: new Fulfilment({ store, clock, events, skipRetention: DAY, cancel, nudge }),
      turn: new Turn({ clock, store, workerId: 'me' }),
      registrar: { names: [] } as unknown as Registrar,
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

  /** A healthy process until nothing is owed any more. */
  async function settle(clock: ManualClock, store: Store): Promise<void> {
    const healthy = process(store, clock);
    const { schedules } = database.collections;
    const open = { $or: [{ owed: { $ne: [] } }, { nextRunAt: { $lte: clock.now() } }] };
    for (let round = 0; round < 12 && (await schedules.countDocuments(open)) > 0; round++) {
      await healthy.collect('all');
      await finish(clock.now());
      clock.advance(LEFT_ALONE);
    }
    assert.deepEqual(await schedules.distinct('owed.id'), [], 'something is owed for ever');
  }

  describe('when whoever decides dies', () => {
    class Death extends Error {}
    const policies: Record<Overlap, Fate[]> = {
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
      it(`C7 F3 D13 ${overlap}: at any step, another finishes what was decided, and nothing else`, async () => {
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
      it(`C7 F3 ${overlap}: a run that exists and is over is neither skipped nor in anybody's way, although still on the list`, async () => {
        const first = {
          kind: 'run',
          id: 's@2026-01-01T01:00:00.000Z',
          at: after(HOUR),
          since: after(HOUR),
        } as const;
        const fields = { overlap, owed: [first], active: first.id, runs: 1, nextRunAt: after(2 * HOUR) };
        await database.collections.schedules.insertOne(aSchedule(fields));
        const clock = new ManualClock();
        clock.advance(HOUR);
        const store = createStore(database.collections);
        // Inserted and run to its end; whoever decided it died before taking it off the list.
        const later = aSchedule({ ...fields, _id: 's' });
        await new Fulfilment({
          store: { ...store, dropOwed: async () => undefined },
          ...{ clock, events: new EventBus(), skipRetention: DAY },
          cancel: async () => undefined,
          nudge: () => undefined,
        }).carryOut(
          [{ schedule: later, plan: { ...later, owed: [first], active: first.id, cancel: null } }],
          clock.now(),
        );
        await finish(clock.now());
        // Nobody looks until the next occurrence.
        clock.advance(HOUR);
        await settle(clock, store);
        assert.deepEqual(await account('s', after(2 * HOUR)), ['job', 'job']);
      });
    }
  });

  describe('when two decide at the same time', () => {
    for (const overlap of OVERLAPS) {
      it(`J15 F3 B10 ${overlap}: in whatever order their steps come, the calendar is complete and no two run that must not`, async () => {
        const store = createStore(database.collections);
        for (let seed = 1; seed <= 8; seed++) {
          const random = seeded(seed);
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
              clock.advance(after(time).getTime() - clock.now().getTime());
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
            if (random() < 0.2) await finish(after(HOUR));
          }
          await Promise.all(lives);
          const clock = new ManualClock();
          clock.advance(3 * HOUR + 10 * SECOND);
          await settle(clock, store);
          assert.equal((await account('s', after(3 * HOUR))).length, 3, `seed ${seed}`);
        }
      });
    }

    it('F3 who comes too late loses, and says so', async () => {
      await database.collections.schedules.insertMany(['a', 'b', 'c'].map((_id) => aSchedule({ _id })));
      const store = createStore(database.collections);
      const [clock, events] = [new ManualClock(), new EventBus()];
      const contended = recordEvents(events, 'schedule:contended');
      clock.advance(HOUR);
      const late: Store = {
        ...store,
        decideSchedules: async (token, decisions) => {
          // Somebody decides on two of them in between.
          const first = decisions.slice(0, 2);
          await store.decideSchedules('other', first);
          return store.decideSchedules(token, decisions);
        },
      };
      const made = await process(late, clock, events).collect('all');
      assert.equal(made.length, 1);
      assert.deepEqual(
        contended.map(({ event }) => event),
        [{ won: 1, lost: 2 }],
      );
    });

    it('F1 F3 a change, a pause or a removal in between voids the decision', async () => {
      const { scheduler, clock } = byHand(database);
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
          decideSchedules: async (...decision) => {
            assert.equal(await change(), true);
            return store.decideSchedules(...decision);
          },
        };
        assert.deepEqual(await process(late, clock).collect('all'), [], name);
        assert.equal(await database.collections.jobs.countDocuments(), 0, name);
      }
    });
  });

  describe('within limits', () => {
    it('B10 startsAt, endsAt, between and except: the calendar, nothing more and nothing less', async () => {
      const { scheduler, clock } = byHand(database);
      await scheduler.addSchedule({
        id: 's',
        taskType: 'work',
        cron: '0,30 * * * *',
        timezone: 'Asia/Kolkata',
        startsAt: '2026-01-02T00:00:00Z',
        endsAt: '2026-01-05T00:00:00Z',
        between: ['22:00', '01:30'],
        except: ['2026-01-03'],
        overlap: 'allow',
      });
      while (clock.now() < after(6 * DAY)) {
        clock.advance(30 * MINUTE);
        const { nextRunAt } = (await database.collections.schedules.findOne({ _id: 's' }))!;
        if (nextRunAt !== null && nextRunAt <= clock.now()) await scheduler.run(1);
      }
      const found = await account('s', clock.now());
      assert.deepEqual(tally(found), { job: 16 });
      const schedule = await scheduler.getSchedule('s');
      assert.deepEqual([schedule?.nextRunAt, schedule?.isActive], [null, true]);
    });

    it('B10 maxRuns: that many, and no more', async () => {
      const { scheduler, clock } = byHand(database);
      scheduler.registerHandler('work', () => undefined);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', maxRuns: 2 });
      for (let hour = 0; hour < 4; hour++) {
        clock.advance(HOUR);
        await scheduler.run();
      }
      assert.equal((await jobs('s')).length, 2);
      const schedule = await scheduler.getSchedule('s');
      assert.deepEqual([schedule?.runs, schedule?.nextRunAt], [2, null]);
    });

    it('B10 more runs than it had at first: it goes on', async () => {
      const { scheduler, clock } = byHand(database);
      scheduler.registerHandler('work', () => undefined);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', maxRuns: 1 });
      clock.advance(HOUR);
      await scheduler.run();
      assert.equal((await scheduler.getSchedule('s'))?.nextRunAt, null);
      await scheduler.updateSchedule('s', { maxRuns: 2 });
      assert.deepEqual((await scheduler.getSchedule('s'))?.nextRunAt, after(2 * HOUR));
      clock.advance(HOUR);
      assert.equal(await scheduler.run(), 1);
    });

    it('B10 jitter delays the run, not its occurrence, by the same for everybody', async () => {
      const { scheduler, clock } = byHand(database);
      await scheduler.addSchedule({
        id: 's',
        taskType: 'work',
        cron: '0 * * * *',
        jitter: '10m',
        overlap: 'allow',
      });
      for (let hour = 0; hour < 6; hour++) {
        clock.advance(HOUR);
        await scheduler.run();
      }
      assert.deepEqual(await account('s', clock.now()), Array(6).fill('job'));
      const delays = (await jobs('s')).map((job) => job.nextRunAt.getTime() - job.scheduledFor!.getTime());
      assert.ok(delays.every((delay) => delay >= 0 && delay < 10 * MINUTE));
      assert.equal(new Set(delays).size, 6);
      // Made again from nothing, they would be the same.
      await database.collections.jobs.deleteMany();
      await scheduler.backfill('s', after(HOUR), clock.now());
      assert.deepEqual(
        (await jobs('s')).map((job) => job.nextRunAt.getTime() - job.scheduledFor!.getTime()),
        delays,
      );
    });

    it('D8 a stored schedule of another environment is left to it', async () => {
      const clock = new ManualClock();
      const [here, there] = ['here', 'there'].map((environment) =>
        database.scheduler({ clock, environment, lockTimeout: '1d' }),
      );
      await here!.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', environments: ['there'] });
      await here!.addSchedule({ id: 'all', taskType: 'work', cron: '0 * * * *' });
      clock.advance(HOUR);
      await here!.run();
      assert.deepEqual([(await jobs('s')).length, (await jobs('all')).length], [0, 1]);
      await there!.run();
      assert.equal((await jobs('s')).length, 1);
    });
  });

  describe('and pruning', () => {
    async function finished(scheduler: Scheduler, clock: ManualClock): Promise<string[]> {
      scheduler.registerHandler('work', () => undefined);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', maxRuns: 1 });
      clock.advance(HOUR);
      const { id } = await scheduler.dispatch('work');
      await scheduler.run();
      return [id, 's@2026-01-01T01:00:00.000Z'];
    }

    const left = async (): Promise<string[]> =>
      (await database.collections.jobs.find({}, { sort: { _id: 1 } }).toArray()).map(({ _id }) => _id);

    for (const [name, prune] of [
      ['however short its retention', (scheduler: Scheduler) => scheduler.prune()],
      ['whoever prunes', (scheduler: Scheduler) => scheduler.prune(0)],
    ] as const) {
      it(`J13 J15 an occurrence is kept for an hour, ${name}`, async () => {
        const retention = { completed: 0, failed: 0, cancelled: 0 };
        const { scheduler, clock } = byHand(database, { retention });
        const [other, occurrence] = await finished(scheduler, clock);
        clock.advance(HOUR);
        assert.deepEqual((await left()).sort(), [other, occurrence].sort());
        assert.equal((await prune(scheduler)).finished, 1);
        assert.deepEqual(await left(), [occurrence]);
        clock.advance(1);
        assert.equal((await prune(scheduler)).finished, 1);
        assert.deepEqual(await left(), []);
      });
    }
  });

  it('C7 J15 a worker that runs makes and runs them by itself, without waiting for a poll', async () => {
    const scheduler = database.scheduler({ ...inProcess, pollInterval: '1m' });
    scheduler.registerHandler('work', () => undefined);
    await scheduler.start();
    const [due, complete] = [nextEvent(scheduler, 'schedule:due'), nextEvent(scheduler, 'job:complete')];
    await scheduler.addSchedule({ id: 's', taskType: 'work', every: '1s', maxRuns: 1 });
    await complete;
    const { late } = await due;
    assert.ok(late >= 0 && late < 500, `${late} ms late`);
  });
});
