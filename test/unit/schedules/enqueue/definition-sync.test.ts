import assert from 'node:assert/strict';
import { mongo } from 'mongoose';
import { resolveOptions } from '../../../../src/config/options.js';
import type { ScheduleDocument } from '../../../../src/domain/schedule/schedule.js';
import { EventBus } from '../../../../src/runtime/event-bus.js';
import { defineSchedule, type ScheduleBuilder } from '../../../../src/schedules/definition/builder.js';
import { DefinitionRegistry } from '../../../../src/schedules/definition/definition-registry.js';
import { DefinitionSync } from '../../../../src/schedules/enqueue/definition-sync.js';
import { MalformedSchedules } from '../../../../src/schedules/enqueue/malformed-schedules.js';
import { aRegistry } from '../../../support/factories/handler-registry.js';
import { aSchedule } from '../../../support/factories/schedule.js';
import { recordEvents } from '../../../support/events.js';
import { timeAfter } from '../../../support/instants.js';
import { ManualClock } from '../../../support/manual-clock.js';

const HOUR = 3_600_000;
const dispatch = (): never => assert.fail('must not dispatch');

describe('DefinitionSync', () => {
  let clock: ManualClock;
  let events: EventBus;
  let definitions: DefinitionRegistry;
  let sync: DefinitionSync;
  let stored: Map<string, ScheduleDocument>;
  /** Calls of the store, in order. */
  let calls: string[];
  let liveTypes: string[];
  let liveWorkers: { queues: string[]; taskTypes: string[] }[];
  /** Changes by another process; each write is preceded by the next one. */
  let concurrentChanges: (() => void)[];

  beforeEach(() => {
    clock = new ManualClock();
    events = new EventBus('worker');
    stored = new Map();
    [calls, liveTypes, liveWorkers, concurrentChanges] = [[], [], [], []];
    const options = resolveOptions({ uri: 'mongodb://unused/app', environment: 'test' });
    definitions = new DefinitionRegistry(aRegistry(), options);
    sync = new DefinitionSync({
      clock,
      events,
      definitions,
      options,
      malformed: new MalformedSchedules({
        ...{ clock, events },
        store: {
          disableSchedule: async ({ _id }) => {
            calls.push(`disable ${_id}`);
            return true;
          },
        },
      }),
      store: {
        findSchedules: async (ids) => {
          calls.push(`find ${ids.join(' ')}`);
          return ids.flatMap((id) => structuredClone(stored.get(id)) ?? []);
        },
        insertSchedule: async (schedule) => {
          calls.push(`insert ${schedule._id}`);
          concurrentChanges.shift()?.();
          if (stored.has(schedule._id)) return false;
          stored.set(schedule._id, schedule);
          return true;
        },
        changeSchedule: async (read, fields) => {
          calls.push(`change ${read._id}`);
          concurrentChanges.shift()?.();
          const now = stored.get(read._id);
          if (now?.decision !== read.decision) return false;
          stored.set(read._id, { ...now, ...fields, rev: now.rev + 1 });
          return true;
        },
        findForeignDefinitions: async (known) =>
          [...stored.values()]
            .filter(({ _id, owner }) => owner === 'code' && !known.includes(_id))
            .map(({ _id }) => _id),
        findLiveTaskTypes: async () => liveTypes,
        findLiveCapabilities: async () => liveWorkers,
      },
    });
  });

  function define(name: string): ScheduleBuilder<unknown> {
    return defineSchedule(definitions, dispatch, name, () => undefined);
  }

  it('inserts new definitions and does not write known ones again [C7]', async () => {
    define('a').hourly();
    define('b').daily();
    assert.deepEqual(sync.names, []);
    await sync.registerAll();
    assert.deepEqual(sync.names, ['a', 'b']);
    assert.deepEqual(calls, ['find a b', 'insert a', 'insert b']);
    assert.deepEqual(stored.get('a')?.nextRunAt, timeAfter(HOUR));
    await sync.registerAll();
    await sync.registerNew();
    assert.deepEqual(calls.slice(3), [], 'each process writes a definition once');
  });

  it('does not overwrite a definition that another process stored in the meantime [C7]', async () => {
    define('a').hourly();
    let other: ScheduleDocument | undefined;
    concurrentChanges.push(() => {
      const { hash, schedule } = definitions.all()[0]!;
      other = aSchedule({ ...schedule, _id: 'a', owner: 'code', hash, createdAt: timeAfter(-HOUR), runs: 7 });
      stored.set('a', other);
    });
    await sync.registerAll();
    assert.deepEqual(calls, ['find a', 'insert a', 'find a']);
    assert.deepEqual([stored.get('a'), sync.names], [other, ['a']]);
  });

  it('reads a schedule again that another process changes during the update, and keeps that change [C7]', async () => {
    define('a').hourly().priority(1);
    stored.set('a', aSchedule({ _id: 'a', owner: 'code', hash: 'of an older version' }));
    concurrentChanges.push(() => {
      stored.set('a', {
        ...stored.get('a')!,
        decision: 'of another process',
        isActive: false,
        paused: { at: clock.now(), by: 'ada', reason: null },
        runs: 9,
      });
    });
    await sync.registerAll();
    assert.deepEqual(calls, ['find a', 'change a', 'find a', 'change a']);
    const { priority, isActive, paused, runs, rev } = stored.get('a')!;
    assert.deepEqual([priority, isActive, paused?.by, runs, rev], [1, false, 'ada', 9, 1]);
  });

  it('inserts a schedule again that another process removes during the update [C7]', async () => {
    define('a').hourly();
    stored.set('a', aSchedule({ _id: 'a', owner: 'code', hash: 'of an older version' }));
    concurrentChanges.push(() => stored.delete('a'));
    await sync.registerAll();
    assert.deepEqual(calls.at(-1), 'insert a');
    assert.equal(stored.get('a')?.runs, 0);
  });

  it('gives up when every write meets a conflict', async () => {
    define('a').hourly();
    stored.set('a', aSchedule({ _id: 'a', owner: 'code', hash: 'of an older version' }));
    for (let write = 0; write < 100; write++)
      concurrentChanges.push(() =>
        stored.set('a', { ...stored.get('a')!, decision: `of another process ${write}` }),
      );
    await assert.rejects(sync.registerAll(), {
      code: 'WRONG_STATE',
      message: /^the schedule 'a' was changed/,
    });
    assert.deepEqual(sync.names, []);
    assert.ok(concurrentChanges.length > 50);
  });

  it('rejects a definition at the start if a schedule that was added at run time has its id [F1]', async () => {
    define('a').hourly();
    stored.set('a', aSchedule({ _id: 'a' }));
    const before = structuredClone(stored.get('a'));
    await assert.rejects(sync.registerAll(), { code: 'SCHEDULE_EXISTS' });
    assert.deepEqual([stored.get('a'), sync.names], [before, []]);
  });

  it('reports a conflicting or invalid definition once while running, and registers the others [F5] [Y8]', async () => {
    const disabled = recordEvents(events, 'schedule:disabled');
    await sync.registerAll();
    stored.set('taken', aSchedule({ _id: 'taken' }));
    define('taken').hourly();
    define('never').cron('0 0 30 2 *');
    define('good').hourly();
    await sync.registerNew();
    await sync.registerNew();
    assert.deepEqual(sync.names, ['good']);
    assert.deepEqual(
      disabled.map(({ event }) => (event as { scheduleId: string }).scheduleId),
      ['never', 'taken'],
    );
  });

  it('tries again after a database error and does not reject the definition [Y9]', async () => {
    const disabled = recordEvents(events, 'schedule:disabled');
    define('a').hourly();
    concurrentChanges.push(() => {
      throw new mongo.MongoNetworkError('no connection');
    });
    await assert.rejects(sync.registerNew(), { message: 'no connection' });
    assert.deepEqual([sync.names, disabled], [[], []]);
    await sync.registerNew();
    assert.deepEqual(sync.names, ['a']);
  });

  it('does not register definitions of another environment [D8]', async () => {
    define('elsewhere').hourly().environments('production');
    define('here').hourly().environments('test', 'production');
    await sync.registerAll();
    await sync.registerNew();
    assert.deepEqual([sync.names, [...stored.keys()]], [['here'], ['here']]);
  });

  it('reports orphans, which neither this process nor a live worker defines [C7]', async () => {
    const orphaned = recordEvents(events, 'schedule:orphaned');
    define('mine').hourly();
    define('elsewhere').hourly().environments('production');
    for (const _id of ['mine', 'elsewhere', 'gone', 'of another worker'])
      stored.set(_id, aSchedule({ _id, owner: 'code' }));
    stored.set('stored', aSchedule({ _id: 'stored', owner: 'api' }));
    liveTypes = ['of another worker'];
    await sync.reportOrphans();
    assert.deepEqual(
      orphaned.map(({ event }) => event),
      [{ scheduleId: 'gone' }],
    );
    assert.equal(stored.size, 5, 'nothing is deleted');
  });

  it('reports definitions that no live worker can run, each once until a worker serves them', async () => {
    const unserved = recordEvents(events, 'schedule:unserved');
    define('here').hourly();
    define('disabled').hourly().queue('reports').disable();
    define('report').hourly().queue('reports');
    await sync.registerAll();
    // One serves the queue and one has the definition, but none both.
    liveWorkers = [
      { queues: ['reports'], taskTypes: ['other'] },
      { queues: ['default'], taskTypes: ['report'] },
    ];
    await sync.reportUnserved();
    await sync.reportUnserved();
    const expected = { scheduleId: 'report', queue: 'reports' };
    assert.deepEqual(
      unserved.map(({ event }) => event),
      [expected],
    );
    const gone = liveWorkers;
    liveWorkers = [{ queues: ['default', 'reports'], taskTypes: ['report'] }];
    await sync.reportUnserved();
    liveWorkers = gone;
    await sync.reportUnserved();
    assert.deepEqual(
      unserved.map(({ event }) => event),
      [expected, expected],
    );
  });
});
