import assert from 'node:assert/strict';
import { z } from 'zod';
import { CancelJob, SnoozeJob } from '../../../src/domain/job/control-flow.js';
import type { JobDocument } from '../../../src/domain/job/job.js';
import type { HandlerRegistry } from '../../../src/handlers/handler-registry.js';
import type { JobContext } from '../../../src/domain/job/handler.js';
import type { Attempt, Execution, JobExecutor } from '../../../src/worker/job-executor.js';
import { aJob } from '../../support/factories/job.js';
import { signal } from '../../support/events.js';
import { ManualClock } from '../../support/manual-clock.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { throwing, untilAborted } from '../../support/handlers/recording-definition.js';
import { anExecutor, currentValue, never } from '../../support/job-executor.js';

type Handler = (payload: unknown, job: JobContext) => unknown;

describe('JobExecutor', () => {
  let clock: ManualClock;
  let registry: HandlerRegistry;
  let executor: JobExecutor;
  let progress: unknown[];

  beforeEach(() => {
    clock = new ManualClock();
    progress = [];
    ({ registry, executor } = anExecutor(
      clock,
      async (id, _token, { value, note }) => progress.push([id, value, note]) > 0,
    ));
  });

  function start(handler: Handler, fields: Partial<JobDocument> = {}, settings: object = {}): Execution {
    registry.register('work', handler, settings);
    return executor.run(aJob({ status: 'RUNNING', ...fields }));
  }

  function attemptOf(handler: Handler, fields?: Partial<JobDocument>, settings?: object): Promise<Attempt> {
    return start(handler, fields, settings).attempt;
  }

  it('returns the outcome with its times', async () => {
    const { promise, fire } = signal<string>();
    const { attempt, handlerEnded } = start(() => promise);
    await flushEventLoop();
    clock.advance(1500);
    fire('done');
    assert.deepEqual(await attempt, {
      outcome: { kind: 'completed', result: 'done' },
      startedAt: new Date('2026-01-01T00:00:00Z'),
      finishedAt: new Date('2026-01-01T00:00:01.500Z'),
      duration: 1500,
      log: [],
      isStuck: false,
      hookErrors: [],
    });
    await handlerEnded;
    assert.equal(clock.sleepers, 0, 'no timer may be left');
  });

  it('passes the documented arguments to the handler', async () => {
    let seen: JobContext | undefined;
    const job = aJob({ status: 'RUNNING', payload: { to: 'a' }, attempts: 1, fence: 7, queue: 'mails' });
    registry.register('work', (payload: unknown, context: JobContext) => {
      assert.equal(payload, job.payload);
      seen = context;
    });
    await executor.run(job).attempt;
    assert.ok(seen !== undefined);
    const { id, taskType, queue, attempt, attempts, fence, payload, status, signal } = seen;
    assert.deepEqual(
      { id, taskType, queue, attempt, attempts, fence, payload, status, aborted: signal.aborted },
      {
        id: job._id,
        taskType: 'work',
        queue: 'mails',
        attempt: 2,
        attempts: 1,
        fence: 7,
        payload: { to: 'a' },
        status: 'RUNNING',
        aborted: false,
      },
    );
    assert.equal(await seen.reportProgress(50), true);
    assert.deepEqual(progress, [[job._id, 50, null]]);
  });

  it('uses the retries of the job, then of the handler, then of the scheduler', async () => {
    const settings = { retries: { base: 2000, max: 5 } };
    const { outcome } = await attemptOf(
      throwing(new Error('boom')),
      { attempts: 2, retries: { base: 3000 } },
      settings,
    );
    assert.deepEqual(outcome.kind === 'retry' && outcome.nextRunAt.getTime() - clock.now().getTime(), 12_000);
  });

  it('cancels or snoozes when the handler throws CancelJob or SnoozeJob', async () => {
    const cancelled = await attemptOf(() => Promise.reject(new CancelJob('done elsewhere')));
    assert.deepEqual(cancelled.outcome, { kind: 'cancelled', reason: 'done elsewhere' });
    ({ registry, executor } = anExecutor(clock));
    const snoozed = await attemptOf(() => Promise.reject(new SnoozeJob('1h')));
    assert.deepEqual(snoozed.outcome, { kind: 'snoozed', until: new Date('2026-01-01T01:00:00Z') });
  });

  it('counts a missing handler as a failed attempt', async () => {
    const { outcome } = await executor.run(aJob({ status: 'RUNNING', taskType: 'unknown' })).attempt;
    assert.equal(outcome.kind, 'retry');
  });

  describe('never rejects when the handler throws', () => {
    const fail = throwing(new Error('no'));
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    const hostile = new Error('x');
    Object.defineProperty(hostile, 'message', { get: fail });
    for (const [title, thrown] of [
      ['undefined', undefined],
      ['null', null],
      ['text', 'text'],
      ['a symbol', Symbol('s')],
      ['a proxy that throws at every access', new Proxy({}, { get: fail, has: fail, getPrototypeOf: fail })],
      ['a revoked proxy', revoked.proxy],
      ['an object that cannot be shown', { toString: fail, toJSON: fail, [Symbol.toPrimitive]: fail }],
      ['an object without a prototype', Object.create(null)],
      ['an error whose message cannot be read', hostile],
      ['a function', fail],
    ] as [string, unknown][]) {
      it(title, async () => {
        const { outcome } = await attemptOf(throwing(thrown));
        assert.equal(outcome.kind, 'retry');
        assert.ok(outcome.error instanceof Error);
      });
    }

    it('a thenable that throws', async () => {
      const { outcome } = await attemptOf(() => ({ then: fail }));
      assert.equal(outcome.kind, 'retry');
    });
  });

  describe('after the timeout', () => {
    it('fails the attempt of a handler that reacts to its signal', async () => {
      const { attempt, handlerEnded } = start(untilAborted);
      clock.advance(9999);
      assert.equal(await currentValue(attempt), 'pending');
      clock.advance(1);
      const { outcome, isStuck, duration } = await attempt;
      await handlerEnded;
      assert.equal(outcome.kind, 'retry');
      assert.equal((outcome.error as { code?: string }).code, 'JOB_TIMEOUT');
      assert.deepEqual([isStuck, duration], [false, 10_000]);
      assert.equal(clock.sleepers, 0);
    });

    it('reports a handler that ignores its signal as stuck after the grace time', async () => {
      const { promise, fire } = signal();
      const { attempt, handlerEnded } = start(() => promise);
      clock.advance(10_000);
      assert.equal(await currentValue(attempt), 'pending');
      clock.advance(499);
      assert.equal(await currentValue(attempt), 'pending');
      clock.advance(1);
      const { outcome, isStuck } = await attempt;
      assert.equal(outcome.kind, 'retry');
      assert.equal(isStuck, true);
      assert.equal(await currentValue(handlerEnded), 'pending', 'its slot stays occupied');
      fire();
      await handlerEnded;
    });

    it('does not accept the result of a handler that returned because of its signal', async () => {
      const returning: Handler = (_, job) =>
        new Promise((resolve) => {
          job.signal.addEventListener('abort', () => resolve('partly done'));
        });
      const { attempt } = start(returning);
      clock.advance(10_000);
      assert.equal((await attempt).outcome.kind, 'retry');
    });

    for (const [owner, fields, settings, timeout] of [
      ['of the job', { timeout: 100 }, { timeout: 200 }, 100],
      ['of the handler', {}, { timeout: 200 }, 200],
      ['of the scheduler', {}, {}, 10_000],
    ] as const) {
      it(`uses the timeout ${owner}`, async () => {
        const { attempt } = start(untilAborted, fields, settings);
        clock.advance(timeout - 1);
        assert.equal(await currentValue(attempt), 'pending');
        clock.advance(1);
        assert.equal((await attempt).outcome.kind, 'retry');
      });
    }
  });

  describe('with a maxRunningTime', () => {
    const at = new Date('2026-01-01T00:00:00Z');

    it('ends the job when all attempts together exceed it', async () => {
      const firstStartedAt = new Date(at.getTime() - 3000);
      const { attempt } = start(untilAborted, { maxRunningTime: 5000, firstStartedAt });
      clock.advance(1999);
      assert.equal(await currentValue(attempt), 'pending');
      clock.advance(1);
      const { outcome } = await attempt;
      assert.equal(outcome.kind, 'failed');
      assert.equal((outcome.error as { code?: string }).code, 'JOB_RAN_TOO_LONG');
    });

    it('runs nothing when it is already exceeded', async () => {
      const firstStartedAt = new Date(at.getTime() - 5000);
      const { outcome } = await attemptOf(() => assert.fail('must not run'), {
        maxRunningTime: 5000,
        firstStartedAt,
      });
      assert.equal(
        outcome.kind === 'failed' && (outcome.error as { code?: string }).code,
        'JOB_RAN_TOO_LONG',
      );
    });

    it('uses the timeout of the attempt when that comes first', async () => {
      const { attempt } = start(untilAborted, { maxRunningTime: 60_000 });
      clock.advance(10_000);
      const { outcome } = await attempt;
      assert.equal(outcome.kind === 'retry' && (outcome.error as { code?: string }).code, 'JOB_TIMEOUT');
    });
  });

  describe('when it is aborted', () => {
    for (const [kind, outcome] of [
      ['cancelled', { kind: 'cancelled', reason: 'because' }],
      ['lockLost', { kind: 'released' }],
      ['shutdown', { kind: 'released' }],
    ] as const) {
      it(`by ${kind}, passes the reason to the handler and returns ${outcome.kind}`, async () => {
        let reason: unknown;
        const execution = start((_, job) => {
          job.signal.addEventListener('abort', () => {
            reason = job.signal.reason;
          });
          return untilAborted(_, job);
        });
        await flushEventLoop();
        const error = new Error('because');
        execution.abort(kind, error);
        assert.deepEqual((await execution.attempt).outcome, outcome);
        assert.equal(reason, error);
        assert.equal(clock.sleepers, 0);
      });
    }

    it('keeps the first reason', async () => {
      const { promise, fire } = signal();
      const execution = start(() => promise);
      execution.abort('cancelled', new Error('first'));
      execution.abort('lockLost', new Error('second'));
      clock.advance(499);
      await flushEventLoop();
      fire();
      assert.deepEqual((await execution.attempt).outcome, { kind: 'cancelled', reason: 'first' });
    });

    it('does not change an attempt that has ended', async () => {
      let signal: AbortSignal | undefined;
      const execution = start((_, job) => void (signal = job.signal));
      const { outcome } = await execution.attempt;
      execution.abort('cancelled', new Error('too late'));
      assert.equal(outcome.kind, 'completed');
      assert.equal(signal?.aborted, false);
    });

    it('adds no grace time at a shutdown', async () => {
      const execution = start(never);
      execution.abort('shutdown', new Error('stops'));
      clock.advance(3000);
      assert.equal(await currentValue(execution.attempt), 'pending');
    });
  });

  describe('with a schema', () => {
    const schema = z.object({ n: z.string().transform(Number) });

    it('passes the value of the schema to the handler, next to the stored payload', async () => {
      const handler: Handler = (payload, job) => [payload, job.payload];
      const { outcome } = await attemptOf(handler, { payload: { n: '7' } }, { schema });
      assert.deepEqual(outcome, { kind: 'completed', result: [{ n: 7 }, { n: '7' }] });
    });

    it('fails a job with an invalid payload for good without running it', async () => {
      const { outcome } = await attemptOf(
        () => assert.fail('must not run'),
        { payload: { n: 7 } },
        { schema },
      );
      assert.equal(outcome.kind, 'failed');
      assert.match(outcome.error.message, /does not match its schema:\n {2}- payload\.n: /);
    });

    it('counts a schema that throws as a failed attempt, which is retried', async () => {
      const validate = (): never => {
        throw new Error('broken schema');
      };
      const broken = { '~standard': { version: 1, vendor: 'test', validate } };
      const { outcome } = await attemptOf(() => 1, {}, { schema: broken });
      assert.equal(outcome.kind === 'retry' && outcome.error.message, 'broken schema');
    });
  });

  describe('keeps the log lines of the attempt', () => {
    it('in order, as text', async () => {
      const { log } = await attemptOf((_, job) => {
        job.log('first');
        job.log(2 as unknown as string);
      });
      assert.deepEqual(log, ['first', '2']);
    });

    it('up to a thousand, and notes that there were more', async () => {
      const { log } = await attemptOf((_, job) => {
        for (let i = 0; i < 5000; i++) job.log(`line ${i}`);
      });
      assert.equal(log.length, 1001);
      assert.deepEqual(log.slice(-2), ['line 999', '… (more than 1000 lines)']);
    });

    it('truncated at 4 KiB each', async () => {
      const { log } = await attemptOf((_, job) => job.log('€'.repeat(5000)));
      assert.ok(Buffer.byteLength(log[0] ?? '') <= 4096);
      assert.match(log[0] ?? '', /^€+… \(cut\)$/);
    });

    it('without lines written after its end', async () => {
      let late: JobContext | undefined;
      const { log } = await attemptOf((_, job) => void (late = job));
      late?.log('too late');
      assert.deepEqual(log, []);
    });
  });
});
