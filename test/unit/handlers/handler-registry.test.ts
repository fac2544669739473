import assert from 'node:assert/strict';
import type { ResolvedHandlerOptions } from '../../../src/config/handler-options.js';
import type { DefinedTask, HandlerRegistry } from '../../../src/handlers/handler-registry.js';
import type { JobContext } from '../../../src/domain/job/handler.js';
import { aRegistry } from '../../support/factories/handler-registry.js';

const job = { id: 'a', taskType: 'work' } as JobContext;

describe('HandlerRegistry', () => {
  let registry: HandlerRegistry;
  beforeEach(() => (registry = aRegistry()));

  const run = (handler: unknown): unknown => {
    registry.register('work', handler);
    return registry.get('work')?.run('payload', job);
  };

  describe('looks up the handler in this order: [J6]', () => {
    it('a function', async () => {
      assert.deepEqual(await run((...args: unknown[]) => args), ['payload', job]);
    });

    it('a static handle, called on its class', async () => {
      class Both {
        static greeting = 'static';
        static handle(...args: unknown[]): unknown {
          return [this.greeting, ...args];
        }
        handle(): string {
          return 'instance';
        }
      }
      assert.deepEqual(await run(Both), ['static', 'payload', job]);
    });

    it('the handle of an instance, with a new instance per job', async () => {
      let instances = 0;
      class Greeter {
        readonly number = ++instances;
        handle(...args: unknown[]): unknown {
          return [this.number, ...args];
        }
        execute(): boolean {
          return false;
        }
      }
      assert.deepEqual(await run(Greeter), [1, 'payload', job]);
      assert.deepEqual(await registry.get('work')?.run('payload', job), [2, 'payload', job]);
    });

    it('the execute of an instance, which receives the job', async () => {
      const received: unknown[] = [];
      class Old {
        execute(...args: unknown[]): boolean {
          received.push(this instanceof Old, ...args);
          return true;
        }
      }
      assert.equal(await run(Old), undefined);
      assert.deepEqual(received, [true, job]);
    });

    it('an error that lists what is possible', () => {
      class Nothing {}
      for (const handler of [
        Nothing,
        {},
        { handle: 'text' },
        { execute: () => true },
        undefined,
        null,
        'f',
        7,
      ]) {
        assert.throws(() => registry.register('work', handler), {
          code: 'HANDLER_INVALID',
          message: /^the handler for 'work' must be a function, a class with handle/,
        });
      }
      assert.deepEqual(registry.taskTypes, []);
    });
  });

  it('accepts an object with handle, called on the object', async () => {
    const greeter = {
      greeting: 'hello',
      handle(payload: unknown): unknown {
        return [this.greeting, payload];
      },
    };
    assert.deepEqual(await run(greeter), ['hello', 'payload']);
  });

  it('finds an inherited handle', async () => {
    class Base {
      handle(): string {
        return 'inherited';
      }
    }
    class Derived extends Base {}
    assert.equal(await run(Derived), 'inherited');
  });

  for (const [label, returned] of [
    ['false', false],
    ['a promise of false', Promise.resolve(false)],
  ] as const) {
    it(`treats ${label} from execute as a failure [Y11]`, async () => {
      class Old {
        execute(): unknown {
          return returned;
        }
      }
      await assert.rejects(async () => run(Old), { code: 'JOB_RETURNED_FALSE' });
    });
  }

  it('treats anything but false from execute as a success [Y11]', async () => {
    for (const value of [true, undefined, 0, '', null]) {
      class Old {
        execute(): unknown {
          return value;
        }
      }
      registry = aRegistry();
      assert.equal(await run(Old), undefined);
    }
  });

  it('has only handlers that were registered', () => {
    for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
      assert.equal(registry.get(name), undefined);
      const handler = (): string => name;
      registry.register(name, handler);
      assert.equal(registry.get(name)?.run, handler);
    }
    assert.equal(registry.taskTypes.length, 4);
  });

  it('rejects another handler under a name that is taken', () => {
    const handler = (): number => 1;
    registry.register('work', handler);
    assert.doesNotThrow(() => registry.register('work', handler));
    assert.throws(() => registry.register('work', () => 1), { code: 'HANDLER_EXISTS', message: /'work'/ });
    assert.equal(registry.get('work')?.run, handler);
  });

  it('rejects invalid names and options without registering anything', () => {
    for (const name of ['', 'a@b', { $ne: 1 }, undefined]) {
      assert.throws(() => registry.register(name, () => 1), { code: 'INVALID_ARGUMENT' });
    }
    assert.throws(() => registry.register('work', () => 1, { concurrency: 1 }), { code: 'INVALID_OPTIONS' });
    assert.deepEqual(registry.taskTypes, []);
  });

  describe('onChange', () => {
    const handler = (): number => 1;

    it('calls every listener after each new handler', () => {
      const calls: string[] = [];
      registry.onChange(() => calls.push('first'));
      registry.onChange(() => calls.push('second'));
      registry.register('a', handler);
      registry.register('a', handler);
      registry.register('b', handler);
      assert.deepEqual(calls, ['first', 'second', 'first', 'second']);
    });

    it('returns a function that removes only this listener', () => {
      const calls: string[] = [];
      const unsubscribe = registry.onChange(() => calls.push('first'));
      registry.onChange(() => calls.push('second'));
      unsubscribe();
      unsubscribe();
      registry.register('a', handler);
      assert.deepEqual(calls, ['second']);
    });
  });

  describe('settingsFor', () => {
    const defaults = {
      lease: 60_000,
      timeout: 3_600_000,
      retries: { max: 3, base: 1000, cap: 60_000, jitter: 'full' },
      settlesImmediately: false,
      expiresIn: undefined,
      retention: undefined,
    };
    const aDefinition = (options: ResolvedHandlerOptions, handledBy?: string): DefinedTask => ({
      options,
      hooks: { when: [], skip: [], before: [], onSuccess: [], onError: [], after: [] },
      defaults: { payload: null, queue: null, priority: 100, maxRunningTime: null, expiresIn: null },
      handledBy,
      isServed: true,
      isSingleInstance: false,
    });

    it('returns the options of the Scheduler for a task type without a handler here', () => {
      assert.deepEqual(registry.settingsFor('unknown'), defaults);
      const other = aRegistry({ lockTimeout: '5m', timeout: '1m', retries: { max: 7 } });
      assert.deepEqual(other.settingsFor('unknown'), {
        ...defaults,
        lease: 300_000,
        timeout: 60_000,
        retries: { ...defaults.retries, max: 7 },
      });
    });

    it('lets the options of a handler override them one by one', () => {
      registry.register('work', () => 1, { retries: { base: '5s' }, settle: 'immediate' });
      assert.deepEqual(registry.settingsFor('work'), {
        ...defaults,
        retries: { ...defaults.retries, base: 5000 },
        settlesImmediately: true,
        expiresIn: undefined,
        retention: undefined,
      });
      registry.register('lone', () => 1, { lease: '10s', timeout: '2s' });
      assert.deepEqual(registry.settingsFor('lone'), { ...defaults, lease: 10_000, timeout: 2000 });
    });

    it('merges the retries of a definition with those of the handler field by field [B25]', () => {
      const [isTransient, delay] = [() => true, () => '1s'];
      registry.register('work', () => 1, { retries: { max: 9, base: '5s', if: isTransient } });
      registry.define('nightly', aDefinition({ retries: { max: 2, delay } }, 'work'));
      const retries = { ...defaults.retries, base: 5000, if: isTransient };
      assert.deepEqual(registry.settingsFor('work').retries, { ...retries, max: 9 });
      assert.deepEqual(registry.settingsFor('nightly').retries, { ...retries, max: 2, delay });
    });

    it('includes functions in the retries of the Scheduler [B25]', () => {
      const isTransient = (): boolean => true;
      const other = aRegistry({ retries: { if: isTransient } });
      other.register('work', () => 1, { retries: { max: 7 } });
      assert.deepEqual(other.settingsFor('work').retries, { ...defaults.retries, max: 7, if: isTransient });
    });

    it('follows a definition to the handler that it runs, and a new registration', () => {
      registry.define('nightly', aDefinition({ timeout: 1000 }, 'work'));
      assert.deepEqual(registry.settingsFor('nightly'), defaults);
      registry.register('work', () => 1, { timeout: '2s', lease: '10s' });
      assert.deepEqual(registry.settingsFor('nightly'), { ...defaults, timeout: 1000, lease: 10_000 });
      assert.deepEqual(registry.settingsFor('work'), { ...defaults, timeout: 2000, lease: 10_000 });
    });
  });
});
