import assert from 'node:assert/strict';
import { aRegistry } from '../../support/factories/handler-registry.js';
import { mongo } from 'mongoose';
import type { ChronosError } from '../../../src/domain/errors.js';
import type { ExecutionDocument } from '../../../src/domain/job/execution.js';
import type { Outcome } from '../../../src/domain/job/outcome.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { OutageMonitor } from '../../../src/runtime/outage-monitor.js';
import type { Settled, Settlement as Statement } from '../../../src/store/jobs/settle.js';
import { type SettleResult, Settler } from '../../../src/worker/settler.js';
import { aJob } from '../../support/factories/job.js';
import { recordEvents, signal } from '../../support/events.js';
import { ManualClock } from '../../support/manual-clock.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';

const STARTED = new Date('2026-01-01T00:00:00Z');
const FINISHED = new Date('2026-01-01T00:00:05Z');
const DONE: Outcome = { kind: 'completed', result: 'done' };
const AGAIN: Outcome = { kind: 'retry', error: new Error('boom'), nextRunAt: FINISHED };

const lostReply = (): Error => new mongo.MongoNetworkError('the reply is lost');
const rejection = (): Error => new Error('rejected by the server');

const all =
  (settled: Settled) =>
  async (statements: readonly Statement[]): Promise<Settled[]> =>
    statements.map(() => settled);

describe('Settler', () => {
  let clock: ManualClock;
  let events: EventBus;
  let settler: Settler;
  /** Calls of the store, in order. */
  let calls: string[];
  let statements: Statement[];
  let rows: ExecutionDocument[];
  let write: (statements: readonly Statement[]) => Promise<Settled[]>;
  let readBack: (statements: readonly Statement[]) => Promise<Settled[]>;
  let log: () => Promise<void>;

  beforeEach(() => {
    clock = new ManualClock();
    events = new EventBus('worker');
    [calls, statements, rows] = [[], [], []];
    write = all('settled');
    readBack = all('unknown');
    log = async () => undefined;
    settler = new Settler({
      clock,
      events,
      workerId: 'worker',
      registry: aRegistry(),
      outages: new OutageMonitor(clock, 60_000),
      store: {
        settle: (batch) => {
          calls.push(`settle ${batch.length}`);
          statements.push(...batch);
          return write(batch);
        },
        findSettled: (batch) => {
          calls.push(`findSettled ${batch.length}`);
          return readBack(batch);
        },
        logExecutions: (batch) => {
          calls.push(`log ${batch.length}`);
          rows.push(...batch);
          return log();
        },
      },
    });
  });

  afterEach(async () => {
    await settler.close();
    assert.deepEqual([settler.pending, clock.sleepers], [0, 0]);
  });

  function settle(
    outcome: Outcome = DONE,
    id = 'job',
    token = 'token',
    immediate = false,
  ): Promise<SettleResult> {
    const attempt = {
      outcome,
      startedAt: STARTED,
      finishedAt: FINISHED,
      duration: 5000,
      log: ['line'],
      isStuck: false,
      hookErrors: [],
    };
    return settler.settle(
      aJob({ _id: id, status: 'RUNNING', fence: 4, attempts: 1 }),
      token,
      attempt,
      immediate,
    );
  }

  /** In small steps, so that every sleep starts at its exact time. */
  async function advance(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 100) {
      await flushEventLoop(2);
      clock.advance(100);
    }
    await flushEventLoop(2);
  }

  it('writes the outcome, then the execution row, then reports it', async () => {
    const reported = settle().then((settlement) => (calls.push('reported'), settlement));
    assert.deepEqual(await reported, { settled: true, outcome: DONE });
    assert.deepEqual(calls, ['settle 1', 'log 1', 'reported']);
    const common = { jobId: 'job', workerId: 'worker', startedAt: STARTED, finishedAt: FINISHED };
    assert.deepEqual(statements, [{ ...common, token: 'token', outcome: DONE, retention: undefined }]);
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
      },
    ]);
  });

  it('stores the error of a failed attempt in its row', async () => {
    await settle(AGAIN);
    assert.deepEqual([rows[0]?.outcome, rows[0]?.error?.message], ['retry', 'boom']);
  });

  it('writes outcomes of the same event-loop turn together', async () => {
    await Promise.all([settle(DONE, 'a'), settle(AGAIN, 'b'), settle(DONE, 'c', 'another token')]);
    assert.deepEqual(calls, ['settle 3', 'log 3']);
    assert.deepEqual(
      statements.map(({ token }) => token),
      ['token', 'token', 'another token'],
    );
  });

  it('collects outcomes while two writes are in progress', async () => {
    const [first, second] = [signal<Settled[]>(), signal<Settled[]>()];
    const writes = [first.promise, second.promise];
    write = (batch) => writes.shift() ?? Promise.resolve(batch.map(() => 'settled'));
    const results = [settle(DONE, 'a')];
    await flushEventLoop();
    results.push(settle(DONE, 'b'));
    await flushEventLoop();
    results.push(settle(DONE, 'c'), settle(DONE, 'd'));
    await flushEventLoop();
    assert.deepEqual(calls, ['settle 1', 'settle 1']);
    assert.equal(settler.pending, 4);
    first.fire(['settled']);
    await Promise.all([results[0], results[2], results[3]]);
    assert.deepEqual(calls, ['settle 1', 'settle 1', 'log 1', 'settle 2', 'log 2']);
    second.fire(['settled']);
    await results[1];
    await settler.whenFlushed();
    assert.equal(settler.pending, 0);
  });

  it('writes an immediate outcome alone, without waiting for others', async () => {
    const slow = signal<Settled[]>();
    write = () => slow.promise;
    const others = [settle(DONE, 'a')];
    await flushEventLoop();
    others.push(settle(DONE, 'b'));
    await flushEventLoop();
    others.push(settle(DONE, 'c'));
    write = all('settled');
    assert.deepEqual(await settle(DONE, 'd', 'token', true), { settled: true, outcome: DONE });
    assert.deepEqual(calls, ['settle 1', 'settle 1', 'settle 1', 'log 1']);
    slow.fire(['settled']);
    await Promise.all(others);
  });

  it('writes at most a thousand outcomes at once', async () => {
    await Promise.all(Array.from({ length: 2400 }, (_, i) => settle(DONE, `job-${i}`)));
    assert.deepEqual(
      calls.filter((call) => call.startsWith('settle')),
      ['settle 1000', 'settle 1000', 'settle 400'],
    );
  });

  it('has written everything after whenFlushed()', async () => {
    let settled = false;
    void settle().then(() => (settled = true));
    await settler.whenFlushed();
    await flushEventLoop(1);
    assert.equal(settled, true);
    await settler.whenFlushed();
  });

  describe('when another worker has the lock', () => {
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

  describe('when a cancellation was requested', () => {
    it('cancels the job instead of rescheduling it', async () => {
      write = async ([one]) => [
        one?.outcome.kind === 'retry' ? { cancelRequested: 'not needed' } : 'settled',
      ];
      const settlement = await settle(AGAIN);
      assert.deepEqual(settlement, { settled: true, outcome: { kind: 'cancelled', reason: 'not needed' } });
      assert.deepEqual(calls, ['settle 1', 'settle 1', 'log 1']);
      assert.equal(rows[0]?.outcome, 'cancelled');
    });
  });

  describe('when the reply is lost', () => {
    it('does not report a lost lock for a write that took effect', async () => {
      write = () => Promise.reject(lostReply());
      readBack = all('settled');
      const settlement = settle();
      await advance(200);
      assert.deepEqual(await settlement, { settled: true, outcome: DONE });
      assert.deepEqual(calls, ['settle 1', 'findSettled 1', 'log 1'], 'nothing is written twice');
    });

    it('writes again only outcomes that did not take effect', async () => {
      const record = recordEvents(events, 'worker:error', 'worker:recovered');
      write = async (batch) => {
        if (batch.length === 1) return ['settled'];
        throw lostReply();
      };
      readBack = async () => ['settled', 'unknown'];
      const both = Promise.all([settle(DONE, 'a'), settle(DONE, 'b')]);
      await advance(200);
      for (const settlement of await both) assert.equal(settlement.settled, true);
      assert.deepEqual(calls, ['settle 2', 'findSettled 2', 'log 1', 'settle 1', 'log 1']);
      assert.deepEqual(
        rows.map(({ jobId }) => jobId),
        ['a', 'b'],
      );
      assert.deepEqual(
        record.map(({ name }) => name),
        ['worker:error', 'worker:recovered'],
      );
    });

    it('drops outcomes whose lock is lost', async () => {
      write = () => Promise.reject(lostReply());
      readBack = all('lost');
      const settlement = settle();
      await advance(200);
      assert.deepEqual(await settlement, { settled: false });
      assert.deepEqual(rows, []);
    });
  });

  describe('while the database is unreachable', () => {
    beforeEach(() => {
      write = () => Promise.reject(lostReply());
      readBack = () => Promise.reject(lostReply());
    });

    it('retries with growing delays and drops nothing', async () => {
      const failures = recordEvents(events, 'worker:error');
      const settlement = settle();
      await advance(17_000);
      const delays = failures.map(({ event }) => (event as { retryIn: number }).retryIn);
      assert.deepEqual(delays.slice(0, 7), [100, 200, 400, 800, 1600, 3200, 5000]);
      write = all('settled');
      await advance(5000);
      assert.deepEqual(await settlement, { settled: true, outcome: DONE });
    });

    it('gives up when it is closed', async () => {
      const settlements = [settle(DONE, 'a')];
      await advance(500);
      settlements.push(settle(DONE, 'b'));
      void settler.close();
      assert.deepEqual(await Promise.all(settlements), [{ settled: false }, { settled: false }]);
    });
  });

  it('still writes the outcome and row of an attempt that ended before close()', async () => {
    const settlement = settle();
    void settler.close();
    assert.deepEqual(await settlement, { settled: true, outcome: DONE });
    assert.equal(rows.length, 1);
  });

  it('settles a job as failed when the server rejects its outcome three times, so that it does not count as crashed', async () => {
    write = ([one]) =>
      one?.outcome.kind === 'failed' ? Promise.resolve(['settled']) : Promise.reject(rejection());
    const settlement = settle();
    await advance(3000);
    const settled = await settlement;
    assert.ok(settled.settled && settled.outcome.kind === 'failed');
    assert.equal((settled.outcome.error as ChronosError).code, 'OUTCOME_REFUSED');
    assert.deepEqual([rows[0]?.outcome, rows[0]?.error?.code], ['failed', 'OUTCOME_REFUSED']);
  });

  it('drops an outcome that the server rejects in every form', async () => {
    write = () => Promise.reject(rejection());
    const settlement = settle();
    await advance(10_000);
    assert.deepEqual(await settlement, { settled: false });
    assert.equal(calls.filter((call) => call.startsWith('settle')).length, 6);
    assert.deepEqual(rows, []);
  });

  it('writes outcomes one by one when one of them is rejected', async () => {
    write = (batch) => {
      if (batch.some(({ jobId }) => jobId === 'bad')) return Promise.reject(rejection());
      return Promise.resolve(batch.map(() => 'settled' as const));
    };
    const good = Promise.all([settle(DONE, 'a'), settle(DONE, 'b')]);
    const bad = settle(DONE, 'bad');
    await advance(10_000);
    assert.deepEqual(await good, [
      { settled: true, outcome: DONE },
      { settled: true, outcome: DONE },
    ]);
    assert.deepEqual(await bad, { settled: false });
  });

  describe('when the execution log cannot be written', () => {
    it('retries while the result is unknown', async () => {
      log = () => Promise.reject(lostReply());
      const settlement = settle();
      await advance(10_000);
      assert.ok(rows.length > 3);
      log = async () => undefined;
      await advance(5000);
      assert.deepEqual(await settlement, { settled: true, outcome: DONE });
      assert.equal(calls.filter((call) => call.startsWith('settle')).length, 1);
    });

    it('stops retrying when it is closed', async () => {
      log = () => Promise.reject(lostReply());
      const settlement = settle();
      await advance(500);
      void settler.close();
      assert.deepEqual(await settlement, { settled: true, outcome: DONE });
    });

    it('settles without a row that is rejected three times', async () => {
      log = () => Promise.reject(rejection());
      const settlement = settle();
      await advance(3000);
      assert.deepEqual(await settlement, { settled: true, outcome: DONE });
      assert.equal(rows.length, 3);
    });
  });
});
