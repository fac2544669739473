import assert from 'node:assert/strict';
import type { Plan } from '../../../src/domain/plan.js';
import type { OwedRun, ScheduleDocument } from '../../../src/domain/schedule.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import type { Decided, DecisionRound, Decisions } from '../../../src/schedules/decisions.js';
import type { Fulfilment } from '../../../src/schedules/fulfilment.js';
import { Materialiser } from '../../../src/schedules/materialiser.js';
import { Turn } from '../../../src/schedules/turn.js';
import type { Registrar } from '../../../src/schedules/registrar.js';
import type { ScheduleScope } from '../../../src/store/due-schedules.js';
import { aSchedule } from '../../support/calendar.js';
import { recordEvents } from '../../support/events.js';
import { after, START } from '../../support/instants.js';
import { ManualClock } from '../../support/manual-clock.js';
import { turns } from '../../support/turns.js';

const POLL = 5000;
const BATCH = 500;

describe('Materialiser', () => {
  let clock: ManualClock;
  let events: EventBus;
  let materialiser: Materialiser;
  let due: ScheduleDocument[][];
  let owing: ScheduleDocument[];
  let next: Date | null;
  let registerNew: () => Promise<void>;
  let decide: (schedules: readonly ScheduleDocument[]) => Partial<DecisionRound>;
  /** What was asked of the others, in order. */
  let calls: string[];
  let scopes: ScheduleScope[];
  let turnOfAnother: boolean;
  let patience: number;

  beforeEach(() => {
    clock = new ManualClock();
    events = new EventBus();
    [due, owing, next, calls, scopes, turnOfAnother] = [[], [], null, [], [], false];
    patience = 1;
    registerNew = async () => undefined;
    decide = (schedules) => ({ won: schedules.map((schedule) => decided(schedule)), lost: 0 });
    materialiser = new Materialiser({
      clock,
      events,
      random: () => 0.5,
      environment: 'test',
      pollInterval: POLL,
      patience: () => patience,
      turn: new Turn({
        clock,
        workerId: 'me',
        store: {
          acquireLock: async (name, grant, now) => {
            calls.push('ask for the turn');
            if (turnOfAnother) return null;
            return { _id: name, fence: 1, lockToken: grant.token, lockedBy: 'me', lockedUntil: now };
          },
          releaseLock: async () => {
            calls.push('end the turn');
            return true;
          },
        },
      }),
      registrar: { names: ['coded'], registerNew: () => registerNew() } as unknown as Registrar,
      decisions: {
        decide: async (schedules: readonly ScheduleDocument[]) => {
          calls.push(`decide ${schedules.map(({ _id }) => _id).join(' ')}`);
          return { won: [], lost: 0, hopeless: [], ...decide(schedules) };
        },
      } as unknown as Decisions,
      fulfilment: {
        carryOut: async (won: readonly Decided[]) => {
          if (won.length > 0) calls.push(`carry out ${won.map(({ schedule }) => schedule._id).join(' ')}`);
          return [];
        },
      } as unknown as Fulfilment,
      store: {
        findDueSchedules: async (scope, now, limit) => {
          scopes.push(scope);
          calls.push(`due at ${now.getTime() - START.getTime()}, ${limit}`);
          return due.shift() ?? [];
        },
        nextScheduleAt: async () => next,
        findOwingSchedules: async (_, before, from) => {
          calls.push(`owing since ${before.getTime() - START.getTime()}`);
          return owing.filter(({ _id }) => _id > from);
        },
        findSchedules: async (ids) => {
          calls.push(`find ${ids.join(' ')}`);
          return ids.map((_id) => aSchedule({ _id }));
        },
      },
    });
  });

  afterEach(async () => {
    const stopped = materialiser.stop();
    clock.advance(60_000);
    await stopped;
  });

  function decided(schedule: ScheduleDocument, plan: Partial<Plan> = {}): Decided {
    const { nextRunAt, lastRunAt, runs, owed, active } = schedule;
    return { schedule, plan: { nextRunAt, lastRunAt, runs, owed, active, cancel: null, ...plan } };
  }

  const run = (id: string): OwedRun => ({ kind: 'run', id, at: START, since: START });

  it('C7 what is due and what was left behind for two seconds is decided together, and carried out', async () => {
    due = [[aSchedule({ _id: 'a' }), aSchedule({ _id: 'b' })]];
    // One may be both.
    owing = [aSchedule({ _id: 'b' }), aSchedule({ _id: 'c' })];
    await materialiser.runOnce();
    assert.deepEqual(calls, [`due at 0, ${BATCH}`, 'owing since -2000', 'decide a b c', 'carry out a b c']);
    assert.deepEqual(scopes, [{ names: ['coded'], environment: 'test', except: [] }]);
  });

  it('C7 with nothing to do it decides nothing', async () => {
    await materialiser.runOnce();
    assert.deepEqual(
      calls.filter((call) => call.startsWith('decide')),
      [],
    );
  });

  it('F3 a full batch means there may be more: again, until one is not full', async () => {
    const full = Array.from({ length: BATCH }, (_, index) => aSchedule({ _id: `s-${index}` }));
    due = [full, full, [aSchedule({ _id: 'last' })]];
    await materialiser.runOnce();
    assert.equal(calls.filter((call) => call.startsWith('decide')).length, 3);
  });

  it('C1 it sleeps until the next is due, at most a poll, and not at all when it is late', async () => {
    assert.equal(await materialiser.runOnce(), POLL);
    next = after(1234);
    assert.equal(await materialiser.runOnce(), 1234);
    // What was decided in this round has a next time too.
    [next, due] = [null, [[aSchedule()]]];
    decide = ([first]) => ({ won: [decided(first!, { nextRunAt: after(2345) })] });
    assert.equal(await materialiser.runOnce(), 2345);
    // What others decided is not known.
    due = [[aSchedule()]];
    decide = () => ({ lost: 1 });
    assert.equal(await materialiser.runOnce(), 0);
  });

  it('C1 with something that tells of changes it polls more rarely, unless a run waits for one that may end elsewhere', async () => {
    patience = 6;
    assert.equal(await materialiser.runOnce(), 6 * POLL);
    next = after(4 * POLL);
    assert.equal(await materialiser.runOnce(), 4 * POLL);
    owing = [aSchedule({ overlap: 'queue', active: 'first', owed: [run('first'), run('second')] })];
    decide = () => ({});
    assert.equal(await materialiser.runOnce(), POLL);
  });

  describe('after a round that others won', () => {
    beforeEach(async () => {
      due = [[aSchedule({ _id: 'a' }), aSchedule({ _id: 'b' }), aSchedule({ _id: 'c' })]];
      decide = ([first]) => ({ won: [decided(first!)], lost: 2 });
      await materialiser.runOnce();
      decide = (schedules) => ({ won: schedules.map((schedule) => decided(schedule)), lost: 0 });
      calls = [];
    });

    it('F3 it asks for a turn before it decides, and decides until that is over', async () => {
      due = [[aSchedule({ _id: 'a' })], [aSchedule({ _id: 'a' })]];
      await materialiser.runOnce();
      clock.advance(1999);
      await materialiser.runOnce();
      const deeds = (): string[] => calls.filter((call) => /^(ask|decide)/.test(call));
      assert.deepEqual(deeds(), ['ask for the turn', 'decide a', 'decide a']);
      clock.advance(1);
      due = [[aSchedule({ _id: 'a' })]];
      await materialiser.runOnce();
      assert.deepEqual(deeds().slice(3), ['ask for the turn', 'decide a']);
    });

    it('F3 it asks for none while nothing is due', async () => {
      await materialiser.runOnce();
      assert.ok(!calls.includes('ask for the turn'));
    });

    it('F3 in the turn of another it decides on nothing, and looks again when that may be over', async () => {
      turnOfAnother = true;
      due = [[aSchedule({ _id: 'a' })]];
      assert.equal(await materialiser.runOnce(), 1500);
      assert.ok(!calls.some((call) => call.startsWith('decide')));
    });

    it('F3 what only it knows of it decides on in the turn of another too', async () => {
      turnOfAnother = true;
      owing = [aSchedule({ _id: 'line', overlap: 'queue', owed: [run('line@1')], active: 'line@0' })];
      await materialiser.runOnce();
      materialiser.runEnded('line@0');
      await materialiser.runOnce();
      assert.deepEqual(calls.slice(-2), ['decide line', 'carry out line']);
    });

    it('F3 a pass for which somebody waits does not ask', async () => {
      turnOfAnother = true;
      due = [[aSchedule({ _id: 'a' })]];
      await materialiser.collect('all');
      assert.ok(calls.includes('decide a'));
    });

    it('F3 stopped, it ends its turn for the others', async () => {
      due = [[aSchedule({ _id: 'a' })]];
      await materialiser.runOnce();
      await materialiser.stop();
      assert.equal(calls.at(-1), 'end the turn');
    });
  });

  it('F5 what cannot be read is left out, counted, and not read again', async () => {
    const unreadable = recordEvents(events, 'schedule:unreadable');
    const bad = (_id: string): ScheduleDocument => ({ ...aSchedule({ _id }), overlap: 'x' as 'skip' });
    due = [[bad('b1'), aSchedule({ _id: 'good' }), bad('b2')], []];
    await materialiser.runOnce();
    await materialiser.runOnce();
    assert.ok(calls.includes('decide good'));
    assert.deepEqual(
      unreadable.map(({ event }) => event),
      ['b1', 'b2'].map((scheduleId, index) => ({
        scheduleId,
        reason: 'overlap cannot be read',
        count: index + 1,
      })),
    );
    assert.deepEqual(scopes.at(-1)?.except, ['b1', 'b2']);
  });

  describe('when a run ends in this process', () => {
    async function start(schedule: ScheduleDocument, plan: Partial<Plan>): Promise<void> {
      due = [[schedule]];
      decide = (schedules) => ({ won: schedules.map((one) => decided(one, plan)), lost: 0 });
      materialiser.start();
      await turns();
      calls = [];
    }

    it('B10 the next in line is looked at now', async () => {
      const line = { owed: [run('s@2')], active: 's@1' };
      await start(aSchedule({ overlap: 'queue' }), line);
      materialiser.runEnded('s@1');
      await turns();
      assert.ok(calls.includes('find s') && calls.includes('decide s'), calls.join(', '));
      assert.equal(clock.now().getTime(), START.getTime());
    });

    it('B10 of a schedule without a line, of another, or of none, nobody is woken', async () => {
      await start(aSchedule({ overlap: 'queue' }), { owed: [run('s@1')], active: 's@1' });
      for (const id of ['s@1', 's!1', 't@1', '6123-4567', 'mail#key']) materialiser.runEnded(id);
      await turns();
      assert.deepEqual(calls, []);
    });

    it('B10 where runs may overlap there is no line', async () => {
      await start(aSchedule({ overlap: 'allow' }), { owed: [run('s@2')], active: 's@1' });
      materialiser.runEnded('s@1');
      await turns();
      assert.deepEqual(calls, []);
    });
  });

  it('J19 a pass over stored schedules leaves those in code to it', async () => {
    await materialiser.collect('stored');
    await materialiser.collect('all');
    assert.deepEqual(
      scopes.map(({ names }) => names),
      [[], ['coded']],
    );
  });

  it('C12 told to stop, it does not begin another batch', async () => {
    const full = Array.from({ length: BATCH }, (_, index) => aSchedule({ _id: `s-${index}` }));
    due = Array.from({ length: 20 }, () => full);
    let stopped: Promise<void> | undefined;
    decide = (schedules) => {
      stopped ??= materialiser.stop();
      return { won: schedules.map((one) => decided(one)), lost: 0 };
    };
    materialiser.start();
    await turns(10);
    await stopped;
    assert.equal(calls.filter((call) => call.startsWith('decide')).length, 1);
  });

  it('C7 definitions that are new are registered before it looks', async () => {
    registerNew = async () => void calls.push('register');
    await materialiser.runOnce();
    assert.equal(calls[0], 'register');
  });
});
