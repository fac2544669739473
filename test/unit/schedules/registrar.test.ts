import assert from 'node:assert/strict';
import { mongo } from 'mongoose';
import type { ScheduleDocument } from '../../../src/domain/schedule.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { Definitions } from '../../../src/schedules/definitions.js';
import { Registrar } from '../../../src/schedules/registrar.js';
import { HandlerRegistry } from '../../../src/worker/handler-registry.js';
import { resolveOptions } from '../../../src/config/options.js';
import { aSchedule } from '../../support/calendar.js';
import { recordEvents } from '../../support/events.js';
import { after } from '../../support/instants.js';
import { ManualClock } from '../../support/manual-clock.js';

const HOUR = 3_600_000;
const unused = (): never => assert.fail('not called here');

describe('Registrar', () => {
  let clock: ManualClock;
  let events: EventBus;
  let definitions: Definitions;
  let registrar: Registrar;
  /** What is stored, and what was asked of the store. */
  let stored: Map<string, ScheduleDocument>;
  let calls: string[];
  let liveTypes: string[];
  /** Comes between the reading and the writing. */
  let interfere: (() => void)[];

  beforeEach(() => {
    clock = new ManualClock();
    events = new EventBus();
    stored = new Map();
    [calls, liveTypes, interfere] = [[], [], []];
    const options = resolveOptions({ uri: 'mongodb://unused/app', environment: 'test' });
    definitions = new Definitions({
      registry: new HandlerRegistry(),
      options,
      draft: unused,
      dispatch: unused,
    });
    registrar = new Registrar({
      clock,
      events,
      definitions,
      store: {
        findSchedules: async (ids) => {
          calls.push(`find ${ids.join(' ')}`);
          return ids.flatMap((id) => structuredClone(stored.get(id)) ?? []);
        },
        insertSchedule: async (schedule) => {
          calls.push(`insert ${schedule._id}`);
          interfere.shift()?.();
          if (stored.has(schedule._id)) return false;
          stored.set(schedule._id, schedule);
          return true;
        },
        changeSchedule: async (read, fields) => {
          calls.push(`change ${read._id}`);
          interfere.shift()?.();
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
      },
    });
  });

  function define(name: string): ReturnType<Definitions['schedule']> {
    return definitions.schedule(name, () => undefined);
  }

  it('C7 what is new is inserted, what is known is not written again', async () => {
    define('a').hourly();
    define('b').daily();
    assert.deepEqual(registrar.names, []);
    await registrar.registerAll();
    assert.deepEqual(registrar.names, ['a', 'b']);
    assert.deepEqual(calls, ['find a b', 'insert a', 'insert b']);
    assert.deepEqual(stored.get('a')?.nextRunAt, after(HOUR));
    await registrar.registerAll();
    await registrar.registerNew();
    assert.deepEqual(calls.slice(3), [], 'once in a process');
  });

  it('C7 one that another process stored in the meantime is compared with, not overwritten', async () => {
    define('a').hourly();
    let other: ScheduleDocument | undefined;
    interfere.push(() => {
      const { hash, schedule } = definitions.all()[0]!;
      other = aSchedule({ ...schedule, _id: 'a', owner: 'code', hash, createdAt: after(-HOUR), runs: 7 });
      stored.set('a', other);
    });
    await registrar.registerAll();
    assert.deepEqual(calls, ['find a', 'insert a', 'find a']);
    assert.deepEqual([stored.get('a'), registrar.names], [other, ['a']]);
  });

  it('C7 one that changes while it is refreshed is read again, and what changed stays', async () => {
    define('a').hourly().priority(1);
    stored.set('a', aSchedule({ _id: 'a', owner: 'code', hash: 'of an older version' }));
    interfere.push(() => {
      stored.set('a', {
        ...stored.get('a')!,
        decision: 'of somebody else',
        isActive: false,
        paused: { at: clock.now(), by: 'ada', reason: null },
        runs: 9,
      });
    });
    await registrar.registerAll();
    assert.deepEqual(calls, ['find a', 'change a', 'find a', 'change a']);
    const { priority, isActive, paused, runs, rev } = stored.get('a')!;
    assert.deepEqual([priority, isActive, paused?.by, runs, rev], [1, false, 'ada', 9, 1]);
  });

  it('C7 one that is removed while it is refreshed is stored anew', async () => {
    define('a').hourly();
    stored.set('a', aSchedule({ _id: 'a', owner: 'code', hash: 'of an older version' }));
    interfere.push(() => stored.delete('a'));
    await registrar.registerAll();
    assert.deepEqual(calls.at(-1), 'insert a');
    assert.equal(stored.get('a')?.runs, 0);
  });

  it('F1 at the start an id that is taken by a stored schedule is an error', async () => {
    define('a').hourly();
    stored.set('a', aSchedule({ _id: 'a' }));
    const before = structuredClone(stored.get('a'));
    await assert.rejects(registrar.registerAll(), { code: 'SCHEDULE_EXISTS' });
    assert.deepEqual([stored.get('a'), registrar.names], [before, []]);
  });

  it('F5 Y8 later it is reported, once, and the others are registered', async () => {
    const disabled = recordEvents(events, 'schedule:disabled');
    await registrar.registerAll();
    stored.set('taken', aSchedule({ _id: 'taken' }));
    define('taken').hourly();
    define('never').cron('0 0 30 2 *');
    define('good').hourly();
    await registrar.registerNew();
    await registrar.registerNew();
    assert.deepEqual(registrar.names, ['good']);
    assert.deepEqual(
      disabled.map(({ event }) => (event as { scheduleId: string }).scheduleId),
      ['never', 'taken'],
    );
  });

  it('Y9 trouble with the database is not the definition’s fault: it is tried again', async () => {
    const disabled = recordEvents(events, 'schedule:disabled');
    define('a').hourly();
    interfere.push(() => {
      throw new mongo.MongoNetworkError('no connection');
    });
    await assert.rejects(registrar.registerNew(), { message: 'no connection' });
    assert.deepEqual([registrar.names, disabled], [[], []]);
    await registrar.registerNew();
    assert.deepEqual(registrar.names, ['a']);
  });

  it('D8 what is meant for another environment is not registered', async () => {
    define('elsewhere').hourly().environments('production');
    define('here').hourly().environments('test', 'production');
    await registrar.registerAll();
    await registrar.registerNew();
    assert.deepEqual([registrar.names, [...stored.keys()]], [['here'], ['here']]);
  });

  it('C7 orphans are those of no code: neither here nor in a worker that is alive', async () => {
    const orphaned = recordEvents(events, 'schedule:orphaned');
    define('mine').hourly();
    define('elsewhere').hourly().environments('production');
    for (const _id of ['mine', 'elsewhere', 'gone', 'of another worker'])
      stored.set(_id, aSchedule({ _id, owner: 'code' }));
    stored.set('stored', aSchedule({ _id: 'stored', owner: 'api' }));
    liveTypes = ['of another worker'];
    await registrar.reportOrphans();
    assert.deepEqual(
      orphaned.map(({ event }) => event),
      [{ scheduleId: 'gone' }],
    );
    assert.equal(stored.size, 5, 'nothing is deleted');
  });
});
