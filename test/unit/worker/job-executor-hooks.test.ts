import assert from 'node:assert/strict';
import { z } from 'zod';
import { ChronosError } from '../../../src/domain/errors.js';
import { CancelJob, SnoozeJob } from '../../../src/domain/job/control-flow.js';
import type { JobDocument } from '../../../src/domain/job/job.js';
import type { AbortKind, Outcome } from '../../../src/domain/job/outcome.js';
import type { HandlerRegistry } from '../../../src/handlers/handler-registry.js';
import type { JobContext } from '../../../src/domain/job/handler.js';
import type { HandlerHooks } from '../../../src/handlers/hooks.js';
import type { Attempt, Execution, JobExecutor } from '../../../src/worker/job-executor.js';
import { aJob } from '../../support/factories/job.js';
import { signal } from '../../support/events.js';
import { ManualClock } from '../../support/manual-clock.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { throwing, untilAborted } from '../../support/handlers/recording-definition.js';
import { anExecutor, currentValue, never } from '../../support/job-executor.js';

const NO_HOOKS: HandlerHooks = { when: [], skip: [], before: [], onSuccess: [], onError: [], after: [] };

describe('JobExecutor with hooks', () => {
  type Step = (...args: never[]) => unknown;

  let clock: ManualClock;
  let registry: HandlerRegistry;
  let calls: string[];
  let failed: [string, string][];
  let executor: JobExecutor;

  beforeEach(() => {
    clock = new ManualClock();
    calls = [];
    failed = [];
    ({ registry, executor } = anExecutor(clock));
  });

  /** Records its name, then calls `fn`. */
  function step(name: string, fn: Step = () => undefined): Step {
    return (...args) => {
      calls.push(name);
      return fn(...args);
    };
  }

  function start(
    handler: Step,
    hooks: Partial<Record<keyof HandlerHooks, Step[]>> = {},
    fields: Partial<JobDocument> = {},
    settings: object = {},
  ): Execution {
    registry.register('work', step('handler', handler), settings);
    const recording = {
      before: [step('before')],
      onSuccess: [step('onSuccess')],
      onError: [step('onError')],
      after: [step('after')],
    };
    registry.define('work', {
      options: {},
      hooks: { ...NO_HOOKS, ...recording, ...hooks } as unknown as HandlerHooks,
      defaults: { payload: null, queue: null, priority: 100, maxRunningTime: null, expiresIn: null },
      handledBy: undefined,
      isServed: true,
      isSingleInstance: false,
    });
    const execution = executor.run(aJob({ status: 'RUNNING', ...fields }));
    const attempt = execution.attempt.then((ended) => {
      failed.push(...ended.hookErrors.map(({ hook, error }): [string, string] => [hook, error.message]));
      return ended;
    });
    return { ...execution, attempt };
  }

  describe('runs hooks in order', () => {
    const PATHS: [string, Step, Partial<JobDocument>, Outcome['kind'], string[]][] = [
      ['success', () => 7, {}, 'completed', ['before', 'handler', 'onSuccess', 'after']],
      [
        'a failure that is retried',
        throwing(new Error('boom')),
        {},
        'retry',
        ['before', 'handler', 'onError', 'after'],
      ],
      [
        'the last failure',
        throwing('boom'),
        { attempts: 2 },
        'failed',
        ['before', 'handler', 'onError', 'after'],
      ],
      [
        'a handler that cancels',
        throwing(new CancelJob('enough')),
        {},
        'cancelled',
        ['before', 'handler', 'after'],
      ],
      [
        'a handler that snoozes',
        throwing(new SnoozeJob('1h')),
        {},
        'snoozed',
        ['before', 'handler', 'after'],
      ],
    ];
    for (const [title, handler, fields, kind, expected] of PATHS) {
      it(`after ${title} [J5]`, async () => {
        const { attempt, handlerEnded } = start(handler, {}, fields);
        assert.equal((await attempt).outcome.kind, kind);
        await handlerEnded;
        assert.deepEqual(calls, expected);
        assert.deepEqual(failed, []);
        assert.equal(clock.sleepers, 0, 'no timer may be left');
      });
    }

    it('after a timeout that the handler reacts to [J5]', async () => {
      const { attempt } = start(untilAborted);
      await flushEventLoop();
      clock.advance(10_000);
      assert.equal((await attempt).outcome.kind, 'retry');
      assert.deepEqual(calls, ['before', 'handler', 'onError', 'after']);
    });

    it('once after the grace time when the handler ignores its timeout [J5]', async () => {
      const { promise, fire } = signal();
      const { attempt, handlerEnded } = start(() => promise);
      await flushEventLoop();
      clock.advance(10_000);
      assert.equal(await currentValue(attempt), 'pending');
      assert.deepEqual(calls, ['before', 'handler']);
      clock.advance(500);
      const { outcome, isStuck } = await attempt;
      assert.deepEqual([outcome.kind, isStuck], ['retry', true]);
      fire();
      await handlerEnded;
      assert.deepEqual(calls, ['before', 'handler', 'onError', 'after']);
    });

    for (const [kind, outcome] of [
      ['cancelled', 'cancelled'],
      ['lockLost', 'released'],
      ['shutdown', 'released'],
      ['ranTooLong', 'failed'],
    ] as [AbortKind, Outcome['kind']][]) {
      it(`after an abort: ${kind} [J5]`, async () => {
        const execution = start(untilAborted);
        await flushEventLoop();
        execution.abort(kind, new Error('because'));
        assert.equal((await execution.attempt).outcome.kind, outcome);
        const hooks = outcome === 'failed' ? ['onError', 'after'] : ['after'];
        assert.deepEqual(calls, ['before', 'handler', ...hooks]);
      });
    }

    it('except when the payload does not match its schema: the attempt fails before anything runs [J5]', async () => {
      const schema = z.object({ n: z.number() });
      const { outcome } = await start(() => 1, {}, { payload: { n: 'x' } }, { schema }).attempt;
      assert.equal(outcome.kind, 'failed');
      assert.deepEqual(calls, ['onError', 'after']);
    });

    it('except when the job has exceeded its maxRunningTime [Y6] [J5]', async () => {
      const firstStartedAt = new Date(clock.now().getTime() - 5000);
      const { attempt } = start(() => 1, {}, { maxRunningTime: 5000, firstStartedAt });
      assert.equal((await attempt).outcome.kind, 'failed');
      assert.deepEqual(calls, ['onError', 'after']);
    });
  });

  describe('before', () => {
    it('fails the attempt when it throws: neither the handler nor further before hooks run [J5]', async () => {
      const before = [step('one'), step('two', throwing(new Error('not ready'))), step('three')];
      const { outcome } = await start(() => 1, { before }).attempt;
      assert.equal(outcome.kind === 'retry' && outcome.error.message, 'not ready');
      assert.deepEqual(calls, ['one', 'two', 'onError', 'after']);
      assert.deepEqual(failed, [], 'it is the outcome, not a hook error');
    });

    it('ends the job when it rejects at the last attempt [J5]', async () => {
      const before = [step('before', () => Promise.reject(new Error('not ready')))];
      assert.equal((await start(() => 1, { before }, { attempts: 2 }).attempt).outcome.kind, 'failed');
    });

    it('can cancel and snooze like a handler [J5]', async () => {
      const { outcome } = await start(() => 1, { before: [throwing(new CancelJob('enough'))] }).attempt;
      assert.deepEqual(outcome, { kind: 'cancelled', reason: 'enough' });
      assert.deepEqual(calls, ['after']);
    });

    it('is awaited, one hook after the other [J5]', async () => {
      const { promise, fire } = signal();
      const { attempt } = start(() => 1, { before: [step('one', () => promise), step('two')] });
      assert.equal(await currentValue(attempt), 'pending');
      assert.deepEqual(calls, ['one']);
      fire();
      await attempt;
      assert.deepEqual(calls, ['one', 'two', 'handler', 'onSuccess', 'after']);
    });

    it('that never ends is subject to the timeout of the attempt [C5] [J5]', async () => {
      const { attempt } = start(() => 1, { before: [step('before', never)] });
      await flushEventLoop();
      clock.advance(10_000);
      await flushEventLoop();
      clock.advance(500);
      const { outcome, isStuck } = await attempt;
      assert.deepEqual([outcome.kind, isStuck], ['retry', true]);
      assert.deepEqual(calls, ['before', 'onError', 'after']);
    });

    for (const kind of ['cancelled', 'shutdown', 'lockLost'] as const) {
      it(`does not let the handler start when the attempt was aborted in the meantime: ${kind} [J5]`, async () => {
        const { promise, fire } = signal();
        const execution = start(() => 1, { before: [step('before', () => promise), step('next')] });
        await flushEventLoop();
        execution.abort(kind, new Error('because'));
        fire();
        await execution.attempt;
        assert.deepEqual(calls, ['before', 'after']);
      });
    }

    it('does not let the handler start after the timeout of the attempt [C5] [J5]', async () => {
      const { promise, fire } = signal();
      const { attempt, handlerEnded } = start(() => 1, { before: [step('before', () => promise)] });
      await flushEventLoop();
      clock.advance(10_000);
      await flushEventLoop();
      clock.advance(500);
      assert.equal((await attempt).isStuck, true);
      fire();
      await handlerEnded;
      assert.deepEqual(calls, ['before', 'onError', 'after']);
    });
  });

  describe('filters', () => {
    it('that skip: neither hooks nor the handler run [J4]', async () => {
      const { attempt, handlerEnded } = start(() => 1, { when: [step('when', () => false)] });
      assert.deepEqual((await attempt).outcome, { kind: 'skipped', reason: 'when() number 1 is false' });
      await handlerEnded;
      assert.deepEqual(calls, ['when']);
      assert.equal(clock.sleepers, 0);
    });

    it('are evaluated before any hook [J4]', async () => {
      await start(() => 1, { when: [step('when', () => true)], skip: [step('skip', () => false)] }).attempt;
      assert.deepEqual(calls, ['when', 'skip', 'before', 'handler', 'onSuccess', 'after']);
    });

    it('that throw fail the attempt [J4] [J5]', async () => {
      const { outcome } = await start(() => 1, { when: [step('when', throwing(new Error('api is down')))] })
        .attempt;
      assert.equal(outcome.kind === 'retry' && outcome.error.message, 'api is down');
      assert.deepEqual(calls, ['when', 'onError', 'after']);
    });

    it('receive the payload that the schema returned [J4]', async () => {
      const seen: unknown[] = [];
      const record: Step = (payload: unknown) => seen.push(payload) > 0;
      const schema = z.object({ n: z.string().transform(Number) });
      const hooks = { when: [record], before: [record], onSuccess: [record], after: [record] };
      await start(() => 1, hooks, { payload: { n: '7' } }, { schema }).attempt;
      assert.deepEqual(seen, [{ n: 7 }, { n: 7 }, { n: 7 }, { n: 7 }]);
    });

    for (const kind of ['cancelled', 'shutdown', 'lockLost'] as const) {
      it(`start nothing when the attempt was aborted in the meantime: ${kind} [J4]`, async () => {
        const { promise, fire } = signal<boolean>();
        const execution = start(() => 1, { when: [step('when', () => promise)] });
        await flushEventLoop();
        execution.abort(kind, new Error('because'));
        fire(true);
        await execution.attempt;
        assert.equal(calls.includes('handler'), false, calls.join());
        assert.equal(calls.includes('before'), false, calls.join());
      });
    }

    it('start nothing when they return after the timeout [C5] [J4]', async () => {
      const { promise, fire } = signal<boolean>();
      const { attempt, handlerEnded } = start(() => 1, { when: [step('when', () => promise)] });
      await flushEventLoop();
      clock.advance(10_000);
      await flushEventLoop();
      clock.advance(500);
      const { outcome, isStuck } = await attempt;
      assert.deepEqual([outcome.kind, isStuck], ['retry', true]);
      fire(true);
      await handlerEnded;
      assert.deepEqual(calls, ['when', 'onError', 'after']);
    });
  });

  describe('a hook that never ends', () => {
    async function afterGraceTime(execution: Execution): Promise<Attempt> {
      assert.equal(await currentValue(execution.attempt), 'pending');
      clock.advance(499);
      assert.equal(await currentValue(execution.attempt), 'pending');
      clock.advance(1);
      return execution.attempt;
    }

    it('delays the outcome by timeoutGrace at most [J5]', async () => {
      const execution = start(() => 7, { after: [step('after', never)] });
      const { outcome, isStuck, finishedAt, duration } = await afterGraceTime(execution);
      assert.deepEqual(outcome, { kind: 'completed', result: 7 });
      assert.equal(isStuck, false);
      assert.deepEqual([finishedAt.getTime() - clock.now().getTime(), duration], [0, 500]);
      assert.equal(failed.length, 1);
      assert.equal(failed[0]?.[0], 'after');
      assert.match(failed[0]?.[1] ?? '', /500 ms/);
      await execution.handlerEnded;
      assert.equal(clock.sleepers, 0);
    });

    for (const [hook, handler] of [
      ['onSuccess', () => 7],
      ['onError', throwing(new Error('boom'))],
    ] as [keyof HandlerHooks, Step][]) {
      it(`is reported by its name: ${hook} [J5]`, async () => {
        await afterGraceTime(start(handler, { [hook]: [step(hook, never)] }));
        assert.deepEqual(
          failed.map(([name]) => name),
          [hook],
        );
      });
    }

    it('shares the grace time with the other hooks [J5]', async () => {
      const slow = (): Promise<void> => clock.sleep(300);
      const execution = start(() => 7, {
        onSuccess: [step('one', slow)],
        after: [step('two', slow), step('three')],
      });
      await flushEventLoop();
      clock.advance(300);
      await flushEventLoop();
      clock.advance(199);
      assert.equal(await currentValue(execution.attempt), 'pending');
      clock.advance(1);
      await execution.attempt;
      assert.equal(failed.length, 1);
    });

    it('leaves no timer when it ends in time [J5]', async () => {
      const execution = start(() => 7, { after: [step('after', () => clock.sleep(300))] });
      await flushEventLoop();
      clock.advance(300);
      await execution.attempt;
      assert.deepEqual(failed, []);
      assert.equal(clock.sleepers, 0);
    });
  });

  describe('hooks', () => {
    it('cannot change the outcome by throwing, not even CancelJob or SnoozeJob [J5]', async () => {
      for (const thrown of [
        new Error('x'),
        new CancelJob('x'),
        new SnoozeJob('1h'),
        new ChronosError('JOB_TIMEOUT', 'x'),
      ]) {
        ({ registry, executor } = anExecutor(clock));
        const { outcome } = await start(() => 7, { onSuccess: [throwing(thrown)], after: [throwing(thrown)] })
          .attempt;
        assert.deepEqual(outcome, { kind: 'completed', result: 7 });
      }
      assert.equal(failed.length, 8);
    });

    it('can log lines that belong to the attempt [J5]', async () => {
      const log = (line: string) => (_: unknown, context: JobContext) => context.log(line);
      const hooks = { before: [log('before') as Step], after: [log('after') as Step] };
      assert.deepEqual((await start(() => 1, hooks).attempt).log, ['before', 'after']);
    });

    it('see why the attempt was aborted [J5]', async () => {
      let reason: unknown;
      const after = [
        (_: unknown, { signal: aborted }: JobContext): void => {
          reason = aborted.reason;
        },
      ];
      const execution = start(untilAborted, { after });
      await flushEventLoop();
      const because = new Error('because');
      execution.abort('cancelled', because);
      await execution.attempt;
      assert.equal(reason, because);
    });

    it('are not affected by an abort while they run [J5]', async () => {
      const { promise, fire } = signal();
      const execution = start(() => 7, { onSuccess: [step('onSuccess', () => promise)] });
      await flushEventLoop();
      execution.abort('cancelled', new Error('too late'));
      fire();
      assert.deepEqual((await execution.attempt).outcome, { kind: 'completed', result: 7 });
      assert.deepEqual(calls, ['before', 'handler', 'onSuccess', 'after']);
    });
  });
});
