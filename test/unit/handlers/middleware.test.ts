import assert from 'node:assert/strict';
import type { HandlerFunction, JobContext } from '../../../src/domain/job/handler.js';
import {
  applyMiddleware,
  assertMiddleware,
  type HandlerMiddleware,
} from '../../../src/handlers/middleware.js';
import { signal } from '../../support/events.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { aJobContext } from '../../support/handlers/job-context.js';
import { throwing } from '../../support/handlers/recording-definition.js';
import { currentValue } from '../../support/job-executor.js';

describe('applyMiddleware', () => {
  const job = aJobContext();
  const boom = new Error('boom');

  async function call(
    run: HandlerFunction<unknown>,
    middleware: HandlerMiddleware[],
    context: JobContext = job,
  ): Promise<unknown> {
    return applyMiddleware(run, middleware)('payload', context);
  }

  it('returns the handler itself without middleware: jobs pay nothing for it [B26]', () => {
    const run = (): number => 1;
    assert.equal(applyMiddleware(run, []), run);
  });

  it('calls the first middleware outermost, and the handler with its arguments [B26]', async () => {
    const calls: unknown[] = [];
    const named =
      (name: string): HandlerMiddleware =>
      async (context, next) => {
        calls.push(`${name} before`, context === job);
        const result = await next();
        calls.push(`${name} after`);
        return result;
      };
    const run = (...args: unknown[]): string => {
      calls.push(args);
      return 'done';
    };
    assert.equal(await call(run, [named('a'), named('b')]), 'done');
    assert.deepEqual(calls, ['a before', true, 'b before', true, ['payload', job], 'b after', 'a after']);
  });

  describe('the result', () => {
    it('is what next() resolves to when the middleware returns nothing [B26]', async () => {
      const silent: HandlerMiddleware = async (_, next) => {
        assert.equal(await next(), 'done');
      };
      assert.equal(await call(() => 'done', [silent, silent]), 'done');
    });

    it('is what the middleware returns otherwise, also null [B26]', async () => {
      const replace =
        (value: unknown): HandlerMiddleware =>
        async (_, next) => {
          await next();
          return value;
        };
      for (const value of ['other', null, false, 0])
        assert.equal(await call(() => 'done', [replace(value)]), value);
    });

    it('is the result of the handler if the middleware does not await next() [B26]', async () => {
      const { promise, fire } = signal<string>();
      const result = call(() => promise, [(_, next) => void next()]);
      assert.equal(await currentValue(result), 'pending');
      fire('done');
      assert.equal(await result, 'done');
    });

    it('may come from the middleware alone, for example from a cache [B26]', async () => {
      assert.equal(await call(() => assert.fail('not called'), [() => 'cached']), 'cached');
    });
  });

  describe('an error of the handler', () => {
    it('is thrown by next() and may be replaced [B26]', async () => {
      const translate: HandlerMiddleware = async (_, next) => {
        try {
          return await next();
        } catch (error) {
          throw new Error('translated', { cause: error });
        }
      };
      await assert.rejects(call(throwing(boom), [translate]), { message: 'translated', cause: boom });
    });

    it('stands when the middleware only reports it [B26]', async () => {
      const seen: unknown[] = [];
      const report: HandlerMiddleware = async (_, next) => {
        try {
          await next();
        } catch (error) {
          seen.push(error);
        }
      };
      await assert.rejects(call(throwing(boom), [report, report]), boom);
      assert.deepEqual(seen, [boom, boom]);
    });

    it('stands when the middleware does not await next(), and is not unhandled [B26]', async () => {
      for (const run of [throwing(boom), async () => flushEventLoop(1).then(throwing(boom))])
        await assert.rejects(call(run, [(_, next) => void next()]), boom);
    });

    it('becomes a success when the middleware returns something [B26]', async () => {
      assert.equal(await call(throwing(boom), [(_, next) => next().catch(() => 'ignored')]), 'ignored');
    });
  });

  it('waits for the handler when the middleware ends first, so that it never runs on after its attempt [B26]', async () => {
    for (const end of [() => 'early', throwing(boom)]) {
      const { promise, fire } = signal<string>();
      const result = call(
        () => promise,
        [
          (_, next) => {
            void next();
            return end();
          },
        ],
      ).catch((error: unknown) => error);
      assert.equal(await currentValue(result), 'pending');
      fire('done');
      assert.ok(['early', boom].includes((await result) as string));
    }
  });

  describe('next()', () => {
    const MISUSED = { code: 'MIDDLEWARE_INVALID' };

    it('rejects when it is called twice, and the handler runs once [B26]', async () => {
      let runs = 0;
      const twice: HandlerMiddleware = async (_, next) => {
        await next();
        await next();
      };
      await assert.rejects(
        call(() => ++runs, [twice]),
        {
          ...MISUSED,
          message: 'a middleware of use() called next() twice: call it once, and await it',
        },
      );
      assert.equal(runs, 1);
    });

    it('must be called, unless the middleware throws or returns a result: work is not skipped silently [B26]', async () => {
      await assert.rejects(
        call(() => assert.fail('not called'), [() => undefined]),
        {
          ...MISUSED,
          message: /^a middleware of use\(\) returned without calling next\(\)/,
        },
      );
    });

    it('does not start the handler after the middleware has ended [B26]', async () => {
      let late: (() => Promise<unknown>) | undefined;
      const keep: HandlerMiddleware = (_, next) => {
        late = next;
        return 'done';
      };
      assert.equal(await call(() => assert.fail('not called'), [keep]), 'done');
      await assert.rejects(async () => late?.(), { ...MISUSED, message: /after the middleware had ended/ });
    });

    it('does not start the handler after the attempt was aborted [B26]', async () => {
      const abort = new AbortController();
      const context = { ...job, signal: abort.signal };
      const slow: HandlerMiddleware = async (_, next) => {
        abort.abort(boom);
        return next();
      };
      await assert.rejects(
        call(() => assert.fail('not called'), [slow], context),
        boom,
      );
    });

    it('ignores arguments: it may be passed to then() [B26]', async () => {
      const run = (_: unknown, context: JobContext): boolean => context === job;
      assert.equal(
        await call(run, [(_, next) => Promise.resolve('x').then(next), (_, next) => next()]),
        true,
      );
    });
  });
});

describe('assertMiddleware', () => {
  it('rejects what is not a function [B26]', () => {
    for (const wrong of [undefined, null, 'log', {}]) {
      assert.throws(() => assertMiddleware('use()', wrong), {
        code: 'INVALID_ARGUMENT',
        message: /^use\(\): the middleware must be a function, got /,
      });
    }
  });
});
