import assert from 'node:assert/strict';
import type { Outcome } from '../../../src/domain/job/outcome.js';
import type { JobContext } from '../../../src/domain/job/handler.js';
import {
  AfterHooks,
  combineHooks,
  findSkipReason,
  type HandlerHooks,
  type HookError,
} from '../../../src/handlers/hooks.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { aJobContext } from '../../support/handlers/job-context.js';
import { throwing } from '../../support/handlers/recording-definition.js';

const NOTHING: HandlerHooks = { when: [], skip: [], before: [], onSuccess: [], onError: [], after: [] };
const job = aJobContext();

/** Runs the hooks that follow a handler and returns the errors they threw. */
async function runAfterHooks(
  hooks: HandlerHooks,
  outcome: Outcome,
  payload: unknown,
  job: JobContext,
): Promise<readonly HookError[]> {
  const after = new AfterHooks(hooks, outcome, payload, job);
  await after.run();
  return after.errors;
}

describe('findSkipReason', () => {
  const evaluated: string[] = [];
  const filter = (name: string, result: boolean) => (): boolean => {
    evaluated.push(name);
    return result;
  };

  beforeEach(() => {
    evaluated.length = 0;
  });

  it('returns undefined without filters [J4]', async () => {
    assert.equal(await findSkipReason(NOTHING, null, job), undefined);
  });

  it('evaluates when() filters until one is false [J4]', async () => {
    const when = [filter('a', true), filter('b', false), filter('c', true)];
    assert.equal(await findSkipReason({ ...NOTHING, when }, null, job), 'when() number 2 is false');
    assert.deepEqual(evaluated, ['a', 'b']);
  });

  it('evaluates skip() filters until one is true [J4]', async () => {
    const skip = [filter('a', false), filter('b', true), filter('c', true)];
    assert.equal(await findSkipReason({ ...NOTHING, skip }, null, job), 'skip() number 2 is true');
    assert.deepEqual(evaluated, ['a', 'b']);
  });

  it('evaluates every when() before any skip() [J4]', async () => {
    const hooks = { ...NOTHING, when: [filter('w1', true), filter('w2', true)], skip: [filter('s1', false)] };
    assert.equal(await findSkipReason(hooks, null, job), undefined);
    assert.deepEqual(evaluated, ['w1', 'w2', 's1']);
  });

  it('includes the name of a filter that has one [J4]', async () => {
    function isProduction(): boolean {
      return false;
    }
    const diskIsFull = (): boolean => true;
    assert.equal(
      await findSkipReason({ ...NOTHING, when: [isProduction] }, null, job),
      'when(isProduction) is false',
    );
    assert.equal(
      await findSkipReason({ ...NOTHING, skip: [diskIsFull] }, null, job),
      'skip(diskIsFull) is true',
    );
  });

  it('passes the args and the job, and awaits filters [J4]', async () => {
    const seen: unknown[] = [];
    const when = [
      async (args: unknown, context: JobContext) => {
        await flushEventLoop(1);
        return seen.push(args, context) > 0;
      },
    ];
    assert.equal(
      await findSkipReason({ ...NOTHING, when, skip: [async () => false] }, { n: 1 }, job),
      undefined,
    );
    assert.deepEqual(seen, [{ n: 1 }, job]);
  });

  it('rejects when a filter throws [J4]', async () => {
    const when = [() => Promise.reject(new Error('api is down'))];
    await assert.rejects(findSkipReason({ ...NOTHING, when }, null, job), /api is down/);
  });
});

describe('combineHooks', () => {
  it('puts the hooks of a definition around those of the handler [B26]', () => {
    const lists = (name: string): HandlerHooks => {
      const hook = Object.assign(() => true, { toString: () => name });
      return {
        when: [hook],
        skip: [hook],
        before: [hook],
        onSuccess: [hook],
        onError: [hook],
        after: [hook],
      };
    };
    const combined = Object.entries<readonly unknown[]>({ ...combineHooks(lists('own'), lists('defined')) });
    assert.deepEqual(Object.fromEntries(combined.map(([kind, list]) => [kind, list.map(String)])), {
      when: ['defined', 'own'],
      skip: ['defined', 'own'],
      before: ['defined', 'own'],
      onSuccess: ['own', 'defined'],
      onError: ['own', 'defined'],
      after: ['own', 'defined'],
    });
  });

  it('returns undefined if there are none: the executor then does nothing for them [B26]', () => {
    assert.equal(combineHooks({}), undefined);
    assert.equal(combineHooks({}, NOTHING), undefined);
    assert.deepEqual(combineHooks({ after: [] }, { ...NOTHING, when: [() => true] })?.after, []);
  });
});

describe('AfterHooks', () => {
  const error = new Error('boom');
  const OUTCOMES: [Outcome, string[]][] = [
    [{ kind: 'completed', result: 7 }, ['onSuccess', 'after']],
    [{ kind: 'retry', error, nextRunAt: new Date(0) }, ['onError', 'after']],
    [{ kind: 'failed', error }, ['onError', 'after']],
    [{ kind: 'cancelled', reason: 'enough' }, ['after']],
    [{ kind: 'snoozed', until: new Date(0) }, ['after']],
    [{ kind: 'released' }, ['after']],
  ];
  for (const [outcome, expected] of OUTCOMES) {
    it(`runs ${expected.join(', ')} after the outcome ${outcome.kind} [J5]`, async () => {
      const calls: [string, unknown[]][] = [];
      const record =
        (name: string) =>
        (...args: unknown[]): number =>
          calls.push([name, args]);
      const hooks = {
        ...NOTHING,
        before: [record('before')],
        onSuccess: [record('onSuccess')],
        onError: [record('onError')],
        after: [record('after')],
      };
      assert.deepEqual(await runAfterHooks(hooks, outcome, { n: 1 }, job), []);
      const args = { onSuccess: [{ n: 1 }, job, 7], onError: [error, { n: 1 }, job], after: [{ n: 1 }, job] };
      assert.deepEqual(
        calls,
        expected.map((name) => [name, args[name as keyof typeof args]]),
      );
    });
  }

  it('runs hooks of the same kind one after the other, in the order they were added [J5]', async () => {
    const calls: string[] = [];
    const slow = (name: string) => async (): Promise<void> => {
      calls.push(`${name} starts`);
      await flushEventLoop(2);
      calls.push(`${name} ends`);
    };
    const hooks = {
      ...NOTHING,
      onSuccess: [slow('one'), slow('two')],
      after: [slow('three'), slow('four')],
    };
    assert.deepEqual(await runAfterHooks(hooks, { kind: 'completed', result: 1 }, null, job), []);
    assert.deepEqual(
      calls,
      ['one', 'two', 'three', 'four'].flatMap((name) => [`${name} starts`, `${name} ends`]),
    );
  });

  it('reports a hook that throws and runs the others [J5]', async () => {
    const calls: string[] = [];
    const hooks = {
      ...NOTHING,
      onError: [
        throwing(new Error('first')),
        () => calls.push('second'),
        () => Promise.reject(new Error('third')),
      ],
      after: [throwing('text'), () => calls.push('last')],
    };
    const errors = await runAfterHooks(hooks, { kind: 'failed', error }, null, job);
    assert.deepEqual(calls, ['second', 'last']);
    assert.deepEqual(
      errors.map(({ hook, error: { message } }) => [hook, message]),
      [
        ['onError', 'first'],
        ['onError', 'third'],
        ['after', 'text'],
      ],
    );
  });

  it('names the hook that has not ended yet [J5]', async () => {
    const current: (string | undefined)[] = [];
    const hook = async (): Promise<void> => {
      current.push(after.current);
      await flushEventLoop(1);
      if (current.length === 1) throw new Error('no');
    };
    const hooks = { ...NOTHING, onSuccess: [hook, hook], after: [hook] };
    const after = new AfterHooks(hooks, { kind: 'completed', result: 1 }, null, job);
    await after.run();
    assert.deepEqual([...current, after.current], ['onSuccess', 'onSuccess', 'after', undefined]);
  });

  it('never rejects, whatever is thrown [J5]', async () => {
    const fail = throwing(new Error('no'));
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    const reported: Error[] = [];
    for (const thrown of [undefined, null, Symbol('s'), revoked.proxy, { toString: fail, toJSON: fail }]) {
      const after = [throwing(thrown)];
      const errors = await runAfterHooks({ ...NOTHING, after }, { kind: 'released' }, null, job);
      reported.push(...errors.map(({ error: thrownError }) => thrownError));
    }
    assert.equal(reported.length, 5);
    for (const one of reported) assert.ok(one instanceof Error);
  });
});
