import assert from 'node:assert/strict';
import type { ScheduleDocument } from '../../../src/domain/schedule/schedule.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import type { DefinitionSync } from '../../../src/schedules/enqueue/definition-sync.js';
import { MalformedSchedules } from '../../../src/schedules/enqueue/malformed-schedules.js';
import type { PlanExecutor } from '../../../src/schedules/enqueue/plan-executor.js';
import { PlanningLock } from '../../../src/schedules/enqueue/planning-lock.js';
import { ScheduleEnqueuer } from '../../../src/schedules/enqueue/schedule-enqueuer.js';
import { SchedulePlanner } from '../../../src/schedules/enqueue/schedule-planner.js';
import type { ScheduleScope } from '../../../src/store/schedules/due.js';
import { createStore, type Store } from '../../../src/store/store.js';
import { aSchedule } from '../../support/factories/schedule.js';
import { collectionName, TestDatabase } from '../../support/database.js';
import { timeAfter, START } from '../../support/instants.js';
import { ManualClock } from '../../support/manual-clock.js';
import { assertBounded } from '../../support/query-bounds.js';
import { profileQueries, type QueryStats } from '../../support/query-profiler.js';

const FUTURE = 4000;
const PAUSED = 1000;
const NOW = timeAfter(1000);

describe('index keys examined with 4,000 future and 1,000 paused schedules', () => {
  const database = new TestDatabase();
  const scope: ScheduleScope = { names: ['code-1', 'code-2'], environment: 'test', except: [] };
  let store: Store;

  before(async () => {
    await database.open();
    store = createStore(database.stored);
    const future = Array.from({ length: FUTURE }, (_, index) =>
      aSchedule({ _id: `future-${index}`, nextRunAt: timeAfter(86_400_000 + index) }),
    );
    const paused = Array.from({ length: PAUSED }, (_, index) =>
      aSchedule({ _id: `paused-${index}`, nextRunAt: timeAfter(-index), isActive: false }),
    );
    await database.collections.schedules.insertMany([...future, ...paused]);
  });

  after(() => database.close());

  afterEach(async () => {
    await database.collections.schedules.deleteMany({ hash: 'one test' });
  });

  async function insert(
    count: number,
    fields: (index: number) => Partial<ScheduleDocument>,
  ): Promise<ScheduleDocument[]> {
    const schedules = Array.from({ length: count }, (_, index) =>
      aSchedule({ _id: `test-${index}`, hash: 'one test', nextRunAt: timeAfter(index), ...fields(index) }),
    );
    await database.collections.schedules.insertMany(schedules);
    return schedules;
  }

  const measure = (operation: () => Promise<unknown>): Promise<QueryStats[]> =>
    profileQueries(database, [collectionName('schedules'), collectionName('skips')], operation);

  it('finding due schedules reads only due schedules, the oldest first [F3]', async () => {
    await insert(60, (index) => ({ nextRunAt: timeAfter(index * 20) }));
    let found: ScheduleDocument[] = [];
    const work = await measure(async () => (found = await store.findDueSchedules(scope, NOW, 500)));
    assert.equal(found.length, 51);
    assert.deepEqual(
      found.map(({ nextRunAt }) => nextRunAt),
      found.map(({ nextRunAt }) => nextRunAt).toSorted((a, b) => a!.getTime() - b!.getTime()),
    );
    assertBounded(work, 52, 51);
  });

  it('finding due schedules reads nothing when none is due [F3]', async () => {
    assertBounded(await measure(() => store.findDueSchedules(scope, NOW, 500)), 1, 0);
  });

  it('checking schedules when none is due reads only the next one, however many are due within the poll [F3]', async () => {
    await insert(300, (index) => ({ nextRunAt: timeAfter(10_000 + index * 100) }));
    const [clock, events] = [new ManualClock(), new EventBus('worker')];
    const options = { environment: 'test', pollInterval: 60_000 };
    const enqueuer = new ScheduleEnqueuer({
      ...{ clock, events, store, random: () => 0, options },
      planner: new SchedulePlanner({ store, events }),
      executor: { execute: async () => [] } as unknown as PlanExecutor,
      definitionSync: { names: [] } as unknown as DefinitionSync,
      malformed: new MalformedSchedules({ clock, events, store }),
      planningLock: new PlanningLock({ clock, store, workerId: 'me' }),
      changes: { intervalMultiplier: 1 },
    });
    // The first round also looks for malformed schedules, which reads all of them.
    await enqueuer.collect('all');
    const work = await measure(() => enqueuer.collect('all'));
    assertBounded(work, 3, 1, { mayBeSorted: true });
  });

  it('finding due schedules reads at most a batch [F3]', async () => {
    await insert(60, () => ({}));
    assertBounded(await measure(() => store.findDueSchedules(scope, NOW, 10)), 10, 10);
  });

  it('finding pending runs reads only those that have been pending long enough [F3]', async () => {
    const run = (index: number): ScheduleDocument['pending'] => [
      { kind: 'run', id: `test-${index}@0`, at: START, since: timeAfter(index * 100) },
    ];
    await insert(20, (index) => ({ pending: run(index), nextRunAt: null }));
    let found: ScheduleDocument[] = [];
    const work = await measure(async () => (found = await store.findPendingSchedules(scope, NOW, '', 500)));
    assert.equal(found.length, 11);
    // A page in the order of ids: only the pending schedules are sorted.
    assertBounded(work, 12, 11, { mayBeSorted: true });
    await database.collections.schedules.deleteMany({ hash: 'one test' });
    assertBounded(await measure(() => store.findPendingSchedules(scope, NOW, '', 500)), 1, 0, {
      mayBeSorted: true,
    });
  });

  it('storing decisions and removing pending entries read only those schedules [F3]', async () => {
    const schedules = await insert(50, () => ({}));
    const plan = { nextRunAt: NOW, lastRunAt: NOW, runs: 1, pending: [], active: null, cancel: null };
    const decisions = schedules.map((schedule) => ({ schedule, plan }));
    let stored = new Set<string>();
    const work = await measure(async () => ({ stored } = await store.storeDecisions('token', decisions)));
    assert.equal(stored.size, 50);
    assertBounded(work, 50, 50);
    const done = schedules.map(({ _id: scheduleId }) => ({
      scheduleId,
      kind: 'run' as const,
      ids: ['one', 'two'],
    }));
    assertBounded(await measure(() => store.removePending(done)), 50, 50);
  });

  it('listing the last skips of a schedule does not read those of others [D13]', async () => {
    const skips = Array.from({ length: 300 }, (_, index) => ({
      _id: `skip-${index}`,
      scheduleId: index < 100 ? 'mine' : 'other',
      at: timeAfter(index),
      until: timeAfter(index + 1),
      count: 1,
      reason: 'overlap' as const,
      activeId: null,
      runningFor: null,
      since: NOW,
      expiresAt: timeAfter(86_400_000),
    }));
    await database.collections.skips.insertMany(skips);
    const query = { filter: { scheduleId: 'mine' }, after: undefined, limit: 10 };
    assertBounded(await measure(() => store.listSkips(query)), 11, 11);
  });

  it('a page of the list reads only that page [F1]', async () => {
    assertBounded(
      await measure(() =>
        store.listSchedules({ filter: {}, limit: 20, after: { at: null, id: 'future-2' } }),
      ),
      20,
      20,
    );
  });

  it('the database still has exactly those schedules afterwards', async () => {
    const { schedules } = database.collections;
    assert.equal(await schedules.countDocuments(), FUTURE + PAUSED);
    assert.equal(await schedules.countDocuments({ isActive: false }), PAUSED);
  });
});
