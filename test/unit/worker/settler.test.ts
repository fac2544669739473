import assert from 'node:assert/strict';
import type { ChronosError } from '../../../src/domain/errors.js';
import { mongo } from 'mongoose';
import type { ExecutionDocument } from '../../../src/domain/execution.js';
import type { Outcome } from '../../../src/domain/outcome.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import type { Settled, Settlement as Statement } from '../../../src/store/settle.js';
import type { Settlement } from '../../../src/worker/outcome-writer.js';
import { Settler } from '../../../src/worker/settler.js';
import { aJob } from '../../support/a-job.js';
import { recordEvents, signal } from '../../support/events.js';
import { ManualClock } from '../../support/manual-clock.js';
import { turns } from '../../support/turns.js';

const STARTED = new Date('2026-01-01T00:00:00Z');
const FINISHED = new Date('2026-01-01T00:00:05Z');
const DONE: Outcome = { kind: 'completed', result: 'done' };
const AGAIN: Outcome = { kind: 'retry', error: new Error('boom'), nextRunAt: FINISHED };

const lostReply = (): Error => new mongo.MongoNetworkError('the reply is lost');
const refusal = (): Error => new Error('refused by the server');

const all =
  (settled: Settled) =>
  async (statements: readonly Statement[]): Promise<Settled[]> =>
    statements.map(() => settled);

describe('Settler', () => {
  let clock: ManualClock;
  let events: EventBus;
  let settler: Settler;
  /** What reached the store, in order. */
  let calls: string[];
  let statements: Statement[];
  let rows: ExecutionDocument[];
  let write: (statements: readonly Statement[]) => Promise<Settled[]>;
  let readBack: (statements: readonly Statement[]) => Promise<Settled[]>;
  let log: () => Promise<void>;

  beforeEach(() => {
    clock = new ManualClock();
    events = new EventBus();
    [calls, statements, rows] = [[], [], []];
    write = all('settled');
    readBack = all('unknown');
    log = async () => undefined;
    settler = new Settler({
      clock,
      events,
      workerId: 'worker',
      executionRetention: 1000,
      store: {
        settle: (given) => {
          calls.push(`settle ${given.length}`);
          statements.push(...given);
          return write(given);
        },
        findSettled: (given) => {
          calls.push(`findSettled ${given.length}`);
          return readBack(given);
        },
        logExecutions: (given) => {
          calls.push(`log ${given.length}`);
          rows.push(...given);
          return log();
        },
      },
    });
  });

  afterEach(async () => {
    settler.abandon();
    await settler.flushed();
    assert.deepEqual([settler.pending, clock.sleepers], [0, 0]);
  });

  function settle(outcome: Outcome = DONE, id = 'job', token = 'token', alone = false): Promise<Settlement> {
    const attempt = {
      outcome,
      startedAt: STARTED,
      finishedAt: FINISHED,
      duration: 5000,
      log: ['line'],
      stuck: false,
    };
    return settler.settle(aJob({ _id: id, status: 'RUNNING', fence: 4, attempts: 1 }), token, attempt, alone);
  }

  async function pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 100) {
      await turns(2);
      clock.advance(100);
    }
    await turns(2);
  }

  it('writes the outcome, then its row, and only then tells', async () => {
    const told = settle().then((settlement) => (calls.push('told'), settlement));
    assert.deepEqual(await told, { settled: true, outcome: DONE });
    assert.deepEqual(calls, ['settle 1', 'log 1', 'told']);
    const common = { jobId: 'job', workerId: 'worker', startedAt: STARTED, finishedAt: FINISHED };
    assert.deepEqual(statements, [{ ...common, token: 'token', outcome: DONE }]);
    assert.deepEqual(rows, [
      {
        ...common,
        _id: 'job:4',
        taskType: 'work',
        queue: 'default',
        attempt: 2,
        fence: 4,
        lockToken: 'token',
        duration: 5000,
        outcome: 'completed',
        error: null,
        log: ['line'],
        expiresAt: new Date('2026-01-01T00:00:06Z'),
      },
    ]);
  });

  it('keeps the error of a failed attempt in its row', async () => {
    await settle(AGAIN);
    assert.deepEqual([rows[0]?.outcome, rows[0]?.error?.message], ['retry', 'boom']);
  });

  it('writes together what comes in one turn', async () => {
    await Promise.all([settle(DONE, 'a'), settle(AGAIN, 'b'), settle(DONE, 'c', 'another token')]);
    assert.deepEqual(calls, ['settle 3', 'log 3']);
    assert.deepEqual(
      statements.map(({ token }) => token),
      ['token', 'token', 'another token'],
    );
  });

  it('writes what comes while two writes are under way with the next one', async () => {
    const [first, second] = [signal<Settled[]>(), signal<Settled[]>()];
    const writes = [first.promise, second.promise];
    write = (given) => writes.shift() ?? Promise.resolve(given.map(() => 'settled'));
    const all = [settle(DONE, 'a')];
    await turns();
    all.push(settle(DONE, 'b'));
    await turns();
    all.push(settle(DONE, 'c'), settle(DONE, 'd'));
    await turns();
    assert.deepEqual(calls, ['settle 1', 'settle 1']);
    assert.equal(settler.pending, 4);
    first.fire(['settled']);
    await Promise.all([all[0], all[2], all[3]]);
    assert.deepEqual(calls, ['settle 1', 'settle 1', 'log 1', 'settle 2', 'log 2']);
    second.fire(['settled']);
    await all[1];
    await settler.flushed();
    assert.equal(settler.pending, 0);
  });

  it('writes one alone that asks for it, and does not let it wait for the others', async () => {
    const slow = signal<Settled[]>();
    write = () => slow.promise;
    const others = [settle(DONE, 'a')];
    await turns();
    others.push(settle(DONE, 'b'));
    await turns();
    others.push(settle(DONE, 'c'));
    write = all('settled');
    assert.deepEqual(await settle(DONE, 'd', 'token', true), { settled: true, outcome: DONE });
    assert.deepEqual(calls, ['settle 1', 'settle 1', 'settle 1', 'log 1']);
    slow.fire(['settled']);
    await Promise.all(others);
  });

  it('writes a thousand at the most in one go', async () => {
    await Promise.all(Array.from({ length: 2400 }, (_, i) => settle(DONE, `job-${i}`)));
    assert.deepEqual(
      calls.filter((call) => call.startsWith('settle')),
      ['settle 1000', 'settle 1000', 'settle 400'],
    );
  });

  it('has written everything once it is flushed', async () => {
    let settled = false;
    void settle().then(() => (settled = true));
    await settler.flushed();
    await turns(1);
    assert.equal(settled, true);
    await settler.flushed();
  });

  describe('when the lock is somebody else’s', () => {
    it('drops the outcome and writes no row', async () => {
      write = async () => ['settled', 'lost'];
      const [kept, dropped] = await Promise.all([settle(DONE, 'a'), settle(DONE, 'b')]);
      assert.deepEqual([kept, dropped], [{ settled: true, outcome: DONE }, { settled: false }]);
      assert.deepEqual(
        rows.map(({ jobId }) => jobId),
        ['a'],
      );
    });
  });

  describe('when a cancel was requested meanwhile', () => {
    it('cancels what would have run again', async () => {
      write = async ([one]) => [
        one?.outcome.kind === 'retry' ? { cancelRequested: 'not needed' } : 'settled',
      ];
      const settlement = await settle(AGAIN);
      assert.deepEqual(settlement, { settled: true, outcome: { kind: 'cancelled', reason: 'not needed' } });
      assert.deepEqual(calls, ['settle 1', 'settle 1', 'log 1']);
      assert.equal(rows[0]?.outcome, 'cancelled');
    });
  });

  describe('when the reply of the server is lost', () => {
    it('does not take a write that took effect for a lost lock', async () => {
      write = () => Promise.reject(lostReply());
      readBack = all('settled');
      const settlement = settle();
      await pass(200);
      assert.deepEqual(await settlement, { settled: true, outcome: DONE });
      assert.deepEqual(calls, ['settle 1', 'findSettled 1', 'log 1'], 'nothing is written twice');
    });

    it('writes again what did not take effect, and only that', async () => {
      const record = recordEvents(events, 'worker:trouble', 'worker:recovered');
      write = async (given) => {
        if (given.length === 1) return ['settled'];
        throw lostReply();
      };
      readBack = async () => ['settled', 'unknown'];
      const both = Promise.all([settle(DONE, 'a'), settle(DONE, 'b')]);
      await pass(200);
      for (const settlement of await both) assert.equal(settlement.settled, true);
      assert.deepEqual(calls, ['settle 2', 'findSettled 2', 'log 1', 'settle 1', 'log 1']);
      assert.deepEqual(
        rows.map(({ jobId }) => jobId),
        ['a', 'b'],
      );
      assert.deepEqual(
        record.map(({ name }) => name),
        ['worker:trouble', 'worker:recovered'],
      );
    });

    it('drops what it finds lost', async () => {
      write = () => Promise.reject(lostReply());
      readBack = all('lost');
      const settlement = settle();
      await pass(200);
      assert.deepEqual(await settlement, { settled: false });
      assert.deepEqual(rows, []);
    });
  });

  describe('while the database is away', () => {
    beforeEach(() => {
      write = () => Promise.reject(lostReply());
      readBack = () => Promise.reject(lostReply());
    });

    it('tries on, later and later, and drops nothing', async () => {
      const trouble = recordEvents(events, 'worker:trouble');
      const settlement = settle();
      await pass(17_000);
      const waits = trouble.map(({ event }) => (event as { retryIn: number }).retryIn);
      assert.deepEqual(waits.slice(0, 7), [100, 200, 400, 800, 1600, 3200, 5000]);
      write = all('settled');
      await pass(5000);
      assert.deepEqual(await settlement, { settled: true, outcome: DONE });
    });

    it('gives up when it is told to', async () => {
      const settlements = [settle(DONE, 'a')];
      await pass(500);
      settlements.push(settle(DONE, 'b'));
      settler.abandon();
      assert.deepEqual(await Promise.all(settlements), [{ settled: false }, { settled: false }]);
    });
  });

  it('still writes the row of what it could settle after it was told to give up', async () => {
    const settlement = settle();
    settler.abandon();
    assert.deepEqual(await settlement, { settled: true, outcome: DONE });
    assert.equal(rows.length, 1);
  });

  it('settles as failed what the server refuses three times: it must not seem to crash', async () => {
    write = ([one]) =>
      one?.outcome.kind === 'failed' ? Promise.resolve(['settled']) : Promise.reject(refusal());
    const settlement = settle();
    await pass(3000);
    const settled = await settlement;
    assert.ok(settled.settled && settled.outcome.kind === 'failed');
    assert.equal((settled.outcome.error as ChronosError).code, 'OUTCOME_REFUSED');
    assert.deepEqual([rows[0]?.outcome, rows[0]?.error?.code], ['failed', 'OUTCOME_REFUSED']);
  });

  it('drops what the server refuses in every form', async () => {
    write = () => Promise.reject(refusal());
    const settlement = settle();
    await pass(10_000);
    assert.deepEqual(await settlement, { settled: false });
    assert.equal(calls.filter((call) => call.startsWith('settle')).length, 6);
    assert.deepEqual(rows, []);
  });

  it('writes one by one when one of many is refused, so that it holds up no other', async () => {
    write = (given) => {
      if (given.some(({ jobId }) => jobId === 'bad')) return Promise.reject(refusal());
      return Promise.resolve(given.map(() => 'settled' as const));
    };
    const good = Promise.all([settle(DONE, 'a'), settle(DONE, 'b')]);
    const bad = settle(DONE, 'bad');
    await pass(10_000);
    assert.deepEqual(await good, [
      { settled: true, outcome: DONE },
      { settled: true, outcome: DONE },
    ]);
    assert.deepEqual(await bad, { settled: false });
  });

  describe('when the execution log cannot be written', () => {
    it('tries again while nothing is known', async () => {
      log = () => Promise.reject(lostReply());
      const settlement = settle();
      await pass(10_000);
      assert.ok(rows.length > 3);
      log = async () => undefined;
      await pass(5000);
      assert.deepEqual(await settlement, { settled: true, outcome: DONE });
      assert.equal(calls.filter((call) => call.startsWith('settle')).length, 1);
    });

    it('stops trying when it is told to give up', async () => {
      log = () => Promise.reject(lostReply());
      const settlement = settle();
      await pass(500);
      settler.abandon();
      assert.deepEqual(await settlement, { settled: true, outcome: DONE });
    });

    it('settles without a row that is refused three times', async () => {
      log = () => Promise.reject(refusal());
      const settlement = settle();
      await pass(3000);
      assert.deepEqual(await settlement, { settled: true, outcome: DONE });
      assert.equal(rows.length, 3);
    });
  });
});
