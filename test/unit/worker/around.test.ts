import assert from 'node:assert/strict';
import { z } from 'zod';
import { resolveOptions } from '../../../src/config/options.js';
import { CancelJob, SnoozeJob } from '../../../src/domain/control-flow.js';
import { ChronosError } from '../../../src/domain/errors.js';
import type { JobDocument } from '../../../src/domain/job.js';
import type { AbortKind, Outcome } from '../../../src/domain/outcome.js';
import { conclude, refusal, type Around } from '../../../src/worker/around.js';
import type { JobContext } from '../../../src/worker/handler.js';
import { HandlerRegistry } from '../../../src/worker/handler-registry.js';
import { JobExecutor, type Attempt, type Execution } from '../../../src/worker/job-executor.js';
import { aJob } from '../../support/a-job.js';
import { signal } from '../../support/events.js';
import { ManualClock } from '../../support/manual-clock.js';
import { turns } from '../../support/turns.js';
import { aContext } from '../built-in/context.js';

const NOTHING: Around = { when: [], skip: [], before: [], onSuccess: [], onError: [], after: [] };
const job = aContext();
const noHookFails = { begins: (): void => undefined, failed: (): never => assert.fail('no hook failed') };

describe('refusal', () => {
  const asked: string[] = [];
  const says = (name: string, answer: boolean) => (): boolean => {
    asked.push(name);
    return answer;
  };

  beforeEach(() => {
    asked.length = 0;
  });

  it('J4 without filters there is none', async () => {
    assert.equal(await refusal(NOTHING, null, job), undefined);
  });

  it('J4 every when must hold; the first that does not ends the questions', async () => {
    const when = [says('a', true), says('b', false), says('c', true)];
    assert.equal(await refusal({ ...NOTHING, when }, null, job), 'when() number 2 does not hold');
    assert.deepEqual(asked, ['a', 'b']);
  });

  it('J4 any skip skips; the first that holds ends the questions', async () => {
    const skip = [says('a', false), says('b', true), says('c', true)];
    assert.equal(await refusal({ ...NOTHING, skip }, null, job), 'skip() number 2 holds');
    assert.deepEqual(asked, ['a', 'b']);
  });

  it('J4 both kinds: every when is asked before any skip', async () => {
    const around = { ...NOTHING, when: [says('w1', true), says('w2', true)], skip: [says('s1', false)] };
    assert.equal(await refusal(around, null, job), undefined);
    assert.deepEqual(asked, ['w1', 'w2', 's1']);
  });

  it('J4 the reason names a filter that has a name', async () => {
    function isProduction(): boolean {
      return false;
    }
    const diskIsFull = (): boolean => true;
    assert.equal(
      await refusal({ ...NOTHING, when: [isProduction] }, null, job),
      'when(isProduction) does not hold',
    );
    assert.equal(await refusal({ ...NOTHING, skip: [diskIsFull] }, null, job), 'skip(diskIsFull) holds');
  });

  it('J4 filters are given the args and the job, and may be asynchronous', async () => {
    const seen: unknown[] = [];
    const when = [
      async (args: unknown, context: JobContext) => {
        await turns(1);
        return seen.push(args, context) > 0;
      },
    ];
    assert.equal(await refusal({ ...NOTHING, when, skip: [async () => false] }, { n: 1 }, job), undefined);
    assert.deepEqual(seen, [{ n: 1 }, job]);
  });

  it('J4 what a filter throws is not an answer', async () => {
    const when = [() => Promise.reject(new Error('api is down'))];
    await assert.rejects(refusal({ ...NOTHING, when }, null, job), /api is down/);
  });
});

describe('conclude', () => {
  const error = new Error('boom');
  const OUTCOMES: [Outcome, string[]][] = [
    [{ kind: 'completed', result: 7 }, ['onSuccess', 'after']],
    [{ kind: 'retry', error, nextRunAt: new Date(0) }, ['onError', 'after']],
    [{ kind: 'failed', error }, ['onError', 'after']],
    [{ kind: 'cancelled', reason: 'enough' }, ['after']],
    [{ kind: 'snoozed', until: new Date(0) }, ['after']],
    [{ kind: 'givenBack' }, ['after']],
  ];
  for (const [outcome, expected] of OUTCOMES) {
    it(`J5 after an attempt that was ${outcome.kind}: ${expected.join(', ')}`, async () => {
      const calls: [string, unknown[]][] = [];
      const note =
        (name: string) =>
        (...args: unknown[]): number =>
          calls.push([name, args]);
      const around = {
        ...NOTHING,
        before: [note('before')],
        onSuccess: [note('onSuccess')],
        onError: [note('onError')],
        after: [note('after')],
      };
      await conclude(around, outcome, { n: 1 }, job, noHookFails);
      const args = { onSuccess: [{ n: 1 }, job, 7], onError: [error, { n: 1 }, job], after: [{ n: 1 }, job] };
      assert.deepEqual(
        calls,
        expected.map((name) => [name, args[name as keyof typeof args]]),
      );
    });
  }

  it('J5 several of a kind run one after the other, in the order they were added', async () => {
    const calls: string[] = [];
    const slow = (name: string) => async (): Promise<void> => {
      calls.push(`${name} starts`);
      await turns(2);
      calls.push(`${name} ends`);
    };
    const around = {
      ...NOTHING,
      onSuccess: [slow('one'), slow('two')],
      after: [slow('three'), slow('four')],
    };
    await conclude(around, { kind: 'completed', result: 1 }, null, job, noHookFails);
    assert.deepEqual(
      calls,
      ['one', 'two', 'three', 'four'].flatMap((name) => [`${name} starts`, `${name} ends`]),
    );
  });

  it('J5 one that throws is reported, and keeps no other from running', async () => {
    const reported: [string, string][] = [];
    const calls: string[] = [];
    const throwing = (what: unknown) => (): never => {
      throw what;
    };
    const around = {
      ...NOTHING,
      onError: [
        throwing(new Error('first')),
        () => calls.push('second'),
        () => Promise.reject(new Error('third')),
      ],
      after: [throwing('text'), () => calls.push('last')],
    };
    await conclude(around, { kind: 'failed', error }, null, job, {
      ...noHookFails,
      failed: (hook, { message }) => reported.push([hook, message]),
    });
    assert.deepEqual(calls, ['second', 'last']);
    assert.deepEqual(reported, [
      ['onError', 'first'],
      ['onError', 'third'],
      ['after', 'text'],
    ]);
  });

  it('J5 tells which one is at work, before it begins', async () => {
    const told: string[] = [];
    const part = (name: string) => async (): Promise<void> => {
      told.push(name);
      await turns(1);
      if (name === 'one') throw new Error('no');
    };
    const around = { ...NOTHING, onSuccess: [part('one'), part('two')], after: [part('three')] };
    await conclude(around, { kind: 'completed', result: 1 }, null, job, {
      begins: (hook) => told.push(`${hook} begins`),
      failed: (hook) => told.push(`${hook} failed`),
    });
    assert.deepEqual(told, [
      ...['onSuccess begins', 'one', 'onSuccess failed'],
      ...['onSuccess begins', 'two'],
      ...['after begins', 'three'],
    ]);
  });

  it('J5 whatever is thrown, it does not reject', async () => {
    const refuse = (): never => {
      throw new Error('no');
    };
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    const reported: Error[] = [];
    for (const thrown of [
      undefined,
      null,
      Symbol('s'),
      revoked.proxy,
      { toString: refuse, toJSON: refuse },
    ]) {
      const after = [
        (): never => {
          throw thrown as Error;
        },
      ];
      await conclude({ ...NOTHING, after }, { kind: 'givenBack' }, null, job, {
        ...noHookFails,
        failed: (_, problem) => reported.push(problem),
      });
    }
    assert.equal(reported.length, 5);
    for (const problem of reported) assert.ok(problem instanceof Error);
  });
});

describe('JobExecutor, around a handler', () => {
  const options = resolveOptions({
    uri: 'mongodb://unused/app',
    timeout: 10_000,
    timeoutGrace: 500,
    retries: { max: 2, base: 1000, jitter: 'none' },
  });
  type Part = (...args: never[]) => unknown;

  let clock: ManualClock;
  let registry: HandlerRegistry;
  let calls: string[];
  let failed: [string, string][];
  let executor: JobExecutor;

  beforeEach(() => {
    clock = new ManualClock();
    registry = new HandlerRegistry();
    calls = [];
    failed = [];
    executor = new JobExecutor({
      registry,
      clock,
      options,
      random: () => 0.5,
      saveProgress: async () => true,
      onHookFailed: (_, hook, { message }) => failed.push([hook, message]),
    });
  });

  /** Notes its name, then does what it is told to. */
  function part(name: string, fn: Part = () => undefined): Part {
    return (...args) => {
      calls.push(name);
      return fn(...args);
    };
  }

  function start(
    handler: Part,
    around: Partial<Record<keyof Around, Part[]>> = {},
    fields: Partial<JobDocument> = {},
    settings: object = {},
  ): Execution {
    registry.register('work', part('handler', handler), settings);
    const noted = {
      before: [part('before')],
      onSuccess: [part('onSuccess')],
      onError: [part('onError')],
      after: [part('after')],
    };
    registry.define('work', {
      options: {},
      around: { ...NOTHING, ...noted, ...around } as unknown as Around,
      defaults: { payload: null, queue: null, priority: 100, maxRunningTime: null },
      handledBy: undefined,
      isServed: true,
    });
    return executor.run(aJob({ status: 'RUNNING', ...fields }));
  }

  /** What a promise has come to so far. */
  async function soFar<T>(promise: Promise<T>): Promise<T | 'pending'> {
    await turns();
    return Promise.race([promise, Promise.resolve('pending' as const)]);
  }

  const untilAborted = (_: unknown, { signal: aborting }: JobContext): Promise<never> =>
    new Promise((_resolve, reject) => {
      aborting.addEventListener('abort', () => reject(aborting.reason as Error));
    });
  const forEver = (): Promise<never> => new Promise(() => undefined);
  const throwing = (thrown: unknown) => (): never => {
    throw thrown;
  };

  describe('keeps the order of the hooks', () => {
    const PATHS: [string, Part, Partial<JobDocument>, Outcome['kind'], string[]][] = [
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
        { attempts: 1 },
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
      it(`J5 ${title}`, async () => {
        const { attempt, handled } = start(handler, {}, fields);
        assert.equal((await attempt).outcome.kind, kind);
        await handled;
        assert.deepEqual(calls, expected);
        assert.deepEqual(failed, []);
        assert.equal(clock.sleepers, 0, 'no timer may be left');
      });
    }

    it('J5 a timeout that the handler heeds', async () => {
      const { attempt } = start(untilAborted);
      await turns();
      clock.advance(10_000);
      assert.equal((await attempt).outcome.kind, 'retry');
      assert.deepEqual(calls, ['before', 'handler', 'onError', 'after']);
    });

    it('J5 a timeout that the handler ignores: the hooks follow after the grace, and once', async () => {
      const { promise, fire } = signal();
      const { attempt, handled } = start(() => promise);
      await turns();
      clock.advance(10_000);
      assert.equal(await soFar(attempt), 'pending');
      assert.deepEqual(calls, ['before', 'handler']);
      clock.advance(500);
      const { outcome, stuck } = await attempt;
      assert.deepEqual([outcome.kind, stuck], ['retry', true]);
      fire();
      await handled;
      assert.deepEqual(calls, ['before', 'handler', 'onError', 'after']);
    });

    for (const [kind, outcome] of [
      ['cancelled', 'cancelled'],
      ['lockLost', 'givenBack'],
      ['shutdown', 'givenBack'],
      ['ranTooLong', 'failed'],
    ] as [AbortKind, Outcome['kind']][]) {
      it(`J5 aborted from outside: ${kind}`, async () => {
        const execution = start(untilAborted);
        await turns();
        execution.abort(kind, new Error('because'));
        assert.equal((await execution.attempt).outcome.kind, outcome);
        const hooks = outcome === 'failed' ? ['onError', 'after'] : ['after'];
        assert.deepEqual(calls, ['before', 'handler', ...hooks]);
      });
    }

    it('J5 a payload that does not fit its schema: the attempt failed before anything ran', async () => {
      const schema = z.object({ n: z.number() });
      const { outcome } = await start(() => 1, {}, { payload: { n: 'x' } }, { schema }).attempt;
      assert.equal(outcome.kind, 'failed');
      assert.deepEqual(calls, ['onError', 'after']);
    });

    it('Y6 J5 a job that has run too long already: the same', async () => {
      const firstStartedAt = new Date(clock.now().getTime() - 5000);
      const { attempt } = start(() => 1, {}, { maxRunningTime: 5000, firstStartedAt });
      assert.equal((await attempt).outcome.kind, 'failed');
      assert.deepEqual(calls, ['onError', 'after']);
    });
  });

  describe('before', () => {
    it('J5 one that throws fails the attempt: no handler, no further before', async () => {
      const before = [part('one'), part('two', throwing(new Error('not ready'))), part('three')];
      const { outcome } = await start(() => 1, { before }).attempt;
      assert.equal(outcome.kind === 'retry' && outcome.error.message, 'not ready');
      assert.deepEqual(calls, ['one', 'two', 'onError', 'after']);
      assert.deepEqual(failed, [], 'it is the outcome, not a report');
    });

    it('J5 one that rejects on the last attempt ends the job', async () => {
      const before = [part('before', () => Promise.reject(new Error('not ready')))];
      assert.equal((await start(() => 1, { before }, { attempts: 1 }).attempt).outcome.kind, 'failed');
    });

    it('J5 it may cancel and snooze as a handler may', async () => {
      const { outcome } = await start(() => 1, { before: [throwing(new CancelJob('enough'))] }).attempt;
      assert.deepEqual(outcome, { kind: 'cancelled', reason: 'enough' });
      assert.deepEqual(calls, ['after']);
    });

    it('J5 they are awaited, one after the other', async () => {
      const { promise, fire } = signal();
      const { attempt } = start(() => 1, { before: [part('one', () => promise), part('two')] });
      assert.equal(await soFar(attempt), 'pending');
      assert.deepEqual(calls, ['one']);
      fire();
      await attempt;
      assert.deepEqual(calls, ['one', 'two', 'handler', 'onSuccess', 'after']);
    });

    it('C5 J5 one that never ends falls under the timeout of the attempt', async () => {
      const { attempt } = start(() => 1, { before: [part('before', forEver)] });
      await turns();
      clock.advance(10_000);
      await turns();
      clock.advance(500);
      const { outcome, stuck } = await attempt;
      assert.deepEqual([outcome.kind, stuck], ['retry', true]);
      assert.deepEqual(calls, ['before', 'onError', 'after']);
    });

    for (const kind of ['cancelled', 'shutdown', 'lockLost'] as const) {
      it(`J5 the handler does not start any more when it was aborted meanwhile: ${kind}`, async () => {
        const { promise, fire } = signal();
        const execution = start(() => 1, { before: [part('before', () => promise), part('next')] });
        await turns();
        execution.abort(kind, new Error('because'));
        fire();
        await execution.attempt;
        assert.deepEqual(calls, ['before', 'after']);
      });
    }

    it('C5 J5 nor after its timeout, when the attempt has long been judged', async () => {
      const { promise, fire } = signal();
      const { attempt, handled } = start(() => 1, { before: [part('before', () => promise)] });
      await turns();
      clock.advance(10_000);
      await turns();
      clock.advance(500);
      assert.equal((await attempt).stuck, true);
      fire();
      await handled;
      assert.deepEqual(calls, ['before', 'onError', 'after']);
    });
  });

  describe('filters', () => {
    it('J4 one that says no: no hook, no handler', async () => {
      const { attempt, handled } = start(() => 1, { when: [part('when', () => false)] });
      assert.deepEqual((await attempt).outcome, { kind: 'skipped', reason: 'when() number 1 does not hold' });
      await handled;
      assert.deepEqual(calls, ['when']);
      assert.equal(clock.sleepers, 0);
    });

    it('J4 they are asked before any hook', async () => {
      await start(() => 1, { when: [part('when', () => true)], skip: [part('skip', () => false)] }).attempt;
      assert.deepEqual(calls, ['when', 'skip', 'before', 'handler', 'onSuccess', 'after']);
    });

    it('J4 J5 one that throws fails the attempt', async () => {
      const { outcome } = await start(() => 1, { when: [part('when', throwing(new Error('api is down')))] })
        .attempt;
      assert.equal(outcome.kind === 'retry' && outcome.error.message, 'api is down');
      assert.deepEqual(calls, ['when', 'onError', 'after']);
    });

    it('J4 they see what the schema made of the payload', async () => {
      const seen: unknown[] = [];
      const see: Part = (payload: unknown) => seen.push(payload) > 0;
      const schema = z.object({ n: z.string().transform(Number) });
      const around = { when: [see], before: [see], onSuccess: [see], after: [see] };
      await start(() => 1, around, { payload: { n: '7' } }, { schema }).attempt;
      assert.deepEqual(seen, [{ n: 7 }, { n: 7 }, { n: 7 }, { n: 7 }]);
    });

    for (const kind of ['cancelled', 'shutdown', 'lockLost'] as const) {
      it(`J4 nothing starts any more when it was aborted meanwhile: ${kind}`, async () => {
        const { promise, fire } = signal<boolean>();
        const execution = start(() => 1, { when: [part('when', () => promise)] });
        await turns();
        execution.abort(kind, new Error('because'));
        fire(true);
        await execution.attempt;
        assert.equal(calls.includes('handler'), false, calls.join());
        assert.equal(calls.includes('before'), false, calls.join());
      });
    }

    it('C5 J4 nothing starts after an answer that came too late', async () => {
      const { promise, fire } = signal<boolean>();
      const { attempt, handled } = start(() => 1, { when: [part('when', () => promise)] });
      await turns();
      clock.advance(10_000);
      await turns();
      clock.advance(500);
      const { outcome, stuck } = await attempt;
      assert.deepEqual([outcome.kind, stuck], ['retry', true]);
      fire(true);
      await handled;
      assert.deepEqual(calls, ['when', 'onError', 'after']);
    });
  });

  describe('a hook that never ends', () => {
    async function afterTheGrace(execution: Execution): Promise<Attempt> {
      assert.equal(await soFar(execution.attempt), 'pending');
      clock.advance(499);
      assert.equal(await soFar(execution.attempt), 'pending');
      clock.advance(1);
      return execution.attempt;
    }

    it('J5 keeps the outcome waiting for timeoutGrace, and no longer', async () => {
      const execution = start(() => 7, { after: [part('after', forEver)] });
      const { outcome, stuck, finishedAt, duration } = await afterTheGrace(execution);
      assert.deepEqual(outcome, { kind: 'completed', result: 7 });
      assert.equal(stuck, false);
      assert.deepEqual([finishedAt.getTime() - clock.now().getTime(), duration], [0, 500]);
      assert.equal(failed.length, 1);
      assert.equal(failed[0]?.[0], 'after');
      assert.match(failed[0]?.[1] ?? '', /500 ms/);
      await execution.handled;
      assert.equal(clock.sleepers, 0);
    });

    for (const [hook, handler] of [
      ['onSuccess', () => 7],
      ['onError', throwing(new Error('boom'))],
    ] as [keyof Around, Part][]) {
      it(`J5 is reported by its name: ${hook}`, async () => {
        await afterTheGrace(start(handler, { [hook]: [part(hook, forEver)] }));
        assert.deepEqual(
          failed.map(([name]) => name),
          [hook],
        );
      });
    }

    it('J5 the hooks share the time', async () => {
      const slow = (): Promise<void> => clock.sleep(300);
      const execution = start(() => 7, {
        onSuccess: [part('one', slow)],
        after: [part('two', slow), part('three')],
      });
      await turns();
      clock.advance(300);
      await turns();
      clock.advance(199);
      assert.equal(await soFar(execution.attempt), 'pending');
      clock.advance(1);
      await execution.attempt;
      assert.equal(failed.length, 1);
    });

    it('J5 one that ends in time leaves no timer behind', async () => {
      const execution = start(() => 7, { after: [part('after', () => clock.sleep(300))] });
      await turns();
      clock.advance(300);
      await execution.attempt;
      assert.deepEqual(failed, []);
      assert.equal(clock.sleepers, 0);
    });
  });

  describe('what hooks do', () => {
    it('J5 changes no outcome: not by throwing, not by what control flow they throw', async () => {
      for (const thrown of [
        new Error('x'),
        new CancelJob('x'),
        new SnoozeJob('1h'),
        new ChronosError('JOB_TIMEOUT', 'x'),
      ]) {
        registry = new HandlerRegistry();
        executor = new JobExecutor({
          registry,
          clock,
          options,
          random: () => 0.5,
          saveProgress: async () => true,
          onHookFailed: (_, hook) => failed.push([hook, 'x']),
        });
        const { outcome } = await start(() => 7, { onSuccess: [throwing(thrown)], after: [throwing(thrown)] })
          .attempt;
        assert.deepEqual(outcome, { kind: 'completed', result: 7 });
      }
      assert.equal(failed.length, 8);
    });

    it('J5 a line that a hook logs belongs to the attempt', async () => {
      const log = (line: string) => (_: unknown, context: JobContext) => context.log(line);
      const hooks = { before: [log('before') as Part], after: [log('after') as Part] };
      assert.deepEqual((await start(() => 1, hooks).attempt).log, ['before', 'after']);
    });

    it('J5 they see why the attempt was aborted', async () => {
      let reason: unknown;
      const after = [
        (_: unknown, { signal: aborted }: JobContext): void => {
          reason = aborted.reason;
        },
      ];
      const execution = start(untilAborted, { after });
      await turns();
      const because = new Error('because');
      execution.abort('cancelled', because);
      await execution.attempt;
      assert.equal(reason, because);
    });

    it('J5 an abort that comes while they run is too late', async () => {
      const { promise, fire } = signal();
      const execution = start(() => 7, { onSuccess: [part('onSuccess', () => promise)] });
      await turns();
      execution.abort('cancelled', new Error('too late'));
      fire();
      assert.deepEqual((await execution.attempt).outcome, { kind: 'completed', result: 7 });
      assert.deepEqual(calls, ['before', 'handler', 'onSuccess', 'after']);
    });
  });
});
