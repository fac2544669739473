import assert from 'node:assert/strict';
import type { ScheduleDocument } from '../../src/domain/schedule.js';
import type { ScheduleScope } from '../../src/store/due-schedules.js';
import { EventBus } from '../../src/runtime/event-bus.js';
import type { Decisions } from '../../src/schedules/decisions.js';
import type { Fulfilment } from '../../src/schedules/fulfilment.js';
import { Materialiser } from '../../src/schedules/materialiser.js';
import { Turn } from '../../src/schedules/turn.js';
import type { Registrar } from '../../src/schedules/registrar.js';
import { createStore, type Store } from '../../src/store/store.js';
import { aSchedule } from '../support/calendar.js';
import { TestDatabase } from '../support/database.js';
import { after as later, START } from '../support/instants.js';
import { ManualClock } from '../support/manual-clock.js';
import { profiled, type Work } from '../support/profiled.js';

const FUTURE = 4000;
const PAUSED = 1000;
const NOW = later(1000);

describe('keys examined, beside 4,000 future and 1,000 paused schedules', () => {
  const database = new TestDatabase();
  const scope: ScheduleScope = { names: ['code-1', 'code-2'], environment: 'test', except: [] };
  let store: Store;

  before(async () => {
    await database.open();
    store = createStore(database.collections);
    const future = Array.from({ length: FUTURE }, (_, index) =>
      aSchedule({ _id: `future-${index}`, nextRunAt: later(86_400_000 + index) }),
    );
    const paused = Array.from({ length: PAUSED }, (_, index) =>
      aSchedule({ _id: `paused-${index}`, nextRunAt: later(-index), isActive: false }),
    );
    await database.collections.schedules.insertMany([...future, ...paused]);
  });

  after(() => database.close());

  afterEach(async () => {
    await database.collections.schedules.deleteMany({ hash: 'of a test' });
  });

  async function insert(
    count: number,
    fields: (index: number) => Partial<ScheduleDocument>,
  ): Promise<ScheduleDocument[]> {
    const schedules = Array.from({ length: count }, (_, index) =>
      aSchedule({ _id: `test-${index}`, hash: 'of a test', nextRunAt: later(index), ...fields(index) }),
    );
    await database.collections.schedules.insertMany(schedules);
    return schedules;
  }

  const measure = (operation: () => Promise<unknown>): Promise<Work[]> =>
    profiled(database, ['schedules', 'skips'], operation);

  function assertBounded(work: Work[], keys: number, documents: number, mayBeSorted = false): void {
    assert.ok(work.length > 0, 'nothing was measured');
    const sum = (pick: (entry: Work) => number): number =>
      work.reduce((total, entry) => total + pick(entry), 0);
    assert.ok(sum((entry) => entry.keys) <= keys, `${sum((entry) => entry.keys)} keys, expected ${keys}`);
    assert.ok(
      sum((entry) => entry.documents) <= documents,
      `${sum((entry) => entry.documents)} documents, expected ${documents}`,
    );
    for (const { stages } of work) {
      assert.ok(!stages.includes('COLLSCAN'), 'a scan of the collection');
      assert.ok(mayBeSorted || !stages.includes('SORT'), 'a sort in memory');
    }
  }

  it('F3 finding what is due reads what is due, the oldest first', async () => {
    await insert(60, (index) => ({ nextRunAt: later(index * 20) }));
    let found: ScheduleDocument[] = [];
    const work = await measure(async () => (found = await store.findDueSchedules(scope, NOW, 500)));
    assert.equal(found.length, 51);
    assert.deepEqual(
      found.map(({ nextRunAt }) => nextRunAt),
      found.map(({ nextRunAt }) => nextRunAt).toSorted((a, b) => a!.getTime() - b!.getTime()),
    );
    assertBounded(work, 52, 51);
  });

  it('F3 with nothing due it reads nothing', async () => {
    assertBounded(await measure(() => store.findDueSchedules(scope, NOW, 500)), 1, 0);
  });

  it('F3 a look with nothing due reads no more than the next one, however many are due within the poll', async () => {
    await insert(300, (index) => ({ nextRunAt: later(10_000 + index * 100) }));
    const [clock, events] = [new ManualClock(), new EventBus()];
    const materialiser = new Materialiser({
      ...{ clock, events, store, random: () => 0, environment: 'test', pollInterval: 60_000 },
      patience: () => 1,
      registrar: { names: [] } as unknown as Registrar,
      decisions: {} as Decisions,
      fulfilment: {} as Fulfilment,
      turn: new Turn({ clock, store, workerId: 'me' }),
    });
    const work = await measure(() => materialiser.collect('all'));
    assertBounded(work, 3, 1, true);
  });

  it('F3 no more than a batch', async () => {
    await insert(60, () => ({}));
    assertBounded(await measure(() => store.findDueSchedules(scope, NOW, 10)), 10, 10);
  });

  it('F3 looking for what is owed reads what is owed for long enough', async () => {
    const run = (index: number): ScheduleDocument['owed'] => [
      { kind: 'run', id: `test-${index}@0`, at: START, since: later(index * 100) },
    ];
    await insert(20, (index) => ({ owed: run(index), nextRunAt: null }));
    let found: ScheduleDocument[] = [];
    const work = await measure(async () => (found = await store.findOwingSchedules(scope, NOW, '', 500)));
    assert.equal(found.length, 11);
    // A page of them in the order of their ids: what is sorted is what is owed, and nothing else.
    assertBounded(work, 12, 11, true);
    await database.collections.schedules.deleteMany({ hash: 'of a test' });
    assertBounded(await measure(() => store.findOwingSchedules(scope, NOW, '', 500)), 1, 0, true);
  });

  it('F3 deciding and taking off the list read just those', async () => {
    const schedules = await insert(50, () => ({}));
    const plan = { nextRunAt: NOW, lastRunAt: NOW, runs: 1, owed: [], active: null, cancel: null };
    const decisions = schedules.map((schedule) => ({ schedule, plan }));
    let won = new Set<string>();
    const work = await measure(async () => ({ won } = await store.decideSchedules('token', decisions)));
    assert.equal(won.size, 50);
    assertBounded(work, 50, 50);
    const done = schedules.map(({ _id: scheduleId }) => ({
      scheduleId,
      kind: 'run' as const,
      ids: ['one', 'two'],
    }));
    assertBounded(await measure(() => store.dropOwed(done)), 50, 50);
  });

  it('D13 the last skips of a schedule are read, not those of others', async () => {
    const skips = Array.from({ length: 300 }, (_, index) => ({
      _id: `skip-${index}`,
      scheduleId: index < 100 ? 'mine' : 'other',
      at: later(index),
      until: later(index + 1),
      count: 1,
      reason: 'overlap' as const,
      activeId: null,
      runningFor: null,
      since: NOW,
      expiresAt: later(86_400_000),
    }));
    await database.collections.skips.insertMany(skips);
    assertBounded(await measure(() => store.findSkips('mine', 10)), 10, 10);
  });

  it('F1 a page of the list reads a page', async () => {
    assertBounded(await measure(() => store.listSchedules({ limit: 20, after: 'future-2' })), 20, 20);
  });

  it('the data is what it should be', async () => {
    const { schedules } = database.collections;
    assert.equal(await schedules.countDocuments(), FUTURE + PAUSED);
    assert.equal(await schedules.countDocuments({ isActive: false }), PAUSED);
  });
});
